//! Turns one event into reports, with what Argo CD says of its application.
//!
//! takes: an event and what the ledger knows - gives: [`Enriched`] - calls: what the event's [`FetchPlan`] says,
//! at the same time where it may - fails: as the plan says; retries while Argo CD's settings are not known.
//!
//! The plan decides and builds; this only fetches for it, and bounds the time and the bytes of an event. What the plan
//! does with more than a little content is done in threads of its own, under a limit of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use moka::sync::Cache;
use pipeline_core::{
    Attempt, Cause, Change, Digest, Enrich, Enriched, Event, Meter, ObjectIndex, Reason, Record, StageError,
    Timestamp, Uid, async_trait,
};
use pipeline_redact::Redactor;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::changes::{Changes, KeptChanges};
use crate::client::{self, ArgoCd, CallBudget, ConfigError};
use crate::content::{self, Content, SMALL, Unworked};
use crate::fetch::{self, Fetcher};
use crate::plan::{self, Begun, Facts, Fetch, FetchPlan, Response};
use crate::settings::{self, ArgoCdSettings, Current, SettingsWatch};
use crate::sources::{AsksGit, Sources};
use crate::unchanged::UnchangedFilter;

/// How events are enriched.
#[derive(Debug, Clone)]
pub struct Config {
    /// How Argo CD is called.
    pub argocd: client::Config,
    /// What is kept of its answers.
    pub fetch: fetch::Config,
    /// Where its settings come from.
    pub settings: settings::Config,
    /// How what is read is worked on.
    pub content: content::Config,
    /// All calls of one event end within this time.
    pub event_timeout: Duration,
    /// How long an event waits for the settings before it is put off.
    pub settings_wait: Duration,
    /// Calls of one event that are under way at the same time.
    pub parallel: usize,
    /// Bytes of all events in flight: of the answers while they are enriched, by what their applications needed last
    /// time, then of their reports.
    pub held_bytes: usize,
    /// Bytes of all answers for one event; what comes after them is too large.
    pub event_bytes: usize,
    /// Who says what Git says of manifests, if anybody does.
    pub sources: Option<Arc<dyn Sources>>,
    /// Who says which commits changed applications, if anybody does.
    pub changes: Option<Arc<dyn Changes>>,
}

impl Config {
    /// With what is set; all else is as it always is.
    #[must_use]
    pub fn new(
        argocd: client::Config,
        fetch: fetch::Config,
        settings: settings::Config,
        event_timeout: Duration,
    ) -> Self {
        Self {
            argocd,
            fetch,
            settings,
            content: content::Config::default(),
            event_timeout,
            settings_wait: Duration::from_secs(5),
            parallel: 8,
            held_bytes: 8 * 1024 * 1024,
            event_bytes: 128 * 1024 * 1024,
            sources: None,
            changes: None,
        }
    }

    /// Builds the stage, and the watch of Argo CD's settings, which must be served beside it.
    ///
    /// # Errors
    /// [`ConfigError`] when Argo CD's address is none, or the certificates cannot be read.
    pub async fn build(
        self,
        seen: ObjectIndex,
        redactor: Redactor,
        meter: Arc<dyn Meter>,
    ) -> Result<(ArgoCdEnrichment, SettingsWatch), ConfigError> {
        let argocd = Arc::new(self.argocd.build(meter).await?);
        let (watch, current) = self.settings.build(argocd.clone());
        let most_held = kibibytes(self.held_bytes);
        let enrichment = Inner {
            asks_git: self.sources.clone().map_or(AsksGit::Never, AsksGit::By),
            changes: self.changes.map(KeptChanges::new),
            fetcher: self.fetch.build(argocd.clone(), seen, self.sources),
            argocd,
            current,
            redactor,
            event_timeout: self.event_timeout,
            settings_wait: self.settings_wait,
            parallel: self.parallel.max(1),
            event_bytes: self.event_bytes,
            unchanged: UnchangedFilter::default(),
            content: self.content.build(),
            held: Arc::new(Semaphore::new(most_held as usize)),
            most_held,
            needed: Cache::new(10_000),
            typical: AtomicU32::new(FIRST_GUESS),
        };
        Ok((ArgoCdEnrichment { inner: Arc::new(enrichment) }, watch))
    }
}

/// Enriches events from one Argo CD. Cloning shares everything.
#[derive(Debug, Clone)]
pub struct ArgoCdEnrichment {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    argocd: Arc<ArgoCd>,
    fetcher: Fetcher,
    /// About which applications Git is asked.
    asks_git: AsksGit,
    changes: Option<KeptChanges>,
    current: Current,
    redactor: Redactor,
    event_timeout: Duration,
    settings_wait: Duration,
    parallel: usize,
    event_bytes: usize,
    unchanged: UnchangedFilter,
    content: Content,
    /// KiB of answers and reports that may be held.
    held: Arc<Semaphore>,
    most_held: u32,
    /// KiB of answers that an application's last event needed, of applications that need far more than most.
    needed: Cache<Uid, u32>,
    /// KiB that events have needed lately: what any other is taken to need.
    typical: AtomicU32,
}

/// What is known of Argo CD's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Whether its settings are known; without them nothing is enriched.
    pub settings_known: bool,
    /// When a call last brought an answer that could be used.
    pub last_success: Option<Timestamp>,
}

/// Why no event is enriched yet.
#[derive(Debug, thiserror::Error)]
#[error("the settings of argo cd are not known yet")]
struct SettingsUnknown;

/// Others have held all the memory for too long.
#[derive(Debug, thiserror::Error)]
#[error("the answers of other events and their reports took up all room until the event's time was over")]
struct NoRoom;

/// A plan that needs more again and again.
#[derive(Debug, thiserror::Error)]
#[error("the event asked argo cd more than {MOST_TURNS} times in a row")]
struct Endless;

/// Responses bring new fetches at most a few times (parent, then its manifests); more is a defect, which must not
/// keep a lane busy for ever.
const MOST_TURNS: usize = 16;

/// KiB that an event is taken to need before any other has told.
const FIRST_GUESS: u32 = 256;

impl ArgoCdEnrichment {
    /// What is known of Argo CD's health.
    #[must_use]
    pub fn health(&self) -> Health {
        Health {
            settings_known: self.inner.current.borrow().is_some(),
            last_success: self.inner.argocd.last_success(),
        }
    }
}

#[async_trait]
impl Enrich for ArgoCdEnrichment {
    async fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
    ) -> Result<Enriched, StageError> {
        let inner = &self.inner;
        let argocd = inner.settings().await?;
        let budget = CallBudget::noted(Instant::now() + inner.event_timeout, attempt.calls.clone());
        let unchanged = inner.unchanged(event, known, &budget).await;
        let (found, text) = unchanged.map_err(|why| StageError::retry(Reason::Timeout, why))?;
        let was_looked_at = || inner.fetcher.was_looked_at(&event.key);
        if let Some(enriched) = found.and_then(|found| plan::unchanged(event, known, found, was_looked_at)) {
            return Ok(enriched);
        }
        // Without a text, of what is gone or no object, each state is another one.
        let content = text.unwrap_or_else(|| Digest::of(&event.version.0.to_be_bytes()));
        let asked_for = event.cause == Cause::Refetch;
        if !asked_for && let Err(given_up) = inner.content.admit(&event.uid, content) {
            return Err(given_up);
        }
        match inner.work(event, known, attempt, (&argocd, &budget), text).await {
            Ok(enriched) => {
                inner.content.worked(&event.uid);
                Ok(enriched)
            }
            Err(Failed::Stage(error)) => Err(error),
            // That it is gone is certain, whatever it was.
            Err(Failed::Unworked(Unworked::TooSlow(_) | Unworked::Running)) if event.is_deleted() => {
                inner.without_content(event, known, attempt, &argocd)
            }
            Err(Failed::Unworked(why)) => Err(inner.content.failed(&event.key, &event.uid, content, why)),
        }
    }
}

/// Why an event was not enriched.
enum Failed {
    Stage(StageError),
    Unworked(Unworked),
}

impl From<StageError> for Failed {
    fn from(error: StageError) -> Self {
        Self::Stage(error)
    }
}

impl From<Unworked> for Failed {
    fn from(why: Unworked) -> Self {
        Self::Unworked(why)
    }
}

impl Inner {
    async fn settings(&self) -> Result<Arc<ArgoCdSettings>, StageError> {
        let mut current = self.current.clone();
        let known = timeout_at(Instant::now() + self.settings_wait, current.wait_for(Option::is_some)).await;
        // Neither in time, nor ever: the watch of the settings has ended with the process.
        let known = known.ok().and_then(Result::ok).and_then(|known| known.clone());
        known.ok_or_else(|| StageError::retry(Reason::Unreachable, SettingsUnknown))
    }

    fn plan_settings(&self, argocd: &ArgoCdSettings) -> plan::Settings {
        plan::Settings { sources: self.asks_git.clone(), ..argocd.settings() }
    }

    /// What can be told of an event whose object was read before.
    async fn unchanged(
        self: &Arc<Self>,
        event: &Event,
        known: Option<&Record>,
        budget: &CallBudget,
    ) -> Result<(Option<Facts>, Option<Digest>), Unworked> {
        let size = event.size();
        if size <= SMALL {
            return Ok(self.unchanged.check(event, known));
        }
        let (this, of, known) = (self.clone(), event.clone(), known.cloned());
        let scan = move || this.unchanged.check(&of, known.as_ref());
        self.content.scan(size, budget.deadline, scan).await
    }

    /// Enriches an event that is worth it.
    async fn work(
        self: &Arc<Self>,
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
        (argocd, budget): (&ArgoCdSettings, &CallBudget),
        text: Option<Digest>,
    ) -> Result<Enriched, Failed> {
        let (begun, found) = self.begin(event, known, attempt, (argocd, budget)).await?;
        match (text, found) {
            (Some(text), Some(found)) => self.unchanged.remember(event, text, found),
            _ => self.unchanged.forget(event),
        }
        let mut plan = match begun? {
            Begun::Done(enriched) => return Ok(enriched),
            Begun::Go(plan) => plan,
        };
        // Before any room is taken: a repository may have to be fetched.
        if let (Some(changes), Some(question)) = (&self.changes, plan.changes_question()) {
            plan.changed_by(changes.newest(&question, budget.deadline).await);
        }
        // The plan holds the responses until the reports are built; they are held until they are told.
        let Some(room) = self.room(event, budget).await else {
            // Without its answers no report is made: what is short is memory here, not what Argo CD knows.
            return Err(StageError::retry(Reason::Timeout, NoRoom).into());
        };
        let (plan, bytes) = self.respond(event, plan, budget, &argocd.namespace).await?;
        self.note_need(&event.uid, kibibytes(bytes));
        if let Some(raw_manifests) = plan.learned() {
            argocd.learn(raw_manifests);
        }
        let bytes = bytes.saturating_add(event.size());
        let enriched = self.content.work(&event.key, bytes, budget.deadline, move || plan.finish()).await?;
        let enriched = enriched.map_err(|error| put_off(error, budget))?;
        attempt.memory.hold(self.fitted(room, &enriched));
        Ok(enriched)
    }

    async fn begin(
        &self,
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
        (argocd, budget): (&ArgoCdSettings, &CallBudget),
    ) -> Result<(Result<Begun, StageError>, Option<Facts>), Unworked> {
        let (settings, size) = (self.plan_settings(argocd), event.size());
        let mut found = None;
        if size <= SMALL {
            let begun = FetchPlan::begin_noting(event, known, attempt, &settings, &self.redactor, &mut found);
            return Ok((begun, found));
        }
        let (of, known, attempt, redactor) =
            (event.clone(), known.cloned(), attempt.clone(), self.redactor.clone());
        let begin = move || {
            let begun =
                FetchPlan::begin_noting(&of, known.as_ref(), &attempt, &settings, &redactor, &mut found);
            (begun, found)
        };
        self.content.work(&event.key, size, budget.deadline, begin).await
    }

    /// The end of an application whose last content cannot be worked on.
    fn without_content(
        &self,
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
        argocd: &ArgoCdSettings,
    ) -> Result<Enriched, StageError> {
        let gone = Event { change: Change::Deleted { body: None }, ..event.clone() };
        match FetchPlan::begin(&gone, known, attempt, &self.plan_settings(argocd), &self.redactor)? {
            Begun::Done(enriched) => Ok(enriched),
            Begun::Go(plan) => plan.finish(),
        }
    }

    /// Fetches whatever the plan needs, until it needs nothing more. Gives the bytes that it was given.
    async fn respond(
        &self,
        event: &Event,
        mut plan: Box<FetchPlan>,
        budget: &CallBudget,
        namespace: &str,
    ) -> Result<(Box<FetchPlan>, usize), Failed> {
        let mut bytes = 0;
        for _ in 0..MOST_TURNS {
            let fetches = plan.fetches();
            if fetches.is_empty() {
                return Ok((plan, bytes));
            }
            let mut responses = futures::stream::iter(fetches)
                .map(|fetch| self.fetch(fetch, budget, namespace))
                .buffer_unordered(self.parallel);
            while let Some((fetch, response)) = responses.next().await {
                let response = self.within_bounds(response, &mut bytes);
                let size = if let Response::Body(body) = &response { body.len() } else { 0 };
                let read = move || {
                    plan.respond(&fetch, response);
                    plan
                };
                plan = self.content.work(&event.key, size, budget.deadline, read).await?;
            }
        }
        Err(StageError::retry(Reason::Malformed, Endless).into())
    }

    async fn fetch(&self, fetch: Fetch, budget: &CallBudget, namespace: &str) -> (Fetch, Response) {
        let response = self.fetcher.fetch(&fetch, budget, namespace).await;
        (fetch, response)
    }

    /// Waits until there is room for the answers of an event: for as many bytes as its application needed
    /// last time. One wait for all of an event, so that two events never wait for each other.
    /// `None` when the event's time is over.
    async fn room(&self, event: &Event, budget: &CallBudget) -> Option<OwnedSemaphorePermit> {
        let known = self.needed.get(&event.uid);
        let needed = known.unwrap_or_else(|| self.typical.load(Ordering::Relaxed).saturating_mul(2));
        let room = self.held.clone().acquire_many_owned(needed.clamp(1, self.most_held));
        timeout_at(budget.deadline, room).await.ok()?.ok()
    }

    /// The room that the reports take: what the answers took beyond that is free again. Where the reports are larger
    /// nothing is waited for, since they are there already.
    fn fitted(&self, mut room: OwnedSemaphorePermit, enriched: &Enriched) -> OwnedSemaphorePermit {
        let bytes: usize = enriched.reports.iter().map(|report| report.body.len()).sum();
        let (needed, taken) = (kibibytes(bytes) as usize, room.num_permits());
        if let Some(more) = needed.checked_sub(taken).filter(|more| *more > 0) {
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            if let Ok(more) = self.held.clone().try_acquire_many_owned(more) {
                room.merge(more);
            }
        } else {
            drop(room.split(taken - needed));
        }
        room
    }

    /// Remembers what an event needed: by itself when its application is not like most, and in what the next
    /// event of an application of which nothing is known is taken to need.
    fn note_need(&self, uid: &Uid, needed: u32) {
        let typical = self.typical.load(Ordering::Relaxed);
        // Two that do this at once lose one of their two notes, which the next one makes good.
        self.typical.store((typical / 2).saturating_add(needed / 2).max(1), Ordering::Relaxed);
        if needed > typical.saturating_mul(2) {
            self.needed.insert(uid.clone(), needed);
        } else {
            self.needed.invalidate(uid);
        }
    }

    fn within_bounds(&self, response: Response, bytes: &mut usize) -> Response {
        let Response::Body(body) = &response else { return response };
        let total = bytes.saturating_add(body.len());
        if total > self.event_bytes {
            return Response::Failed(Reason::TooLarge);
        }
        *bytes = total;
        response
    }
}

/// Not before the time that Argo CD asked for.
fn put_off(error: StageError, budget: &CallBudget) -> StageError {
    match error {
        StageError::Retry { reason, source, after } => {
            StageError::Retry { reason, source, after: after.max(budget.after()) }
        }
        reject @ StageError::Reject { .. } => reject,
    }
}

fn kibibytes(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4)
}
