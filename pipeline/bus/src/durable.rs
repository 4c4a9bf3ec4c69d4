//! Who consumes, and what.

/// A pull consumer that the server remembers: whatever matches it stays until it has acknowledged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durable {
    /// Who consumes: all of one group share the work, each group sees everything.
    pub group: String,
    /// What it consumes.
    pub source: String,
    /// One shard of it, or all.
    pub shard: Option<u32>,
}
