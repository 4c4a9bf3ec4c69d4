//! Publishes messages, many at a time and in the order of the calls.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::{ContextBuilder, PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::{self, ErrorCode, message::PublishMessage};
use tokio::sync::OwnedSemaphorePermit;

use super::reached::{Mark, StreamPosition};
use super::{BusError, JetStream, headers};
use crate::{Message, Published, REPORTS, Refusal, Subject};

/// Publishes that may be unanswered at a time.
pub(super) const IN_FLIGHT: usize = 256;

/// Kibibytes that may be unanswered at a time: 32 MiB.
pub(super) const ROOM_KIB: usize = 32 * 1024;

/// What asks a server of streams, and waits so long for each answer.
pub(super) fn context(client: &Client, timeout: Duration) -> jetstream::Context {
    ContextBuilder::new()
        .timeout(timeout)
        .ack_timeout(timeout)
        .max_ack_inflight(IN_FLIGHT)
        .build(client.clone())
}

impl Refusal {
    pub(super) fn of(error: &jetstream::Error) -> Option<Self> {
        match error.error_code() {
            // The server has one number for all that keeps it from storing; only its words tell a limit.
            ErrorCode::STREAM_STORE_FAILED if error.to_string().contains("maximum") => Some(Self::Full),
            ErrorCode::STREAM_STORE_FAILED
            | ErrorCode::INSUFFICIENT_RESOURCES
            | ErrorCode::STORAGE_RESOURCES_EXCEEDED
            | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED => Some(Self::Storage),
            _ => None,
        }
    }
}

/// A message on its way; dropped, it still travels, and nobody learns what became of it.
#[must_use = "only the answer says whether the message is on the bus"]
pub struct PendingAck {
    answer: PublishAckFuture,
    whole: bool,
    stream: String,
    bus: JetStream,
    /// How far the stream is to be, where that matters.
    mark: Option<Mark>,
    _room: OwnedSemaphorePermit,
}

impl JetStream {
    /// Sends a message; the answer is awaited with [`PendingAck::answer`]. Messages arrive in the order in which `send` returned.
    /// Waits while 256 messages or 32 MiB are unanswered; whoever keeps as many [`PendingAck`]s and asks none of them waits for
    /// ever.
    ///
    /// # Errors
    /// [`BusError::Away`] at once without a connection; nothing was sent, as with a message or subject that cannot be
    /// written.
    pub async fn send(&self, to: &Subject, message: &Message) -> Result<PendingAck, BusError> {
        let inner = &self.inner;
        let subject = to.text(&inner.prefix)?;
        self.connected()?;
        // Headers count as payload.
        let room = inner.client.max_payload().saturating_sub(headers::BYTES);
        let encoded = message.encode(room)?;
        if encoded.given_up > 0 {
            tracing::warn!(
                facts = encoded.given_up,
                "more happened to an object than one message of the bus may tell: facts were given up; `gitops-runtime bus \
                 show` says how large a message may be, which max_payload of the server raises"
            );
        }
        let kib = u32::try_from(encoded.bytes.len() / 1024 + 1).unwrap_or(u32::MAX).min(ROOM_KIB as u32);
        let permit =
            Arc::clone(&inner.room).acquire_many_owned(kib).await.map_err(|_closed| BusError::Away)?;
        self.connected()?;
        let mut headers = headers::of(message, encoded.whole, self.life());
        headers::publisher(&mut headers, self.epoch(), inner.reached.lost_ends());
        let publish = PublishMessage::build().payload(encoded.bytes).headers(headers);
        let stream = inner.prefix.stream_of(&to.source);
        // Who reads the reports reads what is: what is lost of them is not published again.
        let mark = (to.source != REPORTS).then(|| inner.reached.mark(&stream).beyond());
        let answer = match inner.context.send_publish(subject, publish).await {
            Ok(answer) => answer,
            Err(error) if error.kind() == PublishErrorKind::TimedOut => return Err(BusError::Away),
            Err(error) => return Err(BusError::server("publishing to the bus")(error.into())),
        };
        let (whole, bus) = (encoded.whole, self.clone());
        Ok(PendingAck { answer, whole, stream, bus, mark, _room: permit })
    }

    /// Sends a message and waits for the answer.
    ///
    /// # Errors
    /// Those of [`JetStream::send`] and [`PendingAck::answer`].
    pub async fn publish(&self, to: &Subject, message: &Message) -> Result<Published, BusError> {
        self.send(to, message).await?.answer().await
    }
}

impl PendingAck {
    /// What became of the message.
    ///
    /// # Errors
    /// [`BusError::NoAnswer`], when it may or may not be on the bus; [`BusError::Gone`], when no stream takes the subject
    /// (its storage was lost, or a server that just started has not read it yet); [`BusError::Server`] else.
    pub async fn answer(self) -> Result<Published, BusError> {
        match self.answer.await {
            Ok(ack) if ack.duplicate => Ok(Published::Duplicate),
            Ok(ack) => {
                if let Some(mark) = self.mark {
                    self.bus.found(StreamPosition { stream: self.stream, mark, sequence: ack.sequence });
                }
                Ok(Published::Stored { sequence: ack.sequence, whole: self.whole })
            }
            Err(error)
                if matches!(error.kind(), PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe) =>
            {
                Err(BusError::NoAnswer)
            }
            Err(error) => refused(error, &self.stream),
        }
    }
}

fn refused(error: PublishError, stream: &str) -> Result<Published, BusError> {
    if error.kind() == PublishErrorKind::StreamNotFound {
        return Err(BusError::Gone { what: format!("stream {stream}") });
    }
    let told = error.source().and_then(|source| source.downcast_ref::<jetstream::Error>());
    match told.and_then(Refusal::of) {
        Some(refusal) => Ok(Published::Refused(refusal)),
        None => Err(BusError::server("publishing to the bus")(error.into())),
    }
}
