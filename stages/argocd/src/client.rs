//! Calls Argo CD's API: the token or session, several tries within one event, and how each call is counted.
//!
//! takes: a path and how to judge an answer - gives: what the judge made of it - calls: `GET {argocd}{path}` -
//! fails: with [`HttpError`] after the last try; 429, 5xx, time-outs, broken connections, cut bodies and 403
//! are tried again, everything else is final at once.
//!
//! Before a call is made it waits, in the order of coming and until the event's time is over: for one of as many slots as Argo CD
//! is seen to work on at once (`limit`), and then for the rate of calls in a second (`rate`). One whose turn does
//! not come in time fails as a time-out, and is no call of Argo CD: no counter knows it.

mod gate;
mod limit;
mod rate;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pipeline_core::{Backoff, Call, Meter, Outcome, Reason, Sample, Samples, Timestamp};
use reqwest::header::AUTHORIZATION;
use stages_client::{
    BuildError, Client, Fault, HttpError, Method, Reply, Session, Sessions, Target, TargetError, Token,
};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::labels;
use crate::ttl_set::TtlSet;

use self::gate::Gate;
use self::limit::{Bounds, End, Limit};
use self::rate::CallRate;
/// Certificates, time limits of a call, and the largest answer.
pub use stages_client::Config as HttpConfig;
pub use stages_client::Login;

/// How Argo CD is called.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its address, e.g. `https://argocd-server.argocd`.
    pub url: String,
    /// The path under which it is served, e.g. `/argo-cd`; empty for none.
    pub root_path: String,
    /// What it is called with, as `Authorization: Bearer`.
    pub access: Access,
    /// Certificates, time limits of one call, and the largest answer.
    pub http: stages_client::Config,
    /// The most calls that may be under way at the same time, in the whole process. How many are it is less, where
    /// more would only wait in Argo CD.
    pub concurrency: usize,
    /// The fewest calls that may be. Where it is `concurrency` or more, that is how many may be, whatever Argo CD does.
    pub min_concurrency: usize,
    /// The most calls that begin within any second, in the whole process; `None` for any number.
    pub per_second: Option<NonZeroU32>,
    /// How often a call is tried within one event, the first time included.
    pub tries: u32,
    /// The waits between tries within an event; whoever asks for a longer one gets the whole event put off.
    pub backoff: Backoff,
}

/// What Argo CD is called with.
#[derive(Debug, Clone)]
pub enum Access {
    /// Nothing, where anybody may read.
    Anonymous,
    /// A token of an account.
    Token(Token),
    /// The session of an account that logs in.
    Login(Login),
}

impl Config {
    /// Builds the client.
    ///
    /// # Errors
    /// [`ConfigError`] when the address is none, or the certificates cannot be read.
    pub async fn build(self, meter: Arc<dyn Meter>) -> Result<ArgoCd, ConfigError> {
        let target = Target::new(&self.url, &self.root_path)?;
        let http = stages_client::Config { max_idle: self.concurrency, ..self.http };
        let max = self.concurrency.clamp(1, MOST_AT_ONCE);
        let bounds = Bounds { min: self.min_concurrency.clamp(1, max), max };
        Ok(ArgoCd {
            client: http.build(target).await?,
            access: match self.access {
                Access::Anonymous => Credentials::None,
                Access::Token(token) => Credentials::Token(token),
                Access::Login(login) => {
                    Credentials::Sessions(Arc::new(Sessions::new(login, labels::SESSION)))
                }
            },
            gate: Gate::new(Limit::new(bounds), self.per_second.map(CallRate::new), meter.clone()),
            tries: self.tries.max(1),
            backoff: self.backoff,
            meter,
            last_success: AtomicI64::new(NEVER),
            said: TtlSet::new(1000, Duration::from_secs(3600)),
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
/// More calls at once than any Argo CD has connections for.
const MOST_AT_ONCE: usize = 1 << 16;
/// A call that the end of the event's time leaves less time than this says nothing of Argo CD when it is given up.
const FAIR: Duration = Duration::from_secs(1);

/// Said of calls whose turn did not come in time.
const KEPT_BACK: &str = "calls of argo cd are not made in time: more are wanted than argocd.requestsPerSecond and argocd.concurrency let through";

/// Said of an answer that is not read.
const TOO_LARGE: &str = "an answer of argo cd is larger than argocd.maxBody: states of resources are asked for one by one, all else of it is not reported";

/// The client of one Argo CD.
pub struct ArgoCd {
    client: Client,
    access: Credentials,
    gate: Gate,
    tries: u32,
    backoff: Backoff,
    meter: Arc<dyn Meter>,
    /// Milliseconds since 1970 of the last answer that could be used.
    last_success: AtomicI64,
    /// What has been said in the last hour, and of which subject.
    said: TtlSet,
}

enum Credentials {
    None,
    Token(Token),
    Sessions(Arc<Sessions>),
}

/// What is said once an hour.
#[derive(Hash)]
enum News {
    Failed(Reason),
    /// Calls are not made, because of our own bounds.
    KeptBack,
}

/// What all calls of one event share: the time limit, what they were told about when to come back, and where they
/// are noted for whoever asks what the event cost.
#[derive(Debug)]
pub struct CallBudget {
    /// When the event must be done.
    pub deadline: Instant,
    after: Mutex<Option<Duration>>,
    calls: Samples,
}

impl CallBudget {
    /// One that ends at `deadline`, and whose calls nobody asks about.
    #[must_use]
    pub fn until(deadline: Instant) -> Self {
        Self::noted(deadline, Samples::default())
    }

    /// One that ends at `deadline`, and notes its calls in `calls`.
    #[must_use]
    pub fn noted(deadline: Instant, calls: Samples) -> Self {
        Self { deadline, after: Mutex::new(None), calls }
    }

    /// The longest wait that a failed call of this event was asked for.
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
    /// the budget ends. `judge` turns an answer into a result, or into an error of it.
    ///
    /// # Errors
    /// The last try's; [`Fault::Unsent`] for one whose turn did not come before the budget's end.
    pub async fn get<T>(
        &self,
        call: Call,
        path: &str,
        budget: &CallBudget,
        judge: impl Fn(Reply) -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        let (mut tried, mut renewed) = (0, false);
        loop {
            let session = self.session(budget.deadline).await?;
            let Tried { reply, waited, took } =
                self.once(call, path, session.as_ref(), budget.deadline).await?;
            let status = reply.as_ref().map_or(0, Reply::status);
            if let (Some(session), 200..=299) = (&session, status) {
                session.is_taken();
            }
            let result = reply.and_then(&judge);
            self.count(call, Outcome::of(&result, HttpError::reason), waited, took, budget);
            let error = match result {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            if status == 401 && self.has_another(session.as_ref()) && !std::mem::replace(&mut renewed, true) {
                continue;
            }
            tried += 1;
            match self.next_try(&error, tried) {
                Some(wait) if Instant::now() + wait < budget.deadline => {
                    sleep_until(Instant::now() + wait).await;
                }
                _ => {
                    budget.note(error.after());
                    return Err(error);
                }
            }
        }
    }

    /// Counts an answer of an event that needed no call of its own.
    pub fn count_cached(&self, call: Call, budget: &CallBudget) {
        self.count(call, Outcome::Cached, Duration::ZERO, Duration::ZERO, budget);
    }

    /// Logs a failure that lasted for all tries, once an hour for the same reason and `subject`. At level
    /// `error` where somebody must act: no retry brings missing rights or a wrong certificate. Calls that were never
    /// made are said once an hour for all subjects: they all wait at the same gate.
    /// That a login failed is said where it fails.
    pub fn say(&self, error: &HttpError, subject: &str) {
        if matches!(error.fault(), Fault::Login { .. }) {
            return;
        }
        let reason = error.reason();
        let is_kept_back = matches!(error.fault(), Fault::Unsent);
        let is_news =
            if is_kept_back { self.is_new(News::KeptBack, "") } else { self.is_news(reason, subject) };
        if !is_news {
            return;
        }
        let cause = error as &(dyn std::error::Error + 'static);
        if is_kept_back {
            tracing::warn!(error = cause, reason = reason.as_str(), subject, "{KEPT_BACK}");
        } else if reason == Reason::TooLarge {
            tracing::warn!(error = cause, reason = reason.as_str(), subject, "{TOO_LARGE}");
        } else if !reason.may_pass() {
            tracing::error!(error = cause, reason = reason.as_str(), subject, "argo cd refuses calls");
        } else {
            tracing::warn!(error = cause, reason = reason.as_str(), subject, "argo cd does not answer");
        }
    }

    /// Whether this has not been said in the last hour; then it counts as said.
    pub fn is_news(&self, reason: Reason, subject: &str) -> bool {
        self.is_new(News::Failed(reason), subject)
    }

    fn is_new(&self, news: News, subject: &str) -> bool {
        self.said.insert(&(news, subject))
    }

    /// When an answer that could be used came last.
    #[must_use]
    pub fn last_success(&self) -> Option<Timestamp> {
        Timestamp::from_millisecond(self.last_success.load(Ordering::Relaxed)).ok()
    }

    /// Waits for its turn and calls, until `deadline` at most.
    ///
    /// # Errors
    /// Its turn did not come until then: nothing was sent.
    async fn once(
        &self,
        call: Call,
        path: &str,
        session: Option<&Session>,
        deadline: Instant,
    ) -> Result<Tried, HttpError> {
        let act = act(call);
        let late = |fault| self.client.error(act, fault);
        if Instant::now() >= deadline {
            // It is not the gate that kept it back.
            return Err(late(Fault::Timeout(None)));
        }
        let pass = timeout_at(deadline, self.gate.enter(call)).await;
        let Some(pass) = pass.ok().filter(|_| Instant::now() < deadline) else {
            return Err(late(Fault::Unsent));
        };
        let (waited, begun) = (pass.waited, Instant::now());
        let reply = timeout_at(deadline, self.send(act, path, session)).await;
        let took = begun.elapsed();
        pass.end(match &reply {
            Ok(reply) => end_of(reply),
            Err(_) if took >= FAIR => End::TimedOut,
            Err(_) => End::Other,
        });
        let reply = reply.unwrap_or_else(|_| Err(late(Fault::Timeout(None))));
        Ok(Tried { reply, waited, took })
    }

    async fn send(
        &self,
        act: &'static str,
        path: &str,
        session: Option<&Session>,
    ) -> Result<Reply, HttpError> {
        let mut request = self.client.request_escaped(act, Method::GET, path)?;
        if let Credentials::Token(token) = &self.access {
            request = self.client.authorize(act, request, token, "Bearer ").await?;
        }
        if let Some(session) = session {
            request = request.header(AUTHORIZATION, session.header());
        }
        self.client.send(act, request).await
    }

    /// The session to call with, where an account logs in. It is had before a call waits for its turn: a login says
    /// nothing of how many calls Argo CD works on. A login goes to its end in a task of its own: cut off by the deadline of
    /// one call, a password that is refused would count as a server that is away, and be tried again soon.
    async fn session(&self, deadline: Instant) -> Result<Option<Session>, HttpError> {
        let Credentials::Sessions(sessions) = &self.access else { return Ok(None) };
        let late = |_| Err(self.client.error("log in", Fault::Timeout(None)));
        if let Some(session) = sessions.ready() {
            return Ok(Some(session));
        }
        let (sessions, client, meter) = (sessions.clone(), self.client.clone(), self.meter.clone());
        let entered = tokio::spawn(async move { sessions.get(&client, &*meter).await });
        let ended = timeout_at(deadline, entered).await.map_err(drop).and_then(|ended| ended.map_err(drop));
        ended.unwrap_or_else(late).map(Some)
    }

    /// Gives up a session that was answered 401. Returns whether another one may be had.
    fn has_another(&self, session: Option<&Session>) -> bool {
        match (&self.access, session) {
            (Credentials::Sessions(sessions), Some(session)) => sessions.lost(session),
            _ => false,
        }
    }

    /// How long to wait for the next try, if there is to be one.
    fn next_try(&self, error: &HttpError, tried: u32) -> Option<Duration> {
        if tried >= self.tries || !another_try_may_do(error.reason()) {
            return None;
        }
        let after = error.after();
        let waits = after.is_none_or(|after| after <= self.backoff.max);
        waits.then(|| self.backoff.wait(tried, after, fastrand::u64(..)))
    }

    /// To the peer's metrics a call took as long as Argo CD did; to its event, as long as the event had to wait.
    fn count(&self, call: Call, outcome: Outcome, waited: Duration, took: Duration, budget: &CallBudget) {
        if outcome == Outcome::Ok {
            self.last_success.store(Timestamp::now().as_millisecond(), Ordering::Relaxed);
        }
        let sample = Sample { call, outcome, took };
        self.meter.record(sample);
        budget.calls.record(Sample { took: waited + took, ..sample });
    }
}

/// One try at a call.
struct Tried {
    reply: Result<Reply, HttpError>,
    /// From its coming to its beginning.
    waited: Duration,
    /// From its beginning to its end.
    took: Duration,
}

impl std::fmt::Debug for ArgoCd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArgoCd").field("host", self.client.host()).finish_non_exhaustive()
    }
}

/// What an answer says of how much Argo CD has to do.
fn end_of(reply: &Result<Reply, HttpError>) -> End {
    match reply {
        Ok(reply) => match reply.status() {
            200..=299 => End::Answered,
            429 | 502..=504 => End::Overloaded,
            _ => End::Other,
        },
        Err(error) if error.reason() == Reason::Timeout => End::TimedOut,
        Err(_) => End::Other,
    }
}

/// Completes "cannot ...".
fn act(call: Call) -> &'static str {
    match call {
        labels::MANAGED_RESOURCES => "read managed resources",
        labels::RESOURCE_TREE => "read the resource tree",
        labels::MANIFESTS => "read manifests",
        labels::RESOURCE => "read a resource",
        labels::REVISION_METADATA => "read revision metadata",
        labels::APPLICATION => "read the parent application",
        labels::SETTINGS => "read the settings",
        _ => "call argo cd",
    }
}

/// Whether another try may bring something else. Missing rights among them: an application that is just
/// being deleted is answered 403.
fn another_try_may_do(reason: Reason) -> bool {
    reason.may_pass() || reason == Reason::Forbidden
}
