//! A process with the real state machine, and its way to the store: everything on it takes time, and may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;

use super::super::{Action, Config, Input, LeaseWrite, Ownership, Replica, Request, Shown, StopHow, Write};
use super::store::Store;
use super::{Mutant, STEP, Simulation};

/// Something on its way, and when it is there.
type Way<T> = Vec<(Duration, T)>;

enum StoreRequest {
    Write(Write),
    Announce,
    Leave,
}

pub(super) struct Process {
    machine: Ownership,
    me: Replica,
    config: Config,
    /// Its clock began then.
    began: Duration,
    /// What was sent over which connection.
    to_store: Way<(u64, StoreRequest)>,
    from_store: Way<Input>,
    /// When requests were answered, for a mutant.
    answered: BTreeMap<u32, Duration>,
    /// Shards that are worked on, with their epochs.
    running: BTreeMap<u32, u64>,
    /// Shards that stop, with their epochs and when they have.
    stopping: Way<(u32, u64)>,
    /// What its watch has shown: a revision, and who was there.
    watched: (u64, BTreeSet<Replica>),
    /// The store's life that it is connected to; `None`: not connected.
    connected: Option<u64>,
    /// Connections so far, and those that the process knows of.
    connections: (u64, u64),
    /// When the last of it arrives.
    shown_until: Duration,
    next_tick: Duration,
    told_to_stop: bool,
    pub(super) paused_until: Duration,
    pub(super) cut_until: Duration,
}

impl Process {
    pub(super) fn begin(number: u64, config: Config, now: Duration, rng: &mut Rng, store: &Store) -> Self {
        let me = Replica::new(&format!("reporter-{number}.{:04x}", rng.u16(..))).unwrap();
        let before = Duration::from_millis(rng.u64(..100_000));
        let began = now.saturating_sub(before);
        // What the wall clock said then.
        let config = Config { first_epoch: config.first_epoch + began.as_secs(), ..config };
        Self {
            machine: Ownership::new(config, me.clone()),
            me,
            config,
            began,
            to_store: Vec::new(),
            from_store: vec![(now + Duration::from_millis(rng.u64(..500)), store.list())],
            answered: BTreeMap::new(),
            running: BTreeMap::new(),
            stopping: Vec::new(),
            watched: (store.revision(), store.members().into_iter().collect()),
            connected: Some(store.lives),
            connections: (0, 0),
            shown_until: now + Duration::from_millis(500),
            next_tick: now,
            told_to_stop: false,
            paused_until: now,
            cut_until: now,
        }
    }

    pub(super) fn name(&self) -> Replica {
        self.me.clone()
    }

    pub(super) fn stop(&mut self) {
        self.told_to_stop = true;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.told_to_stop
    }

    pub(super) fn is_over(&self) -> bool {
        self.machine.is_over() && self.to_store.is_empty()
    }

    pub(super) fn is_draining(&self, shard: u32) -> bool {
        self.stopping.iter().any(|(_, (stopping, _))| *stopping == shard)
    }

    pub(super) fn owned(&self) -> usize {
        self.machine.owned().len()
    }

    /// The epoch in which a report may be begun, if one may.
    pub(super) fn may_send(&self, shard: u32, now: Duration, post: Duration) -> Option<u64> {
        let (epoch, time) = (*self.running.get(&shard)?, now - self.began);
        let late = self.answered.get(&shard).is_some_and(|at| now + post < *at + self.config.ttl);
        (self.machine.may_send(shard, time, post) || late).then_some(epoch)
    }

    /// One step of time.
    pub(super) fn run(&mut self, world: &mut Simulation) {
        self.way(world);
        if self.paused_until > world.now {
            return;
        }
        for input in due(&mut self.from_store, world.now) {
            if input == Input::Shown(Shown::Unwatched) {
                self.connections.1 += 1;
            }
            self.step(input, world);
        }
        let now = world.now;
        // One after the other: what is told of one may be that another is lost.
        while let Some(at) = self.stopping.iter().position(|(at, _)| *at <= now) {
            let (_, (shard, epoch)) = self.stopping.remove(at);
            self.step(Input::Drained { shard, epoch }, world);
        }
        if self.told_to_stop {
            self.step(Input::Stop, world);
        }
        if self.next_tick <= world.now {
            self.next_tick = world.now + self.config.tick;
            self.step(Input::Tick, world);
        }
    }

    /// What goes on whether the process is paused or not: its packets travel, and its watch shows what there is.
    fn way(&mut self, world: &mut Simulation) {
        let now = world.now;
        let is_cut = self.cut_until > now || world.store.away_until > now;
        let came = !is_cut && self.connected != Some(world.store.lives);
        self.connected = (!is_cut).then_some(world.store.lives);
        if came {
            self.connections.0 += 1;
            self.from_store.push((now, Input::Shown(Shown::Unwatched)));
        }
        for (connection, sent) in due(&mut self.to_store, now) {
            if is_cut || connection != self.connections.0 || self.is_lost(world) {
                self.fail(sent, world);
                continue;
            }
            match sent {
                StoreRequest::Write(write) => {
                    let answer = world.store.write(&write);
                    let answer = if self.is_lost(world) { LeaseWrite::Failed } else { answer };
                    self.answer(write.request, write.shard, answer, world);
                }
                StoreRequest::Announce => world.store.announce(&self.me, now),
                StoreRequest::Leave => world.store.leave(&self.me),
            }
        }
        world.store.expire(now, self.config.ttl);
        if !is_cut {
            self.watch(came, world);
        }
    }

    fn fail(&mut self, sent: StoreRequest, world: &mut Simulation) {
        if let StoreRequest::Write(write) = sent
            && world.rng.bool()
        {
            self.answer(write.request, write.shard, LeaseWrite::Failed, world);
        }
    }

    fn answer(&mut self, request: Request, shard: u32, answer: LeaseWrite, world: &mut Simulation) {
        if world.mutant == Some(Mutant::CountedFromAnswer) && matches!(answer, LeaseWrite::Granted { .. }) {
            self.answered.insert(shard, world.now + self.delay(world));
        }
        let at = world.now + self.delay(world);
        self.from_store.push((at, Input::Answered { request, shard, answer }));
    }

    fn watch(&mut self, from_the_start: bool, world: &mut Simulation) {
        let (revision, there) = &mut self.watched;
        let mut inputs = Vec::new();
        let members: BTreeSet<Replica> = world.store.members().into_iter().collect();
        if from_the_start {
            inputs.push(world.store.list());
        } else {
            inputs = world.store.since(*revision);
            let gone = there.difference(&members).cloned();
            inputs.extend(gone.map(|replica| Input::Shown(Shown::MemberGone { replica })));
        }
        *revision = world.store.revision();
        *there = members;
        // A watch is in order.
        let at = self.shown_until.max(world.now + Duration::from_millis(world.rng.u64(..300)));
        self.shown_until = at;
        self.from_store.extend(inputs.into_iter().map(|input| (at, input)));
    }

    fn is_lost(&self, world: &mut Simulation) -> bool {
        !world.calm && world.rng.u32(..50) == 0
    }

    fn delay(&self, world: &mut Simulation) -> Duration {
        let slow = !world.calm && world.rng.u32(..20) == 0;
        Duration::from_millis(world.rng.u64(..if slow { 6_000 } else { 200 }))
    }

    fn step(&mut self, input: Input, world: &mut Simulation) {
        let (now, connection) = (world.now, self.connections.1);
        for action in self.machine.step(input, now - self.began) {
            match action {
                Action::Write(write) => {
                    let at = now + self.delay(world);
                    self.to_store.push((at, (connection, StoreRequest::Write(write))));
                }
                Action::Announce => self.to_store.push((now + STEP, (connection, StoreRequest::Announce))),
                Action::Leave => self.to_store.push((now + STEP, (connection, StoreRequest::Leave))),
                Action::Start { shard, epoch } => {
                    assert!(self.running.insert(shard, epoch).is_none(), "shard {shard} runs twice");
                    assert!(!self.is_draining(shard), "shard {shard} begins before it has ended");
                }
                Action::Stop { shard, epoch, how } => self.end(shard, epoch, how, world),
            }
        }
    }

    fn end(&mut self, shard: u32, epoch: u64, how: StopHow, world: &mut Simulation) {
        let name = self.name();
        let began = self.running.remove(&shard);
        let drains = self.stopping.iter().position(|(_, (stopping, _))| *stopping == shard);
        let now = world.now;
        // A report that is cut off is under way until its time-out: the receiver may still take it.
        let under_way = world.under_way(shard, &name).unwrap_or(now).max(now + STEP);
        match (how, drains) {
            (StopHow::Drain, drains) => {
                assert_eq!((began, drains), (Some(epoch), None), "what drains runs, once");
                // Now and then a shard drains for longer than it may.
                let long = if world.rng.u32(..20) == 0 { 60_000 } else { 4_000 };
                let long = Duration::from_millis(world.rng.u64(..long)).min(self.config.ttl * 4);
                let at = under_way.max(now + long);
                self.stopping.push((at, (shard, epoch)));
            }
            (StopHow::Now, Some(at)) => self.stopping[at].0 = self.stopping[at].0.min(under_way),
            (StopHow::Now, None) => {
                assert_eq!(began, Some(epoch), "what ends runs");
                self.stopping.push((under_way, (shard, epoch)));
            }
        }
    }
}

/// What has arrived, in the order of arrival.
fn due<T>(way: &mut Way<T>, now: Duration) -> Vec<T> {
    way.sort_by_key(|(at, _)| *at);
    let there = way.partition_point(|(at, _)| *at <= now);
    way.drain(..there).map(|(_, what)| what).collect()
}
