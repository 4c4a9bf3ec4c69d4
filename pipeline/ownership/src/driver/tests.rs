//! The driver over a store in memory, with time that passes only when everybody waits.

mod store;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use tokio::time::{Instant, sleep};

use self::store::{Memory, Mood};
use super::*;
use crate::Lease;

const POST: Duration = Duration::from_secs(3);
const SECOND: Duration = Duration::from_secs(1);
const NONE: [u32; 0] = [];

fn replica(name: &str) -> Replica {
    Replica::new(name).unwrap()
}

/// A replica whose shards do nothing, and drain as fast as they are told to.
struct Reporter {
    way: store::Way,
    stop: Shutdown,
    status: watch::Receiver<Standing>,
    fences: Arc<Mutex<BTreeMap<u32, Fence>>>,
    stopped: Arc<Mutex<Vec<(u32, StopHow, bool)>>>,
    driver: JoinHandle<()>,
}

impl Reporter {
    fn start(memory: &Memory, name: &str) -> Self {
        Self::with(memory, name, Config::tested(0), Duration::from_millis(5), Duration::ZERO)
    }

    fn with(memory: &Memory, name: &str, config: Config, takes: Duration, drains: Duration) -> Self {
        let (way, stop) = (memory.way(takes), Shutdown::new());
        let mut driven = drive(config, replica(name), way.clone(), POST, stop.clone());
        let fences: Arc<Mutex<BTreeMap<u32, Fence>>> = Arc::default();
        let stopped: Arc<Mutex<Vec<(u32, StopHow, bool)>>> = Arc::default();
        let (running, told, status) = (fences.clone(), stopped.clone(), driven.status.clone());
        tokio::spawn(async move {
            while let Some(order) = driven.orders.recv().await {
                match order {
                    Order::Start { shard, fence } => {
                        let before = running.lock().unwrap().insert(shard, fence);
                        assert!(before.is_none(), "shard {shard} is begun twice");
                    }
                    Order::Stop { shard, epoch, how } => {
                        let fence = running.lock().unwrap().remove(&shard);
                        told.lock().unwrap().push((shard, how, fence.is_some_and(|fence| fence.may_send())));
                        sleep(drains).await;
                        let _ = driven.drained.send((shard, epoch)).await;
                    }
                }
            }
        });
        Self { way, stop, status, fences, stopped, driver: driven.task }
    }

    fn may_send(&self) -> Vec<u32> {
        let fences = self.fences.lock().unwrap();
        fences.iter().filter(|(_, fence)| fence.may_send()).map(|(shard, _)| *shard).collect()
    }

    fn epoch(&self, shard: u32) -> u64 {
        self.fences.lock().unwrap()[&shard].epoch()
    }

    async fn ended(self) {
        tokio::time::timeout(SECOND * 100, self.driver).await.expect("it ends").unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn epochs_begin_with_the_time_of_day() {
    let memory = Memory::default();
    let before = u64::try_from(pipeline_core::Timestamp::now().as_second()).unwrap();
    let one = Reporter::start(&memory, "one.1");
    sleep(SECOND * 11).await;
    assert!((before..before + 600).contains(&one.epoch(0)), "{}", one.epoch(0));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_drain_is_stopped_and_the_driver_ends_all_the_same() {
    let memory = Memory::default();
    let config = Config { drain: SECOND * 5, shards: NonZeroU32::MIN, ..Config::tested(0) };
    let forever = SECOND * 1_000;
    let one = Reporter::with(&memory, "one.1", config, Duration::ZERO, forever);
    sleep(SECOND * 11).await;
    assert_eq!(one.may_send(), [0]);
    let fence = one.fences.lock().unwrap()[&0].clone();
    one.stop.cancel();
    sleep(SECOND * 4).await;
    assert!(fence.may_send(), "it drains");
    sleep(SECOND * 2).await;
    assert!(!fence.may_send(), "it drained for too long");
    let begun = Instant::now();
    one.ended().await;
    assert!(begun.elapsed() < SECOND * 15, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn where_the_store_is_silent_fences_close_before_shards_are_stopped() {
    let memory = Memory::default();
    let one = Reporter::start(&memory, "one.1");
    sleep(SECOND * 11).await;
    one.way.mood(Mood::Silent);
    sleep(SECOND * 3).await;
    assert_eq!(one.may_send().len(), 32, "one renewal may fail");
    sleep(SECOND * 4).await;
    assert_eq!(one.may_send(), NONE, "what would be begun now might outlast the lease");
    assert_eq!(*one.stopped.lock().unwrap(), [], "the leases still live");
    sleep(SECOND * 4).await;
    let stopped = one.stopped.lock().unwrap().clone();
    assert_eq!(stopped.len(), 32);
    assert!(stopped.iter().all(|(_, how, may_send)| *how == StopHow::Now && !may_send), "{stopped:?}");
    one.way.mood(Mood::Well);
    sleep(SECOND * 11).await;
    assert_eq!(one.may_send().len(), 32, "they are claimed again");
}

/// The driver's task is not polled: nothing but the fence itself can say that it is too late.
#[tokio::test(start_paused = true)]
async fn a_fence_closes_although_its_driver_does_not_run() {
    let memory = Memory::default();
    let one = Reporter::start(&memory, "one.1");
    sleep(SECOND * 11).await;
    let (asked, lease) = (Instant::now(), one.fences.lock().unwrap()[&0].clone());
    // A thread's sleep is not seen by a clock that stands still: the real one goes on from here.
    tokio::time::resume();
    let limit = std::time::Instant::now() + SECOND * 60;
    while lease.may_send() {
        assert!(std::time::Instant::now() < limit, "the fence never closed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(asked.elapsed() <= SECOND * 60);
    assert_eq!(one.may_send(), NONE);
    assert_eq!(one.status.borrow().owned.len(), 32, "the driver knows of nothing");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_another_wrote_closes_the_fence_of_its_shard_alone() {
    let memory = Memory::default();
    let one = Reporter::start(&memory, "one.1");
    sleep(SECOND * 11).await;
    let epoch = one.epoch(3) + 10;
    let until = pipeline_core::Timestamp::now();
    memory.overwrite(Lease { shard: 3, epoch, owner: Some(replica("other.3")), until });
    sleep(Duration::from_millis(1)).await;
    assert_eq!(one.may_send().len(), 31);
    assert_eq!(*one.stopped.lock().unwrap(), [(3, StopHow::Now, false)]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_begun_again() {
    let memory = Memory::default();
    let one = Reporter::start(&memory, "one.1");
    sleep(SECOND * 11).await;
    one.way.mood(Mood::Silent);
    memory.break_watches();
    sleep(SECOND).await;
    assert!(!one.status.borrow().listed);
    one.way.mood(Mood::Well);
    sleep(SECOND).await;
    assert!(one.status.borrow().listed);
    assert_eq!(one.may_send().len(), 32, "what is owned stays");
    memory.overwrite(Lease { epoch: one.epoch(3) + 10, ..Lease::unknown(3) });
    sleep(Duration::from_millis(1)).await;
    assert_eq!(one.may_send().len(), 31, "it is watched again");
}

#[tokio::test]
async fn a_flood_of_changes_holds_up_no_renewal() {
    let memory = Memory::default();
    let given_back = Lease { shard: 0, epoch: 1, owner: None, until: pipeline_core::Timestamp::now() };
    memory.overwrite(given_back);
    let config = Config {
        shards: NonZeroU32::MIN,
        ttl: SECOND * 600,
        renew: SECOND,
        tick: Duration::from_millis(100),
        // The machine is as busy as it can be: answers take their time.
        answer: SECOND * 20,
        ..Config::tested(0)
    };
    let one = Reporter::with(&memory, "one.1", config, Duration::ZERO, Duration::ZERO);
    let mut status = one.status.clone();
    let owned = tokio::time::timeout(SECOND * 60, status.wait_for(|told| told.owned == [0]));
    owned.await.expect("it is owned in time").unwrap();
    one.way.mood(Mood::Flooding);
    let fence = one.fences.lock().unwrap()[&0].clone();
    let renewed = async {
        for _ in 0..2 {
            let before = fence.until();
            while fence.until() == before {
                sleep(Duration::from_millis(5)).await;
            }
        }
    };
    tokio::time::timeout(SECOND * 60, renewed).await.expect("it is renewed all the same");
    one.stop.cancel();
    tokio::time::timeout(SECOND * 60, one.driver).await.expect("it ends all the same").unwrap();
    assert_eq!(memory.lease(0).unwrap().owner, None, "it was given back");
}

#[tokio::test(start_paused = true)]
async fn no_more_than_thirty_two_writes_are_under_way() {
    let memory = Memory::default();
    let config = Config { shards: NonZeroU32::new(100).unwrap(), ..Config::tested(0) };
    let one = Reporter::with(&memory, "one.1", config, Duration::from_millis(300), Duration::ZERO);
    sleep(SECOND * 20).await;
    assert_eq!(one.may_send().len(), 100);
    assert_eq!(memory.most(), 32);
    assert_eq!(*one.stopped.lock().unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn where_nobody_takes_orders_the_driver_ends_and_leaves() {
    let memory = Memory::default();
    let driven =
        drive(Config::tested(0), replica("one.1"), memory.way(Duration::ZERO), POST, Shutdown::new());
    sleep(SECOND).await;
    assert_eq!(memory.members(), [replica("one.1")]);
    drop(driven.orders);
    tokio::time::timeout(SECOND * 5, driven.task).await.expect("it ends").unwrap();
    assert_eq!(memory.members(), []);
}
