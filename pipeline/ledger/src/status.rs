//! What a ledger is told, and what it says of itself.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

/// How a ledger in a file or a bucket behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerOptions {
    /// The name of the sink whose acknowledgements are held; each sink has a table or rows of its own.
    pub sink: String,
    /// A change waits at most this long to be written.
    pub group_time: Duration,
    /// Writing begins at once when this many rows have changed.
    pub group_size: usize,
    /// The first pause after a failed group; doubled up to 30 s while it keeps failing.
    pub retry: Duration,
    /// Bytes of a file that are cached in memory; records are read from memory in any case.
    pub cache: usize,
}

impl LedgerOptions {
    /// The defaults, for one sink.
    #[must_use]
    pub fn new(sink: impl Into<String>) -> Self {
        Self {
            sink: sink.into(),
            group_time: Duration::from_millis(50),
            group_size: 256,
            retry: Duration::from_secs(1),
            cache: 512 << 10,
        }
    }
}

/// Where a ledger's records came from; anything but [`Origin::Existing`] is followed by a full resend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nothing outlives the process.
    Memory,
    /// The file was made.
    New,
    /// The file was there.
    Existing,
    /// The file was corrupt, or had gone back to an earlier commit: it now has this name, and an empty one was made.
    SetAside(PathBuf),
}

/// What was acknowledged of one shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AckedDigest {
    /// Objects of which something was acknowledged.
    pub objects: u64,
    /// Entities: those objects, and every resource that they list and that was ever acknowledged.
    pub entities: u64,
    /// The exclusive or over all of them, as [`pipeline_core::ShardDigest`] says.
    pub digest: u128,
}

/// What a ledger says of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerStatus {
    /// `memory`, `file` or `bucket`.
    pub storage: &'static str,
    /// Records held: one an object.
    pub records: usize,
    /// Bytes of records and their keys in memory.
    pub bytes: usize,
    /// Records that are too large for the bus, and stand there without their resources.
    pub cut: usize,
    /// Records and journal entries that are newer in memory than in the file.
    pub waiting: usize,
    /// Entities of which it is not known what the receiver holds.
    pub in_doubt: usize,
    /// Objects of which something is journaled.
    pub journal: usize,
    /// Bytes of what is journaled, and their keys, in memory.
    pub journal_bytes: usize,
    /// Journal entries that were refused because the journal is full.
    pub journal_refused: u64,
    /// Objects that are parked.
    pub parked: usize,
    /// Bytes of the file after its last commit; 0 in memory.
    pub file_bytes: u64,
    /// Send intents that could not be written.
    #[serde(rename = "flight_errors")]
    pub intent_errors: u64,
    /// Commits that succeeded.
    pub commits: u64,
    /// Commits that failed.
    pub errors: u64,
    /// The last commit failed.
    pub failing: bool,
    /// Seconds since the last commit that succeeded; `None` before the first, and in memory.
    #[serde(rename = "last_commit_seconds", serialize_with = "seconds")]
    pub last_commit_age: Option<Duration>,
}

#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
fn seconds<S: serde::Serializer>(age: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    age.map(|age| age.as_secs_f64()).serialize(to)
}
