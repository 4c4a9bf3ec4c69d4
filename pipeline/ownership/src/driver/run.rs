//! The loop, and what it does for each action of the state machine.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Shutdown, Timestamp};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout, timeout_at};

use super::{Fence, Order, Standing};
use crate::{
    Action, Config, Input, Lease, LeaseWrite, Ownership, Presence, REFUSED, Refusal, Replica, Request, Shown,
    StopHow, Store, Write,
};

/// Writes that are under way at once.
const AT_ONCE: usize = 32;
/// Changes that the watch may be ahead.
const AHEAD: usize = 256;

pub(super) struct Driver<S> {
    machine: Ownership,
    config: Config,
    me: Replica,
    store: Arc<S>,
    post_timeout: Duration,
    /// When the machine's clock stood at nothing.
    began: Instant,
    /// By shard; `None`: not begun.
    fences: Vec<Option<Fence>>,
    orders: VecDeque<Order>,
    /// Writes that wait for their turn, with when they were asked for.
    waiting: VecDeque<(Instant, Write)>,
    writes: JoinSet<(Request, u32, LeaseWrite)>,
    /// One at a time, so that no announcement comes after the farewell.
    presence: JoinSet<()>,
    watching: JoinSet<()>,
    status: watch::Sender<Standing>,
    /// What was said last of what is owned.
    said: Vec<u32>,
}

impl<S: Store> Driver<S> {
    pub(super) fn new(
        config: Config,
        me: Replica,
        store: S,
        post_timeout: Duration,
        status: watch::Sender<Standing>,
    ) -> Self {
        let today = u64::try_from(Timestamp::now().as_second()).unwrap_or_default();
        let config = Config { first_epoch: config.first_epoch.max(today), ..config };
        Self {
            machine: Ownership::new(config, me.clone()),
            fences: vec![None; config.shards.get() as usize],
            config,
            me,
            store: Arc::new(store),
            post_timeout,
            began: Instant::now(),
            orders: VecDeque::new(),
            waiting: VecDeque::new(),
            writes: JoinSet::new(),
            presence: JoinSet::new(),
            watching: JoinSet::new(),
            status,
            said: Vec::new(),
        }
    }

    pub(super) async fn run(
        mut self,
        out: mpsc::Sender<Order>,
        mut drained: mpsc::Receiver<(u32, u64)>,
        mut refused: mpsc::Receiver<(u32, u64, Refusal)>,
        stop: Shutdown,
    ) {
        let mut ticks = interval(self.config.tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut changes = self.watch();
        let mut ends = None;
        let mut may_drain = true;
        while !self.is_done() {
            tokio::select! {
                // In this order: whatever the watch shows comes last.
                biased;
                () = stop.cancelled(), if ends.is_none() => {
                    ends = Some(Instant::now() + self.config.drain + self.config.ttl + self.config.answer);
                    self.step(Input::Stop);
                }
                Some(written) = self.writes.join_next(), if !self.writes.is_empty() => {
                    // A write that did not end as it should is given up in time.
                    if let Ok((request, shard, answer)) = written {
                        self.step(Input::Answered { request, shard, answer });
                    }
                    self.send();
                }
                _ = ticks.tick() => {
                    if self.watching.is_empty() && ends.is_none() {
                        self.step(Input::Shown(Shown::Unwatched));
                        changes = self.watch();
                    }
                    self.step(Input::Tick);
                    self.say();
                }
                told = drained.recv(), if may_drain => match told {
                    Some((shard, epoch)) => self.step(Input::Drained { shard, epoch }),
                    None => may_drain = false,
                },
                Some((shard, epoch, why)) = refused.recv() => self.step(Input::Refused { shard, epoch, why }),
                room = out.reserve(), if !self.orders.is_empty() => match (room, self.orders.pop_front()) {
                    (Ok(room), Some(order)) => room.send(order),
                    _ => break,
                },
                // Once it was told to stop, whoever has drained may go.
                () = out.closed(), if ends.is_none() => break,
                Some(_) = self.presence.join_next(), if !self.presence.is_empty() => {}
                () = sleep_until(ends.unwrap_or_else(Instant::now)), if ends.is_some() => {
                    tracing::warn!("not all shards drained in time: their leases lapse");
                    break;
                }
                Some(_) = self.watching.join_next(), if !self.watching.is_empty() => {}
                Some(shown) = changes.recv() => self.step(Input::Shown(shown)),
            }
        }
        self.end(ends.is_some()).await;
    }

    /// Whether everything was given back, and everybody was told.
    fn is_done(&self) -> bool {
        let idle = self.writes.is_empty() && self.waiting.is_empty() && self.presence.is_empty();
        self.machine.is_over() && idle && self.orders.is_empty()
    }

    /// Nothing may be sent any more, whoever is left.
    async fn end(self, was_told: bool) {
        for fence in self.fences.iter().flatten() {
            fence.close();
        }
        self.status.send_replace(Standing::default());
        if !was_told {
            tracing::warn!("nobody works on this replica's shards any more: their leases lapse");
            let _ = timeout(self.config.answer, self.store.leave(&self.me)).await;
        }
    }

    fn watch(&mut self) -> mpsc::Receiver<Shown> {
        let (out, changes) = mpsc::channel(AHEAD);
        let store = Arc::clone(&self.store);
        self.watching.spawn(async move { store.watch(out).await });
        changes
    }

    fn step(&mut self, input: Input) {
        let now = Instant::now();
        let actions = self.machine.step(input, now - self.began);
        self.move_fences();
        let mut lost = 0;
        for action in actions {
            match action {
                Action::Write(write) => self.waiting.push_back((now, write)),
                Action::Announce => self.announce(),
                Action::Leave => self.leave(),
                Action::Start { shard, epoch } => self.start(shard, epoch),
                Action::Stop { shard, epoch, how } => {
                    tracing::debug!(shard, epoch, ?how, "a shard is to stop");
                    lost += u32::from(how == StopHow::Now);
                    self.orders.push_back(Order::Stop { shard, epoch, how });
                }
            }
        }
        if lost > 0 {
            tracing::warn!(
                shards = lost,
                "shards stop at once: their leases are lost, or drain for too long"
            );
        }
        self.send();
        self.tell();
    }

    /// Fences are closed before anybody is told to stop.
    fn move_fences(&mut self) {
        for (shard, slot) in self.fences.iter_mut().enumerate() {
            let Some(fence) = slot else { continue };
            match self.machine.term(shard as u32) {
                Some(term) if term.epoch == fence.epoch() => fence.extend(term.until),
                _ => {
                    fence.close();
                    *slot = None;
                }
            }
        }
    }

    fn start(&mut self, shard: u32, epoch: u64) {
        tracing::debug!(shard, epoch, "a shard is owned");
        let fence = Fence::new(epoch, self.began, self.post_timeout);
        if let Some(term) = self.machine.term(shard).filter(|term| term.epoch == epoch) {
            fence.extend(term.until);
        }
        if let Some(slot) = self.fences.get_mut(shard as usize) {
            *slot = Some(fence.clone());
        }
        self.orders.push_back(Order::Start { shard, fence });
    }

    /// Sends the writes whose turn it is; what has waited for longer than an answer is awaited was given up.
    fn send(&mut self) {
        while self.writes.len() < AT_ONCE
            && let Some((asked, write)) = self.waiting.pop_front()
        {
            let deadline = asked + self.config.answer;
            if deadline <= Instant::now() {
                continue;
            }
            let until = Timestamp::now();
            let until = match write.owner {
                Some(_) => until.checked_add(self.config.ttl).unwrap_or(until),
                None => until,
            };
            let (request, shard, expected) = (write.request, write.shard, write.expected);
            let lease = Lease { shard, epoch: write.epoch, owner: write.owner, until };
            let store = Arc::clone(&self.store);
            self.writes.spawn(async move {
                let answer = timeout_at(deadline, store.write(&lease, expected)).await;
                (request, shard, answer.unwrap_or(LeaseWrite::Failed))
            });
        }
    }

    fn announce(&mut self) {
        if !self.presence.is_empty() {
            return;
        }
        let now = Timestamp::now();
        let until = now.checked_add(self.config.ttl).unwrap_or(now);
        let mut refused = self.machine.refusals();
        refused.truncate(REFUSED);
        let presence = Presence { replica: self.me.clone(), until, refused };
        let (store, patience) = (Arc::clone(&self.store), self.config.answer);
        self.presence.spawn(async move {
            let _ = timeout(patience, store.announce(&presence)).await;
        });
    }

    fn leave(&mut self) {
        let mut announced = std::mem::take(&mut self.presence);
        let (store, me, patience) = (Arc::clone(&self.store), self.me.clone(), self.config.answer);
        self.presence.spawn(async move {
            while announced.join_next().await.is_some() {}
            let _ = timeout(patience, store.leave(&me)).await;
        });
    }

    fn tell(&self) {
        let standing = Standing {
            owned: self.machine.owned(),
            members: self.machine.members(),
            zero: self.machine.last_owner(0),
            watched: self.machine.is_owned(0),
            listed: self.machine.is_listed(),
        };
        self.status.send_if_modified(|told| {
            let differs = *told != standing;
            *told = standing;
            differs
        });
    }

    /// Says what is owned, when that has changed since it was said last.
    fn say(&mut self) {
        let owned = self.machine.owned();
        if owned != self.said {
            let members = self.machine.members().len();
            tracing::info!(shards = ?owned, members, "this replica owns other shards than before");
            self.said = owned;
        }
    }
}
