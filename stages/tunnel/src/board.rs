//! Where servers behind one name tell each other of themselves: a key-value store that all of them share.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

/// Why something was not written to a board.
pub type BoardError = Box<dyn std::error::Error + Send + Sync>;

/// A change of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// All entries: this comes first, and again whenever a change may have been missed.
    All(Vec<(String, Bytes)>),
    /// An entry was written: its key and its value.
    Put(String, Bytes),
    /// The entry of this key was removed.
    Removed(String),
    /// Changes are not seen from now on, until all entries come again.
    Interrupted,
}

/// A board that servers share.
#[async_trait]
pub trait Board: Send + Sync + std::fmt::Debug {
    /// Writes an entry, which expires after `ttl` without a word to anybody.
    ///
    /// # Errors
    /// When the board is away.
    async fn put(&self, key: &str, value: Bytes, ttl: Duration) -> Result<(), BoardError>;

    /// Removes an entry.
    ///
    /// # Errors
    /// When the board is away.
    async fn remove(&self, key: &str) -> Result<(), BoardError>;

    /// Watches the board from now on.
    fn watch(&self) -> Box<dyn Watching>;
}

/// Watches a board, without end.
#[async_trait]
pub trait Watching: Send {
    /// The next change. Nothing is lost when this is cancelled.
    async fn next(&mut self) -> Posted;
}
