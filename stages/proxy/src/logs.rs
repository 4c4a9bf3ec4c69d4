//! Logs that Argo CD or Argo Workflows streams, line by line.
//!
//! takes: a stream of Argo CD, or of the server of Argo Workflows - gives: lines, and at last their end, with why; who began it is
//! looked at again every minute - fails: a line that is too long, or is none, ends it

use bytes::{Buf as _, BytesMut};
use futures::Stream;
use jiff::Timestamp;
use serde::Deserialize;
use stages_client::Opened;
use tokio::time::timeout_at;

use crate::stream_grant::StreamGrant;

/// The most bytes of a line.
const MAX_LINE: usize = 1 << 20;

/// A line of a log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogLine {
    pub(crate) content: String,
    pub(crate) pod_name: Option<String>,
    pub(crate) timestamp: Option<String>,
}

/// An item of a log's stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LogItem {
    Line(LogLine),
    /// The last item: why the stream ends, or `None` where the log has ended.
    End(Option<String>),
}

/// The peer that streams a log, in its own format.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogSource {
    ArgoCd,
    /// Each line begins with when it was written.
    Workflows,
}

#[derive(Deserialize)]
struct StreamedItem {
    result: Option<StreamedLine>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct StreamedLine {
    content: String,
    last: bool,
    time_stamp_str: Option<String>,
    pod_name: Option<String>,
}

/// A log's stream, for as long as whoever asked may read it.
pub(crate) struct LogStream {
    pub(crate) source: LogSource,
    pub(crate) opened: Opened,
    pub(crate) grant: StreamGrant,
}

struct LogReader {
    stream: LogStream,
    held: BytesMut,
    ended: bool,
}

impl LogSource {
    const fn name(self) -> &'static str {
        match self {
            Self::ArgoCd => "Argo CD",
            Self::Workflows => "Argo Workflows",
        }
    }
}

impl LogStream {
    pub(crate) fn items(self) -> impl Stream<Item = LogItem> + Send {
        let reading = LogReader { stream: self, held: BytesMut::new(), ended: false };
        futures::stream::unfold(reading, |mut reading| async move {
            if reading.ended {
                return None;
            }
            let item = reading.next().await;
            reading.ended = matches!(item, LogItem::End(_));
            Some((item, reading))
        })
    }
}

impl LogReader {
    async fn next(&mut self) -> LogItem {
        loop {
            if let Some(at) = self.held.iter().position(|byte| *byte == b'\n') {
                let line = self.held.split_to(at);
                self.held.advance(1);
                match read(self.stream.source, &line) {
                    Some(item) => return item,
                    None => continue,
                }
            }
            if let Err(error) = self.stream.grant.look().await {
                return LogItem::End(Some(error.to_string()));
            }
            if self.held.len() > MAX_LINE {
                return LogItem::End(Some("a line is longer than 1 MiB".to_owned()));
            }
            match timeout_at(self.stream.grant.next_look(), self.stream.opened.chunk()).await {
                Ok(Ok(Some(chunk))) => self.held.extend_from_slice(&chunk),
                Ok(Ok(None)) if self.held.is_empty() => return LogItem::End(None),
                // The last line may have no newline.
                Ok(Ok(None)) => self.held.extend_from_slice(b"\n"),
                Ok(Err(error)) => return LogItem::End(Some(error.to_string())),
                // It is time to ask again whether they may.
                Err(_) => {}
            }
        }
    }
}

fn read(source: LogSource, line: &[u8]) -> Option<LogItem> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let peer = source.name();
    let Ok(StreamedItem { result, error }) = serde_json::from_slice(line) else {
        return Some(LogItem::End(Some(format!("{peer} sent what is no line"))));
    };
    if error.is_some() {
        return Some(LogItem::End(Some(format!("{peer} cannot read the log any further"))));
    }
    let StreamedLine { content, last, time_stamp_str, pod_name } = result?;
    // The last item has no content.
    if last {
        return Some(LogItem::End(None));
    }
    let (timestamp, content) = match (source, timed(&content)) {
        (LogSource::Workflows, (Some(at), rest)) => (Some(at.to_owned()), rest.to_owned()),
        _ => (time_stamp_str, content),
    };
    Some(LogItem::Line(LogLine { content, pod_name, timestamp }))
}

/// Splits off the time that stands before a line, if one does.
pub(crate) fn timed(line: &str) -> (Option<&str>, &str) {
    match line.split_once(' ') {
        Some((at, rest)) if at.parse::<Timestamp>().is_ok() => (Some(at), rest),
        _ => (None, line),
    }
}

impl std::fmt::Debug for LogStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogStream").field("grant", &self.grant).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_workflows_begin_with_when_they_were_written() {
        let read = |content: &str| {
            let line = serde_json::json!({"result": {"content": content, "podName": "build-1"}}).to_string();
            match read(LogSource::Workflows, line.as_bytes()) {
                Some(LogItem::Line(line)) => (line.timestamp, line.content),
                other => panic!("{content}: {other:?}"),
            }
        };
        let at = |at: &str| Some(at.to_owned());
        let first = read("2026-01-01T00:00:00.123456789Z  step 1 of 2");
        assert_eq!(first, (at("2026-01-01T00:00:00.123456789Z"), " step 1 of 2".to_owned()));
        assert_eq!(read("2026-01-01T00:00:00Z "), (at("2026-01-01T00:00:00Z"), String::new()));
        assert_eq!(read("step 1 of 2"), (None, "step 1 of 2".to_owned()));
        assert_eq!(read(""), (None, String::new()));
    }

    #[test]
    fn what_is_no_line_ends_the_log_and_says_whose() {
        let end = |said: &str| Some(LogItem::End(Some(said.to_owned())));
        let broken = br#"{"error":{"grpc_code":13,"message":"secret"}}"#;
        assert_eq!(read(LogSource::Workflows, broken), end("Argo Workflows cannot read the log any further"));
        assert_eq!(read(LogSource::ArgoCd, broken), end("Argo CD cannot read the log any further"));
        assert_eq!(read(LogSource::Workflows, b"<html>"), end("Argo Workflows sent what is no line"));
        assert_eq!(read(LogSource::ArgoCd, b" "), None);
    }
}
