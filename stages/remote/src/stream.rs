//! What comes piece by piece: answers to a subscription, as events of `text/event-stream`.

use serde::Deserialize;
use serde_json::{Map, Value};
use stages_client::Opened;

use crate::error::RemoteError;
use crate::show::plain;

/// Bytes of one event.
const LONGEST: usize = 4 << 20;

/// What comes piece by piece.
pub(crate) struct Items {
    stream: Opened,
    events: Events,
    /// Whether it is a stream at all.
    came: bool,
    refused: Box<dyn Fn(String) -> RemoteError>,
}

/// Bytes that came, and the events that are whole.
#[derive(Default)]
struct Events {
    held: Vec<u8>,
    data: Vec<String>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    data: Option<Map<String, Value>>,
    #[serde(default)]
    errors: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

impl Items {
    /// Of an answer; `refused` makes an error of what it says against it.
    pub(crate) fn new(stream: Opened, refused: impl Fn(String) -> RemoteError + 'static) -> Self {
        Self { stream, events: Events::default(), came: false, refused: Box::new(refused) }
    }

    /// The next piece; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Map<String, Value>>, RemoteError> {
        loop {
            while let Some(text) = self.events.next() {
                self.came = true;
                // What keeps the connection alive says nothing.
                let Ok(piece) = serde_json::from_str::<Piece>(&text) else { continue };
                if let Some(error) = piece.errors.first() {
                    return Err((self.refused)(plain(&error.message)));
                }
                if let Some(data) = piece.data {
                    return Ok(Some(data));
                }
            }
            match self.stream.chunk().await? {
                None if self.came => return Ok(None),
                None => return Err(self.none()),
                Some(bytes) => self.events.held.extend_from_slice(&bytes),
            }
            if self.events.held.len() > LONGEST {
                return Err((self.refused)("a piece of its answer is too long".to_owned()));
            }
        }
    }
}

impl Items {
    /// Why there was no stream: whoever refuses one may answer as to any other question.
    fn none(&self) -> RemoteError {
        let answer: Option<Piece> = serde_json::from_slice(&self.events.held).ok();
        let said =
            answer.and_then(|answer| answer.errors.into_iter().next()).map(|error| plain(&error.message));
        (self.refused)(said.unwrap_or_else(|| "its answer is no stream".to_owned()))
    }
}

impl Events {
    /// The data of the next event that is whole.
    fn next(&mut self) -> Option<String> {
        while let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.held.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if let Some(data) = line.strip_prefix("data:") {
                self.data.push(data.strip_prefix(' ').unwrap_or(data).to_owned());
            } else if line.is_empty() && !self.data.is_empty() {
                return Some(std::mem::take(&mut self.data).join("\n"));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text =
            ": hello\n\nevent: next\ndata: {\"a\":\ndata: 1}\n\ndata:two\r\n\r\nevent: complete\n\ndata: cut";
        for size in [1, 3, 7, text.len()] {
            let mut events = Events::default();
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
