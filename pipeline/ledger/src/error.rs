//! What can go wrong with a ledger, and what a person does about it.

use std::path::PathBuf;
use std::sync::Arc;

use pipeline_bus::BusError;
use pipeline_bus::jetstream::PutError;

/// Why a ledger cannot be opened or made durable. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Somebody else has the file open.
    #[error(
        "another process holds the ledger file {}: one process writes a ledger, so stop the other one or \
         give this one a file of its own", path.display()
    )]
    Held {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder may not be read or written.
    #[error(
        "no right to read and write the ledger file {}: give this process's user both rights to the file \
         and to its folder", path.display()
    )]
    Permission {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// There is nothing to put the file into.
    #[error("the folder of the ledger file {} does not exist: make it, or mount a volume there", path.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// A newer version wrote the file.
    #[error(
        "the ledger file {} has format {found}, and this version knows formats up to {known}: run the version \
         that wrote it, or move the file away, and everything is reported again", path.display()
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u64,
        /// What is known.
        known: u64,
    },
    /// The operating system refuses something else.
    #[error("cannot {act} the ledger file {}", path.display())]
    Io {
        /// What was tried: a verb.
        act: &'static str,
        /// The file.
        path: PathBuf,
        /// The storage's answer.
        source: Box<redb::Error>,
    },
    /// A commit failed; nothing is lost while the process lives, and it is tried again.
    #[error("cannot write the ledger: {waiting} records wait in memory and are tried again")]
    Write {
        /// How many records are newer in memory than in the file.
        waiting: usize,
        /// Why.
        source: Arc<Failure>,
    },
    /// Somebody else has claimed a shard of a ledger in a bucket.
    #[error(
        "shard {shard} of the ledger belongs to a newer owner: its epoch is {found}, and this one's is {own}"
    )]
    Fenced {
        /// The shard.
        shard: u32,
        /// The epoch of the newest claim.
        found: u64,
        /// The epoch with which it was asked for.
        own: u64,
    },
    /// The bucket cannot be read or written.
    #[error("cannot {act} the ledger in the bucket")]
    Bus {
        /// What was tried: a verb.
        act: &'static str,
        /// The bus's answer.
        source: Box<PutError>,
    },
    /// The bucket's ledger is divided in another way.
    #[error(
        "the ledger in the bucket was written with the sharding {found}, and this process has {asked}: give all \
         replicas the same number of shards, or another prefix of the bus, and everything is reported again"
    )]
    Sharding {
        /// What it says.
        found: String,
        /// What was asked for.
        asked: String,
    },
    /// A newer version wrote a claim.
    #[error(
        "the ledger in the bucket has format {found}, and this version knows formats up to {known}: run the version \
         that wrote it"
    )]
    Claim {
        /// What it says.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// The ledger is closed while records were not written.
    #[error("the ledger was closed with {waiting} records that are not written")]
    Closed {
        /// How many records are newer in memory than in the file.
        waiting: usize,
    },
}

/// Why one commit failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The storage answered with an error: a full disk, say.
    #[error("the ledger's storage failed")]
    Storage(#[source] redb::Error),
    /// The storage stopped in the middle of the commit.
    #[error("the ledger's storage stopped in the middle of a commit")]
    Stopped,
    /// The file could not be opened again after an earlier failure.
    #[error("the ledger file cannot be opened again")]
    Reopen(#[source] LedgerError),
    /// The bus is away or refuses.
    #[error("the bucket of the ledger failed")]
    Bucket(#[source] PutError),
    /// Another ledger has taken the file's place since it was opened.
    #[error("the ledger file was replaced by another ledger")]
    Replaced,
}

impl LedgerError {
    /// What of the bus failed.
    pub(super) fn bus(act: &'static str) -> impl Fn(BusError) -> Self {
        move |error| Self::Bus { act, source: Box::new(error.into()) }
    }
}
