//! Lines of logs, as they come.
//!
//! takes: a stream of Argo CD - gives: items `{data}`, and at last `{done}` or `{error, done}`; who began it is looked at again
//! every minute - fails: a line that is too long, or is none, ends it

use std::time::Duration;

use async_graphql::SimpleObject;
use bytes::{Buf as _, BytesMut};
use futures::Stream;
use serde::Deserialize;
use stages_client::Opened;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use crate::desk::{About, Caller, Desk};

/// The longest line.
const LINE: usize = 1 << 20;
/// How often it is seen whether they still may.
const LOOK: Duration = Duration::from_secs(60);

/// A line of a log.
#[derive(Debug, SimpleObject)]
pub(crate) struct LogEntry {
    content: String,
    pod_name: Option<String>,
    timestamp: Option<String>,
}

/// An item of a stream of lines.
#[derive(Debug, SimpleObject, Default)]
pub(crate) struct ApplicationLogsResponse {
    data: Option<LogEntry>,
    error: Option<String>,
    done: Option<bool>,
}

#[derive(Deserialize)]
struct Item {
    result: Option<Line>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Line {
    content: String,
    last: bool,
    time_stamp_str: Option<String>,
    pod_name: Option<String>,
}

/// A stream that is read.
pub(crate) struct Following {
    pub(crate) opened: Opened,
    pub(crate) desk: Desk,
    pub(crate) caller: Caller,
    pub(crate) about: About,
    /// Whether the token may be asked about again.
    pub(crate) lasts: bool,
    /// Its place among all streams.
    pub(crate) place: OwnedSemaphorePermit,
}

struct Reading {
    following: Following,
    held: BytesMut,
    look: Instant,
    ended: bool,
}

impl ApplicationLogsResponse {
    fn end(error: Option<String>) -> Self {
        Self { data: None, error, done: Some(true) }
    }
}

impl Following {
    pub(crate) fn items(self) -> impl Stream<Item = ApplicationLogsResponse> + Send {
        let reading =
            Reading { following: self, held: BytesMut::new(), look: Instant::now() + LOOK, ended: false };
        futures::stream::unfold(reading, |mut reading| async move {
            if reading.ended {
                return None;
            }
            let item = reading.next().await;
            reading.ended = item.done == Some(true);
            Some((item, reading))
        })
    }
}

impl Reading {
    async fn next(&mut self) -> ApplicationLogsResponse {
        loop {
            if let Some(at) = self.held.iter().position(|byte| *byte == b'\n') {
                let line = self.held.split_to(at);
                self.held.advance(1);
                match read(&line) {
                    Some(item) => return item,
                    None => continue,
                }
            }
            if Instant::now() >= self.look {
                self.look = Instant::now() + LOOK;
                let Following { desk, caller, about, lasts, .. } = &self.following;
                if *lasts && let Err(error) = desk.still(caller, about).await {
                    return ApplicationLogsResponse::end(Some(error.to_string()));
                }
            }
            if self.held.len() > LINE {
                return ApplicationLogsResponse::end(Some("a line is longer than 1 MiB".to_owned()));
            }
            match timeout_at(self.look, self.following.opened.chunk()).await {
                Ok(Ok(Some(chunk))) => self.held.extend_from_slice(&chunk),
                Ok(Ok(None)) if self.held.is_empty() => return ApplicationLogsResponse::end(None),
                // The last line may have no end.
                Ok(Ok(None)) => self.held.extend_from_slice(b"\n"),
                Ok(Err(error)) => return ApplicationLogsResponse::end(Some(error.to_string())),
                // It is time to look whether they still may.
                Err(_) => {}
            }
        }
    }
}

fn read(line: &[u8]) -> Option<ApplicationLogsResponse> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let Ok(Item { result, error }) = serde_json::from_slice(line) else {
        return Some(ApplicationLogsResponse::end(Some("Argo CD sent what is no line".to_owned())));
    };
    if error.is_some() {
        return Some(ApplicationLogsResponse::end(Some(
            "Argo CD cannot read the log any further".to_owned(),
        )));
    }
    let line = result?;
    // The last one says so, and holds nothing.
    if line.last {
        return Some(ApplicationLogsResponse::end(None));
    }
    let data = LogEntry { content: line.content, pod_name: line.pod_name, timestamp: line.time_stamp_str };
    Some(ApplicationLogsResponse { data: Some(data), ..ApplicationLogsResponse::default() })
}

impl std::fmt::Debug for Following {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Following").field("place", &self.place).finish_non_exhaustive()
    }
}
