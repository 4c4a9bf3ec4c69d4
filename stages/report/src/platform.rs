//! Posts reports to the platform.
//!
//! takes: shipments - gives: an answer for each - calls: `POST {platform}/2.0/api/events` with
//! `{"data": <payload>}`, gzipped, `Authorization: <token>` without a scheme, `Idempotency-Key` and
//! `traceparent`, `Fencing-Epoch`, `Cluster-Era` - fails: a 4xx rejects; 401, 403, 408, 425, 429, what a proxy between says of itself
//! (407, 421, 499), 3xx, 5xx and a connection that fails retry, and so does 412 to an epoch; 404 and 405 retry until a first success, because until then they mean a wrong address, and reject
//! after it. `Retry-After` is passed on. Answers are read up to a bound and never logged.
//!
//! A report counts as taken when the whole head of a 2xx has come, whatever becomes of its body: whoever sends a
//! status has decided. It is not waited for either: a refusal stands by its head as well. A connection that closes
//! before the head's end has not answered, and the report is sent again under the same key. The body counts in a batch
//! and in a comparison alone: there it holds what is said of each report, and a 2xx may well say 503 of one.
//!
//! Where shards change hands between processes, each report says by which right it is sent: `Fencing-Epoch: <decimal>`,
//! which grows whenever the application's shard changes hands. A platform that honours it remembers the highest of each
//! application, and answers 412 to a lower one: another process is the owner now, so the report is neither parked nor a
//! sign that the platform fails. Whoever still owns the application sends it again.
//!
//! A cluster that was restored from a snapshot counts its versions anew from there. Each report of an object of a later era says so:
//! `Cluster-Era: <decimal>`, how often that had happened before, absent at first. It is newer than all reports of the eras before it,
//! whatever their versions are.
//!
//! Several reports may share a request, where that is configured: the module `batch` describes it. Whether the
//! platform still holds what it took is asked as the module `compare` describes.

mod batch;
mod compare;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use pipeline_core::{
    Compared, Key, Meter, ObjectDigest, Others, OthersQuestion, Outcome, Reason, Sample, ShardDigest,
    Shipment, StageError,
};
use stages_client::header::{CONTENT_ENCODING, CONTENT_TYPE};
use stages_client::{BuildError, Client, Fault, HttpError, Method, Target, TargetError, Token};

use self::batch::Batches;
use crate::envelope;
use crate::gzip::Gzip;
use crate::labels;

const ACT: &str = "send a report";
/// A body from this many bytes on is compressed on a thread that may block.
const LARGE: usize = 64 * 1024;

/// The platform and how it is called.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its address, e.g. `https://platform.example`.
    pub address: String,
    /// Where events are taken, below the address.
    pub path: String,
    /// Sent as it is in `Authorization`.
    pub token: Token,
    /// Time limits, certificate authorities, connections.
    pub http: stages_client::Config,
    /// gzip level, 0 (none) to 9 (smallest).
    pub gzip_level: u32,
    /// Posts at once within one call of `ship`, at least 1.
    pub concurrency: usize,
    /// Which reports share a request; `None`: each has its own.
    pub batch: Option<Batch>,
}

/// Which reports share a request, of those that are shipped at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Where batches are taken, below the address.
    pub path: String,
    /// The most reports in one.
    pub reports: usize,
    /// The most bytes of payloads in one; a report that is larger has a request of its own.
    pub bytes: usize,
    /// How long a report waits for others while a request is under way; where none is, it never waits.
    pub linger: Duration,
}

impl Config {
    /// Builds the sink; calls nobody.
    ///
    /// # Errors
    /// [`ConfigError`] when the address, the level or the certificate authorities cannot be used.
    pub async fn build(self, meter: Arc<dyn Meter>) -> Result<Platform, ConfigError> {
        if self.gzip_level > 9 {
            return Err(ConfigError::Level(self.gzip_level));
        }
        let target = Target::new(&self.address, "").map_err(ConfigError::Address)?;
        target.escaped(&self.path).map_err(ConfigError::Path)?;
        if let Some(batch) = &self.batch {
            target.escaped(&batch.path).map_err(ConfigError::BatchPath)?;
        }
        let client = self.http.build(target).await.map_err(ConfigError::Client)?;
        let concurrency = self.concurrency.max(1);
        Ok(Platform {
            client,
            path: self.path,
            token: self.token,
            gzip: Arc::new(Gzip::new(self.gzip_level)),
            concurrency,
            succeeded: AtomicBool::new(false),
            unreached: AtomicBool::new(false),
            batches: self.batch.map(|batch| Box::new(Batches::new(batch, concurrency))),
            meter,
        })
    }
}

/// A platform that cannot be called as configured.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The address is none.
    #[error("the platform's address: {0}")]
    Address(#[source] TargetError),
    /// The path is none.
    #[error("the platform's path of events: {0}")]
    Path(#[source] TargetError),
    /// The path of batches is none.
    #[error("the platform's path of batches: {0}")]
    BatchPath(#[source] TargetError),
    /// The gzip level is none.
    #[error("the gzip level {0} is not one of 0 to 9")]
    Level(u32),
    /// The client cannot be built.
    #[error("the platform's client: {0}")]
    Client(#[source] BuildError),
}

/// The sink that posts to the platform.
pub struct Platform {
    client: Client,
    path: String,
    token: Token,
    gzip: Arc<Gzip>,
    concurrency: usize,
    succeeded: AtomicBool,
    unreached: AtomicBool,
    batches: Option<Box<Batches>>,
    meter: Arc<dyn Meter>,
}

impl fmt::Debug for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Platform").field("host", self.client.host()).finish_non_exhaustive()
    }
}

#[pipeline_core::async_trait]
impl pipeline_core::Sink for Platform {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        match self.batches.as_deref().filter(|batches| batches.are_taken()) {
            Some(batches) => batches.batching.ship(self, shipments).await,
            None => self.post_each(shipments).await,
        }
    }

    fn name(&self) -> &'static str {
        "platform"
    }

    async fn credentials_changed(&self) {
        self.token.changed().await;
    }

    async fn digest(&self, digest: &ShardDigest) -> Result<Compared, StageError> {
        self.compare_shard(digest).await
    }

    async fn differing(&self, objects: &[ObjectDigest]) -> Result<Option<Vec<Key>>, StageError> {
        self.compare_objects(objects).await
    }

    async fn others(&self, question: &OthersQuestion) -> Result<Option<Others>, StageError> {
        self.compare_others(question).await
    }
}

impl Platform {
    /// A request for each.
    async fn post_each(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        // Collected first: a stream over borrowed items would not be `Send` for every lifetime.
        let posts: Vec<_> = shipments.iter().map(|shipment| self.post(shipment)).collect();
        futures::stream::iter(posts).buffered(self.concurrency).collect().await
    }

    async fn post(&self, shipment: &Shipment) -> Result<(), StageError> {
        let start = Instant::now();
        let answer = self.send(shipment).await;
        self.record(&answer, start.elapsed());
        answer
    }

    /// Counts one report, however many shared its request. Of a platform that cannot be reached it is said once where that is and
    /// why.
    fn record(&self, answer: &Result<(), StageError>, took: Duration) {
        let outcome = match answer {
            Ok(()) => {
                self.unreached.store(false, Ordering::Relaxed);
                Outcome::Ok
            }
            Err(error) => {
                let is_unreached = matches!(error.reason(), Reason::Unreachable | Reason::Tls);
                if is_unreached && !self.unreached.swap(true, Ordering::Relaxed) {
                    let error: &dyn std::error::Error = error;
                    tracing::warn!(error, "the platform cannot be reached");
                }
                Outcome::Failed(error.reason())
            }
        };
        self.meter.record(Sample { call: labels::REPORT, outcome, took });
    }

    async fn send(&self, shipment: &Shipment) -> Result<(), StageError> {
        let body = self.encode(envelope::single(&shipment.report.body)).await?;
        let post = async {
            let mut request = self
                .client
                .request_escaped(ACT, Method::POST, &self.path)?
                .header(CONTENT_TYPE, "application/json")
                .header(CONTENT_ENCODING, "gzip")
                .header("idempotency-key", &*shipment.idempotency_key)
                .body(body);
            if let Some(trace) = envelope::traceparent(shipment) {
                request = request.header("traceparent", trace);
            }
            if let Some(epoch) = shipment.epoch {
                request = request.header("fencing-epoch", epoch);
            }
            if let Some(era) = envelope::era(shipment) {
                request = request.header("cluster-era", u16::from(era));
            }
            let request = self.client.authorize(ACT, request, &self.token, "").await?;
            self.client.deliver(ACT, request).await?.checked()
        };
        match post.await {
            Ok(_) => {
                self.succeeded.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                Err(classify(error, self.succeeded.load(Ordering::Relaxed), shipment.epoch.is_some()))
            }
        }
    }

    async fn encode(&self, parts: Vec<Bytes>) -> Result<Bytes, StageError> {
        let encoded = if parts.iter().map(Bytes::len).sum::<usize>() < LARGE {
            self.gzip.pack(&parts)
        } else {
            let gzip = Arc::clone(&self.gzip);
            match tokio::task::spawn_blocking(move || gzip.pack(&parts)).await {
                Ok(encoded) => encoded,
                Err(_) => return Err(StageError::retry(Reason::Stopping, EncodeError::Stopping)),
            }
        };
        encoded.map(Bytes::from).map_err(|error| StageError::retry(Reason::Io, EncodeError::Gzip(error)))
    }
}

#[derive(Debug, thiserror::Error)]
enum EncodeError {
    #[error("cannot compress a report")]
    Gzip(#[source] io::Error),
    #[error("cannot compress a report: the process is stopping")]
    Stopping,
}

/// Whether a 4xx says something of who asks, when, or by which way, and nothing of what was sent.
pub(crate) const fn is_for_now(status: u16) -> bool {
    matches!(status, 401 | 403 | 407 | 408 | 421 | 425 | 429 | 499)
}

/// What becomes of a report that was not taken. `succeeded`: whether the platform ever took one; `fenced`: whether the
/// report named an epoch, which 412 then calls outdated.
pub(crate) fn classify(error: HttpError, succeeded: bool, fenced: bool) -> StageError {
    let reject = match (error.status(), error.fault()) {
        (Some(412), _) => !fenced,
        (Some(status), _) if is_for_now(status) => false,
        (Some(404 | 405), _) => succeeded,
        (Some(400..=499), _) | (None, Fault::Request(_)) => true,
        _ => false,
    };
    if reject { error.into_reject() } else { error.into_retry() }
}
