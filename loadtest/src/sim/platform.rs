//! A simulated platform: takes reports, counts them, and knows the last one of every entity.
//!
//! `POST /2.0/api/events`, gzipped `{"data": payload}`, `Authorization` as it is. The one call's name in
//! fault rules is `report`; a rule for one application meets its resources' reports too.

mod held;
mod tally;
mod wire;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use axum::routing::post;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fault::{Answer, Fault, Faults, authorized, spoil};
use super::server::{Listen, Server};
pub use held::Comparisons;
pub use tally::{Keep, Kept, Last, Totals};
pub(crate) use wire::parse;
pub use wire::{EntityName, Parsed, ResourceKey};

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
    /// All headers.
    pub headers: &'a HeaderMap,
    /// Its key had been taken before.
    pub duplicate: bool,
    /// Payload bytes before they were zipped.
    pub size: usize,
    /// The payload itself.
    pub payload: &'a str,
}

/// What becomes of a request, in the order it happens.
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
    stream: RwLock<Option<mpsc::Sender<String>>>,
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
    ///
    /// # Errors
    /// When the address is taken, or the token is no header value.
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
            stream: RwLock::default(),
            stop: CancellationToken::new(),
        });
        let router = Router::new()
            .route("/2.0/api/events", post(serve))
            .route("/2.0/api/events/digest", post(held::shard))
            .route("/2.0/api/events/digest/applications", post(held::applications))
            .layer(DefaultBodyLimit::disable())
            .with_state(shared.clone());
        let server = Server::start(router, config.listen).await.context("start the platform")?;
        Ok(Self { shared, server, writer: tokio::sync::Mutex::default() })
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

    /// The kept reports, oldest first.
    #[must_use]
    pub fn kept(&self) -> Vec<Kept> {
        self.shared.tally().kept.iter().cloned().collect()
    }

    /// Forgets every report and every count; keys are forgotten too.
    pub fn reset(&self) {
        let mut tally = self.shared.tally();
        *tally = Tally { keep: tally.keep, ..Tally::default() };
    }

    /// Lets someone look on; called for every report that is taken or is a duplicate. It must not block.
    pub fn look_on(&self, onlooker: impl Fn(&Arrived<'_>) + Send + Sync + 'static) {
        *self.shared.onlooker.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(onlooker));
    }

    /// Lets someone stand at the door: called with each moment of each request and its `Idempotency-Key`. It must not
    /// block.
    pub fn watch_door(&self, doorman: impl Fn(Moment, Option<&str>) + Send + Sync + 'static) {
        *self.shared.doorman.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(doorman));
    }

    /// Wants this `Authorization` from now on.
    ///
    /// # Errors
    /// When the token is no header value.
    pub fn set_token(&self, token: &str) -> anyhow::Result<()> {
        let token = HeaderValue::from_str(token).context("put the token into a header")?;
        *self.shared.authorization.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(())
    }

    /// Waits until `done` says so of the counts.
    ///
    /// # Errors
    /// When that takes longer than `within`; tells the counts.
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
    ///
    /// # Errors
    /// When the file cannot be made.
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
    ///
    /// # Errors
    /// When not all reports could be written.
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
    ///
    /// # Errors
    /// When the address is taken.
    pub async fn up(&self) -> anyhow::Result<()> {
        self.server.up().await
    }
}

impl Drop for PlatformSim {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

/// One request at the door; whoever drops it has not answered.
struct Visit {
    doorman: Option<(Doorman, Option<String>)>,
}

impl Visit {
    fn begin(shared: &Shared, headers: &HeaderMap) -> Self {
        let doorman = shared.doorman.read().unwrap_or_else(PoisonError::into_inner).clone();
        let key = || headers.get("idempotency-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
        let visit = Self { doorman: doorman.map(|doorman| (doorman, key())) };
        visit.tell(Moment::Received);
        visit
    }

    fn tell(&self, moment: Moment) {
        if let Some((doorman, key)) = &self.doorman {
            doorman(moment, key.as_deref());
        }
    }

    fn answered(mut self, status: u16) {
        self.tell(Moment::Answered(status));
        self.doorman = None;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.tell(Moment::Unanswered);
    }
}

/// Marks a response whose body breaks off.
#[derive(Clone, Copy)]
struct Broken;

async fn serve(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let visit = Visit::begin(&shared, &headers);
    let response = take(&shared, &headers, &body).await;
    if response.extensions().get::<Broken>().is_none() {
        visit.answered(response.status().as_u16());
    }
    response
}

async fn take(shared: &Shared, headers: &HeaderMap, body: &Bytes) -> Response {
    {
        let mut tally = shared.tally();
        tally.totals.posts += 1;
        tally.totals.bytes += body.len() as u64;
    }
    let wanted = shared.authorization.read().unwrap_or_else(PoisonError::into_inner).clone();
    if !authorized(headers, wanted.as_ref()) {
        shared.tally().totals.unauthorized += 1;
        return Answer::new(401, r#"{"message":"unauthorized"}"#).response();
    }
    shared.faults.latency().await;
    let zipped = is(headers, &header::CONTENT_ENCODING, "gzip")
        && is(headers, &header::CONTENT_TYPE, "application/json");
    let text = if zipped { wire::unzip(body) } else { None };
    let payload = text.as_deref().and_then(wire::payload);
    let Some((payload, parsed)) = payload.and_then(|payload| Some((payload, wire::parse(payload)?))) else {
        shared.tally().totals.malformed += 1;
        return Answer::new(400, r#"{"message":"not a report"}"#).response();
    };
    let met = shared.faults.meet("report", &parsed.entity.app_name);
    if met.as_ref().is_none_or(|rule| rule.effect) {
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
        let (duplicate, number) = {
            let mut tally = shared.tally();
            (tally.take(&parsed, key, payload), tally.totals.taken)
        };
        let onlooker = shared.onlooker.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(onlooker) = onlooker {
            let size = payload.len();
            onlooker(&Arrived { report: &parsed, key, headers, duplicate, size, payload });
        }
        let stream = shared.stream.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(stream) = stream.filter(|_| !duplicate) {
            let t = jiff::Timestamp::now().as_millisecond() as f64 / 1_000.0;
            let key = key.unwrap_or_default().replace(['"', '\\'], "");
            let line = format!("{{\"n\":{},\"t\":{t},\"key\":\"{key}\",\"data\":{payload}}}\n", number - 1);
            // A file that cannot be written is told when it is closed.
            let _ = stream.send(line).await;
        }
        shared.taken.send_modify(|taken| *taken += 1);
    }
    let answer = Answer::ok("{}");
    match met {
        None => answer.response(),
        Some(rule) => {
            shared.tally().totals.spoilt += 1;
            let error = |_| Bytes::from_static(br#"{"message":"told to fail"}"#);
            let mut response = spoil(&rule.fault, answer, error, &shared.stop).await;
            if matches!(rule.fault, Fault::Close | Fault::Cut { .. } | Fault::Hang) {
                response.extensions_mut().insert(Broken);
            }
            response
        }
    }
}

fn is(headers: &HeaderMap, name: &header::HeaderName, value: &str) -> bool {
    headers.get(name).is_some_and(|own| own.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
}
