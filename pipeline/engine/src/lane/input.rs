//! What goes into a lane, and what it asks for.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{
    Again, Call, Digest, Entity, Event, Filtered, Key, OperationEnd, Reason, ReportKind, Timestamp, Uid,
    Version,
};

/// Something that happened to a lane.
#[derive(Debug, Clone)]
pub enum Input {
    /// A source saw a change.
    Event(Arc<Event>),
    /// A change that was seen, which may be older than what was reported since, or whose body is missing: its object is read
    /// again.
    Again(Arc<Event>),
    /// A turn that [`Action::Start`] asked for is over.
    Turned {
        /// Whose turn.
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
    },
    /// A turn for what is owed has made so many calls: what the next one is taken to make.
    Refetched {
        /// How many.
        calls: u32,
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
    /// Start one turn (or the read that leads to one) although paused.
    Probe,
    /// The process is stopping: start nothing, for good.
    Stop,
    /// Time has passed.
    Tick,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every report was acknowledged, and there was at least one.
    Acked {
        /// Look again though nothing says that it changed.
        owed: Option<Again>,
    },
    /// There was nothing to report.
    Filtered {
        /// Why.
        why: Filtered,
        /// As in [`Outcome::Acked`].
        owed: Option<Again>,
        /// The event was looked at in full: what was owed before and is not now is owed no more. What is told at a
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
        /// Reports that were refused for good in this turn or an earlier one of the same event; they are
        /// handed to the next turn, which does not send them again.
        refused: Refused,
        /// Ends of operations that were told in this turn: the next one does not get them again.
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

/// Entities and contents that the sink refused for good, and why.
pub type Refused = Arc<[(Entity, Digest, Reason)]>;

/// Who made a retry necessary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The object could not be read again.
    Source,
    /// Enrichment failed, or a turn panicked.
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
        /// The life that the ledger knows: it is over too, whatever the mark knows.
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
    /// Run one turn and answer with [`Input::Turned`].
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

/// One turn.
#[derive(Debug, Clone)]
pub struct Start {
    /// The event.
    pub event: Arc<Event>,
    /// How often it was tried before.
    pub attempt: u32,
    /// How long since it was first tried.
    pub trying_for: Duration,
    /// What the sink refused for good in earlier turns of it.
    pub refused: Refused,
    /// Whether it is the circuit's one probe.
    pub probe: bool,
}

/// One step in the life of an event, for whoever looks on. Holds no body and no error text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Which application.
    pub key: Key,
    /// Which state of it.
    pub version: Version,
    /// W3C trace id of the event's life.
    pub trace: u128,
    /// What happened.
    pub step: Step,
}

/// What happened to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It was taken in.
    Observed,
    /// Its state was folded into a newer one, which is read or sent in its stead.
    Coalesced(Folded),
    /// It brought no report.
    Filtered(Filtered),
    /// The rate limit delays it by this much.
    Limited(Duration),
    /// Its turn began.
    Started {
        /// How often it was tried before.
        attempt: u32,
    },
    /// A call was made for it.
    Fetched {
        /// Which.
        call: Call,
        /// How long it took; nothing when the answer was at hand.
        took: Duration,
        /// Why it failed, if it did.
        failed: Option<Reason>,
    },
    /// Its reports are made.
    Enriched {
        /// How many there are.
        reports: usize,
        /// How long that took, calls included.
        took: Duration,
    },
    /// One of its reports was acknowledged.
    Reported {
        /// About what.
        kind: ReportKind,
        /// How long the sink took.
        took: Duration,
    },
    /// One of its reports was not taken.
    NotTaken {
        /// About what.
        kind: ReportKind,
        /// Why.
        reason: Reason,
        /// How long the sink took.
        took: Duration,
    },
    /// Every one of its reports was acknowledged.
    Acked {
        /// How long after it was taken in; for a read, after the first change that it stands for.
        after: Duration,
    },
    /// It will be tried again.
    Retried {
        /// Why.
        reason: Reason,
        /// In how long.
        after: Duration,
    },
    /// It was refused for good.
    Parked(Reason),
    /// The object is being read again.
    Reading,
    /// Something is owed: the object will be looked at again in this long.
    Owed(Duration),
}

/// Why an event's state was folded into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Folded {
    /// The queue was full.
    Full,
    /// The application was to be read again already.
    Dirty,
    /// The rate limit delays the application.
    Limited,
    /// A read has shown a newer state.
    Overtaken,
    /// A later life is known.
    Former,
    /// It had to be tried again, and there was no room to keep it.
    Retried,
    /// It may be older than what was reported since, or its body was too large to travel.
    Doubted,
}

impl Folded {
    /// How it is told.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Dirty => "dirty",
            Self::Limited => "limited",
            Self::Overtaken => "overtaken",
            Self::Former => "former",
            Self::Retried => "retried",
            Self::Doubted => "doubted",
        }
    }
}

/// One key that was refused for good. No body is kept: replaying it reads the object again.
///
/// It is not tried again by itself. While it is parked, the same state (or an older one of the same life) that a
/// watch or a list shows again is filtered as `parked`; a newer state, another life, a deletion, a replay and
/// what is owed go on as usual. The entry goes with the first of them that is acknowledged or brings no report.
///
/// Discarding ([`Input::Discard`]) forgets the refusal and sends nothing. Nothing else remembers it, so the
/// key's next change is reported as usual; and should the object not have changed when everything is listed
/// again, after a restart, then that very state is tried once more, and parked anew if it is refused again.
/// To keep it from being sent, leave it parked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// Why.
    pub reason: Reason,
    /// When.
    pub at: Timestamp,
    /// Which state was refused; 0 when it could not even be read.
    pub version: Version,
    /// Which life.
    pub uid: Option<Uid>,
    /// Whose reports were refused, with the digest of what was sent; none when it did not come to that.
    pub refused: Refused,
}

/// What of a key is unreported and cannot be read again from the cluster: it must outlive the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pending {
    /// Ends of operations, oldest first: the life, the state that showed it, the end.
    pub ends: Vec<(Uid, Version, Arc<OperationEnd>)>,
    /// Lives that are over, and their last known state, oldest first.
    pub gone: Vec<(Uid, Version)>,
}

impl Pending {
    /// The latest life that it tells of.
    #[must_use]
    pub fn latest(&self) -> Option<&Uid> {
        let ends = self.ends.iter().map(|(uid, version, _)| (version, uid));
        let lives = ends.chain(self.gone.iter().map(|(uid, version)| (version, uid)));
        lives.max_by_key(|(version, _)| **version).map(|(_, uid)| uid)
    }
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
    /// In how long it is looked at again for what is owed.
    pub owed: Option<Duration>,
    /// How long something of it has been unreported.
    pub unreported: Option<Duration>,
}

/// Whether two summaries describe the same end of the same operation.
pub(crate) fn same_end(a: &OperationEnd, b: &OperationEnd) -> bool {
    a.started_at == b.started_at && a.finished_at == b.finished_at && a.phase == b.phase
}
