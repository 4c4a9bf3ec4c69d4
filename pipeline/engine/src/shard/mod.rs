//! A shard: one task that owns one lane and does what the lane says.
//!
//! takes: events from its inbox, at once - gives: reports to the sink, acknowledgements to the ledger
//! calls: the stages, each turn and each read in a task of its own - fails: a stage that panics is tried again
//! later, like one that fails

mod breaker;
mod round;
mod turn;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Enrich, Event, Key, Reason, Record, Shutdown, Sink, Source, Timestamp, Version};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

pub(crate) use breaker::Breaker;

use crate::circuit::State;
use crate::health::Health;
use crate::lane::{
    Action, Blame, Input, Lane, LaneCounts, Outcome, Parked, ReadResult, Standing, Step, Trace,
};
use crate::ledger::Ledger;
use crate::metrics::{ErrorType, EventType, Metrics};
use crate::supervise::caught;

/// Counters are published at most this often, and at least this long after they changed.
const PUBLISH: Duration = Duration::from_millis(100);
/// Events taken from the inbox before anything else gets its turn.
const BATCH: usize = 128;
/// Stands for "nothing to wait for".
const LONG: Duration = Duration::from_secs(3600);

/// What all shards of a process share.
pub(crate) struct Shared<So, En, Si> {
    pub(crate) source: So,
    pub(crate) enrich: En,
    pub(crate) sink: Si,
    pub(crate) ledger: Ledger,
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
    pub(crate) breaker: Breaker,
    pub(crate) traces: broadcast::Sender<(u32, Trace)>,
    pub(crate) started: Instant,
    pub(crate) reports_per_key: usize,
    pub(crate) grace: Duration,
}

impl<So, En, Si> Shared<So, En, Si> {
    /// Time since the engine started: what lanes and the circuit call "now".
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Tells whoever listens; nobody is waited for.
    fn tell(&self, shard: u32, trace: Trace) {
        if self.traces.receiver_count() > 0 {
            // Without a receiver there is nobody to tell.
            let _ = self.traces.send((shard, trace));
        }
    }
}

/// What a person asks of a shard.
pub(crate) enum Command {
    /// Read the key again; if `true`, report all of it, whatever was acknowledged.
    Replay(Key, bool),
    /// Tell what is known of a key.
    Explain(Key, oneshot::Sender<Explained>),
    /// Give up a parked key; answers whether it was parked.
    Discard(Key, oneshot::Sender<bool>),
    /// List what is parked.
    Parked(oneshot::Sender<Vec<(Key, Parked)>>),
}

/// What a shard knows of one application.
#[derive(Debug, Clone)]
pub struct Explained {
    /// Which shard.
    pub shard: u32,
    /// What its lane holds of it; `None` when it is not busy.
    pub standing: Option<Standing>,
    /// How it was refused for good, if it was.
    pub parked: Option<Parked>,
    /// What was acknowledged.
    pub record: Option<Record>,
    /// What happened last, oldest first.
    pub moments: Vec<Moment>,
}

/// One step that an event took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// Which state.
    pub version: Version,
    /// W3C trace id of the event's life.
    pub trace: u128,
    /// What happened.
    pub step: Step,
}

/// What a shard takes and tells.
pub(crate) struct Ports {
    pub(crate) inbox: mpsc::Receiver<Event>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) counts: watch::Sender<LaneCounts>,
}

/// A task that ended.
enum Done {
    Turn(Key, Outcome),
    Read(Key, ReadResult),
}

/// One shard.
pub(crate) struct Shard<So, En, Si> {
    number: u32,
    shared: Arc<Shared<So, En, Si>>,
    lane: Lane,
    ports: Ports,
    tasks: JoinSet<Done>,
    actions: Vec<Action>,
    /// Rights to probe, by the key that uses one.
    probes: HashMap<Key, u64>,
    circuit: State,
    published: Instant,
    changed: bool,
}

impl<So: Source, En: Enrich, Si: Sink> Shard<So, En, Si> {
    pub(crate) fn new(number: u32, shared: Arc<Shared<So, En, Si>>, lane: Lane, ports: Ports) -> Self {
        Self {
            number,
            lane,
            ports,
            tasks: JoinSet::new(),
            actions: Vec::new(),
            probes: HashMap::new(),
            circuit: State::Closed,
            published: shared.started,
            changed: true,
            shared,
        }
    }

    /// Works until `stop`, then lets what is in flight finish within the grace period.
    pub(crate) async fn run(mut self, stop: Shutdown) {
        self.shared.health.shard(self.number, true, std::time::Instant::now());
        let mut circuit = self.shared.breaker.watch();
        circuit.mark_changed();
        loop {
            let wake = self.wake_at();
            tokio::select! {
                () = stop.cancelled() => break,
                Some(done) = self.tasks.join_next() => self.done(done),
                event = self.ports.inbox.recv() => match event {
                    Some(event) => self.observe(event),
                    None => break,
                },
                Ok(()) = circuit.changed() => {
                    let state = *circuit.borrow_and_update();
                    self.switch(state);
                }
                Some(command) = self.ports.commands.recv() => self.command(command),
                () = sleep_until(wake) => self.step(Input::Tick),
            }
            self.probe();
            self.publish(false);
        }
        self.drain().await;
        self.publish(true);
        self.shared.health.shard(self.number, false, std::time::Instant::now());
    }

    async fn drain(&mut self) {
        self.ports.inbox.close();
        self.step(Input::Stop);
        let deadline = Instant::now() + self.shared.grace;
        while let Ok(Some(done)) = timeout_at(deadline, self.tasks.join_next()).await {
            self.done(done);
        }
        let left = self.tasks.len();
        if left > 0 {
            tracing::warn!(
                shard = self.number,
                left,
                "the grace period is over, giving up what is in flight"
            );
            self.tasks.shutdown().await;
        }
    }

    fn wake_at(&self) -> Instant {
        let started = self.shared.started;
        let lane = self.lane.next_deadline();
        let probe = match self.circuit {
            State::Open { until, .. } if self.lane.has_probe() => Some(until),
            _ => None,
        };
        let due = lane.into_iter().chain(probe).min().map(|at| started + at);
        let publish = self.changed.then(|| self.published + PUBLISH);
        due.into_iter().chain(publish).min().unwrap_or_else(|| Instant::now() + LONG)
    }

    fn observe(&mut self, event: Event) {
        self.step(Input::Event(event.into()));
        for _ in 1..BATCH {
            let Ok(event) = self.ports.inbox.try_recv() else { break };
            self.step(Input::Event(event.into()));
        }
    }

    fn switch(&mut self, state: State) {
        let (was, is) = (self.circuit == State::Closed, state == State::Closed);
        self.circuit = state;
        if was != is {
            self.step(if is { Input::Resume } else { Input::Pause });
        }
    }

    /// Probes, if the circuit is open, it is time, and there is something to probe with.
    fn probe(&mut self) {
        let State::Open { until, .. } = self.circuit else { return };
        let now = self.shared.now();
        if until > now || !self.lane.has_probe() {
            return;
        }
        let Some(probe) = self.shared.breaker.try_probe(now) else { return };
        self.lane.step(Input::Probe, now, &mut self.actions);
        let key = self.actions.iter().find_map(probing).cloned();
        match key {
            Some(key) => drop(self.probes.insert(key, probe)),
            None => self.shared.breaker.probe_over(probe, now),
        }
        self.act();
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Replay(key, whole) => {
                if whole {
                    let doubted = |mut record: Record| {
                        record.doubt();
                        record
                    };
                    self.shared.ledger.update(&key, |record| record.map(doubted));
                }
                let uid = self.shared.ledger.get(&key).map(|record| record.uid);
                self.step(Input::Replay { key, uid });
            }
            Command::Explain(key, answer) => {
                let explained = Explained {
                    shard: self.number,
                    standing: self.lane.standing(&key, self.shared.now()),
                    parked: self
                        .lane
                        .parked()
                        .find(|(parked, _)| **parked == key)
                        .map(|(_, how)| how.clone()),
                    record: self.shared.ledger.get(&key),
                    moments: Vec::new(),
                };
                let _ = answer.send(explained);
            }
            // Whoever asked may be gone by now.
            Command::Discard(key, answer) => {
                let was = self.lane.parked().any(|(parked, _)| *parked == key);
                self.step(Input::Discard { key });
                let _ = answer.send(was);
            }
            Command::Parked(answer) => {
                let list = self.lane.parked().map(|(key, parked)| (key.clone(), parked.clone()));
                let _ = answer.send(list.collect());
            }
        }
    }

    fn done(&mut self, done: Result<Done, tokio::task::JoinError>) {
        let Ok(done) = done else {
            // Turns and reads catch their panics; only an abort while stopping ends them so.
            return;
        };
        let seed = fastrand::u64(..);
        let now = self.shared.now();
        match done {
            Done::Turn(key, outcome) => {
                if let Some(probe) = self.probes.remove(&key) {
                    self.shared.breaker.probe_over(probe, now);
                }
                self.step(Input::Turned { key, outcome, seed });
            }
            Done::Read(key, result) => {
                self.lane.step(Input::Read { key: key.clone(), result, seed }, now, &mut self.actions);
                let goes_on = self.actions.iter().find_map(probing) == Some(&key);
                if !goes_on && let Some(probe) = self.probes.remove(&key) {
                    self.shared.breaker.probe_over(probe, now);
                }
                self.act();
            }
        }
    }

    fn step(&mut self, input: Input) {
        self.lane.step(input, self.shared.now(), &mut self.actions);
        self.act();
    }

    fn act(&mut self) {
        self.changed = true;
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Start(start) => {
                    let (shared, shard) = (self.shared.clone(), self.number);
                    let key = start.event.key.clone();
                    let probe = self.probes.get(&key).copied().filter(|_| start.probe);
                    self.tasks.spawn(async move {
                        let outcome = caught(turn::turn(&shared, shard, &start, probe)).await;
                        let outcome = outcome.unwrap_or_else(|_| {
                            tracing::error!(%key, "a turn panicked, trying it again later");
                            Outcome::Retry {
                                reason: Reason::Malformed,
                                after: None,
                                blame: Blame::Enrich,
                                refused: start.refused.clone(),
                            }
                        });
                        Done::Turn(key, outcome)
                    });
                }
                Action::Read { key, not_older_than, .. } => {
                    let shared = self.shared.clone();
                    self.tasks.spawn(async move {
                        let result = caught(turn::read(&shared, &key, not_older_than)).await;
                        let result = result.unwrap_or_else(|_| {
                            tracing::error!(%key, "a read panicked, trying it again later");
                            ReadResult::Failed { reason: Reason::Malformed, after: None }
                        });
                        Done::Read(key, result)
                    });
                }
                Action::Tell(trace) => self.told(trace),
            }
        }
        self.actions = actions;
    }

    fn told(&self, trace: Trace) {
        let (metrics, shard) = (&self.shared.metrics, self.number);
        match trace.step {
            Step::Filtered(why) => metrics.filtered(why),
            Step::Retried { reason, .. } => metrics.retried(reason),
            Step::Parked(reason) => {
                metrics.parked(reason);
                let key = &trace.key;
                tracing::warn!(%key, reason = reason.as_str(), "an event was refused for good and is parked");
            }
            Step::Acked { after } => metrics.acknowledged(after),
            _ => {}
        }
        if let Some(compat) = metrics.compat() {
            match trace.step {
                Step::Observed => compat.enqueued(shard, &trace.key, false),
                Step::Limited(_) => compat.dropped(shard, &trace.key, false),
                Step::Filtered(_) => compat.ignored(shard, EventType::App, &trace.key),
                Step::Retried { .. } | Step::Parked(_) => {
                    compat.errored(shard, EventType::App, ErrorType::Unknown, &trace.key);
                }
                Step::Acked { after } => compat.processed(shard, &trace.key, EventType::App, after),
                _ => {}
            }
        }
        self.shared.tell(self.number, trace);
    }

    fn publish(&mut self, at_once: bool) {
        if !self.changed || (!at_once && self.published.elapsed() < PUBLISH) {
            return;
        }
        let counts = self.lane.counts(self.shared.now());
        self.shared.metrics.lane(self.number, &counts);
        self.shared.health.lane(self.number, &counts, std::time::Instant::now());
        self.ports.counts.send_replace(counts);
        self.published = Instant::now();
        self.changed = false;
    }
}

/// The key that an action starts as the circuit's probe.
fn probing(action: &Action) -> Option<&Key> {
    match action {
        Action::Start(start) if start.probe => Some(&start.event.key),
        Action::Read { key, probe: true, .. } => Some(key),
        _ => None,
    }
}
