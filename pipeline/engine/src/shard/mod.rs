//! A shard: one task that owns one lane and does what the lane says.
//!
//! takes: events from its inbox, at once - gives: reports to the sink, acknowledgements to the ledger
//! calls: the stages, each attempt and each read in a task of its own - fails: a stage that panics is tried again
//! later, like one that fails

mod again;
pub(crate) mod attempt;
mod breaker;
mod command;
mod consume;
pub(crate) mod delivery;
mod history;
pub(crate) mod journal;
pub(crate) mod keep;
mod ports;
mod probe_right;
mod receipts;
mod shared;
mod tell;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{CircuitState, Key, Reason, Shutdown, Timestamp, Uid, Version};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

pub(crate) use again::input;
pub(crate) use breaker::Breaker;
pub(crate) use command::Command;
pub use command::{Explained, Moment};
pub(crate) use ports::{Answers, BusAnswer, Ports, RecoveredWork};
pub(crate) use shared::{AckedReport, Shared};

use crate::lane::{Action, Blame, Input, Lane, Outcome, ReadResult, Start};
use crate::supervise::caught;
use attempt::AttemptLog;
use history::{History, Moments};
use journal::Journal;
use pipeline_bus::Acker;
use pipeline_observe::spans::Recorder;
use pipeline_observe::top::{Tally, Top};
use pipeline_ownership::Fence;
use probe_right::ProbeRight;
use receipts::Receipts;
use tell::PUBLISH;

/// Events taken from the inbox before anything else gets its turn.
const BATCH: usize = 128;
/// Stands for "nothing to wait for".
const LONG: Duration = Duration::from_secs(3600);
/// Between looks whether a lease was renewed that ends too soon to send anything.
const RENEWED: Duration = Duration::from_millis(250);

/// A task that ended, with what came of it.
enum Ended {
    Attempt { key: Key, state: (Uid, Version), outcome: Outcome, log: AttemptLog },
    Read { key: Key, result: ReadResult },
}

/// One shard.
pub(crate) struct Shard {
    number: u32,
    shared: Arc<Shared>,
    lane: Lane,
    ports: Ports,
    tasks: JoinSet<Ended>,
    actions: Vec<Action>,
    /// Rights to probe, by the key that uses one.
    probes: HashMap<Key, ProbeRight>,
    circuit: CircuitState,
    history: History,
    top: Top,
    spans: Option<Recorder>,
    journal: Journal,
    /// The key that the lane has just parked.
    refused: Option<Key>,
    receipts: Receipts<Arc<dyn Acker>>,
    /// Facts given up since that was last said.
    given_up: u64,
    loss_warned: Option<Instant>,
    published: Instant,
    changed: bool,
}

impl Shard {
    /// `journal_every` after something happened to a key, what must outlive the process is written; `history`
    /// objects are remembered with what happened to them.
    pub(crate) fn new(
        number: u32,
        shared: Arc<Shared>,
        lane: Lane,
        ports: Ports,
        journal_every: Duration,
        history: usize,
    ) -> Self {
        let tap = shared.tap.clone();
        Self {
            number,
            spans: tap.map(|tap| Recorder::new(tap, number, shared.started.into_std())),
            lane,
            tasks: JoinSet::new(),
            actions: Vec::new(),
            probes: HashMap::new(),
            circuit: CircuitState::Closed,
            history: History::new(history),
            top: Top::default(),
            journal: Journal::new(journal_every),
            refused: None,
            given_up: 0,
            loss_warned: None,
            receipts: Receipts::new(ports.answers.as_ref().map_or(LONG, |answers| answers.every)),
            ports,
            published: shared.started,
            changed: true,
            shared,
        }
    }

    /// Goes on with what is `left`, works until `stop`, then lets what is in flight finish within the grace period.
    pub(crate) async fn run(mut self, left: RecoveredWork, stop: Shutdown) {
        self.restore(left);
        self.shared.health.shard(self.number, true, std::time::Instant::now());
        let mut circuit = self.shared.breaker.watch();
        circuit.mark_changed();
        loop {
            let wake = self.wake_at();
            tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = self.tasks.join_next() => self.ended(ended),
                Some(delivered) = self.ports.deliveries.recv() => self.consume(delivered),
                Ok(()) = circuit.changed() => {
                    let state = *circuit.borrow_and_update();
                    self.switch(state);
                }
                Some(command) = self.ports.commands.recv() => self.command(command),
                () = sleep_until(wake) => self.step(Input::Tick),
            }
            self.probe();
            self.keep();
            self.worked_on();
            self.publish(false);
        }
        self.drain().await;
        let now = (self.shared.now(), Timestamp::now());
        self.spans.iter_mut().for_each(|spans| spans.stop(now));
        self.publish(true);
        self.shared.health.shard(self.number, false, std::time::Instant::now());
    }

    /// Begins nothing more. What is left then is journaled, as far as it cannot be read again.
    async fn drain(&mut self) {
        // What was delivered and not taken is delivered again, to whoever has the shard then.
        self.ports.deliveries.close();
        self.step(Input::Stop);
        self.consume_last();
        // Whoever stops the process may kill it before the grace period is over.
        self.keep_all();
        let mut deadline = Instant::now() + self.shared.grace;
        let (cut, short) = self.ports.cut.clone();
        let mut is_cut = false;
        loop {
            let due = [self.journal.due(), self.receipts.due()];
            let due = due.into_iter().flatten().map(|at| self.shared.started + at);
            let until = due.fold(deadline, Instant::min);
            tokio::select! {
                () = cut.cancelled(), if !is_cut => {
                    is_cut = true;
                    deadline = deadline.min(Instant::now() + short);
                }
                ended = timeout_at(until, self.tasks.join_next()) => match ended {
                    Ok(Some(ended)) => self.ended(ended),
                    Err(_) if Instant::now() < deadline => {}
                    Ok(None) | Err(_) => break,
                }
            }
            self.keep();
            self.worked_on();
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
        self.keep_all();
    }

    fn wake_at(&self) -> Instant {
        let started = self.shared.started;
        let lane = self.lane.next_deadline();
        let due = lane
            .into_iter()
            .chain(self.probe_at())
            .chain(self.journal.due().map(keep::together))
            .chain(self.receipts.due())
            .min()
            .map(|at| started + at);
        let publish = self.changed.then(|| self.published + PUBLISH);
        due.into_iter().chain(publish).min().unwrap_or_else(|| Instant::now() + LONG)
    }

    fn switch(&mut self, state: CircuitState) {
        let (was, is) = (self.circuit == CircuitState::Closed, state == CircuitState::Closed);
        self.circuit = state;
        if was != is {
            self.step(if is { Input::Resume } else { Input::Pause });
        }
    }

    /// When to probe, if the circuit is open and there is something to probe with. Near the end of a lease nothing may be sent:
    /// until it is renewed that is looked at again.
    fn probe_at(&self) -> Option<Duration> {
        let CircuitState::Open { until, .. } = self.circuit else { return None };
        let may_send = self.ports.fence.as_ref().is_none_or(Fence::may_send);
        let renewed = if may_send { Duration::ZERO } else { self.shared.now() + RENEWED };
        self.lane.has_probe().then(|| until.max(renewed))
    }

    /// Probes, if it is time.
    fn probe(&mut self) {
        let now = self.shared.now();
        if self.probe_at().is_none_or(|at| at > now) {
            return;
        }
        let Some(right) = ProbeRight::take(&self.shared, now) else { return };
        self.lane.step(Input::Probe, now, &mut self.actions);
        if let Some(key) = self.actions.iter().find_map(probing).cloned() {
            self.probes.insert(key, right);
        }
        self.act();
    }

    fn ended(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        let Ok(ended) = ended else {
            // Attempts and reads catch their panics; only an abort while stopping ends them so.
            return;
        };
        let seed = fastrand::u64(..);
        let (now, at) = (self.shared.now(), Timestamp::now());
        match ended {
            Ended::Attempt { key, state: (uid, version), outcome, log } => {
                let AttemptLog { moments, tally, spans } = log;
                self.history.append(&key, moments);
                if let Some((recorder, spans)) = self.spans.as_mut().zip(spans) {
                    recorder.attempted(*spans);
                }
                self.top.attempt(&key, &tally, now);
                self.probes.remove(&key);
                if let Some(calls) = tally.refetched() {
                    let whole = matches!(
                        outcome,
                        Outcome::Acked { refetch: None } | Outcome::Filtered { refetch: None, .. }
                    );
                    self.step(Input::Refetched { calls, lacking: !whole });
                }
                let over = !matches!(outcome, Outcome::Retry { .. });
                self.step(Input::Attempted { key: key.clone(), outcome, seed });
                if over {
                    let done = self.receipts.ended(&key, &uid, version, self.lane.is_dirty(&key));
                    self.answer(done);
                }
            }
            Ended::Read { key, result } => {
                if let ReadResult::Failed { reason, .. } | ReadResult::Refused { reason, .. } = result {
                    self.top.not_read(&key, reason, now, at);
                }
                self.spans.iter_mut().for_each(|spans| spans.read(&key, result.failed(), (now, at)));
                self.lane.step(Input::Read { key: key.clone(), result, seed }, now, &mut self.actions);
                let goes_on = self.actions.iter().find_map(probing) == Some(&key);
                if !goes_on {
                    self.probes.remove(&key);
                }
                self.act();
                self.spans.iter_mut().for_each(Recorder::read_told);
                self.touched(&key);
            }
        }
    }

    fn step(&mut self, input: Input) {
        let key = input.key().cloned();
        if let (Some(spans), Input::Event(event) | Input::PassedOver(event)) = (&mut self.spans, &input) {
            spans.arrives(event);
        }
        self.lane.step(input, self.shared.now(), &mut self.actions);
        self.act();
        if let Some(key) = key {
            self.touched(&key);
        }
    }

    fn act(&mut self) {
        self.changed = true;
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                Action::Start(start) => self.start(start),
                Action::Read { key, not_older_than, .. } => self.read(key, not_older_than),
                Action::Tell(trace) => self.told(trace),
            }
        }
        self.actions = actions;
    }

    /// Runs an attempt in a task of its own.
    fn start(&mut self, start: Start) {
        let (shared, shard) = (self.shared.clone(), self.number);
        let key = start.event.key.clone();
        let state = (start.event.uid.clone(), start.event.version);
        let fence = self.ports.fence.clone();
        let probe = self.probes.get(&key).map(ProbeRight::number).filter(|_| start.probe);
        let spans = self.spans.as_mut().map(|spans| Box::new(spans.starts(&start.event, start.attempt)));
        self.tasks.spawn(async move {
            let tally = Tally::of(&start.event);
            let mut log = AttemptLog { moments: Moments::default(), tally, spans };
            let attempt = attempt::attempt(&shared, shard, fence.as_ref(), &start, probe, &mut log);
            let outcome = caught(attempt).await.unwrap_or_else(|_| {
                tracing::error!(%key, "an attempt panicked, trying it again later");
                Outcome::Retry {
                    reason: Reason::Malformed,
                    after: None,
                    blame: Blame::Enrich,
                    refused: start.refused.clone(),
                    // The ledger knows.
                    told: Vec::new(),
                }
            });
            Ended::Attempt { key, state, outcome, log }
        });
    }

    /// Reads an object again in a task of its own.
    fn read(&mut self, key: Key, not_older_than: Version) {
        let shared = self.shared.clone();
        self.tasks.spawn(async move {
            let read = caught(attempt::read(&shared, &key, not_older_than)).await;
            let result = read.unwrap_or_else(|_| {
                tracing::error!(%key, "a read panicked, trying it again later");
                ReadResult::Failed { reason: Reason::Malformed, after: None }
            });
            Ended::Read { key, result }
        });
    }
}

/// The key that an action starts as the circuit's probe.
pub(crate) fn probing(action: &Action) -> Option<&Key> {
    match action {
        Action::Start(start) if start.probe => Some(&start.event.key),
        Action::Read { key, probe: true, .. } => Some(key),
        _ => None,
    }
}
