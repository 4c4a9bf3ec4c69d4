//! A conversation with a Git server in packets.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::FetchError;
use super::http::HttpExchange;
use super::packet::{self, Packet};

/// A conversation with a server. Nothing waits longer than `idle` for its next bytes.
pub(super) struct Connection {
    way: HttpExchange,
    host: String,
    idle: Duration,
    buffer: BytesMut,
}

impl Connection {
    pub(super) fn new(way: HttpExchange, host: String, idle: Duration) -> Self {
        Self { way, host, idle, buffer: BytesMut::new() }
    }

    /// Sends a request; what is read from now on is its answer.
    pub(super) async fn send(&mut self, request: Vec<u8>) -> Result<(), FetchError> {
        let limit = self.idle;
        let sent = async {
            self.buffer.clear();
            self.way.post(request).await
        };
        tokio::time::timeout(limit, sent).await.unwrap_or_else(|_| Err(self.hangs()))
    }

    /// The next packet.
    ///
    /// # Errors
    /// The server ends, hangs, or sends something else.
    pub(super) async fn packet(&mut self) -> Result<Packet, FetchError> {
        self.next().await?.ok_or_else(|| self.broken("the connection ends in the middle of an answer"))
    }

    /// The next packet; `None` at the end of the answer.
    pub(super) async fn next(&mut self) -> Result<Option<Packet>, FetchError> {
        loop {
            match packet::take(&mut self.buffer) {
                Ok(Some(packet)) => return Ok(Some(packet)),
                Ok(None) => {}
                Err(why) => return Err(self.broken(why)),
            }
            match self.bytes().await? {
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(self.broken("the connection ends in the middle of a packet")),
            }
        }
    }

    async fn bytes(&mut self) -> Result<Option<Bytes>, FetchError> {
        tokio::time::timeout(self.idle, self.way.read()).await.unwrap_or_else(|_| Err(self.hangs()))
    }

    fn hangs(&self) -> FetchError {
        FetchError::Idle { host: self.host.clone(), limit: self.idle }
    }

    pub(super) fn broken(&self, why: &str) -> FetchError {
        FetchError::Protocol { host: self.host.clone(), why: why.to_owned() }
    }

    /// An error in the server's own words, of which one line of what can be shown is kept.
    pub(super) fn refusal(&self, message: &str) -> FetchError {
        let line =
            message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it does not say why");
        let message = line.chars().filter(|c| !c.is_control()).take(300).collect();
        FetchError::Remote { host: self.host.clone(), message }
    }
}
