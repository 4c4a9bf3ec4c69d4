//! What a runtime and a receiver compare to find out whether they hold the same.
//!
//! Every acknowledged report had an idempotency key. The digest of an object is the exclusive or of the first
//! 16 bytes (big-endian) of the SHA-256 of each entity's last key as it was sent (64 hexadecimal digits), that of a
//! shard the exclusive or of those of its objects. An object's deletion takes all of its entities away, and a
//! resource that the object's last report does not list does not count: names
//! that are generated never come back, and neither side could remember all of them. So a receiver that remembers the last
//! key of every entity can compute both.

use jiff::Timestamp;

use crate::{Key, Uid, Version};

/// What was acknowledged of one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardDigest {
    /// The id of the ledger, or of this shard of it, which is part of every idempotency key.
    pub ledger: String,
    /// Which shard.
    pub shard: u32,
    /// Of how many.
    pub shards: u32,
    /// Objects of which something was acknowledged.
    pub objects: u64,
    /// Entities: objects, and resources that these list and that were ever acknowledged.
    pub entities: u64,
    /// The exclusive or over all of them.
    pub digest: u128,
    /// When it was taken.
    pub at: Timestamp,
}

/// What was acknowledged of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectDigest {
    /// Which object.
    pub key: Key,
    /// Which life of it.
    pub uid: Uid,
    /// The state that was acknowledged as a whole last; 0 where none is known.
    pub version: Version,
    /// Entities: itself and its resources.
    pub entities: u64,
    /// The exclusive or over all of them.
    pub digest: u128,
}

/// What a receiver says to a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// It does not compare.
    Unknown,
    /// It holds the same.
    Equal,
    /// It holds something else.
    Differs,
}

/// Objects that a receiver is told to be known at a time, and that it names in an answer, of those that are not.
pub const OTHERS_AT_ONCE: usize = 1_000;

/// Asks a receiver what it holds beside what is known, of objects whose keys name no kind: those in some shards, in a range of
/// keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OthersQuestion {
    /// How many shards there are.
    pub shards: u32,
    /// In which of them.
    pub own: Vec<u32>,
    /// Keys after this one; `None`: from the first.
    pub after: Option<Key>,
    /// Keys up to this one, itself included; `None`: to the last.
    pub upto: Option<Key>,
    /// What is known in that range, sorted; at most [`OTHERS_AT_ONCE`].
    pub known: Vec<Key>,
}

/// What a receiver holds beside what is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// Objects, in order, and which life of each.
    pub held: Vec<(Key, Uid)>,
    /// Of keys after this one it said nothing yet.
    pub more_after: Option<Key>,
}
