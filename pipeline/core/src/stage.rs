//! The stage contract: what a stage gives and takes. The engine alone acknowledges, retries, orders,
//! counts, supervises and spawns.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{
    Checkpoint, Compared, Emitter, Event, Key, MemoryPermit, ObjectDigest, Others, OthersQuestion, Record,
    Report, Samples, ShardDigest, Shipment, Shutdown, StageError, Uid, Version,
};

/// Where events come from.
#[async_trait]
pub trait Source: Send + Sync + 'static {
    /// The name in logs and on the bus.
    fn name(&self) -> &'static str;

    /// Watches until `stop`, emitting every change. Returns only on `stop`, or when it can never work.
    async fn run(&self, out: Emitter, stop: Shutdown) -> Result<(), StageError>;

    /// Reads one object again, not older than `not_older_than`. `None` means that it is gone.
    async fn read(&self, key: &Key, not_older_than: Version) -> Result<Option<Event>, StageError>;

    /// Another process watches for this one too: `event`, which its watch showed, was delivered here.
    fn delivered(&self, _event: &Event) {}

    /// The same, where it can list all that is there: only then is what was reported compared with it.
    fn as_survey(&self) -> Option<&dyn Survey> {
        None
    }
}

/// A source of which everything can be listed.
#[async_trait]
pub trait Survey: Source {
    /// Whether `key` is watched by the settings of now. Of anything else no list and no deletion says anything, so
    /// that what an earlier process knew of it is left alone.
    fn watches(&self, key: &Key) -> bool;

    /// Whether objects of a kind, as keys call it, may be watched at all.
    fn watches_kind(&self, _kind: &str) -> bool {
        true
    }

    /// Everything that is there now, from one complete list of each kind; `known` was remembered before it is asked for.
    ///
    /// # Errors
    /// Nothing could be listed.
    async fn survey(&self, known: Vec<Remembered>) -> Result<SurveyResult, StageError>;
}

/// What a ledger remembers of one object: which life of it, and the version of the state that was acknowledged last;
/// 0 where none is known.
pub type Remembered = (Key, Uid, Version);

/// What a survey found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurveyResult {
    /// What is there, sorted by key.
    pub objects: Vec<Surveyed>,
    /// The kinds, as keys call them, that could not be listed: of their objects it says nothing.
    pub unlisted: BTreeSet<&'static str>,
}

/// One object of a complete list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Surveyed {
    /// Whose.
    pub key: Key,
    /// Which life of it; empty when it is not shown.
    pub uid: Uid,
    /// Which state of it; 0 means unknown.
    pub version: Version,
    /// What is reported of it may change though its version does not.
    pub may_drift: bool,
}

/// Turns an event and what is known into reports.
#[async_trait]
pub trait Enrich: Send + Sync + 'static {
    /// Decides what to report of `event`, fetches what that needs, and builds the reports.
    async fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
    ) -> Result<Enriched, StageError>;
}

/// Where reports go. One answer per shipment, in their order.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Ships reports; each answer stands for itself.
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>>;

    /// The name in idempotency keys, logs and metrics, e.g. `platform`.
    fn name(&self) -> &'static str;

    /// Returns when what it authenticates itself with has changed since the call; never, where that cannot change.
    async fn credentials_changed(&self) {
        std::future::pending::<()>().await;
    }

    /// Hands over what was acknowledged of one shard, in short. A receiver that does not compare answers
    /// [`Compared::Unknown`].
    async fn digest(&self, _digest: &ShardDigest) -> Result<Compared, StageError> {
        Ok(Compared::Unknown)
    }

    /// Of these objects, those of which the receiver holds something else; `None` when it does not compare.
    async fn differing(&self, _objects: &[ObjectDigest]) -> Result<Option<Vec<Key>>, StageError> {
        Ok(None)
    }

    /// What the receiver holds beside what is known, in no state in which it is gone; `None` when it does not say.
    async fn others(&self, _question: &OthersQuestion) -> Result<Option<Others>, StageError> {
        Ok(None)
    }
}

/// The circumstances of one try at one event.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Now: when the event was taken up. The report's `timestamp`, and every other "now".
    pub now: Timestamp,
    /// How long since the first try at this event; zero at the first.
    pub trying_for: Duration,
    /// Takes the calls made for this event, for whoever asks why it took so long.
    pub calls: Samples,
    /// Takes the memory that the reports were granted: it is given back when the attempt ends.
    pub memory: MemoryPermit,
}

impl Attempt {
    /// The first try at an event.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self { now, trying_for: Duration::ZERO, calls: Samples::default(), memory: MemoryPermit::default() }
    }
}

/// What enrichment made of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enriched {
    /// The reports: those of objects first, one after the other, then resources in any order.
    pub reports: Vec<Report>,
    /// What moves when all are acknowledged; `None` when the event changes nothing that is remembered
    /// (filtered), or ends the record.
    pub settle: Option<Checkpoint>,
    /// Why there is no report, when there is none.
    pub filtered: Option<Filtered>,
    /// Look again though nothing says that it changed.
    pub refetch: Option<Refetch>,
}

/// Why something is to be looked at again though nothing says that it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refetch {
    /// It was looked at just before, and so was not now: after this long.
    Paced(Duration),
    /// Something could not be fetched: after a while, and less and less often while that brings nothing.
    Incomplete,
}

impl Enriched {
    /// Nothing to report.
    #[must_use]
    pub fn filtered(why: Filtered) -> Self {
        Self { reports: Vec::new(), settle: None, filtered: Some(why), refetch: None }
    }
}

/// Why an event brings no report; a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Filtered {
    /// Nothing that counts differs from what was acknowledged.
    Unchanged,
    /// Every report would have equalled its predecessor.
    SameContent,
    /// A deletion of something that was never reported.
    NeverReported,
    /// A redelivery of a state that is already acknowledged.
    Stale,
    /// A redelivery of a state that was refused for good.
    Parked,
    /// It was read again, and is not what the route takes.
    Unmatched,
    /// A reason that the stage declares.
    Of(&'static str),
}

impl Filtered {
    /// Those that every stage may give.
    pub const COMMON: [Self; 6] =
        [Self::Unchanged, Self::SameContent, Self::NeverReported, Self::Stale, Self::Parked, Self::Unmatched];

    /// The label and log value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::SameContent => "same_content",
            Self::NeverReported => "never_reported",
            Self::Stale => "stale",
            Self::Parked => "parked",
            Self::Unmatched => "unmatched",
            Self::Of(name) => name,
        }
    }
}
