//! A conversation with a Git server in packets, whichever way it goes.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::http::HttpExchange;
use super::packet::{self, Packet};
use super::slots::Slot;
use super::ssh::SshChannel;
use super::{FetchError, RepositoryUrl};

/// A conversation with a server. Nothing waits longer than `idle` for its next bytes.
pub(super) struct Connection {
    way: Way,
    host: String,
    idle: Duration,
    buffer: BytesMut,
    silent: bool,
    slot: Arc<Slot>,
}

/// How bytes go.
pub(super) enum Way {
    /// One request after another.
    Http(Box<HttpExchange>),
    /// One stream.
    Ssh(Box<SshChannel>),
}

impl Connection {
    pub(super) fn new(way: Way, host: String, idle: Duration, slot: Arc<Slot>) -> Self {
        Self { way, host, idle, buffer: BytesMut::new(), silent: true, slot }
    }

    /// Why an SSH host ended before it sent a byte: it says so beside the stream, or has no such repository. `None` where it sent
    /// something, or where HTTP is spoken.
    pub(super) fn refusal_at_once(&self, url: &RepositoryUrl) -> Option<FetchError> {
        let Way::Ssh(channel) = &self.way else { return None };
        let none = || FetchError::NoRepository { url: url.to_string() };
        self.silent.then(|| channel.refusal().map_or_else(none, |words| self.refusal(&words)))
    }

    /// Sends a request; what is read from now on is its answer.
    pub(super) async fn send(&mut self, request: Vec<u8>) -> Result<(), FetchError> {
        let limit = self.idle;
        let sent = async {
            match &mut self.way {
                Way::Http(exchange) => {
                    self.buffer.clear();
                    exchange.post(request).await
                }
                Way::Ssh(channel) => channel.write(&request).await,
            }
        };
        let hangs = FetchError::Idle { host: self.host.clone(), limit };
        let sent = async { tokio::time::timeout(limit, sent).await.unwrap_or(Err(hangs)) };
        self.slot.wait(sent).await
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
                Some(bytes) => {
                    self.silent = false;
                    self.buffer.extend_from_slice(&bytes);
                }
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(self.broken("the connection ends in the middle of a packet")),
            }
        }
    }

    async fn bytes(&mut self) -> Result<Option<Bytes>, FetchError> {
        let read = async {
            match &mut self.way {
                Way::Http(exchange) => exchange.read().await,
                Way::Ssh(channel) => channel.read().await,
            }
        };
        let (limit, host) = (self.idle, &self.host);
        let hangs = || FetchError::Idle { host: host.clone(), limit };
        let read = async { tokio::time::timeout(limit, read).await.unwrap_or_else(|_| Err(hangs())) };
        let bytes = self.slot.wait(read).await?;
        self.slot.heard(bytes.as_ref().map_or(0, Bytes::len)).await?;
        Ok(bytes)
    }

    /// Waits until objects may be made of what came.
    pub(super) async fn ended(&self) -> Result<(), FetchError> {
        self.slot.ended().await
    }

    pub(super) fn broken(&self, why: &str) -> FetchError {
        FetchError::Protocol { host: self.host.clone(), why: why.to_owned() }
    }

    /// Whether a line is the server's refusal.
    pub(super) fn check(&self, line: &str) -> Result<(), FetchError> {
        line.strip_prefix("ERR ").map_or(Ok(()), |message| Err(self.refusal(message)))
    }

    /// An error in the server's own words, of which one line of what can be shown is kept.
    pub(super) fn refusal(&self, message: &str) -> FetchError {
        let message = first_line(message).unwrap_or_else(|| "it does not say why".to_owned());
        FetchError::Remote { host: self.host.clone(), message }
    }
}

/// The first line of what a server says to people that holds something, of what can be shown.
pub(super) fn first_line(message: &str) -> Option<String> {
    let line = message.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(300).collect())
}
