//! A simulated platform: takes reports, counts them, and knows the last one of every entity.
//!
//! `POST /2.0/api/events`, gzipped `{"data": payload}`, `Authorization` as it is. The call's name in fault rules is
//! `report`; a rule for one application meets its resources' reports too.
//!
//! Of each application it knows the highest `Fencing-Epoch`, and answers 412 to a report of a lower one, unless it is told
//! to ignore them. A report without an epoch is taken as ever. What it is told of a higher `Cluster-Era` is newer, whatever its
//! version. An epoch or an era that is no whole number is answered 400.
//!
//! `POST /2.0/api/events/batch`, gzipped `{"reports": [{"idempotencyKey", "traceparent", "fencingEpoch", "clusterEra", "data"}]}`,
//! answered by `{"results": [{"status", "retryAfter"}]}`. Rules of `report` meet each report in it, those of `batch` the whole
//! request: for a platform that knows no batches, one that always answers 404.
//!
//! It may stand before another platform: what it takes it passes on first, and answers as that one did when that is a refusal. Or
//! it leads each request there as it came, and counts what that one acknowledged.

mod held;
mod hold;
mod onward;
mod relay;
mod take;
mod tally;
mod wire;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::fault::Faults;
use super::server::{Listen, Server};
pub use held::{Backup, Comparisons};
pub use hold::{HeldUp, Hold};
pub use tally::{Keep, KeptReport, Last, Totals};
pub use wire::{EntityName, Listed, Parsed, ResourceKey, parse};

/// Settings of a simulated platform.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Where it listens.
    pub listen: Listen,
    /// The `Authorization` it wants, as it is; `None` lets everyone in.
    pub token: Option<String>,
    /// How much of the payloads is kept.
    pub keep: Keep,
}

/// One report as it arrives, for whoever looks on.
#[derive(Debug)]
pub struct Arrived<'a> {
    /// What it is about.
    pub report: &'a Parsed,
    /// Its `Idempotency-Key`.
    pub key: Option<&'a str>,
    /// All headers; of a report in a batch, as if it had come alone.
    pub headers: &'a HeaderMap,
    /// Its key had been taken before.
    pub duplicate: bool,
    /// Payload bytes before they were zipped.
    pub size: usize,
    /// The payload itself.
    pub payload: &'a str,
}

/// What becomes of a request, or of one report in a batch, in the order it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It is here, whole.
    Received,
    /// Its answer, whole and of this status, is being sent.
    Answered(u16),
    /// It ended without a whole answer: the sender has gone, or the answer was broken off on purpose.
    Unanswered,
}

type Onlooker = Arc<dyn Fn(&Arrived<'_>) + Send + Sync>;
type Doorman = Arc<dyn Fn(Moment, Option<&str>) + Send + Sync>;

struct Shared {
    authorization: RwLock<Option<HeaderValue>>,
    tally: Mutex<Tally>,
    taken: watch::Sender<u64>,
    faults: Faults,
    onlooker: RwLock<Option<Onlooker>>,
    doorman: RwLock<Option<Doorman>>,
    hold: hold::Door,
    stream: RwLock<Option<mpsc::Sender<String>>>,
    onward: RwLock<Option<Arc<onward::Onward>>>,
    way: relay::Way,
    stop: CancellationToken,
}

use tally::Tally;

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running platform and its controls.
pub struct PlatformSim {
    _stop: DropGuard,
    shared: Arc<Shared>,
    server: Server,
    writer: tokio::sync::Mutex<Option<JoinHandle<anyhow::Result<()>>>>,
}

impl std::fmt::Debug for PlatformSim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlatformSim").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl PlatformSim {
    /// Starts it.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        let authorization = config
            .token
            .map(|token| HeaderValue::from_str(&token))
            .transpose()
            .context("put the token into a header")?;
        let shared = Arc::new(Shared {
            authorization: RwLock::new(authorization),
            tally: Mutex::new(Tally { keep: config.keep, ..Tally::default() }),
            taken: watch::Sender::new(0),
            faults: Faults::default(),
            onlooker: RwLock::default(),
            doorman: RwLock::default(),
            hold: hold::Door::default(),
            stream: RwLock::default(),
            onward: RwLock::default(),
            way: relay::Way::default(),
            stop: CancellationToken::new(),
        });
        let router = Router::new()
            .route("/2.0/api/events", post(take::one))
            .route("/2.0/api/events/batch", post(take::batch))
            .route("/2.0/api/events/digest", post(held::shard))
            .route("/2.0/api/events/digest/applications", post(held::applications))
            .route("/2.0/api/events/digest/others", post(held::others))
            .layer(from_fn_with_state(shared.clone(), relay::lead))
            .layer(DefaultBodyLimit::disable())
            .with_state(shared.clone());
        let server = Server::start(router, config.listen).await.context("start the platform")?;
        let stop = shared.stop.clone().drop_guard();
        Ok(Self { _stop: stop, shared, server, writer: tokio::sync::Mutex::default() })
    }

    /// Its address, as `http://127.0.0.1:1234`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// How it misbehaves.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// All counts, of one moment.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.shared.tally().totals
    }

    /// The last report of every entity.
    #[must_use]
    pub fn last(&self) -> Vec<(EntityName, Last)> {
        let tally = self.shared.tally();
        tally.last.iter().map(|(entity, last)| (entity.clone(), last.clone())).collect()
    }

    /// The last report of one entity.
    #[must_use]
    pub fn last_of(&self, entity: &EntityName) -> Option<Last> {
        self.shared.tally().last.get(entity).cloned()
    }

    /// The last report of an application itself.
    #[must_use]
    pub fn last_of_application(&self, namespace: &str, name: &str) -> Option<Last> {
        self.last_of(&EntityName {
            app_namespace: namespace.to_owned(),
            app_name: name.to_owned(),
            resource: None,
        })
    }

    /// Whether a report under this key was refused, because another owner was newer.
    #[must_use]
    pub fn is_stale(&self, key: &str) -> bool {
        self.shared.tally().is_stale(key)
    }

    /// The highest epoch that a report of an application came under.
    #[must_use]
    pub fn epoch(&self, namespace: &str, name: &str) -> Option<u64> {
        self.shared.tally().epochs.get(&(namespace.to_owned(), name.to_owned())).copied()
    }

    /// The kept reports, oldest first.
    #[must_use]
    pub fn kept(&self) -> Vec<KeptReport> {
        self.shared.tally().kept.iter().cloned().collect()
    }

    /// Forgets every report and every count; keys and epochs are forgotten too.
    pub fn reset(&self) {
        let mut tally = self.shared.tally();
        *tally = Tally { keep: tally.keep, ..Tally::default() };
    }

    /// Lets someone look on; called for every report that is taken or is a duplicate. It must not block.
    pub fn look_on(&self, onlooker: impl Fn(&Arrived<'_>) + Send + Sync + 'static) {
        *self.shared.onlooker.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(onlooker));
    }

    /// Lets someone stand at the door: called with each moment of each request, or of each report in a batch, and its
    /// `Idempotency-Key`. It must not block.
    pub fn watch_door(&self, doorman: impl Fn(Moment, Option<&str>) + Send + Sync + 'static) {
        *self.shared.doorman.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(doorman));
    }

    /// Passes each report on to the platform at `url`, with that token, before it is taken.
    pub fn pass_on(&self, url: &str, token: &str) -> anyhow::Result<()> {
        let onward = Arc::new(onward::Onward::new(url, token)?);
        *self.shared.onward.write().unwrap_or_else(PoisonError::into_inner) = Some(onward);
        Ok(())
    }

    /// Leads each request to the real platform at `url` from now on, as it comes; what that one acknowledges is taken here.
    pub fn lead_to(&self, url: &str) -> anyhow::Result<()> {
        self.shared.way.lead_to(url)
    }

    /// Waits until no request is under way to the platform that they are led to: then all that it acknowledged is taken here.
    pub async fn settled(&self) {
        self.shared.way.settled().await;
    }

    /// Wants this `Authorization` from now on.
    pub fn set_token(&self, token: &str) -> anyhow::Result<()> {
        let token = HeaderValue::from_str(token).context("put the token into a header")?;
        *self.shared.authorization.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(())
    }

    /// Waits until `done` says so of the counts.
    pub async fn wait_until(
        &self,
        within: Duration,
        done: impl Fn(&Totals) -> bool,
    ) -> anyhow::Result<Totals> {
        let mut taken = self.shared.taken.subscribe();
        let waited = tokio::time::timeout(within, async {
            loop {
                taken.borrow_and_update();
                let totals = self.totals();
                if done(&totals) {
                    return totals;
                }
                if taken.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        })
        .await;
        match waited {
            Ok(totals) => Ok(totals),
            Err(_) => bail!("waited {within:?} for reports in vain: {:?}", self.totals()),
        }
    }

    /// Writes every report that is taken into a file, one `{"n", "t", "key", "data"}` a line, until
    /// [`Self::close_file`].
    pub async fn write_to(&self, path: &Path) -> anyhow::Result<()> {
        self.close_file().await?;
        let file =
            tokio::fs::File::create(path).await.with_context(|| format!("write {}", path.display()))?;
        let (lines, mut written) = mpsc::channel::<String>(1_024);
        let writer = tokio::spawn(async move {
            let mut file = tokio::io::BufWriter::new(file);
            while let Some(line) = written.recv().await {
                file.write_all(line.as_bytes()).await.context("write a report")?;
            }
            file.flush().await.context("write a report")
        });
        *self.shared.stream.write().unwrap_or_else(PoisonError::into_inner) = Some(lines);
        *self.writer.lock().await = Some(writer);
        Ok(())
    }

    /// Finishes the file of [`Self::write_to`].
    pub async fn close_file(&self) -> anyhow::Result<()> {
        self.shared.stream.write().unwrap_or_else(PoisonError::into_inner).take();
        match self.writer.lock().await.take() {
            Some(writer) => writer.await.context("finish the file of reports")?,
            None => Ok(()),
        }
    }

    /// Stops listening and breaks every connection; what was taken stays.
    pub async fn down(&self) {
        self.server.down().await;
    }

    /// Listens again at the same address.
    pub async fn up(&self) -> anyhow::Result<()> {
        self.server.up().await
    }
}
