//! A subscription of GraphQL, whose results come as server-sent events (`text/event-stream`).

use serde::Deserialize;
use serde_json::{Map, Value};
use stages_client::Opened;

use crate::error::RemoteError;
use crate::platform::Message;
use crate::show::plain;

/// The most bytes that one event may have.
const MAX_EVENT: usize = 4 << 20;

/// The results of a subscription, one after another.
pub(crate) struct Subscription {
    stream: Opened,
    events: EventDecoder,
    /// Whether an event has come, so that this is a stream at all.
    has_events: bool,
    refused: Box<dyn Fn(String) -> RemoteError>,
}

/// Decodes server-sent events: holds the bytes of the last, unfinished line, and the data of the unfinished event.
#[derive(Default)]
struct EventDecoder {
    held: Vec<u8>,
    data: Option<String>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    data: Option<Map<String, Value>>,
    /// Some servers write null where there are none.
    #[serde(default)]
    errors: Option<Vec<Message>>,
}

impl Subscription {
    /// Reads the results from an open response; `refused` makes an error of what it says against the subscription.
    pub(crate) fn new(stream: Opened, refused: impl Fn(String) -> RemoteError + 'static) -> Self {
        Self { stream, events: EventDecoder::default(), has_events: false, refused: Box::new(refused) }
    }

    /// The data of the next result; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Map<String, Value>>, RemoteError> {
        loop {
            while let Some(text) = self.events.next() {
                self.has_events = true;
                // Events that only keep the connection alive hold no JSON.
                let Ok(piece) = serde_json::from_str::<Response>(&text) else { continue };
                if let Some(error) = piece.errors.iter().flatten().next() {
                    return Err((self.refused)(plain(&error.message)));
                }
                if let Some(data) = piece.data {
                    return Ok(Some(data));
                }
            }
            match self.stream.chunk().await? {
                None if self.has_events => return Ok(None),
                None => return Err(self.no_stream()),
                Some(bytes) => self.events.held.extend_from_slice(&bytes),
            }
            if self.events.held.len() + self.events.data.as_ref().map_or(0, String::len) > MAX_EVENT {
                return Err((self.refused)("a piece of its answer is too long".to_owned()));
            }
        }
    }
}

impl Subscription {
    /// Why there was no stream: a server that refuses one may answer with plain JSON instead.
    fn no_stream(&self) -> RemoteError {
        let answer: Option<Response> = serde_json::from_slice(&self.events.held).ok();
        let said =
            answer.and_then(|answer| answer.errors?.into_iter().next()).map(|error| plain(&error.message));
        (self.refused)(said.unwrap_or_else(|| "its answer is no stream".to_owned()))
    }
}

impl EventDecoder {
    /// The data of the next event that is whole.
    fn next(&mut self) -> Option<String> {
        while let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.held.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if let Some(data) = line.strip_prefix("data:") {
                let data = data.strip_prefix(' ').unwrap_or(data);
                match &mut self.data {
                    Some(before) => before.extend(["\n", data]),
                    None => self.data = Some(data.to_owned()),
                }
            } else if line.is_empty()
                && let Some(data) = self.data.take()
            {
                return Some(data);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::platform::{ANSWER, Platform};

    /// What is made of a stream of `text`, over and over: its pieces, and how it ended.
    async fn read_of(text: &str, times: usize) -> (Vec<Value>, String) {
        stages_client::install_crypto();
        let text = text.repeat(times);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            // Whoever has read enough reads no more.
            let _ = stream.write_all(text.as_bytes()).await;
        });
        let platform = Platform::at(&url, "key".into(), None, false, ANSWER).await.unwrap();
        let mut items =
            platform.subscribe("read", &["api"], "subscription { line }", json!({})).await.unwrap();
        let mut all = Vec::new();
        let ended = loop {
            match items.next().await {
                Ok(Some(mut piece)) => all.push(piece.remove("line").unwrap()),
                Ok(None) => break String::new(),
                Err(error) => break error.to_string(),
            }
        };
        drop(items);
        serving.await.unwrap();
        (all, ended)
    }

    #[tokio::test]
    async fn pieces_whose_errors_are_null_are_pieces_and_what_is_against_them_ends_them() {
        let text = "data: {\"data\":{\"line\":1},\"errors\":null}\n\ndata: {\"data\":{\"line\":2}}\n\n\
                    data: {\"data\":{\"line\":3},\"errors\":[]}\n\n";
        assert_eq!(read_of(text, 1).await, (vec![json!(1), json!(2), json!(3)], String::new()));
        let (all, why) = read_of("data: {\"data\":null,\"errors\":[{\"message\":\"no\"}]}\n\n", 1).await;
        assert!(all.is_empty() && why.ends_with(": no"), "{why}");
        let (all, why) = read_of("{\"data\":null,\"errors\":[{\"message\":\"no stream\"}]}", 1).await;
        assert!(all.is_empty() && why.ends_with(": no stream"), "{why}");
    }

    #[tokio::test]
    async fn an_event_that_is_too_long_is_given_up_also_where_its_lines_are_short() {
        let line = "x".repeat(1_000);
        for (text, what) in [(format!("data: {line}\n"), "many lines"), (line, "one line")] {
            let (all, why) = read_of(&text, MAX_EVENT / 500).await;
            assert!(all.is_empty() && why.ends_with(": a piece of its answer is too long"), "{what}: {why}");
        }
    }

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text =
            ": hello\n\nevent: next\ndata: {\"a\":\ndata: 1}\n\ndata:two\r\n\r\nevent: complete\n\ndata: cut";
        for size in [1, 3, 7, text.len()] {
            let mut events = EventDecoder::default();
            let mut all = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                events.held.extend_from_slice(chunk);
                while let Some(event) = events.next() {
                    all.push(event);
                }
            }
            assert_eq!(all, ["{\"a\":\n1}", "two"], "in pieces of {size}");
        }
    }
}
