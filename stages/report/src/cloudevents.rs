//! Posts reports as CloudEvents 1.0 (<https://cloudevents.io>, HTTP protocol binding), in each of its three modes.
//!
//! takes: shipments - gives: an answer for each - calls: `POST {address}`: structured, the event as `application/cloudevents+json`;
//! binary, its attributes as `ce-` headers and the payload as the body; batched, a list of events as
//! `application/cloudevents-batch+json` - fails: as for the platform: 401, 403, 407, 408, 421, 425, 429, 499, 3xx, 5xx and a
//! connection that fails retry, 404 and 405 until a first success, any other 4xx rejects; a batch that is refused so, or of which some
//! was taken (207), is sent one by one as single events, so that what is wrong with one event refuses no other. A receiver that never
//! took a whole batch and refused several, as a broker of Knative does, or answered them 207, is sent none any more until the process
//! starts again
//!
//! An event's `id` is the idempotency key of its report: with `source` it identifies the event, and a retry repeats both, as
//! the specification asks. `type` is `gitops-runtime.<kind>.reported`, or `.ended` for the last of an object; `subject` is the
//! object's key, such as `rollout/shop/web`; `data` is the payload that the platform takes under `data`. There is no `time`: the
//! one of the occurrence is the object's own, and a retry must not tell another.

pub(crate) mod event;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pipeline_core::{Meter, Outcome, Sample, Shipment, StageError};
use stages_client::header::{AUTHORIZATION, CONTENT_TYPE};
use stages_client::{BuildError, Client, Fault, HttpError, Method, Target, TargetError, Token};

use crate::batching::{BatchBounds, Batching, SendsBatches, all};
use crate::labels;
use crate::platform::classify;

pub use event::schema;

const ACT: &str = "send a cloudevent";
const JSON: &str = "application/json";
pub(crate) const STRUCTURED: &str = "application/cloudevents+json";
const BATCHED: &str = "application/cloudevents-batch+json";
/// A receiver that refused so many batches, and never took one, knows none.
const REFUSED_BATCHES: u32 = 3;

/// How events stand in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One, as JSON.
    Structured,
    /// One: attributes as headers, the payload as it is.
    Binary,
    /// Several, as a JSON list.
    Batched {
        /// The most events of a request.
        events: usize,
        /// The most bytes of payloads of a request; an event that is larger goes alone.
        bytes: usize,
    },
}

impl Mode {
    /// What comes while a request is under way shares the next.
    fn bounds(self) -> Option<BatchBounds> {
        match self {
            Self::Batched { events, bytes } => {
                Some(BatchBounds { reports: events, bytes, linger: Duration::MAX, alone: events.max(1) })
            }
            Self::Structured | Self::Binary => None,
        }
    }
}

/// The receiver and how it is called.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where events are taken, path included.
    pub address: String,
    /// Sent as `Authorization: Bearer`, or as it is where it names a scheme itself; `None`: nothing is sent.
    pub token: Option<Token>,
    /// Time limits, certificate authorities, connections.
    pub http: stages_client::Config,
    /// The attribute `source` of every event: a URI reference that is this runtime's alone.
    pub source: String,
    /// How events stand in a request.
    pub mode: Mode,
}

/// A receiver that cannot be called as configured.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The address is none.
    #[error("the receiver's address: {0}")]
    Address(#[source] TargetError),
    /// The source is none.
    #[error("the source of events is empty, or holds spaces or characters that are not ascii")]
    Source,
    /// The client cannot be built.
    #[error("the receiver's client: {0}")]
    Client(#[source] BuildError),
}

impl Config {
    /// Builds the sink; calls nobody.
    ///
    /// # Errors
    /// [`ConfigError`] when the address, the source or the certificate authorities cannot be used.
    pub async fn build(self, meter: Arc<dyn Meter>) -> Result<CloudEvents, ConfigError> {
        if self.source.is_empty() || !self.source.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConfigError::Source);
        }
        let target = Target::new(&self.address, "").map_err(ConfigError::Address)?;
        let client = self.http.build(target).await.map_err(ConfigError::Client)?;
        Ok(CloudEvents {
            client,
            token: self.token,
            source: self.source,
            mode: self.mode,
            batching: self.mode.bounds().map(Batching::new),
            batch_taken: AtomicBool::new(false),
            batches_refused: AtomicU32::new(0),
            succeeded: AtomicBool::new(false),
            meter,
        })
    }
}

/// The sink that posts CloudEvents.
pub struct CloudEvents {
    client: Client,
    token: Option<Token>,
    source: String,
    mode: Mode,
    batching: Option<Batching>,
    batch_taken: AtomicBool,
    /// How many were not taken whole, as long as none was.
    batches_refused: AtomicU32,
    succeeded: AtomicBool,
    meter: Arc<dyn Meter>,
}

impl fmt::Debug for CloudEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudEvents").field("host", self.client.host()).finish_non_exhaustive()
    }
}

#[pipeline_core::async_trait]
impl pipeline_core::Sink for CloudEvents {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        let may_know = self.batches_refused.load(Ordering::Relaxed) < REFUSED_BATCHES;
        match self.batching.as_ref().filter(|_| may_know) {
            Some(batching) => batching.ship(self, shipments).await,
            None => self.post_each(shipments).await,
        }
    }

    fn name(&self) -> &'static str {
        "cloudevents"
    }

    async fn credentials_changed(&self) {
        match &self.token {
            Some(token) => token.changed().await,
            None => std::future::pending().await,
        }
    }
}

impl SendsBatches for CloudEvents {
    async fn send_alone(&self, shipment: &Shipment) -> Result<(), StageError> {
        self.post(shipment).await
    }

    async fn send_batch(&self, shipments: &[Shipment]) -> ControlFlow<(), Vec<Result<(), StageError>>> {
        let events = shipments.iter().map(|shipment| event::structured(shipment, &self.source));
        let events: Vec<Bytes> = events.collect();
        let body = [b"[", &*events.join(&b","[..]), b"]"].concat();
        let sent = self.request(BATCHED, Vec::new(), body.into()).await;
        let status = sent.as_ref().err().and_then(HttpError::status);
        match sent.map_err(|error| self.classified(error)) {
            // Which of them were taken, if any, is said in words of the receiver's own; each has its id.
            Ok(207) => {
                self.refused_batch(Some(207), &self.client.error(ACT, Fault::Status(207)));
                ControlFlow::Break(())
            }
            Ok(_) => {
                self.batch_taken.store(true, Ordering::Relaxed);
                self.batches_refused.store(0, Ordering::Relaxed);
                ControlFlow::Continue(shipments.iter().map(|_| Ok(())).collect())
            }
            Err(error) if error.is_retry() => ControlFlow::Continue(all(shipments.len(), error)),
            Err(error) => {
                self.refused_batch(status, &error);
                ControlFlow::Break(())
            }
        }
    }

    fn count(&self, answer: &Result<(), StageError>, took: Duration) {
        self.record(answer, took);
    }
}

impl CloudEvents {
    /// The receiver does not take a batch, or not all of it.
    fn refused_batch(&self, status: Option<u16>, error: &(dyn std::error::Error + 'static)) {
        if self.batch_taken.load(Ordering::Relaxed) {
            return;
        }
        // It says itself that it knows no such thing.
        let counts = if status == Some(415) { REFUSED_BATCHES } else { 1 };
        let before = self.batches_refused.fetch_add(counts, Ordering::Relaxed);
        if before < REFUSED_BATCHES && before + counts >= REFUSED_BATCHES {
            tracing::warn!(error, "the receiver takes no batches: events are sent one by one from now on");
        }
    }

    /// A request for each.
    async fn post_each(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        let posts: Vec<_> = shipments.iter().map(|shipment| self.post(shipment)).collect();
        futures::future::join_all(posts).await
    }

    async fn post(&self, shipment: &Shipment) -> Result<(), StageError> {
        let start = Instant::now();
        let answer = match self.mode {
            Mode::Binary => {
                let headers = event::headers(shipment, &self.source);
                self.request(JSON, headers, shipment.report.body.clone()).await
            }
            Mode::Structured | Mode::Batched { .. } => {
                self.request(STRUCTURED, Vec::new(), event::structured(shipment, &self.source)).await
            }
        };
        let answer = answer.map(|_| ()).map_err(|error| self.classified(error));
        self.record(&answer, start.elapsed());
        answer
    }

    async fn request(
        &self,
        content_type: &str,
        headers: Vec<(&'static str, String)>,
        body: Bytes,
    ) -> Result<u16, HttpError> {
        let mut request = self.client.request(ACT, Method::POST, &[])?.header(CONTENT_TYPE, content_type);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request = request.body(body);
        if let Some(token) = &self.token {
            let value = token.header_of_any_scheme().await;
            let value = value.map_err(|error| self.client.error(ACT, Fault::Token(error)))?;
            request = request.header(AUTHORIZATION, value);
        }
        let taken = self.client.deliver(ACT, request).await?.checked()?;
        self.succeeded.store(true, Ordering::Relaxed);
        Ok(taken.status())
    }

    fn classified(&self, error: HttpError) -> StageError {
        classify(error, self.succeeded.load(Ordering::Relaxed), false)
    }

    fn record(&self, answer: &Result<(), StageError>, took: Duration) {
        let outcome = match answer {
            Ok(()) => Outcome::Ok,
            Err(error) => Outcome::Failed(error.reason()),
        };
        self.meter.record(Sample { call: labels::REPORT, outcome, took });
    }
}
