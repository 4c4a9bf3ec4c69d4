//! How far what a source has shown is done with, kept in the ledgers of its routes, so that the next process goes on from
//! there: what a kind went through while nobody watched is shown once more.
//!
//! takes: how many events were emitted into each shard, and which version of each kind they reach - gives: the version up to
//! which nothing is undone
//! calls: each route's ledger, a few times a second at most, and only for what moved - fails: never; a version that is too
//! old costs states that are known
//!
//! A version counts once every event that was emitted before it was reached has come into its lane, and no lane holds any of
//! them: so it never says of anything that it is done which a crash would lose.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pipeline_core::{Key, Progress, Settled, Shutdown, Uid, Version};
use tokio::time::sleep;

use super::Table;
use crate::shard::Shared;
use pipeline_ledger::Ledger;
use pipeline_ownership::sharding::Sharding;

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(250);

/// What is emitted of one source.
pub(super) struct Done {
    sharding: Sharding,
    routes: Vec<(Ledger, Arc<Table>)>,
    /// Events emitted into each shard.
    emitted: Vec<AtomicU64>,
    reached: Mutex<BTreeMap<Box<str>, Version>>,
}

/// What was reached at one moment, and what had been emitted into each shard by then.
struct Mark {
    reached: BTreeMap<Box<str>, Version>,
    emitted: Vec<u64>,
}

impl Done {
    pub(super) fn new(sharding: Sharding, routes: &[Arc<Shared>]) -> Self {
        let routes = routes.iter().map(|shared| (shared.ledger.clone(), shared.table.clone())).collect();
        Self::of(sharding, routes)
    }

    fn of(sharding: Sharding, routes: Vec<(Ledger, Arc<Table>)>) -> Self {
        let emitted = (0..sharding.shards().get()).map(|_| AtomicU64::new(0)).collect();
        Self { sharding, routes, emitted, reached: Mutex::default() }
    }

    /// An event of this key is about to be emitted.
    pub(super) fn emits(&self, key: &Key) {
        if let Some(count) = self.emitted.get(self.sharding.place(key) as usize) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Keeps what is done, until `stop`.
    pub(super) async fn keep(&self, stop: Shutdown) {
        let mut waits: Option<Mark> = None;
        while stop.run_until_cancelled(sleep(LOOK)).await.is_some() {
            let mark = waits.take().unwrap_or_else(|| self.mark());
            if !self.note(&mark) {
                waits = Some(mark);
            }
        }
        let last = waits.take().unwrap_or_else(|| self.mark());
        self.note(&last);
    }

    /// What was reached was emitted before: whatever was is counted here.
    fn mark(&self) -> Mark {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Mark { reached, emitted: self.emitted.iter().map(|count| count.load(Ordering::SeqCst)).collect() }
    }

    /// Notes what is done of what was reached; `false` while something of it is still on its way to its lane.
    fn note(&self, mark: &Mark) -> bool {
        let mut oldest = Vec::new();
        for (ledger, table) in &self.routes {
            match oldest_held(table, &mark.emitted) {
                Some(held) => oldest.push((ledger, held)),
                None => return false,
            }
        }
        for (ledger, held) in oldest {
            for (kind, reached) in &mark.reached {
                let done = if held.0 == 0 { *reached } else { (*reached).min(held.before()) };
                if ledger.done_before(kind).is_none_or(|known| known < done) && done.number() > 0 {
                    ledger.done(kind, done);
                }
            }
        }
        true
    }
}

/// The oldest state that the shards of a route hold, 0 for none; `None` while one has not taken all that was emitted.
fn oldest_held(table: &Table, emitted: &[u64]) -> Option<Version> {
    let mut oldest = Version(0);
    for (shard, emitted) in (0_u32..).zip(emitted).filter(|(_, emitted)| **emitted > 0) {
        let (came, counts) = table.came(shard)?;
        if came < *emitted {
            return None;
        }
        oldest = oldest.older(counts.oldest_version);
    }
    Some(oldest)
}

impl Progress for Done {
    fn done(&self, kind: &str) -> Option<Version> {
        let all: Option<Vec<Version>> =
            self.routes.iter().map(|(ledger, _)| ledger.done_before(kind)).collect();
        all?.into_iter().min()
    }

    fn acknowledged(&self, key: &Key, uid: &Uid) -> Version {
        let of = |ledger: &Ledger| match ledger.get(key) {
            Some(record) if record.uid == *uid && record.settled != Settled::Never => record.version,
            _ => Version(0),
        };
        self.routes.iter().map(|(ledger, _)| of(ledger)).min().unwrap_or_default()
    }

    fn reached(&self, kind: &str, version: Version) {
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        match reached.get_mut(kind) {
            Some(known) => *known = (*known).max(version),
            None => drop(reached.insert(kind.into(), version)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use pipeline_core::LaneCounts;
    use tokio::sync::{mpsc, watch};

    use super::*;
    use crate::run::table::ShardHandle;

    /// Two shards, what is told of each, and the ledger.
    fn world() -> (Done, [watch::Sender<LaneCounts>; 2], Ledger) {
        let sharding = Sharding::Jump { shards: NonZeroU32::new(2).unwrap() };
        let table = Arc::new(Table::new(sharding));
        let told = [0, 1].map(|number| {
            let (tell, counts) = watch::channel(LaneCounts::default());
            table.add(ShardHandle { number, counts, commands: mpsc::channel(1).0 });
            tell
        });
        let ledger = Ledger::memory();
        (Done::of(sharding, vec![(ledger.clone(), table)]), told, ledger)
    }

    /// A name of each shard.
    fn keys(done: &Done) -> [Key; 2] {
        [0, 1].map(|shard| {
            let keys = (0..).map(|n| Key::of_kind("rollout", "shop", &format!("r{n}")).unwrap());
            keys.into_iter().find(|key| done.sharding.place(key) == shard).unwrap()
        })
    }

    #[test]
    fn what_was_reached_is_done_when_all_of_it_came_and_nothing_of_it_is_held() {
        let (done, told, ledger) = world();
        let [one, other] = keys(&done);
        done.emits(&one);
        done.emits(&other);
        done.reached("rollout", Version(20));
        let mark = done.mark();
        let came = |shard: usize, delivered, oldest| {
            told[shard].send_replace(LaneCounts {
                delivered,
                oldest_version: Version(oldest),
                ..LaneCounts::default()
            });
        };
        // What one shard has beyond what was asked for says nothing of the other.
        came(0, 2, 0);
        assert!(!done.note(&mark), "one is on its way");
        assert_eq!(ledger.done_before("rollout"), None);
        came(1, 1, 12);
        assert!(done.note(&mark));
        assert_eq!(ledger.done_before("rollout"), Some(Version(11)), "all before the oldest that is held");
        came(1, 1, 0);
        assert!(done.note(&mark));
        assert_eq!((done.done("rollout"), done.done("workflow")), (Some(Version(20)), None));
        // It never goes back.
        came(1, 1, 5);
        assert!(done.note(&mark));
        assert_eq!(done.done("rollout"), Some(Version(20)));
    }

    #[test]
    fn events_of_other_routes_came_as_well() {
        let (done, told, ledger) = world();
        let [one, _] = keys(&done);
        done.emits(&one);
        done.emits(&one);
        done.reached("rollout", Version(20));
        told[0].send_replace(LaneCounts { delivered: 1, ..LaneCounts::default() });
        assert!(!done.note(&done.mark()));
        done.routes[0].1.skip(0);
        assert!(done.note(&done.mark()));
        assert_eq!(ledger.done_before("rollout"), Some(Version(20)));
    }
}
