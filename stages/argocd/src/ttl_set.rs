//! Names of what was done a short time ago: asked for, or said.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use pipeline_core::{Names, Short};

/// Remembers a bounded number of names, in short, each for a time; the latest stay where there are more.
pub(crate) struct TtlSet {
    names: Names,
    set: Cache<Short, ()>,
}

impl TtlSet {
    /// Remembers at most `most` names, each for a `time` after it was added.
    pub(crate) fn new(most: u64, time: Duration) -> Self {
        let set = Cache::builder().max_capacity(most).time_to_live(time);
        Self { names: Names::default(), set: set.eviction_policy(EvictionPolicy::lru()).build() }
    }

    /// Whether a name was added and is remembered.
    pub(crate) fn contains(&self, name: &impl Hash) -> bool {
        self.set.contains_key(&self.names.of(name))
    }

    /// Adds a name; `false` where it is remembered already, and stays only as long as it would have.
    pub(crate) fn insert(&self, name: &impl Hash) -> bool {
        self.set.entry(self.names.of(name)).or_insert(()).is_fresh()
    }
}

impl fmt::Debug for TtlSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TtlSet").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_name_is_remembered_until_its_time_is_over_however_often_it_is_added() {
        let set = TtlSet::new(100, Duration::from_millis(50));
        let (a, b) = (("ns", "a"), ("ns", "b"));
        let begun = Instant::now();
        assert!(!set.contains(&a) && set.insert(&a) && !set.contains(&b));
        while !set.insert(&a) {
            assert!(begun.elapsed() < Duration::from_secs(60), "it is remembered for ever");
            std::thread::yield_now();
        }
        assert!(begun.elapsed() >= Duration::from_millis(50), "it was forgotten before its time");
    }

    #[test]
    fn the_latest_are_remembered() {
        let set = TtlSet::new(100, Duration::from_secs(3600));
        for n in 0..150 {
            assert!(set.insert(&n));
            set.set.run_pending_tasks();
        }
        assert!((0..50).all(|n| !set.contains(&n)) && (50..150).all(|n| set.contains(&n)));
        assert!(!set.insert(&149) && set.insert(&0));
    }
}
