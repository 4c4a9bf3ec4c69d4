//! Holds a first list back while the shards work off what it has shown: an object that still stands with the API
//! server takes no memory, and one that waits here does.
//!
//! takes: how many events the source has emitted - gives: a wait between two pages
//! calls: nothing - fails: never; where nothing gets done the list goes on, because a watch that has not begun sees
//! nothing, and what finds no room in a queue is read again on its turn

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::running_shards::RunningShards;

/// Objects that may wait when the next page is read: the shards have enough to do until it is there.
const WAITING: u64 = 128;
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(5);
/// After so long in which nothing got done the list waits no more.
const STUCK: Duration = Duration::from_secs(2);
/// So long all waits of a list may be: an API server keeps for five minutes what it goes on from.
const LONGEST: Duration = Duration::from_secs(120);

/// One run of the source, until its first list is complete.
#[derive(Debug)]
pub(super) struct Listing {
    /// The shards of each route, with the events that they took from runs before.
    routes: Vec<(Arc<RunningShards>, u64)>,
    /// How long it may still wait.
    left: Mutex<Duration>,
}

impl Listing {
    pub(super) fn new(routes: Vec<Arc<RunningShards>>) -> Self {
        let counted = |running: Arc<RunningShards>| {
            let before = running.backlog().taken + running.skipped();
            (running, before)
        };
        Self { routes: routes.into_iter().map(counted).collect(), left: Mutex::new(LONGEST) }
    }

    /// Waits until the shards hold few objects, of `emitted` events and of what else they have to do. Of several routes the
    /// one that is first decides: a slow one delays no other.
    pub(super) async fn wait_for_capacity(&self, emitted: u64) {
        let (mut done, mut since) = (0, Instant::now());
        loop {
            let mut over = 0;
            for (running, before) in &self.routes {
                let backlog = running.backlog();
                let on_the_way = (before + emitted).saturating_sub(backlog.taken + running.skipped());
                if on_the_way + backlog.held < WAITING || backlog.paused {
                    return;
                }
                over += backlog.over;
            }
            if over != done {
                (done, since) = (over, Instant::now());
            } else if since.elapsed() >= STUCK {
                self.spend(LONGEST);
            }
            if !self.spend(LOOK) {
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// Takes `time` of what is left, if anything is.
    fn spend(&self, time: Duration) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let any = !left.is_zero();
        *left = left.saturating_sub(time);
        any
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use tokio::sync::{mpsc, watch};

    use pipeline_core::LaneCounts;

    use super::*;
    use crate::lane::Backlog;
    use crate::run::running_shards::ShardHandle;
    use pipeline_ownership::sharding::Sharding;

    fn running(backlog: Backlog) -> (Arc<RunningShards>, watch::Sender<Backlog>) {
        let running = RunningShards::new(Sharding::Jump { shards: NonZeroU32::MIN });
        let (tell, backlog) = watch::channel(backlog);
        let counts = watch::channel(LaneCounts::default()).1;
        running.add(ShardHandle { number: 0, counts, backlog, commands: mpsc::channel(1).0 });
        (Arc::new(running), tell)
    }

    /// How long a wait takes, for which each `step` moves the counters.
    async fn waits(
        listing: &Listing,
        emitted: u64,
        tell: &watch::Sender<Backlog>,
        mut step: impl FnMut(&mut Backlog),
    ) -> Duration {
        let began = Instant::now();
        let work = async {
            loop {
                sleep(Duration::from_millis(100)).await;
                tell.send_modify(&mut step);
            }
        };
        tokio::select! {
            biased;
            () = work => unreachable!("it goes on for ever"),
            () = listing.wait_for_capacity(emitted) => began.elapsed(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_goes_on_when_the_shards_have_worked_off_most_of_it() {
        let (running, tell) = running(Backlog { taken: 800, over: 1_000, ..Backlog::default() });
        let listing = Listing::new(vec![running]);
        assert_eq!(waits(&listing, 127, &tell, |_| {}).await, Duration::ZERO, "few are on their way");
        let took = waits(&listing, 627, &tell, |backlog| {
            backlog.taken += 100;
            backlog.over += 100;
        });
        assert_eq!(took.await, Duration::from_millis(500), "100 are done in 100 ms, and 500 must be");
        tell.send_modify(|backlog| (backlog.taken, backlog.held) = (1_427, 216));
        let took = waits(&listing, 627, &tell, |backlog| {
            backlog.held -= 30;
            backlog.over += 30;
        });
        assert_eq!(took.await, Duration::from_millis(300), "what is to be read again waits, too");
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_does_not_wait_for_what_does_not_get_done() {
        let (running, tell) = running(Backlog::default());
        let listing = Listing::new(vec![running.clone()]);
        let took = waits(&listing, 1_000, &tell, |_| {}).await;
        assert!((STUCK..STUCK * 2).contains(&took), "nothing got done, and it took {took:?}");
        assert_eq!(
            waits(&listing, 1_100, &tell, |_| {}).await,
            Duration::ZERO,
            "nor does the next page wait"
        );

        let listing = Listing::new(vec![running.clone()]);
        let took = waits(&listing, 100_000, &tell, |backlog| backlog.over += 1).await;
        assert!((LONGEST..LONGEST * 2).contains(&took), "little got done, and it took {took:?}");

        tell.send_modify(|backlog| backlog.paused = true);
        let listing = Listing::new(vec![running]);
        assert_eq!(waits(&listing, 1_000, &tell, |_| {}).await, Duration::ZERO, "the platform is away");
    }
}
