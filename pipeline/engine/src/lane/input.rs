//! What goes into a lane, and what it asks for.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{
    Digest, Event, Filtered, Key, Parked, Pending, Reason, Refetch, Refused, Timestamp, Trace, Uid, Version,
};

/// Something that happened to a lane.
#[derive(Debug, Clone)]
pub enum Input {
    /// A source saw a change.
    Event(Arc<Event>),
    /// A change that was seen, which may be older than what was reported since, or whose body is missing: its object is read
    /// again.
    Redelivered(Arc<Event>),
    /// A state that a watch shows again, and which is older than one that went out and is not known to have arrived. What happened
    /// in it is told with that one, which the watch shows as well.
    InDoubt(Arc<Event>),
    /// A change that a watch shows again, and that the route is done with: it is counted, and nothing else.
    PassedOver(Arc<Event>),
    /// An attempt that [`Action::Start`] asked for is over.
    Attempted {
        /// Whose attempt.
        key: Key,
        /// How it ended.
        outcome: Outcome,
        /// Chooses the jitter of a retry.
        seed: u64,
    },
    /// A read that [`Action::Read`] asked for is over.
    Read {
        /// What was read.
        key: Key,
        /// What came of it.
        result: ReadResult,
        /// Chooses the jitter of a retry.
        seed: u64,
    },
    /// The key is to be read again: a parked one is to be tried once more, or someone asks for a replay.
    Replay {
        /// Which.
        key: Key,
        /// The life that the ledger knows, to be reported as deleted should the object be gone.
        uid: Option<Uid>,
    },
    /// What was journaled of a key before the process ended: it is to be read again, and reported with it.
    Restore {
        /// Which.
        key: Key,
        /// What was journaled.
        pending: Pending,
        /// The watch goes on where the former process ended: what led to it, and what followed, is shown first.
        awaited: bool,
    },
    /// An attempt that is a refetch has made its calls.
    Refetched {
        /// How many.
        calls: u32,
        /// Something lacks still.
        lacking: bool,
    },
    /// A key that was parked before the process ended.
    Park {
        /// Which.
        key: Key,
        /// How it was parked.
        parked: Parked,
    },
    /// A person gives up a parked key: its refusal is forgotten, and nothing is sent; see [`Parked`].
    Discard {
        /// Which.
        key: Key,
    },
    /// The sink's circuit opened: start nothing.
    Pause,
    /// The sink's circuit closed: what waits because of the sink may go at once.
    Resume,
    /// Start one attempt (or the read that leads to one) although paused.
    Probe,
    /// The process is stopping: start nothing, for good.
    Stop,
    /// Time has passed.
    Tick,
}

impl Input {
    /// The key that it is about, if it is about one.
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Event(event)
            | Self::Redelivered(event)
            | Self::InDoubt(event)
            | Self::PassedOver(event) => Some(&event.key),
            Self::Attempted { key, .. }
            | Self::Read { key, .. }
            | Self::Replay { key, .. }
            | Self::Restore { key, .. }
            | Self::Park { key, .. }
            | Self::Discard { key } => Some(key),
            Self::Refetched { .. } | Self::Pause | Self::Resume | Self::Probe | Self::Stop | Self::Tick => {
                None
            }
        }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every report was acknowledged, and there was at least one.
    Acked {
        /// Look again though nothing says that it changed.
        refetch: Option<Refetch>,
    },
    /// There was nothing to report.
    Filtered {
        /// Why.
        why: Filtered,
        /// As in [`Outcome::Acked`].
        refetch: Option<Refetch>,
        /// The event was looked at in full: what was incomplete before and is not now is complete. What is told at a
        /// glance, or is stale, says nothing of that.
        settled: bool,
    },
    /// To be tried again.
    Retry {
        /// Why.
        reason: Reason,
        /// Not before this much time has passed, when the peer said so.
        after: Option<Duration>,
        /// Who failed.
        blame: Blame,
        /// Reports that were refused for good in this attempt or an earlier one of the same event; they are
        /// handed to the next attempt, which does not send them again.
        refused: Refused,
        /// Facts that were told in this attempt: the next one does not get them again.
        told: Vec<Digest>,
    },
    /// Refused for good: parked.
    Reject {
        /// Why.
        reason: Reason,
        /// What exactly was refused, if it came to that.
        refused: Refused,
        /// When.
        at: Timestamp,
    },
}

/// Who made a retry necessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The object could not be read again.
    Source,
    /// Enrichment failed, or an attempt panicked.
    Enrich,
    /// The sink did not take a report. Such retries are due at once when the circuit closes.
    Sink,
}

/// What came of reading a dirty key.
#[derive(Debug, Clone)]
pub enum ReadResult {
    /// The object is there.
    Found(Arc<Event>),
    /// The object is gone.
    Gone {
        /// The life that the ledger knows: it is over too, whatever the dirty entry knows.
        uid: Option<Uid>,
        /// When that was noticed.
        observed: Timestamp,
    },
    /// Could not be read now.
    Failed {
        /// Why.
        reason: Reason,
        /// Not before this much time has passed, when the peer said so.
        after: Option<Duration>,
    },
    /// Cannot be read at all: parked.
    Refused {
        /// Why.
        reason: Reason,
        /// When.
        at: Timestamp,
    },
}

impl ReadResult {
    /// Why there is nothing to go on with, if there is not.
    #[must_use]
    pub fn failed(&self) -> Option<Reason> {
        match self {
            Self::Failed { reason, .. } | Self::Refused { reason, .. } => Some(*reason),
            Self::Found(_) | Self::Gone { .. } => None,
        }
    }
}

/// What the lane's owner is to do.
#[derive(Debug, Clone)]
pub enum Action {
    /// Run one attempt and answer with [`Input::Attempted`].
    Start(Start),
    /// Read one object again and answer with [`Input::Read`].
    Read {
        /// Which.
        key: Key,
        /// Older states are of no use.
        not_older_than: Version,
        /// Whether it stands for the circuit's one probe.
        probe: bool,
    },
    /// Tell whoever listens.
    Tell(Trace),
}

/// One attempt.
#[derive(Debug, Clone)]
pub struct Start {
    /// The event.
    pub event: Arc<Event>,
    /// Up to which state the watch has shown the object; a read may have shown this one before.
    pub watched: Version,
    /// How often it was tried before.
    pub attempt: u32,
    /// How long since it was first tried.
    pub trying_for: Duration,
    /// What the sink refused for good in earlier attempts of it.
    pub refused: Refused,
    /// Whether it is the circuit's one probe.
    pub probe: bool,
}

/// What a lane holds of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Where it stands: `idle`, `in line`, `in line to be read`, `waiting`, `in flight` or `being read`.
    pub state: &'static str,
    /// Events that are queued or waiting.
    pub events: usize,
    /// It is to be read again, after what is being done now.
    pub dirty: bool,
    /// Tries that failed so far.
    pub failures: u32,
    /// Who made it wait.
    pub blame: Option<Blame>,
    /// In how long it goes on, while it waits.
    pub due: Option<Duration>,
    /// In how long it is looked at again because something was incomplete.
    pub refetch: Option<Duration>,
    /// How long something of it has been unreported.
    pub unreported: Option<Duration>,
}

impl Standing {
    /// The state of a key that is only looked at again later, since something was incomplete.
    pub(super) const IDLE: &str = "idle";

    /// Whether something of it is under way, or waits for its turn.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.state != Self::IDLE || self.events > 0 || self.dirty
    }
}
