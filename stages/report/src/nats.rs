//! Publishes reports to subjects of NATS, for streams of `JetStream` to store.
//!
//! takes: shipments - gives: an answer for each - calls: a NATS server: one message a report, which counts as taken when a
//! stream has stored it - fails: no connection, no stream, no right, no room and no answer retry, for as long as it takes; a message
//! that is larger than the server or the stream takes is rejected
//!
//! A message is `{"data": <payload>}` as the platform takes it, or the report as a `CloudEvent` in its structured form. Its header
//! `Nats-Msg-Id` is the idempotency key, by which a stream suppresses what it has stored within its window of duplicates (two minutes
//! unless it says otherwise); `traceparent` and `Fencing-Epoch` are those of the platform's requests.
//!
//! There is no setting for subjects that no stream takes: see [`Streams`].

mod subject;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use bytes::Bytes;
use futures::StreamExt as _;
use pipeline_bus::jetstream::{Access, OpenError, StreamError, Streams};
use pipeline_core::{Meter, Outcome, Reason, Sample, Shipment, StageError};

use crate::cloudevents::{STRUCTURED, event};
use crate::{envelope, labels};

pub use subject::{SubjectPattern, SubjectPatternError};

/// Messages of one call that are unanswered at a time.
const AT_A_TIME: usize = 16;

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// `{"data": <payload>}`.
    Json,
    /// A `CloudEvent`.
    CloudEvents {
        /// The attribute `source` of every event: a URI reference that is this runtime's alone.
        source: String,
    },
}

/// The server, and what is published to it.
#[derive(Debug, Clone)]
pub struct Config {
    /// How it is reached, and who asks.
    pub access: Access,
    /// Whose connection it is, as logs name it.
    pub route: String,
    /// Where reports go.
    pub subject: SubjectPattern,
    /// What they are.
    pub format: Format,
}

impl Config {
    /// Builds the sink, and begins to connect; waits for nobody.
    ///
    /// # Errors
    /// [`OpenError`] when an address or a file of the credentials cannot be used.
    pub async fn build(self, meter: Arc<dyn Meter>) -> Result<Nats, OpenError> {
        let inbox = self.access.inbox_prefix.clone().unwrap_or_else(|| "_INBOX".to_owned());
        let streams = Streams::open(self.access, &self.route).await?;
        let said = AtomicU8::new(NOTHING);
        let Self { route, subject, format, .. } = self;
        Ok(Nats { streams, route, subject, format, inbox, said, meter })
    }
}

/// The sink that publishes to subjects of NATS.
pub struct Nats {
    streams: Streams,
    route: String,
    subject: SubjectPattern,
    format: Format,
    /// What subjects of answers begin with.
    inbox: String,
    /// What was said last of why reports wait; [`NOTHING`] since one was taken.
    said: AtomicU8,
    meter: Arc<dyn Meter>,
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("subject", &self.subject.as_str()).finish_non_exhaustive()
    }
}

/// Nothing was said.
const NOTHING: u8 = 0;

/// A report that was not published, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("publish to {subject}: {source}{cure}")]
struct PublishError {
    subject: String,
    source: StreamError,
    cure: String,
}

#[pipeline_core::async_trait]
impl pipeline_core::Sink for Nats {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        // Collected first: a stream over borrowed items would not be `Send` for every lifetime.
        let all: Vec<_> = shipments.iter().map(|shipment| self.publish(shipment)).collect();
        futures::stream::iter(all).buffered(AT_A_TIME).collect().await
    }

    fn name(&self) -> &'static str {
        "nats"
    }

    async fn credentials_changed(&self) {
        self.streams.changed().await;
    }
}

impl Nats {
    async fn publish(&self, shipment: &Shipment) -> Result<(), StageError> {
        let start = Instant::now();
        let subject = self.subject.of(&shipment.report.key);
        let (headers, body) = self.message(shipment);
        let answer = match self.streams.put(&subject, &headers, body).await {
            Ok(()) => {
                self.said.store(NOTHING, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => Err(self.failed(subject, error)),
        };
        let outcome = Outcome::of(&answer, StageError::reason);
        self.meter.record(Sample { call: labels::REPORT, outcome, took: start.elapsed() });
        answer
    }

    fn message(&self, shipment: &Shipment) -> (Vec<(&'static str, String)>, Bytes) {
        let (kind, body) = match &self.format {
            Format::Json => ("application/json", envelope::single(&shipment.report.body).concat().into()),
            Format::CloudEvents { source } => (STRUCTURED, event::structured(shipment, source)),
        };
        let mut headers =
            vec![("Nats-Msg-Id", shipment.idempotency_key.to_string()), ("Content-Type", kind.to_owned())];
        headers.extend(envelope::traceparent(shipment).map(|trace| ("traceparent", trace)));
        headers.extend(shipment.epoch.map(|epoch| ("Fencing-Epoch", epoch.to_string())));
        (headers, body)
    }

    /// What becomes of a report; of what someone must act on it is said once.
    fn failed(&self, subject: String, source: StreamError) -> StageError {
        let filter = self.subject.filter();
        let make = format!("nats stream add NAME --subjects '{filter}'");
        let (number, reason, cure) = match &source {
            StreamError::Away => (NOTHING, Reason::Unreachable, String::new()),
            StreamError::Refused(_) => (NOTHING, Reason::Unauthorized, String::new()),
            StreamError::NoAnswer(_) => {
                let cure = format!(
                    "; it is slow, or others subscribe to the subject and no stream takes it ({make})"
                );
                (1, Reason::Timeout, cure)
            }
            StreamError::NoStream => (
                2,
                Reason::NotFound,
                format!("; make one ({make}), or give the route a subject that one takes"),
            ),
            StreamError::Denied => (3, Reason::Forbidden, format!("; let its user publish to {filter}")),
            StreamError::NoInbox => {
                let cure = format!(
                    "; let its user subscribe to {}.>, or say in inboxPrefix below what it may",
                    self.inbox
                );
                (4, Reason::Forbidden, cure)
            }
            StreamError::Full(_) => (
                5,
                Reason::ServerError,
                "; raise its limits, or let it discard its oldest messages".to_owned(),
            ),
            StreamError::TooLarge(_) => {
                let cure = "; raise max_payload of the server and the largest message of the stream, or lower \
                            resources.largest";
                (6, Reason::TooLarge, cure.to_owned())
            }
            StreamError::Server(_) => (7, Reason::ServerError, String::new()),
        };
        let error = PublishError { subject, source, cure };
        if number != NOTHING && self.said.swap(number, Ordering::Relaxed) != number {
            let (route, error) = (&*self.route, &error as &dyn Error);
            tracing::warn!(route, error, "reports are not taken");
        }
        match reason {
            Reason::TooLarge => StageError::reject(reason, error),
            _ => StageError::retry(reason, error),
        }
    }
}
