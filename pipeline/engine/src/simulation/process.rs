//! One process: the ledger, a watch, and shards that do what their lanes say, each as the real task does.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use pipeline_core::{Cause, CircuitState, Event, Key, Timestamp, Version};

use super::attempt::{Around, SimulatedAttempt};
use super::books::Books;
use super::check::Check;
use super::receiver::Receiver;
use super::watch::Watch;
use super::world::World;
use super::{Knobs, Mutant};
use crate::circuit::Circuit;
use crate::lane::{Action, Input, Lane, Outcome, ReadResult};
use crate::shard::journal::Journal;
use crate::shard::keep::Keeping;
use crate::shard::{input, probing};

/// Under what the ledger notes how far the watch came.
const KIND: &str = "app";

/// One shard's task.
pub(super) struct Shard {
    pub(super) lane: Lane,
    /// The circuit, as this task has heard of it.
    pub(super) circuit: CircuitState,
    pub(super) attempts: Vec<SimulatedAttempt>,
    pub(super) reads: Vec<(Key, Version)>,
    pub(super) journal: Journal,
    /// Rights to probe, by the key that uses one.
    probes: BTreeMap<Key, u64>,
    actions: Vec<Action>,
}

/// Everything that a kill takes away, and the ledger.
pub(super) struct Process {
    pub(super) books: Books,
    pub(super) shards: Vec<Shard>,
    pub(super) circuit: Circuit,
    pub(super) watch: Watch,
    /// Since it started.
    pub(super) now: Duration,
    /// Attempts begun by all processes.
    pub(super) attempts: u64,
}

impl Process {
    pub(super) fn start(books: Books, knobs: &Knobs, attempts: u64, check: &mut Check) -> Self {
        let lane = || match knobs.mutant {
            Some(Mutant::Lane(mutant)) => Lane::new(knobs.lane).with_mutant(mutant),
            _ => Lane::new(knobs.lane),
        };
        let shard = |_| Shard {
            lane: lane(),
            circuit: CircuitState::Closed,
            attempts: Vec::new(),
            reads: Vec::new(),
            journal: Journal::new(knobs.journal_every),
            probes: BTreeMap::new(),
            actions: Vec::new(),
        };
        let journaled = books.ledger.journaled();
        check.restarted(&journaled);
        let done = books.ledger.done_before(KIND).filter(|_| knobs.goes_on);
        // Where another route ended, which may lag behind.
        let from = done.map(|done| Version(Rng::with_seed(attempts ^ done.0).u64(1..=done.0)));
        let mut process = Self {
            circuit: Circuit::new(knobs.circuit),
            watch: Watch::new(from),
            shards: (0..knobs.shards).map(shard).collect(),
            now: Duration::ZERO,
            attempts,
            books,
        };
        for (key, parked) in process.books.ledger.parked() {
            let place = process.place(&key);
            process.shards[place].journal.parked(&key, true, false);
            process.step(place, Input::Park { key, parked });
        }
        for (key, pending) in journaled {
            let place = process.place(&key);
            process.shards[place].journal.restored(&key, &pending);
            process.step(place, Input::Restore { key, pending, awaited: from.is_some() });
        }
        process
    }

    /// What a lane is given of what the watch shows.
    pub(super) fn input(&self, event: Event) -> Input {
        let (ledger, known) = (&self.books.ledger, self.books.ledger.get(&event.key));
        input(event.into(), known.as_ref(), ledger.done_before(KIND))
    }

    /// Notes up to where nothing that the watch showed is undone.
    pub(super) fn note_done(&mut self) {
        let held = self.shards.iter().map(|shard| shard.lane.counts(self.now).oldest_version);
        let held = held.fold(Version(0), Version::older);
        let reached = Version(self.watch.reached());
        let done = if held.0 == 0 { reached } else { reached.min(held.before()) };
        let ledger = &self.books.ledger;
        if done.0 > 0 && ledger.done_before(KIND).is_none_or(|known| known < done) {
            ledger.done(KIND, done);
        }
    }

    pub(super) fn place(&self, key: &Key) -> usize {
        key.name().len().wrapping_add(key.name().bytes().map(usize::from).sum()) % self.shards.len()
    }

    pub(super) fn step(&mut self, place: usize, input: Input) {
        let key = input.key().cloned();
        let now = self.now;
        let shard = &mut self.shards[place];
        shard.lane.step(input, now, &mut shard.actions);
        self.act(place);
        if let Some(key) = key {
            self.touched(place, &key, false);
        }
    }

    /// An attempt is over, and its task tells.
    pub(super) fn attempted(&mut self, place: usize, at: usize, rng: &mut Rng) {
        let attempt = self.shards[place].attempts.swap_remove(at);
        let Some(outcome) = attempt.outcome().cloned() else { return };
        let key = attempt.key().clone();
        if let Some(probe) = self.shards[place].probes.remove(&key) {
            self.circuit.probe_over(probe, self.now);
        }
        let parked = matches!(outcome, Outcome::Reject { .. });
        self.step(place, Input::Attempted { key: key.clone(), outcome, seed: rng.u64(..) });
        if parked {
            self.touched(place, &key, true);
        }
    }

    /// A read is over.
    pub(super) fn read(&mut self, place: usize, at: usize, result: ReadResult, rng: &mut Rng) {
        let (key, _) = self.shards[place].reads.swap_remove(at);
        let shard = &mut self.shards[place];
        let input = Input::Read { key: key.clone(), result, seed: rng.u64(..) };
        shard.lane.step(input, self.now, &mut shard.actions);
        let goes_on = shard.actions.iter().find_map(probing) == Some(&key);
        if !goes_on && let Some(probe) = shard.probes.remove(&key) {
            self.circuit.probe_over(probe, self.now);
        }
        self.act(place);
        self.touched(place, &key, false);
    }

    /// The task hears of the circuit's state.
    pub(super) fn heard(&mut self, place: usize) {
        let state = self.circuit.state();
        let (was, is) = (self.shards[place].circuit == CircuitState::Closed, state == CircuitState::Closed);
        self.shards[place].circuit = state;
        if was != is {
            self.step(place, if is { Input::Resume } else { Input::Pause });
        }
    }

    /// Probes, if the circuit is open, it is time, and there is something to probe with.
    pub(super) fn probe(&mut self, place: usize) {
        let shard = &mut self.shards[place];
        let CircuitState::Open { until, .. } = shard.circuit else { return };
        if until > self.now || !shard.lane.has_probe() {
            return;
        }
        let Some(probe) = self.circuit.try_probe(self.now) else { return };
        shard.lane.step(Input::Probe, self.now, &mut shard.actions);
        match shard.actions.iter().find_map(probing).cloned() {
            Some(key) => drop(shard.probes.insert(key, probe)),
            None => self.circuit.probe_over(probe, self.now),
        }
        self.act(place);
    }

    /// Writes what has been waiting long enough.
    pub(super) fn keep(&mut self, place: usize) {
        self.keeping(place).due();
    }

    /// Writes everything that waits.
    pub(super) fn keep_all(&mut self, place: usize) {
        self.keeping(place).all();
    }

    fn touched(&mut self, place: usize, key: &Key, anew: bool) {
        self.keeping(place).touched(key, anew);
    }

    fn keeping(&mut self, place: usize) -> Keeping<'_> {
        let Shard { journal, lane, .. } = &mut self.shards[place];
        Keeping { journal, lane, ledger: &self.books.ledger, now: self.now }
    }

    fn act(&mut self, place: usize) {
        let shard = &mut self.shards[place];
        for action in shard.actions.drain(..) {
            match action {
                Action::Start(start) => {
                    let probe = shard.probes.get(&start.event.key).copied().filter(|_| start.probe);
                    self.attempts += 1;
                    shard.attempts.push(SimulatedAttempt::new(self.attempts, start, probe));
                }
                Action::Read { key, not_older_than, .. } => shard.reads.push((key, not_older_than)),
                Action::Tell(_) => {}
            }
        }
    }

    /// One attempt and everything that it touches.
    pub(super) fn around<'a>(
        &'a mut self,
        place: usize,
        at: usize,
        (knobs, receiver, check, rng): (&Knobs, &'a mut Receiver, &'a mut Check, &'a mut Rng),
    ) -> (&'a mut SimulatedAttempt, Around<'a>) {
        let around = Around {
            books: &mut self.books,
            circuit: &mut self.circuit,
            receiver,
            check,
            rng,
            now: self.now,
            failing: knobs.fetches_fail,
            reports: knobs.reports,
            marks_before_ack: knobs.mutant == Some(Mutant::MarksBeforeAck),
            goes_on: knobs.goes_on,
        };
        (&mut self.shards[place].attempts[at], around)
    }

    /// What the API server says when an object is read again: a state that is not older than asked for.
    pub(super) fn look_up(&mut self, place: usize, at: usize, world: &World, version: u64) -> ReadResult {
        let (key, _) = &self.shards[place].reads[at];
        match world.at(world.app(key), version) {
            Some(moved) => {
                self.watch.read(key, &moved.uid, moved.version);
                ReadResult::Found(world.event(moved, Cause::Read, Timestamp::UNIX_EPOCH).into())
            }
            None => {
                let uid = self.books.get(key).map(|record| record.uid);
                ReadResult::Gone { uid, observed: Timestamp::UNIX_EPOCH }
            }
        }
    }
}
