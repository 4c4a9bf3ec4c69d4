//! The logs of the runtime's own pods as they come: one after the other, or all at once where they are followed.
//!
//! takes: a component, or none for all of them - gives: lines, what cannot be read, and at last their end, with why; who began it is
//! looked at again every minute - calls: the API server - fails: where pods cannot be listed, or more would be followed than may be
//!
//! Secrets are in none of the runtime's own lines; those of other programs are redacted, a private key as a whole.

use std::pin::Pin;
use std::sync::Arc;

use bytes::{Buf as _, BytesMut};
use futures::stream::{BoxStream, SelectAll};
use futures::{Stream, StreamExt as _};
use pipeline_redact::Redactor;
use stages_kube::{Pieces, QuestionError};
use tokio::time::{Instant, timeout_at};

use crate::archive::KEY_LINES;
use crate::error::ActError;
use crate::logs::timed;
use crate::own_pods::{OwnLog, OwnPods};
use crate::stream_grant::StreamGrant;

/// The most logs that one request follows.
const MAX_FOLLOWED: usize = 64;
/// The most bytes of a line.
const MAX_LINE: usize = 128 << 10;

/// Reads the logs of the runtime's own pods. Cloning shares.
#[derive(Clone)]
pub(crate) struct ComponentLogs {
    pub(crate) pods: OwnPods,
    pub(crate) redactor: Arc<Redactor>,
}

/// Which logs, and what of them.
pub(crate) struct WantedLogs {
    /// `None`: of all components.
    pub(crate) component: Option<String>,
    pub(crate) follow: bool,
    pub(crate) tail_lines: i64,
    pub(crate) since_seconds: Option<i64>,
}

/// A line of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ComponentLine {
    pub(crate) log: OwnLog,
    pub(crate) timestamp: Option<String>,
    pub(crate) content: String,
}

/// An item of the stream of several logs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ComponentItem {
    Line(ComponentLine),
    /// Which log cannot be read, and why; the others go on.
    Unread(String),
    /// The last item: why the stream ends, or `None` where all logs have ended.
    End(Option<String>),
}

/// Reads the log of one container, line by line.
struct ContainerLogReader {
    of: ComponentLogs,
    log: OwnLog,
    pieces: Pieces,
    /// The bytes of lines that have not been read.
    held: BytesMut,
    /// Lines of a private key that has not ended.
    key: Vec<String>,
    /// When the first of them was written.
    key_at: Option<String>,
    ended: bool,
}

/// The lines of several logs, for as long as whoever asked may read them.
struct ComponentLogStream {
    lines: Pin<Box<dyn Stream<Item = ComponentItem> + Send>>,
    grant: StreamGrant,
    ended: bool,
}

impl ComponentLogs {
    /// Begins to read logs for somebody who was granted them.
    pub(crate) async fn begin(
        self,
        wanted: WantedLogs,
        grant: StreamGrant,
    ) -> Result<impl Stream<Item = ComponentItem> + Send + 'static, ActError> {
        let logs = self.pods.logs().await?.logs.into_iter().filter(|log| !log.previous);
        let logs: Vec<OwnLog> = match &wanted.component {
            None => logs.collect(),
            Some(component) => {
                let found: Vec<OwnLog> = logs.filter(|log| log.component == *component).collect();
                if found.is_empty() {
                    let why =
                        format!("no pod of the runtime is of the component {}", stages_git::shown(component));
                    return Err(ActError::NotFound(why));
                }
                found
            }
        };
        if wanted.follow && logs.len() > MAX_FOLLOWED {
            return Err(ActError::Wrong(format!(
                "that would be {} logs, and {MAX_FOLLOWED} are followed at most: name a component",
                logs.len()
            )));
        }
        let mut more = format!("timestamps=true&tailLines={}", wanted.tail_lines);
        if let Some(seconds) = wanted.since_seconds {
            more += &format!("&sinceSeconds={seconds}");
        }
        let follow = wanted.follow;
        more += &format!("&follow={follow}");
        let of = move |log| self.clone().lines(log, more.clone());
        let lines: BoxStream<'static, ComponentItem> = match follow {
            true => logs.into_iter().map(of).collect::<SelectAll<_>>().boxed(),
            false => futures::stream::iter(logs).flat_map(of).boxed(),
        };
        let telling = ComponentLogStream { lines, grant, ended: false };
        Ok(futures::stream::unfold(telling, |mut telling| async move {
            if telling.ended {
                return None;
            }
            let item = telling.next().await;
            telling.ended = matches!(item, ComponentItem::End(_));
            Some((item, telling))
        }))
    }

    /// The lines of one log.
    fn lines(self, log: OwnLog, more: String) -> BoxStream<'static, ComponentItem> {
        let opening = async move {
            let place = log.path();
            let unread = |why: String| futures::stream::iter([ComponentItem::Unread(why)]).boxed();
            match self.pods.cluster.pieces(&self.pods.path(&log, &more)).await {
                Ok(Some(pieces)) => {
                    let (held, key, key_at) = (BytesMut::new(), Vec::new(), None);
                    let reading =
                        ContainerLogReader { of: self, log, pieces, held, key, key_at, ended: false };
                    futures::stream::unfold(reading, ContainerLogReader::next).boxed()
                }
                Ok(None) => unread(format!("{place}: it is gone")),
                Err(error) => unread(format!("{place}: {error}")),
            }
        };
        futures::stream::once(opening).flatten().boxed()
    }
}

impl ComponentLogStream {
    async fn next(&mut self) -> ComponentItem {
        loop {
            let end = self.grant.end();
            if Instant::now() >= end {
                let why = "a stream ends after a while, and may be begun again";
                return ComponentItem::End(Some(why.to_owned()));
            }
            if let Err(error) = self.grant.look().await {
                return ComponentItem::End(Some(error.to_string()));
            }
            match timeout_at(self.grant.next_look().min(end), self.lines.next()).await {
                Ok(Some(item)) => return item,
                Ok(None) => return ComponentItem::End(None),
                // It is time to ask again whether they may.
                Err(_) => {}
            }
        }
    }
}

impl ContainerLogReader {
    async fn next(mut self) -> Option<(ComponentItem, Self)> {
        while !self.ended {
            if let Some(at) = self.held.iter().position(|byte| *byte == b'\n') {
                let line = self.held.split_to(at);
                self.held.advance(1);
                if let Some(item) = self.read(&String::from_utf8_lossy(&line)) {
                    return Some((item, self));
                }
                continue;
            }
            let why = match self.pieces.next().await {
                _ if self.held.len() > MAX_LINE => "a line is longer than 128 KiB".to_owned(),
                Ok(Some(piece)) => {
                    self.held.extend_from_slice(&piece);
                    continue;
                }
                // The last line may have no newline.
                Ok(None) if !self.held.is_empty() => {
                    self.held.extend_from_slice(b"\n");
                    continue;
                }
                Ok(None) => {
                    self.ended = true;
                    return self.key_so_far().map(|item| (item, self));
                }
                Err(QuestionError::Status(status)) => format!("the API server answered {status}"),
                Err(_) => "the API server cut it short".to_owned(),
            };
            self.ended = true;
            let why = format!("{}: {why}", self.log.path());
            return Some((ComponentItem::Unread(why), self));
        }
        None
    }

    /// Reads a line; `None`: it belongs to a private key that has not ended.
    fn read(&mut self, line: &str) -> Option<ComponentItem> {
        let (at, content) = timed(line);
        if self.key.is_empty() && !content.contains("-----BEGIN") {
            return Some(self.item(at.map(str::to_owned), content));
        }
        if self.key.is_empty() {
            self.key_at = at.map(str::to_owned);
        }
        self.key.push(content.to_owned());
        let has_ended = content.contains("-----END") || self.key.len() > KEY_LINES;
        if has_ended { self.key_so_far() } else { None }
    }

    fn key_so_far(&mut self) -> Option<ComponentItem> {
        let key = std::mem::take(&mut self.key);
        let at = self.key_at.take();
        (!key.is_empty()).then(|| self.item(at, &key.join("\n")))
    }

    fn item(&self, timestamp: Option<String>, content: &str) -> ComponentItem {
        let content = self.of.redactor.text(content).into_owned();
        ComponentItem::Line(ComponentLine { log: self.log.clone(), timestamp, content })
    }
}
