//! What a lane holds of one key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Cause, Event, OperationEnd, Uid, Version};

use super::input::{Blame, Refused};
use super::mark::Mark;

/// Where a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing to do now; a timer may run for what is owed.
    Idle,
    /// In line for a turn.
    Turn,
    /// In line for a read.
    Read,
    /// Its time has not come (retry, rate limit).
    Waiting,
    /// Its turn is running.
    Running,
    /// It is being read.
    Reading,
}

/// One event that is held.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) event: Arc<Event>,
    /// Since when what it shows is unreported.
    pub(super) since: Duration,
    /// Bytes it was charged with.
    pub(super) size: u64,
    /// It already passed the rate limit.
    pub(super) paid: bool,
}

impl Held {
    pub(super) fn new(event: Arc<Event>, since: Duration, paid: bool) -> Self {
        let size = event.size() as u64;
        Self { event, since, size, paid }
    }
}

/// The tries at the event or mark that comes next.
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

/// One key. Exists while there is something to do for it, or while the watch lags behind a read of it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    /// In order; empty while `mark` is being read.
    pub(super) queue: VecDeque<Held>,
    /// The head of `queue` is counted as waiting.
    pub(super) head_waits: bool,
    pub(super) running: Option<Held>,
    /// When the running turn, or the read that led to it, began.
    pub(super) begun: Duration,
    /// To be read after everything in `queue`.
    pub(super) mark: Option<Box<Mark>>,
    /// Being read; what comes in the meantime goes into `mark`.
    pub(super) asked: Option<Box<Mark>>,
    /// When to look again for what is owed.
    pub(super) owed: Option<Duration>,
    pub(super) timer: Option<Duration>,
    pub(super) retry: Option<Box<Retry>>,
    /// The rate limit lets nothing start before.
    pub(super) limited: Option<Duration>,
    /// The newest state taken in, queued or noted.
    pub(super) newest: Option<(Uid, Version)>,
    /// The newest state that the watch delivered of that life.
    pub(super) watched: Version,
    /// The end of an operation that the newest event shows, which will be reported with it.
    pub(super) shown: Option<Arc<OperationEnd>>,
    /// What runs is the circuit's probe.
    pub(super) probe: bool,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            state: State::Idle,
            queue: VecDeque::new(),
            head_waits: false,
            running: None,
            begun: Duration::ZERO,
            mark: None,
            asked: None,
            owed: None,
            timer: None,
            retry: None,
            limited: None,
            newest: None,
            watched: Version(0),
            shown: None,
            probe: false,
        }
    }

    /// When the next turn or read may begin.
    pub(super) fn due(&self) -> Duration {
        let retry = self.retry.as_ref().map_or(Duration::ZERO, |retry| retry.due);
        retry.max(self.limited.unwrap_or(Duration::ZERO))
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.mark.is_some() || self.asked.is_some()
    }

    /// Whether a read is ahead of what the watch has delivered: what the watch still delivers of the states
    /// between is no redelivery.
    pub(super) fn is_ahead(&self) -> bool {
        self.newest.as_ref().is_some_and(|(_, version)| *version > self.watched)
    }

    /// Whether the next try waits because of the sink.
    pub(super) fn waits_for_sink(&self) -> bool {
        self.state == State::Waiting
            && self.limited.is_none()
            && self.retry.as_ref().is_some_and(|retry| retry.blame == Blame::Sink)
    }

    /// Since when something of the key is unreported; nothing for what is merely owed.
    pub(super) fn since(&self) -> Option<Duration> {
        let marks = self.mark.iter().chain(&self.asked);
        let marked = marks.filter(|mark| mark.cause != Cause::Owed).map(|mark| mark.since);
        let held = self.running.iter().chain(self.queue.front()).map(|held| held.since);
        marked.chain(held).min()
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
