//! Calls Argo CD's API: the token, several tries within one event, and how each call is counted.
//!
//! takes: a path and how to judge an answer - gives: what the judge made of it - calls: `GET {argocd}{path}` -
//! fails: with [`HttpError`] after the last try; 429, 5xx, time-outs, broken connections, cut bodies and 403
//! are tried again, everything else is final at once.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moka::future::Cache;
use pipeline_core::{Call, Meter, Outcome, Peer, Reason, Sample, Samples, Timestamp};
use stages_http::{BuildError, Client, Fault, HttpError, Method, Reply, Target, TargetError, Token};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How Argo CD is called.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its address, e.g. `https://argocd-server.argocd`.
    pub url: String,
    /// The path under which it is served, e.g. `/argo-cd`; empty for none.
    pub root_path: String,
    /// What it is called with, as `Authorization: Bearer`; `None` for an Argo CD that lets anybody read.
    pub token: Option<Token>,
    /// Certificates, time limits of one call, and the largest answer.
    pub http: stages_http::Config,
    /// Calls that may be under way at the same time, in the whole process.
    pub concurrency: usize,
    /// How often a call is tried within one event, the first time included.
    pub tries: u32,
    /// Wait before the second try; each further one waits twice as long. Half of it is left to chance.
    pub backoff: Duration,
    /// The longest wait within an event; whoever asks for a longer one gets the whole event put off.
    pub longest_wait: Duration,
}

impl Config {
    /// The defaults for one address.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            root_path: String::new(),
            token: None,
            http: stages_http::Config::default(),
            concurrency: 64,
            tries: 3,
            backoff: Duration::from_millis(250),
            longest_wait: Duration::from_secs(10),
        }
    }

    /// Builds the client.
    ///
    /// # Errors
    /// [`ConfigError`] when the address is none, or the certificates cannot be read.
    pub async fn build(self, meter: Arc<dyn Meter>) -> Result<ArgoCd, ConfigError> {
        let target = Target::new(&self.url, &self.root_path)?;
        let http = stages_http::Config { max_idle: self.concurrency, ..self.http };
        Ok(ArgoCd {
            client: http.build(target).await?,
            token: self.token,
            permits: Semaphore::new(self.concurrency.clamp(1, Semaphore::MAX_PERMITS)),
            tries: self.tries.max(1),
            backoff: self.backoff,
            longest_wait: self.longest_wait,
            meter,
            last_success: AtomicI64::new(NEVER),
            said: Cache::builder().max_capacity(1000).time_to_live(Duration::from_secs(3600)).build(),
        })
    }
}

/// A client that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The address or the root path.
    #[error("cannot address Argo CD: {0}")]
    Address(#[from] TargetError),
    /// The certificates.
    #[error("cannot prepare to call Argo CD: {0}")]
    Http(#[from] BuildError),
}

/// No call has succeeded yet.
const NEVER: i64 = i64::MIN;

/// The client of one Argo CD.
pub struct ArgoCd {
    client: Client,
    token: Option<Token>,
    permits: Semaphore,
    tries: u32,
    backoff: Duration,
    longest_wait: Duration,
    meter: Arc<dyn Meter>,
    /// Milliseconds since 1970 of the last answer that could be used.
    last_success: AtomicI64,
    /// What has been said in the last hour: a reason and its subject.
    said: Cache<(Reason, Arc<str>), ()>,
}

/// What all calls of one event share: the time limit, what they were told about when to come back, and where they
/// are noted for whoever asks what the event cost.
#[derive(Debug)]
pub struct Trip {
    /// When the event must be done.
    pub deadline: Instant,
    after: Mutex<Option<Duration>>,
    calls: Samples,
}

impl Trip {
    /// A trip that ends at `deadline`, and whose calls nobody asks about.
    #[must_use]
    pub fn until(deadline: Instant) -> Self {
        Self::noted(deadline, Samples::default())
    }

    /// A trip that ends at `deadline`, and notes its calls in `calls`.
    #[must_use]
    pub fn noted(deadline: Instant, calls: Samples) -> Self {
        Self { deadline, after: Mutex::new(None), calls }
    }

    /// The longest wait that a failed call of this trip was asked for.
    #[must_use]
    pub fn after(&self) -> Option<Duration> {
        *self.after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, after: Option<Duration>) {
        let mut longest = self.after.lock().unwrap_or_else(PoisonError::into_inner);
        *longest = (*longest).max(after);
    }
}

impl ArgoCd {
    /// Calls `path` (escaped, below the root path) until `judge` accepts an answer, the tries are used up, or
    /// the trip ends. `judge` turns an answer into a result, or into an error of it.
    ///
    /// # Errors
    /// The last try's.
    pub async fn get<T>(
        &self,
        call: Call,
        path: &str,
        trip: &Trip,
        judge: impl Fn(Reply) -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        let mut tried = 0;
        loop {
            let begun = Instant::now();
            let result = match timeout_at(trip.deadline, self.once(call, path)).await {
                Ok(reply) => reply.and_then(&judge),
                Err(_) => Err(self.client.error(act(call), Fault::Timeout(None))),
            };
            let outcome = match &result {
                Ok(_) => Outcome::Ok,
                Err(error) => Outcome::Failed(error.reason()),
            };
            self.count(call, outcome, begun.elapsed(), trip);
            let error = match result {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            tried += 1;
            match self.next_try(&error, tried) {
                Some(wait) if Instant::now() + wait < trip.deadline => {
                    sleep_until(Instant::now() + wait).await;
                }
                _ => {
                    trip.note(error.after());
                    return Err(error);
                }
            }
        }
    }

    /// Counts an answer of a trip that needed no call of its own.
    pub fn count_cached(&self, call: Call, trip: &Trip) {
        self.count(call, Outcome::Cached, Duration::ZERO, trip);
    }

    /// Logs a failure that lasted for all tries, once an hour for the same reason and `subject`. At level
    /// `error` where somebody must act: no retry brings missing rights or a wrong certificate.
    pub async fn say(&self, error: &HttpError, subject: &str) {
        let reason = error.reason();
        if !self.is_news(reason, subject).await {
            return;
        }
        let cause = error as &(dyn std::error::Error + 'static);
        if must_act(reason) {
            tracing::error!(error = cause, reason = reason.as_str(), subject, "argo cd refuses calls");
        } else {
            tracing::warn!(error = cause, reason = reason.as_str(), subject, "argo cd does not answer");
        }
    }

    /// Whether this has not been said in the last hour; then it counts as said.
    pub async fn is_news(&self, reason: Reason, subject: &str) -> bool {
        self.said.entry((reason, subject.into())).or_insert(()).await.is_fresh()
    }

    /// When an answer that could be used came last.
    #[must_use]
    pub fn last_success(&self) -> Option<Timestamp> {
        Timestamp::from_millisecond(self.last_success.load(Ordering::Relaxed)).ok()
    }

    async fn once(&self, call: Call, path: &str) -> Result<Reply, HttpError> {
        // The semaphore is never closed; if it were, the calls would only be unlimited.
        let _permit = self.permits.acquire().await.ok();
        let act = act(call);
        let mut request = self.client.request_escaped(act, Method::GET, path)?;
        if let Some(token) = &self.token {
            request = self.client.authorize(act, request, token, "Bearer ").await?;
        }
        self.client.send(act, request).await
    }

    /// How long to wait for the next try, if there is to be one.
    fn next_try(&self, error: &HttpError, tried: u32) -> Option<Duration> {
        if tried >= self.tries || !may_pass(error.reason()) {
            return None;
        }
        let full = self.backoff.saturating_mul(1 << (tried - 1).min(10));
        let wait = full / 2 + (full / 2).mul_f64(fastrand::f64());
        Some(wait.max(error.after().unwrap_or_default())).filter(|wait| *wait <= self.longest_wait.max(full))
    }

    fn count(&self, call: Call, outcome: Outcome, took: Duration, trip: &Trip) {
        if outcome == Outcome::Ok {
            self.last_success.store(Timestamp::now().as_millisecond(), Ordering::Relaxed);
        }
        let sample = Sample { peer: Peer::ArgoCd, call, outcome, took };
        self.meter.record(sample);
        trip.calls.record(sample);
    }
}

impl std::fmt::Debug for ArgoCd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArgoCd").field("host", self.client.host()).finish_non_exhaustive()
    }
}

/// Completes "cannot ...".
const fn act(call: Call) -> &'static str {
    match call {
        Call::ManagedResources => "read managed resources",
        Call::ResourceTree => "read the resource tree",
        Call::Manifests => "read manifests",
        Call::Resource => "read a resource",
        Call::RevisionMetadata => "read revision metadata",
        Call::Application => "read the parent application",
        Call::Settings => "read the settings",
        Call::List | Call::Watch | Call::Get | Call::Report => "call argo cd",
    }
}

/// Whether another try may bring something else. Missing rights among them: an application that is just
/// being deleted is answered 403.
const fn may_pass(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Timeout
            | Reason::Unreachable
            | Reason::ServerError
            | Reason::RateLimited
            | Reason::CutShort
            | Reason::Forbidden
    )
}

/// Whether somebody must change something before calls can succeed.
const fn must_act(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::Timeout | Reason::Unreachable | Reason::ServerError | Reason::RateLimited | Reason::CutShort
    )
}
