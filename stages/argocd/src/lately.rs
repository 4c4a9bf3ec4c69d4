//! What was told, asked or said lately, in little room: of tens of thousands of applications, and of a commit for each.
//!
//! takes: bodies of commits, and names of what is done - gives: them back, or whether it was done lately
//! calls: none - fails: never; what has no room is asked for again
//!
//! Names stand here in short.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pipeline_core::{Names, Short};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::time::Instant;

/// Bytes that an entry takes beside its body.
const ENTRY: usize = 80;
/// Of a commit as it mostly is, with its entry.
const TYPICAL: u64 = 192;

/// Metadata of commits, by repository and revision.
pub(crate) struct Commits {
    names: Names,
    bodies: Cache<Short, Box<[u8]>, Weight>,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Short, Box<[u8]>> for Weight {
    fn weight(&self, _: &Short, body: &Box<[u8]>) -> u64 {
        (ENTRY + body.len()) as u64
    }
}

impl Commits {
    /// Keeps `bytes` of them.
    pub(crate) fn new(bytes: u64) -> Self {
        let typical = usize::try_from(bytes / TYPICAL).unwrap_or(usize::MAX);
        Self { names: Names::default(), bodies: Cache::with_weighter(typical, bytes, Weight) }
    }

    /// What Argo CD said of a revision.
    pub(crate) fn get(&self, repository: &str, revision: &str) -> Option<Bytes> {
        self.bodies.get(&self.names.of(&(repository, revision))).map(Bytes::from)
    }

    /// Keeps what Argo CD says of a revision.
    pub(crate) fn keep(&self, repository: &str, revision: &str, body: &[u8]) {
        self.bodies.insert(self.names.of(&(repository, revision)), body.into());
    }
}

/// What was done a short time ago, by name.
pub(crate) struct Recent {
    names: Names,
    done: Mutex<Done>,
    most: usize,
    time: Duration,
}

#[derive(Default)]
struct Done {
    names: HashSet<Short>,
    /// With its moment; the latest last.
    order: VecDeque<(Short, Instant)>,
}

impl Recent {
    /// Remembers at most `most` names, the latest, each for a `time`.
    pub(crate) fn new(most: usize, time: Duration) -> Self {
        Self { names: Names::default(), done: Mutex::default(), most, time }
    }

    /// Whether it was done.
    pub(crate) fn has(&self, name: &impl Hash) -> bool {
        self.of_late(self.most).names.contains(&self.names.of(name))
    }

    /// Whether it was not done yet; it counts as done from now on then.
    pub(crate) fn is_first(&self, name: &impl Hash) -> bool {
        let name = self.names.of(name);
        let mut done = self.of_late(self.most.saturating_sub(1));
        let is_first = done.names.insert(name);
        if is_first {
            done.order.push_back((name, Instant::now()));
        }
        is_first
    }

    /// What is not over, without the oldest that are more than `most`.
    fn of_late(&self, most: usize) -> MutexGuard<'_, Done> {
        let mut guard = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let done = &mut *guard;
        let left = done.order.len();
        let over =
            |(place, (_, at)): &(usize, &(Short, Instant))| left - place > most || at.elapsed() >= self.time;
        let over = done.order.iter().enumerate().take_while(over).count();
        for (name, _) in done.order.drain(..over) {
            done.names.remove(&name);
        }
        guard
    }
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recent").field("time", &self.time).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_kept_by_repository_and_revision_within_their_room() {
        let commits = Commits::new(64 * 1024);
        assert_eq!(commits.get("repo", "1"), None);
        commits.keep("repo", "1", b"{\"author\":\"a\"}");
        commits.keep("repo", "2", b"{\"author\":\"b\"}");
        assert_eq!(commits.get("repo", "1").unwrap(), &b"{\"author\":\"a\"}"[..]);
        assert_eq!(commits.get("repo", "2").unwrap(), &b"{\"author\":\"b\"}"[..]);
        assert_eq!(commits.get("repo1", ""), None, "where a name ends counts");
        for revision in 0..2_000 {
            commits.keep("many", &revision.to_string(), &[0; 200]);
        }
        let kept = (0..2_000).filter(|revision| commits.get("many", &revision.to_string()).is_some()).count();
        assert!((100..=64 * 1024 / 280).contains(&kept), "{kept}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_done_is_done_again_when_its_time_is_over() {
        let recent = Recent::new(100, Duration::from_secs(10));
        let (a, b) = (("ns", "a"), ("ns", "b"));
        assert!(!recent.has(&a) && recent.is_first(&a));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(recent.has(&a) && !recent.is_first(&a));
        assert!(!recent.has(&b));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!recent.has(&a), "to ask in between makes it no longer");
        assert!(recent.is_first(&a) && recent.has(&a) && !recent.is_first(&a));
    }

    #[test]
    fn the_latest_are_remembered() {
        let recent = Recent::new(100, Duration::MAX);
        assert!((0..150).all(|n| recent.is_first(&n)));
        assert!((0..50).all(|n| !recent.has(&n)) && (50..150).all(|n| recent.has(&n)));
        assert!(!recent.is_first(&149) && recent.is_first(&0) && recent.has(&0));
        assert_eq!(recent.of_late(100).names.len(), 100);
        let none = Recent::new(0, Duration::MAX);
        assert!(none.is_first(&1) && !none.has(&1) && none.is_first(&1));
    }
}
