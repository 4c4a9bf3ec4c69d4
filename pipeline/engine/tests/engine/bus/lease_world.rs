//! Replicas whose shards do nothing but be owned, each with a connection of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pipeline_core::Shutdown;
use pipeline_ownership::{Config, Driven, Fence, Order, Replica, SHARDS, Standing, drive};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

use crate::bus::world::{config as bus_config, connected, soon};
use crate::server::Server;

pub(crate) const TTL: Duration = Duration::from_secs(2);
const POST: Duration = Duration::from_millis(800);

/// Leases that are short, so that tests are.
pub(crate) fn config() -> Config {
    let (renew, tick) = (Duration::from_millis(500), Duration::from_millis(100));
    let config = Config { tick, answer: renew, drain: TTL, ..Config::new(SHARDS, TTL, renew, 0) };
    config.check(POST).unwrap();
    config
}

/// Leases for whose end nobody waits.
pub(crate) fn long() -> Config {
    let forever = Duration::from_secs(300);
    Config { ttl: forever, drain: forever, ..config() }
}

pub(crate) struct Member {
    name: Replica,
    stop: Shutdown,
    status: watch::Receiver<Standing>,
    fences: Arc<Mutex<BTreeMap<u32, Fence>>>,
    driver: AbortHandle,
    ended: JoinHandle<()>,
}

impl Member {
    pub(crate) async fn start(server: &Server, name: &str, config: Config) -> Self {
        let bus = connected(bus_config(server)).await;
        let name = Replica::new(&format!("{name}.{:08x}", fastrand::u32(..))).unwrap();
        let stop = Shutdown::new();
        let store = bus.leases(SHARDS, config.ttl);
        let driven = drive(config, name.clone(), store, POST, stop.clone());
        let (status, fences) = (driven.status.clone(), Arc::default());
        let driver = driven.task.abort_handle();
        let ended = tokio::spawn(work(driven, Arc::clone(&fences)));
        Self { name, stop, status, fences, driver, ended }
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_str()
    }

    pub(crate) fn standing(&self) -> Standing {
        self.status.borrow().clone()
    }

    /// Ends it without a word.
    pub(crate) fn kill(&self) {
        self.driver.abort();
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) async fn ended(&mut self) {
        (&mut self.ended).await.unwrap();
    }

    /// The epoch in which it may send for a shard.
    pub(crate) fn epoch(&self, shard: u32) -> Option<u64> {
        let fences = self.fences.lock().unwrap();
        fences.get(&shard).filter(|fence| fence.may_send()).map(Fence::epoch)
    }

    fn owned(&self) -> usize {
        (0..SHARDS.get()).filter(|shard| self.epoch(*shard).is_some()).count()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Does what is ordered, at once.
async fn work(mut driven: Driven, fences: Arc<Mutex<BTreeMap<u32, Fence>>>) {
    while let Some(order) = driven.orders.recv().await {
        match order {
            Order::Start { shard, fence } => {
                let before = fences.lock().unwrap().insert(shard, fence);
                assert!(before.is_none(), "shard {shard} is begun twice");
            }
            Order::Stop { shard, epoch, .. } => {
                fences.lock().unwrap().remove(&shard);
                let _ = driven.drained.send((shard, epoch)).await;
            }
        }
    }
}

/// Those that are there, and those that were stopped or killed and may still believe to own something.
#[derive(Default)]
pub(crate) struct Crew {
    pub(crate) members: Vec<Member>,
    pub(crate) leaving: Vec<Member>,
}

impl Crew {
    pub(crate) fn add(&mut self, member: Member) {
        self.members.push(member);
    }

    /// Waits until each shard is owned by exactly one, so many by each (in rising order), at no time by two; gives the
    /// epochs.
    pub(crate) async fn all_owned(&self, when: &str, counts: &[usize]) -> Vec<u64> {
        self.until(when, |crew| crew.owned_so(counts)).await
    }

    /// The epochs in which all shards are owned, when so many are by each.
    pub(crate) fn owned_so(&self, counts: &[usize]) -> Option<Vec<u64>> {
        let mut owned: Vec<usize> = self.members.iter().map(Member::owned).collect();
        owned.sort_unstable();
        let epochs = self.epochs();
        (owned == counts && epochs.iter().all(|epoch| *epoch > 0)).then_some(epochs)
    }

    /// Waits until the leases of all shards have ended.
    pub(crate) async fn none_owned(&self) {
        let none = |crew: &Self| crew.members.iter().all(|one| one.standing().owned.is_empty()).then_some(());
        self.until("the end of all leases", none).await;
    }

    /// The epoch in which each shard is owned; 0 where nobody owns it.
    fn epochs(&self) -> Vec<u64> {
        let epoch = |shard| self.members.iter().find_map(|member| member.epoch(shard)).unwrap_or(0);
        (0..SHARDS.get()).map(epoch).collect()
    }

    /// Waits for something, while no shard is ever owned by two.
    pub(crate) async fn until<T>(&self, when: &str, wanted: impl Fn(&Self) -> Option<T>) -> T {
        let wait = async {
            loop {
                self.never_two();
                if let Some(found) = wanted(self) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        soon(&format!("every shard as it should be: {when}"), wait).await
    }

    fn never_two(&self) {
        for shard in 0..SHARDS.get() {
            let all = || self.members.iter().chain(&self.leaving);
            for one in all() {
                let Some(epoch) = one.epoch(shard) else { continue };
                let other = all().find(|other| other.name != one.name && other.epoch(shard).is_some());
                // The first may have ended before the other began.
                if let Some(other) = other
                    && one.epoch(shard) == Some(epoch)
                {
                    panic!("{} and {} both own shard {shard}", one.name(), other.name());
                }
            }
        }
    }
}
