//! Where servers behind one name tell each other of themselves: a key-value store that all of them share.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

/// Why something was not written.
pub type BoardError = Box<dyn std::error::Error + Send + Sync>;

/// What happens on a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// All that stands there; said at first, and again whenever something may have been missed.
    All(Vec<(String, Bytes)>),
    /// Something was written.
    Put(String, Bytes),
    /// Something was taken away.
    Removed(String),
    /// What happens from now on is not seen, until all is told again.
    Interrupted,
}

/// A board that servers share.
#[async_trait]
pub trait Board: Send + Sync + std::fmt::Debug {
    /// Writes; the value goes by itself after `ttl`, of which nobody is told.
    ///
    /// # Errors
    /// When the board is away.
    async fn put(&self, key: &str, value: Bytes, ttl: Duration) -> Result<(), BoardError>;

    /// Takes away.
    ///
    /// # Errors
    /// When the board is away.
    async fn remove(&self, key: &str) -> Result<(), BoardError>;

    /// Looks at it from now on.
    fn watch(&self) -> Box<dyn Watching>;
}

/// Looks at a board, for ever.
#[async_trait]
pub trait Watching: Send {
    /// What happens next; may be cancelled.
    async fn next(&mut self) -> Posted;
}
