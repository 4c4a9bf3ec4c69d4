//! What a lane holds of one key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Cause, Event, Fact, Refused, Uid, Version};

use super::dirty_entry::{DirtyEntry, KEPT_FACTS};
use super::input::{Blame, Standing};
use super::refetch_times::RefetchTimes;

/// The watch lags at most so much behind a read, or shows nothing of what the read showed to be gone.
pub(super) const WATCH_LAG: Duration = Duration::from_secs(300);

/// A list shows a key within so much time, or a watch that goes on, unless nobody watches its namespace any more: counted from
/// when the API server answered last that it cannot be read.
const AWAITED: Duration = Duration::from_secs(600);

/// Ends that reads brought along and that are remembered of one key.
const CARRIED: usize = 2 * KEPT_FACTS;

/// Where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing to do now; a timer may run for a refetch.
    Idle,
    /// In line for an attempt.
    Attempt,
    /// In line for a read.
    Read,
    /// Its time has not come (retry, rate limit).
    Waiting,
    /// Its attempt is running.
    Running,
    /// It is being read.
    Reading,
}

/// One event that is held.
#[derive(Debug, Clone)]
pub(super) struct HeldEvent {
    pub(super) event: Arc<Event>,
    /// Since when what it shows is unreported.
    pub(super) since: Duration,
    /// Bytes it was charged with.
    pub(super) size: u64,
    /// It already passed the rate limit.
    pub(super) paid: bool,
}

impl HeldEvent {
    pub(super) fn new(event: Arc<Event>, since: Duration, paid: bool) -> Self {
        let size = event.size() as u64;
        Self { event, since, size, paid }
    }
}

/// The tries at the event or dirty entry that comes next.
#[derive(Debug, Clone)]
pub(super) struct Retry {
    pub(super) failures: u32,
    /// When the first try began.
    pub(super) first: Duration,
    /// Not before.
    pub(super) due: Duration,
    pub(super) blame: Blame,
    pub(super) refused: Refused,
}

/// A life that a read showed to be over before the watch did. What the watch shows of it, or shows again of those before it, must
/// not follow the report of its end.
#[derive(Debug, Clone)]
pub(super) struct Over {
    pub(super) uid: Uid,
    /// Of its last known state; 0 where nothing but its name is known.
    pub(super) version: Version,
    /// It is remembered until then, and for as long as there is something to do.
    pub(super) until: Option<Duration>,
}

/// What a key waits for, of what the watch shows again: until then it is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Awaited {
    /// It waits for the state that went out and is not known to have arrived; else for the newest.
    pub(super) in_doubt: bool,
    /// It waits for no longer than until then.
    pub(super) until: Duration,
}

impl Awaited {
    /// From now on.
    pub(super) fn from(now: Duration, in_doubt: bool) -> Self {
        Self { in_doubt, until: now + AWAITED }
    }
}

/// One key. Exists while there is something to do for it, or while the watch lags behind a read of it.
#[derive(Debug)]
pub(super) struct KeyState {
    pub(super) state: State,
    /// In order; empty while `dirty` is being read.
    pub(super) queue: VecDeque<HeldEvent>,
    /// The head of `queue` is counted as waiting.
    pub(super) head_waits: bool,
    pub(super) running: Option<HeldEvent>,
    /// When the running attempt, or the read that led to it, began.
    pub(super) begun: Duration,
    /// To be read after everything in `queue`.
    pub(super) dirty: Option<Box<DirtyEntry>>,
    /// Being read; what comes in the meantime goes into `dirty`.
    pub(super) asked: Option<Box<DirtyEntry>>,
    /// When to look again though nothing says that it changed.
    pub(super) refetch: RefetchTimes,
    pub(super) timer: Option<Duration>,
    pub(super) retry: Option<Box<Retry>>,
    /// The rate limit lets nothing start before.
    pub(super) limited: Option<Duration>,
    /// What it waits for before it is read. `None` once that was shown.
    pub(super) awaits: Option<Awaited>,
    /// The newest state taken in, queued or noted.
    pub(super) newest: Option<(Uid, Version)>,
    /// The newest state that the watch delivered of that life.
    pub(super) watched: Version,
    /// The fact that the newest event shows, which will be reported with it.
    pub(super) shown: Option<Fact>,
    /// Facts that reads showed or brought along: the watch, which lags behind them, shows them once more.
    pub(super) carried: Vec<Fact>,
    /// A life that a read showed to be over before the watch did.
    pub(super) over: Option<Over>,
    /// What runs is the circuit's probe.
    pub(super) probe: bool,
}

impl KeyState {
    pub(super) fn boxed() -> Box<Self> {
        Box::new(Self {
            state: State::Idle,
            queue: VecDeque::new(),
            head_waits: false,
            running: None,
            begun: Duration::ZERO,
            dirty: None,
            asked: None,
            refetch: RefetchTimes::default(),
            timer: None,
            retry: None,
            limited: None,
            awaits: None,
            newest: None,
            watched: Version(0),
            shown: None,
            carried: Vec::new(),
            over: None,
            probe: false,
        })
    }

    /// When the next attempt or read may begin.
    pub(super) fn due(&self) -> Duration {
        let retry = self.retry.as_ref().map_or(Duration::ZERO, |retry| retry.due);
        let awaits = self.awaits.map(|awaited| awaited.until);
        self.limited.into_iter().chain(awaits).fold(retry, Duration::max)
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.dirty.is_some() || self.asked.is_some()
    }

    /// Whether a read is ahead of what the watch has delivered: what the watch still delivers of the states
    /// between is no redelivery.
    pub(super) fn is_ahead(&self) -> bool {
        self.newest.as_ref().is_some_and(|(_, version)| *version > self.watched)
    }

    /// Whether a read showed that this life is over, and the watch has yet to.
    pub(super) fn is_over(&self, uid: &Uid) -> bool {
        self.over.as_ref().is_some_and(|over| over.uid == *uid)
    }

    /// Forgets the life that is over once its time has come; returns when that is.
    pub(super) fn forget(&mut self, now: Duration) -> Option<Duration> {
        let over = self.over.as_mut()?;
        // Its end has been told: whoever asks for the key again asks for what the ledger knows.
        self.newest.take_if(|(uid, _)| *uid == over.uid);
        let until = *over.until.get_or_insert(now + WATCH_LAG);
        if until <= now {
            self.over = None;
        }
        Some(until).filter(|_| self.over.is_some())
    }

    /// Whether the next try waits because of the sink.
    pub(super) fn waits_for_sink(&self) -> bool {
        self.state == State::Waiting
            && self.limited.is_none()
            && self.retry.as_ref().is_some_and(|retry| retry.blame == Blame::Sink)
    }

    /// Since when something of the key is unreported; nothing for what is merely incomplete.
    pub(super) fn since(&self) -> Option<Duration> {
        let entries = self.dirty.iter().chain(&self.asked);
        let noted = entries.filter(|entry| entry.cause != Cause::Refetch).map(|entry| entry.since);
        let held = self.running.iter().chain(self.queue.front()).map(|held| held.since);
        noted.chain(held).min()
    }

    /// The oldest state that is held, or that a dirty entry has kept something of; 0 for none.
    pub(super) fn oldest_version(&self) -> Version {
        let entries = self.dirty.iter().chain(&self.asked).map(|entry| entry.oldest_version());
        let held = self.running.iter().chain(&self.queue).map(|held| held.event.version);
        entries.chain(held).fold(Version(0), Version::older)
    }

    /// What is held at `now`; `None` when there is nothing to do.
    pub(super) fn standing(&self, now: Duration) -> Option<Standing> {
        if self.state == State::Idle && !self.refetch.is_some() {
            return None;
        }
        let state = match self.state {
            State::Idle => Standing::IDLE,
            State::Attempt => "in line",
            State::Read => "in line to be read",
            State::Waiting => "waiting",
            State::Running => "in flight",
            State::Reading => "being read",
        };
        let waits = self.state == State::Waiting;
        Some(Standing {
            state,
            events: self.queue.len(),
            dirty: self.dirty.is_some(),
            failures: self.failures(),
            blame: self.retry.as_ref().map(|retry| retry.blame),
            due: waits.then(|| self.due().saturating_sub(now)),
            refetch: self.refetch.next().map(|at| at.saturating_sub(now)),
            unreported: self.since().map(|since| now.saturating_sub(since)),
        })
    }

    /// The event, without a fact that a read has brought along already.
    pub(super) fn without_carried(&self, event: Arc<Event>) -> Arc<Event> {
        let carried = |fact: &Fact| self.carried.iter().any(|known| known.is_same(fact));
        if !event.fact.as_ref().is_some_and(carried) {
            return event;
        }
        let mut event = Arc::unwrap_or_clone(event);
        event.fact = None;
        event.into()
    }

    /// Notes the facts that a read brings along, and, while the watch still lags behind an earlier one, those of that;
    /// the newest [`CARRIED`] of them.
    pub(super) fn carry(&mut self, event: &Event) {
        let same = self.newest.as_ref().is_some_and(|(uid, _)| *uid == event.uid);
        if !same || !self.is_ahead() {
            self.carried.clear();
        } else if let Some(shown) = self.shown.take() {
            self.carried.push(shown);
        }
        for fact in &event.coalesced {
            if !self.carried.iter().any(|known| known.is_same(fact)) {
                self.carried.push(fact.clone());
            }
        }
        self.carried.drain(..self.carried.len().saturating_sub(CARRIED));
    }

    /// Up to which state the watch has shown the object, as of an event that waits.
    pub(super) fn watched_up_to(&self, event: &Event) -> Version {
        match &self.newest {
            _ if event.cause == Cause::Watch => event.version,
            Some((uid, _)) if *uid == event.uid => self.watched,
            _ => Version(0),
        }
    }

    /// Notes that a state was taken in. What is older, of another life, changes nothing.
    pub(super) fn saw(&mut self, event: &Event) {
        match &mut self.newest {
            Some((uid, version)) if *uid == event.uid => *version = (*version).max(event.version),
            Some((_, version)) if event.version.0 != 0 && event.version < *version => return,
            newest => {
                *newest = Some((event.uid.clone(), event.version));
                self.watched = Version(0);
            }
        }
        if event.cause == Cause::Watch {
            self.watched = self.watched.max(event.version);
        }
    }
}
