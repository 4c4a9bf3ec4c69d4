//! Consumes what a durable matches.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::{AckKind, Message as Raw, message};
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use pipeline_core::{Key, Shutdown, Uid, Version};

use super::{BusError, Durable, JetStream, ensure, headers};
use crate::{Acker, DecodeError, Message, Subject, decode};

/// Messages that one request to the server asks for.
const BATCH: usize = 128;

/// Bytes that one request asks for, where the largest message is not larger.
const BATCH_BYTES: usize = 4 << 20;

/// Pauses between two attempts to consume.
const PAUSE: Duration = Duration::from_millis(200);

/// What one durable delivers. Messages that were fetched and not taken when it is dropped, or when the connection breaks,
/// are delivered again after `ack_wait`: behind newer ones of the same uid that came meanwhile, so that whoever takes them
/// compares versions.
pub struct Deliveries {
    bus: JetStream,
    pub(super) stream: String,
    durable: String,
    stop: Shutdown,
    open: Option<pull::Stream>,
    failed: bool,
    ended: bool,
}

/// One message, delivered.
#[derive(Debug)]
pub struct Delivery {
    /// The message, or why its bytes are none: that is to be counted, parked and acknowledged, or it comes for ever.
    pub message: Result<Message, DecodeError>,
    /// Where it was published, without the prefix; `None` where nobody of us publishes.
    pub subject: Option<Subject>,
    /// Its sequence in the stream.
    pub sequence: u64,
    /// Its bytes, headers included.
    pub size: usize,
    /// The epoch in which whoever published it began to watch; 0 where that is not said.
    pub epoch: u64,
    /// How many ends of streams its publisher had found lost in that epoch.
    pub lost_ends: u64,
    /// Whether it was delivered before, to this consumer or another.
    pub redelivered: bool,
    /// What is left of a message that is none: its bytes, and whose it is by its headers.
    pub unread: Option<Unread>,
    /// Answers the server.
    pub acker: Arc<dyn Acker>,
}

/// A message that cannot be read.
#[derive(Clone)]
pub struct Unread {
    /// Its bytes, as they came.
    pub bytes: Bytes,
    /// The object, the life and the state of it that its headers name, if they do.
    pub of: Option<(Key, Uid, Version)>,
}

/// Without its bytes: what is printed may end in a log.
impl std::fmt::Debug for Unread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unread({} bytes, of {:?})", self.bytes.len(), self.of)
    }
}

/// Answers the server for one delivery. Dropped, the message is delivered again after `ack_wait`.
struct MessageAcker {
    inner: message::Acker,
    timeout: Duration,
}

impl std::fmt::Debug for MessageAcker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageAcker").finish_non_exhaustive()
    }
}

#[async_trait]
impl Acker for MessageAcker {
    async fn ack(&self) -> Result<(), BusError> {
        self.answer(AckKind::Ack).await
    }

    async fn progress(&self) -> Result<(), BusError> {
        self.answer(AckKind::Progress).await
    }
}

impl MessageAcker {
    async fn answer(&self, kind: AckKind) -> Result<(), BusError> {
        match tokio::time::timeout(self.timeout, self.inner.ack_with(kind)).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(BusError::Away),
        }
    }
}

impl JetStream {
    /// What `durable` delivers, until `stop`. Nothing is asked of the server before the first [`Deliveries::next`].
    ///
    /// # Errors
    /// [`BusError::Subject`], when the durable cannot have a name.
    pub fn consume(&self, durable: &Durable, stop: Shutdown) -> Result<Deliveries, BusError> {
        Ok(Deliveries {
            bus: self.clone(),
            stream: self.inner.prefix.stream_of(&durable.source),
            durable: durable.name()?,
            stop,
            open: None,
            failed: false,
            ended: false,
        })
    }
}

impl Deliveries {
    /// The next delivery. `None` when the runtime stops, and after the error [`BusError::Gone`], which says that stream or
    /// durable are gone and is the only one: all else is tried again for ever. Cancellation-safe.
    pub async fn next(&mut self) -> Option<Result<Delivery, BusError>> {
        let stop = self.stop.clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                self.open = None;
                None
            }
            next = self.go_on() => next,
        }
    }

    async fn go_on(&mut self) -> Option<Result<Delivery, BusError>> {
        while !self.ended {
            if std::mem::take(&mut self.failed) {
                tokio::time::sleep(PAUSE).await;
            }
            let open = match &mut self.open {
                Some(open) => open,
                None => match self.opened().await {
                    Ok(open) => self.open.insert(open),
                    Err(error @ BusError::Gone { .. }) => {
                        self.ended = true;
                        return Some(Err(error));
                    }
                    Err(error) => {
                        tracing::debug!(
                            durable = self.durable,
                            error = &error as &dyn std::error::Error,
                            "consuming waits"
                        );
                        self.failed = true;
                        continue;
                    }
                },
            };
            match open.next().await {
                Some(Ok(raw)) => return Some(Ok(self.delivery(raw))),
                Some(Err(error)) => {
                    tracing::debug!(durable = self.durable, %error, "consuming was interrupted");
                    (self.open, self.failed) = (None, true);
                }
                None => (self.open, self.failed) = (None, true),
            }
        }
        None
    }

    async fn opened(&self) -> Result<pull::Stream, BusError> {
        let inner = &self.bus.inner;
        self.bus.connected()?;
        let name = &self.stream;
        let gone = |what: String| BusError::Gone { what };
        let stream =
            ensure::get(&inner.context, name).await?.ok_or_else(|| gone(format!("stream {name}")))?;
        let durable = &self.durable;
        if ensure::info(&stream, durable).await?.is_none() {
            return Err(gone(format!("durable {durable}")));
        }
        let consumer: Consumer<pull::Config> =
            stream.get_consumer(durable).await.map_err(BusError::server("consuming from the bus"))?;
        consumer
            .stream()
            .max_messages_per_batch(BATCH)
            // A request for fewer bytes than the largest message has would never be answered.
            .max_bytes_per_batch(BATCH_BYTES.max(inner.client.max_payload().saturating_mul(2)))
            .expires(inner.config.heartbeat * 5)
            .heartbeat(inner.config.heartbeat)
            .messages()
            .await
            .map_err(|error| BusError::server("consuming from the bus")(error.into()))
    }

    fn delivery(&self, raw: Raw) -> Delivery {
        let (sequence, redelivered) =
            raw.info().map_or((0, false), |info| (info.stream_sequence, info.delivered > 1));
        let (raw, inner) = raw.split();
        let subject = Subject::parse(&self.bus.inner.prefix, raw.subject.as_str()).ok();
        let message = decode(&raw.payload);
        let unread = message.is_err().then(|| Unread {
            bytes: raw.payload.clone(),
            of: raw.headers.as_ref().and_then(headers::object),
        });
        let (epoch, lost_ends) = raw.headers.as_ref().map_or((0, 0), headers::published_by);
        let acker = Arc::new(MessageAcker { inner, timeout: self.bus.inner.config.access.timeout });
        Delivery {
            message,
            subject,
            sequence,
            size: raw.length,
            epoch,
            lost_ends,
            redelivered,
            unread,
            acker,
        }
    }
}
