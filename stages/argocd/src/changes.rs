//! Which commits changed an application last: asked for where nothing notes them with the application itself.

use std::sync::Arc;

use moka::sync::Cache;
use pipeline_core::{Digest, async_trait};
use tokio::time::{Instant, timeout_at};

/// Applications whose answer is kept; one that is forgotten is asked about once more.
const KEPT: u64 = 10_000;

/// The commits that changed an application last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Newest {
    /// The revision that each source stands at, in the application's order.
    pub revisions: Vec<String>,
    /// The commit that last changed each source up to there; empty where none is known.
    pub change_revisions: Vec<String>,
}

impl Newest {
    /// The commits, where they are of the very revisions that are reported. An operation need not say which one it was of.
    pub(crate) fn of(&self, reported: &[String]) -> Option<Vec<String>> {
        let is_same = |(reported, of): (&String, &String)| reported.is_empty() || reported == of;
        let is_newest =
            reported.len() == self.revisions.len() && reported.iter().zip(&self.revisions).all(is_same);
        (is_newest && self.change_revisions.len() == self.revisions.len())
            .then(|| self.change_revisions.clone())
    }
}

/// Says which commits changed applications.
#[async_trait]
pub trait Changes: std::fmt::Debug + Send + Sync {
    /// Says it of an application: as much of its object as that depends on, as JSON. `None`: it cannot be had now, and is asked for
    /// again later; what will not be known however often it is asked for is empty. Ends in its own time.
    async fn newest(&self, application: &str) -> Option<Newest>;
}

/// Asks, and keeps what was said for as long as the question is the same.
#[derive(Debug)]
pub(crate) struct KeptChanges {
    changes: Arc<dyn Changes>,
    kept: Cache<Digest, Newest>,
}

impl KeptChanges {
    pub(crate) fn new(changes: Arc<dyn Changes>) -> Self {
        Self { changes, kept: Cache::new(KEPT) }
    }

    /// As [`Changes::newest`], until `deadline` at most.
    pub(crate) async fn newest(&self, application: &str, deadline: Instant) -> Option<Newest> {
        let question = Digest::of(application.as_bytes());
        if let Some(kept) = self.kept.get(&question) {
            return Some(kept);
        }
        let newest = timeout_at(deadline, self.changes.newest(application)).await.ok()??;
        self.kept.insert(question, newest.clone());
        Some(newest)
    }
}
