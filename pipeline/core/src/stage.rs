//! The stage contract: what a stage gives and takes. The engine alone acknowledges, retries, orders,
//! counts, supervises and spawns.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::{
    Checkpoint, Compared, Digest, EntityId, Event, Key, MemoryPermit, ObjectDigest, Others, OthersQuestion,
    Record, Report, Samples, ShardDigest, Shutdown, StageError, Uid, Version,
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

/// One report on its way out.
#[derive(Debug, Clone)]
pub struct Shipment {
    /// The report.
    pub report: Report,
    /// 64 hexadecimal digits, see [`Shipment::new`].
    pub idempotency_key: Arc<str>,
    /// How often the object's shard had changed hands when this was sent: a receiver that honours it refuses the
    /// reports of an owner that another has followed. `None` where no shard changes hands.
    pub epoch: Option<u64>,
}

impl Shipment {
    /// Gives a report its idempotency key: the same for a retry of the same content, another for anything else, also
    /// for a return to an earlier content.
    ///
    /// What happens once has a key that depends neither on content nor on what was acknowledged before, so that it
    /// is the same in every telling: the end of a life ([`Report::ends`]), whether its last state was watched or
    /// nothing but its record tells of it, that of the ledger's id, the sink and the uid; a fact that the newest state
    /// does not show any more ([`Report::fact`]), that of these and the fact's id. What may be back under its uid, as
    /// whatever left a selector, ends once in each stay: the key of such an end is that of these, the stay's id and the
    /// counter, which stands still while the end alone is sent. Every other key is as [`idempotency_key`] says.
    #[must_use]
    pub fn new(report: Report, ledger: &str, sink: &str, counter: u64) -> Self {
        let uid = &report.uid;
        let key = match (report.ends, report.fact) {
            (true, None) => key_of(&[ledger, sink, uid, "end"]),
            (true, Some(Digest(stay))) => {
                key_of(&[ledger, sink, uid, "end", &format!("{stay:016x}"), &counter.to_string()])
            }
            (false, Some(Digest(fact))) => key_of(&[ledger, sink, uid, "fact", &format!("{fact:016x}")]),
            (false, None) => idempotency_key(ledger, sink, uid, report.entity, counter, report.content),
        };
        Self { report, idempotency_key: key.into(), epoch: None }
    }

    /// The same, sent by the owner of this epoch.
    #[must_use]
    pub fn with_epoch(self, epoch: Option<u64>) -> Self {
        Self { epoch, ..self }
    }

    /// The id of the span that its sending is in the event's trace: the same for a retry of the same content, and
    /// never 0.
    #[must_use]
    pub fn span(&self) -> u64 {
        let digits = self.idempotency_key.get(..16);
        digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default().max(1)
    }
}

/// The idempotency key of a report of a state, 64 hexadecimal digits: SHA-256 of the ledger's id, the sink,
/// the uid, the entity, how many of its reports were acknowledged before, and the content digest.
#[must_use]
pub fn idempotency_key(
    ledger: &str,
    sink: &str,
    uid: &str,
    EntityId(entity): EntityId,
    counter: u64,
    Digest(content): Digest,
) -> String {
    key_of(&[ledger, sink, uid, &format!("{entity:016x}"), &counter.to_string(), &format!("{content:016x}")])
}

/// Each part is preceded by its length, so that parts cannot run into each other.
fn key_of(parts: &[&str]) -> String {
    use std::fmt::Write as _;

    use sha2::Digest as _;
    let mut hasher = sha2::Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let digest: [u8; 32] = hasher.finalize().into();
    let mut key = String::with_capacity(2 * digest.len());
    for part in digest.as_chunks().0 {
        // Writing to a `String` cannot fail.
        let _ = write!(key, "{:016x}", u64::from_be_bytes(*part));
    }
    key
}

/// What a source tells beside its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceNote {
    /// A list has begun.
    Listing,
    /// One page of `objects` has been read.
    Page {
        /// Objects in the page.
        objects: usize,
    },
    /// A list is complete: `objects` are there.
    Listed {
        /// Objects in the list.
        objects: usize,
    },
    /// The watch moved: an event, a bookmark, or a connection that stands.
    Alive,
    /// One object could not be read and was skipped.
    Malformed,
    /// The watch broke and is being restarted.
    Broken(crate::Reason),
    /// How one of several kinds stands by now.
    Kind {
        /// What keys call it.
        kind: &'static str,
        /// How it stands.
        state: KindState,
    },
    /// The watch has ended, until it begins again.
    Ended,
    /// What came and went for a while is not known any more: objects are reported as they are now.
    Gap {
        /// Of which kind.
        kind: &'static str,
    },
}

/// How a source stands with one of its kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KindState {
    /// It is watched: so many `objects` were in its last complete list.
    Watched {
        /// Objects in the list.
        objects: usize,
    },
    /// The API server serves no such objects: it is waited for.
    Absent,
    /// It cannot be read, as when a right is missing.
    Unreadable,
}

type Wants = dyn Fn(&Key) -> bool + Send + Sync;
type Emit = dyn Fn(Event) -> BoxFuture<'static, bool> + Send + Sync;
type TakeNote = dyn Fn(SourceNote) + Send + Sync;
type Recall = dyn Fn() -> BoxFuture<'static, Vec<Remembered>> + Send + Sync;
type AwaitCapacity = dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync;

/// What a source emits into: each event goes to the shard that owns its key.
///
/// Emitting waits for the bus where that is slow, and never for a sink: a lane takes events in at once, and makes a dirty
/// entry of a key whose queue is full.
#[derive(Clone)]
pub struct Emitter {
    wants: Arc<Wants>,
    emit: Arc<Emit>,
    note: Arc<TakeNote>,
    known: Arc<Recall>,
    emitted: Arc<AtomicU64>,
    pace: Option<Arc<AwaitCapacity>>,
    progress: Option<Arc<dyn Progress>>,
}

/// How far what a source has shown is done with, so that a later process can go on from there.
pub trait Progress: Send + Sync {
    /// Of all that was shown of a kind up to such a version a former process left nothing undone on a route: one for each route
    /// of which that is known. What the watch shows of a kind after the oldest of them, and a route may know, is to be marked
    /// as shown again ([`Event::again`]).
    fn done(&self, kind: &str) -> Vec<Version>;

    /// All that there is of a kind up to this version was emitted.
    fn reached(&self, kind: &str, version: Version);
}

impl Emitter {
    /// `wants` says which keys are not another process's, and `emit` takes their events; it answers `false` when nobody
    /// takes any more.
    pub fn new(
        wants: impl Fn(&Key) -> bool + Send + Sync + 'static,
        emit: impl Fn(Event) -> BoxFuture<'static, bool> + Send + Sync + 'static,
        note: impl Fn(SourceNote) + Send + Sync + 'static,
    ) -> Self {
        Self {
            wants: Arc::new(wants),
            emit: Arc::new(emit),
            note: Arc::new(note),
            known: Arc::new(|| Box::pin(std::future::ready(Vec::new()))),
            emitted: Arc::default(),
            pace: None,
            progress: None,
        }
    }

    /// The same, for a source that can go on where a former process ended.
    #[must_use]
    pub fn progressing(self, progress: Option<Arc<dyn Progress>>) -> Self {
        Self { progress, ..self }
    }

    /// How far a former process came, and who is told how far this one comes; `None` where nothing outlives the process.
    #[must_use]
    pub fn progress(&self) -> Option<&Arc<dyn Progress>> {
        self.progress.as_ref()
    }

    /// The same, and `also` hears what is told beside events, after whoever heard it before.
    #[must_use]
    pub fn noting(self, also: impl Fn(SourceNote) + Send + Sync + 'static) -> Self {
        let note = self.note;
        let both = move |told| {
            note(told);
            also(told);
        };
        Self { note: Arc::new(both), ..self }
    }

    /// The same, with what the ledger knows, so that the first list finds what vanished before the process started. It is
    /// asked for when it is needed: what was journaled may be reported, and go, before the first list is complete.
    #[must_use]
    pub fn knowing<K: Future<Output = Vec<Remembered>> + Send + 'static>(
        self,
        known: impl Fn() -> K + Send + Sync + 'static,
    ) -> Self {
        Self { known: Arc::new(move || Box::pin(known())), ..self }
    }

    /// The same, but a first list is held back between its pages: `pace` is given how many events were emitted so far,
    /// and is over when the list may go on.
    #[must_use]
    pub fn paced<W: Future<Output = ()> + Send + 'static>(
        self,
        pace: impl Fn(u64) -> W + Send + Sync + 'static,
    ) -> Self {
        Self { pace: Some(Arc::new(move |emitted| Box::pin(pace(emitted)))), ..self }
    }

    /// Waits, between two pages of a first list, until the next one may be read: what was not read yet takes no room.
    pub async fn wait_for_capacity(&self) {
        if let Some(pace) = &self.pace {
            pace(self.emitted.load(Ordering::Relaxed)).await;
        }
    }

    /// Whether this process owns `key`; events of other keys are not even built.
    #[must_use]
    pub fn wants(&self, key: &Key) -> bool {
        (self.wants)(key)
    }

    /// Hands one event over. Returns `false` when nobody takes it any more: the process is stopping.
    pub async fn emit(&self, event: Event) -> bool {
        if !self.wants(&event.key) {
            return true;
        }
        self.emitted.fetch_add(1, Ordering::Relaxed);
        (self.emit)(event).await
    }

    /// Tells something beside events.
    pub fn note(&self, note: SourceNote) {
        (self.note)(note);
    }

    /// What the ledger knows, whichever process works on it.
    pub async fn known(&self) -> Vec<Remembered> {
        (self.known)().await
    }
}

impl fmt::Debug for Emitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emitter").field("emitted", &self.emitted).finish_non_exhaustive()
    }
}
