//! How far what a source has shown is done with, kept in the ledger of each route for itself, so that the next process goes on
//! from there: what a kind went through while nobody watched is shown once more, and each route passes over what it is done
//! with ([`crate::shard::input`]).
//!
//! takes: how many events were emitted into each shard, and which version of each kind they reach - gives: the version up to
//! which nothing is undone, of each route
//! calls: each route's ledger, a few times a second at most, and only for what moved - fails: never; a version that is too
//! old costs states that are known
//!
//! A version counts once every event that was emitted before it was reached has come into its lane, and no lane holds any of
//! them: so it never says of anything that it is done which a crash would lose. It never goes back while a source goes on from
//! an older one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pipeline_core::{Key, Progress, Shutdown, Version};
use tokio::time::sleep;

use super::RunningShards;
use crate::shard::Shared;
use pipeline_ledger::Ledger;
use pipeline_ownership::sharding::Sharding;

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(250);

/// What is emitted of one source.
pub(super) struct Done {
    sharding: Sharding,
    routes: Vec<OfRoute>,
    /// Events emitted into each shard.
    emitted: Vec<AtomicU64>,
    reached: Mutex<BTreeMap<Box<str>, Version>>,
}

/// What one route makes of it.
struct OfRoute {
    ledger: Ledger,
    running: Arc<RunningShards>,
    /// What it had not taken in when that was looked at last.
    waits: Mutex<Option<Watermark>>,
}

/// What was reached at one moment, and what had been emitted into each shard by then.
struct Watermark {
    reached: BTreeMap<Box<str>, Version>,
    emitted: Vec<u64>,
}

impl Done {
    pub(super) fn new(sharding: Sharding, routes: &[Arc<Shared>]) -> Self {
        let routes = routes.iter().map(|shared| (shared.ledger.clone(), shared.running.clone()));
        Self::of(sharding, routes)
    }

    fn of(sharding: Sharding, routes: impl IntoIterator<Item = (Ledger, Arc<RunningShards>)>) -> Self {
        let of_route = |(ledger, running)| OfRoute { ledger, running, waits: Mutex::default() };
        let emitted = (0..sharding.shards().get()).map(|_| AtomicU64::new(0)).collect();
        let routes = routes.into_iter().map(of_route).collect();
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
        while stop.run_until_cancelled(sleep(LOOK)).await.is_some() {
            self.look();
        }
        // What was waited for, and then what was reached since.
        self.look();
        self.look();
    }

    /// Looks at each route for itself: one that lags holds up no other.
    fn look(&self) {
        for route in &self.routes {
            let mut waits = route.waits.lock().unwrap_or_else(PoisonError::into_inner);
            let watermark = waits.take().unwrap_or_else(|| self.watermark());
            *waits = Some(watermark).filter(|watermark| !route.note(watermark));
        }
    }

    /// What was reached was emitted before: whatever was is counted here.
    fn watermark(&self) -> Watermark {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Watermark {
            reached,
            emitted: self.emitted.iter().map(|count| count.load(Ordering::SeqCst)).collect(),
        }
    }
}

impl OfRoute {
    /// Notes what is done of what was reached; `false` while something of it is still on its way to its lane.
    fn note(&self, watermark: &Watermark) -> bool {
        let Some(held) = self.oldest_held(&watermark.emitted) else { return false };
        for (kind, reached) in &watermark.reached {
            let done = if held.0 == 0 { *reached } else { (*reached).min(held.before()) };
            if self.ledger.done_before(kind).is_none_or(|known| known < done) && done.number() > 0 {
                self.ledger.done(kind, done);
            }
        }
        true
    }

    /// The oldest state that its shards hold, 0 for none; `None` while one has not taken all that was emitted.
    fn oldest_held(&self, emitted: &[u64]) -> Option<Version> {
        let mut oldest = Version(0);
        for (shard, emitted) in (0_u32..).zip(emitted).filter(|(_, emitted)| **emitted > 0) {
            let (came, counts) = self.running.came(shard)?;
            if came < *emitted {
                return None;
            }
            oldest = oldest.older(counts.oldest_version);
        }
        Some(oldest)
    }
}

impl Progress for Done {
    fn done(&self, kind: &str) -> Vec<Version> {
        self.routes.iter().filter_map(|route| route.ledger.done_before(kind)).collect()
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
    use crate::lane::Backlog;
    use crate::run::running_shards::ShardHandle;

    /// What the two shards of a route tell, its ledger, and what its shards are.
    struct RouteShards {
        counts: [watch::Sender<LaneCounts>; 2],
        ledger: Ledger,
        running: Arc<RunningShards>,
    }

    impl RouteShards {
        fn new(sharding: Sharding) -> Self {
            let running = Arc::new(RunningShards::new(sharding));
            let counts = [0, 1].map(|number| {
                let (tell, counts) = watch::channel(LaneCounts::default());
                let backlog = watch::channel(Backlog::default()).1;
                running.add(ShardHandle { number, counts, backlog, commands: mpsc::channel(1).0 });
                tell
            });
            Self { counts, ledger: Ledger::memory(), running }
        }

        /// So many events came into a shard, of which the oldest that it holds is of this version.
        fn came(&self, shard: usize, delivered: u64, oldest: u64) {
            let oldest_version = Version(oldest);
            self.counts[shard].send_replace(LaneCounts {
                delivered,
                oldest_version,
                ..LaneCounts::default()
            });
        }

        fn rollouts(&self) -> Option<u64> {
            self.ledger.done_before("rollout").map(|version| version.0)
        }
    }

    /// So many routes of two shards.
    fn world<const ROUTES: usize>() -> (Done, [RouteShards; ROUTES]) {
        let sharding = Sharding::Jump { shards: NonZeroU32::new(2).unwrap() };
        let told = std::array::from_fn(|_| RouteShards::new(sharding));
        let routes = told.iter().map(|told: &RouteShards| (told.ledger.clone(), told.running.clone()));
        (Done::of(sharding, routes), told)
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
        let (done, [told]) = world();
        let [one, other] = keys(&done);
        done.emits(&one);
        done.emits(&other);
        done.reached("rollout", Version(20));
        // What one shard has beyond what was asked for says nothing of the other.
        told.came(0, 2, 0);
        done.look();
        assert_eq!(told.rollouts(), None, "one is on its way");
        told.came(1, 1, 12);
        done.look();
        assert_eq!(told.rollouts(), Some(11), "all before the oldest that is held");
        told.came(1, 1, 0);
        done.look();
        assert_eq!((done.done("rollout"), done.done("workflow")), (vec![Version(20)], vec![]));
        // It never goes back.
        told.came(1, 1, 5);
        done.look();
        assert_eq!(told.rollouts(), Some(20));
    }

    #[test]
    fn events_of_other_routes_came_as_well() {
        let (done, [told]) = world();
        let [one, _] = keys(&done);
        done.emits(&one);
        done.emits(&one);
        done.reached("rollout", Version(20));
        told.came(0, 1, 0);
        done.look();
        assert_eq!(told.rollouts(), None);
        told.running.skip(0);
        done.look();
        assert_eq!(told.rollouts(), Some(20));
    }

    #[test]
    fn a_route_that_lags_holds_up_no_other_and_each_goes_on_from_where_it_was() {
        let (done, [first, slow, late]) = world();
        let [one, _] = keys(&done);
        done.emits(&one);
        done.reached("rollout", Version(20));
        first.came(0, 1, 0);
        slow.came(0, 1, 13);
        done.look();
        assert_eq!([&first, &slow, &late].map(RouteShards::rollouts), [Some(20), Some(12), None]);
        assert_eq!(done.done("rollout"), [20, 12].map(Version));
        done.reached("rollout", Version(30));
        done.look();
        assert_eq!([&first, &slow, &late].map(RouteShards::rollouts), [Some(30), Some(12), None]);
        // What it was waited for is noted before what was reached since.
        late.came(0, 1, 0);
        done.look();
        assert_eq!(late.rollouts(), Some(20));
        done.look();
        assert_eq!(late.rollouts(), Some(30));
    }
}
