//! A deterministic simulation: lane, ledger, sink and watch against a model of the world.
//!
//! The lane, the circuit, the delivery of reports, the records, the journal and the idempotency keys are the real ones;
//! the cluster, the watch, the receiver and a small enrichment are models. There is no runtime, no thread and no clock
//! in a run: one seeded generator decides what happens next, at every await of every attempt, so that a run can be
//! repeated from its seed. Objects change, end operations, go and come back, and return to exactly what they
//! were; the watch lists in pages, breaks, repeats itself and is blind; the receiver fails before it takes a report and
//! after, refuses, does not know our token, or is away for hours; fetching fails; attempts panic; the process is stopped,
//! killed, or loses power at any moment, and the ledger keeps what was committed.
//!
//! After every step the lane's books must balance, its memory be bounded, and each record be what was acknowledged.
//! In the end everything may come to rest, and then the receiver must hold the truth: see [`check`].

mod attempt;
mod books;
mod check;
mod enrich;
mod knobs;
mod process;
mod receiver;
mod rest;
mod show;
mod tests;
mod watch;
mod world;

use std::collections::VecDeque;
use std::time::Duration;

use fastrand::Rng;
use pipeline_core::{Key, Timestamp, Uid};

use crate::lane::{Input, ReadResult};
use books::{Books, End};
use check::Check;
use knobs::{Knobs, Mutant, Setting};
use process::Process;
use receiver::{Mood, Receiver};
use world::World;

/// Steps that are told when a run fails: of nearly every run all of them.
const TOLD: usize = 600;
/// Why a run failed.
struct Violation {
    seed: u64,
    step: usize,
    why: String,
    /// The last steps, oldest first.
    trace: VecDeque<String>,
}

struct Simulation {
    rng: Rng,
    knobs: Knobs,
    world: World,
    receiver: Receiver,
    check: Check,
    process: Process,
    /// The watch delivers nothing for a while.
    blind: bool,
    /// Summaries were given up for want of room: such ends may be lost.
    dropped: bool,
    steps: usize,
    /// `None`: nobody asks.
    trace: Option<VecDeque<String>>,
}

/// Runs one simulation.
fn run(seed: u64, mutant: Option<Mutant>, setting: Setting) -> Result<(), Violation> {
    let Err(_) = Simulation::new(seed, mutant, setting, false).whole() else { return Ok(()) };
    // Once more, the same, and told this time.
    let mut simulation = Simulation::new(seed, mutant, setting, true);
    let why = simulation.whole().err().unwrap_or_else(|| "not so the second time".to_owned());
    let Simulation { steps: step, trace, .. } = simulation;
    Err(Violation { seed, step, why, trace: trace.unwrap_or_default() })
}

impl Simulation {
    fn new(seed: u64, mutant: Option<Mutant>, setting: Setting, told: bool) -> Self {
        let mut rng = Rng::with_seed(seed);
        let knobs = Knobs::draw(&mut rng, mutant, setting);
        let goes_on = setting.goes_on;
        let mut check = Check::new(goes_on);
        let books = Books::new();
        books.disk.room(knobs.room);
        let process = Process::start(books, &knobs, 0, &mut check);
        let trace = told.then(|| VecDeque::from([format!("{knobs:?}")]));
        let mut world = World::new(knobs.apps, goes_on);
        // No list is of version 0, which stands for one that is not known.
        world.change(&mut rng);
        Self {
            world,
            receiver: Receiver::new(knobs.sends_fail, knobs.poison),
            process,
            check,
            knobs,
            rng,
            blind: false,
            dropped: false,
            steps: 0,
            trace,
        }
    }

    fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.trace.is_some() {
            let line = format!("{:>4} {:>9.3}s {}", self.steps, self.process.now.as_secs_f64(), line(self));
            if let Some(trace) = &mut self.trace {
                if trace.len() > TOLD {
                    trace.remove(1);
                }
                trace.push_back(line);
            }
        }
    }

    fn whole(&mut self) -> Result<(), String> {
        while self.steps < self.knobs.steps {
            self.step()?;
            self.look()?;
        }
        self.rest()
    }

    /// One thing happens.
    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.rng.u32(..10_000) < self.knobs.ends {
            return self.ends();
        }
        let weights = self.knobs.weights;
        let all: u32 = weights.iter().sum();
        let mut left = self.rng.u32(..all);
        let kind = weights.iter().position(|weight| {
            let here = left < *weight;
            left = left.saturating_sub(*weight);
            here
        });
        let place = self.rng.usize(..self.process.shards.len());
        match kind {
            Some(0) => {
                let moved = self.world.change(&mut self.rng).clone();
                self.note(|_| {
                    let gone = if moved.deleted { "deleted, " } else { "" };
                    format!("truth: {} at {}: {gone}{}", moved.uid, moved.version, show::state(&moved.state))
                });
            }
            Some(1) if !self.blind => self.watch(),
            Some(2) => return self.attempt(place),
            Some(3) => self.read(place),
            Some(4) => {
                self.process.heard(place);
                self.process.probe(place);
            }
            Some(5) => self.commit(),
            Some(6) => self.pass(),
            Some(7) => self.seldom(),
            _ => {}
        }
        Ok(())
    }

    fn seldom(&mut self) {
        match self.rng.u8(..20) {
            0..3 => {
                self.process.watch.breaks(&mut self.rng);
                self.note(|_| "the watch breaks".to_owned());
            }
            3..6 => {
                if let Some(event) = self.process.watch.repeats(&self.world, self.process.now, &mut self.rng)
                {
                    self.note(|_| format!("repeated: {}", show::event(&event)));
                    let place = self.process.place(&event.key);
                    self.process.step(place, Input::Event(event.into()));
                }
            }
            6..12 => {
                let moods = [Mood::Well, Mood::Well, Mood::Away, Mood::Unauthorized];
                let was = self.receiver.mood;
                self.receiver.mood = *self.rng.choice(&moods).unwrap_or(&Mood::Well);
                if was == Mood::Unauthorized && self.receiver.mood == Mood::Well {
                    self.process.circuit.hasten(self.process.now);
                }
                self.note(|it| format!("the receiver is {:?}", it.receiver.mood));
            }
            12..15 => {
                self.blind = !self.blind;
                self.note(|it| format!("the watch is blind: {}", it.blind));
            }
            15 => {
                let full = !self.process.books.full;
                self.process.books.set_full(full);
                self.note(|_| format!("the disk is full: {full}"));
            }
            16 => {
                let key = self.world.key(self.rng.usize(..self.knobs.apps)).clone();
                let whole = self.rng.bool();
                // One asks for what was reported; anything else the first list brings anyway.
                if self.process.books.get(&key).is_some() {
                    self.replay(&key, whole);
                }
            }
            _ => {
                let place = self.rng.usize(..self.process.shards.len());
                self.process.keep(place);
            }
        }
    }

    fn replay(&mut self, key: &Key, whole: bool) {
        self.note(|_| format!("a person replays {key}, whole: {whole}"));
        if whole {
            self.process.books.update(key, |record| {
                record.map(|mut record| {
                    record.doubt();
                    record
                })
            });
        }
        let uid = self.process.books.get(key).map(|record| record.uid);
        self.check.asked_again(uid.as_ref());
        let place = self.process.place(key);
        self.process.step(place, Input::Replay { key: key.clone(), uid });
    }

    fn watch(&mut self) {
        self.process.watch.goes_on(&self.world, self.process.now);
        let Some(event) =
            self.process.watch.step(&self.world, &self.process.books.ledger, Timestamp::UNIX_EPOCH)
        else {
            return;
        };
        let input = self.process.input(event.clone());
        let done = matches!(input, Input::PassedOver(_));
        self.note(|_| {
            let how = if event.again { ", again" } else { "" };
            let what = match input {
                Input::PassedOver(_) => ", done",
                Input::InDoubt(_) => ", in doubt",
                Input::Redelivered(_) => ", to be read",
                _ => "",
            };
            format!("watched{how}{what}: {}", show::event(&event))
        });
        if !done {
            self.check.delivered(&event);
        }
        self.process.step(self.process.place(&event.key), input);
    }

    fn attempt(&mut self, place: usize) -> Result<(), String> {
        let attempts = &self.process.shards[place].attempts;
        if attempts.is_empty() {
            return Ok(());
        }
        let at = self.rng.usize(..attempts.len());
        let attempt = &attempts[at];
        if let Some(outcome) = attempt.outcome() {
            let (key, number) = (attempt.key().clone(), attempt.number);
            let outcome = outcome.clone();
            self.note(|_| format!("attempt {number} of {key} is over: {}", show::outcome(&outcome)));
            self.process.attempted(place, at, &mut self.rng);
            return Ok(());
        }
        let panics = self.rng.u16(..1000) < 5;
        let key = attempt.key().clone();
        let parts = (&self.knobs, &mut self.receiver, &mut self.check, &mut self.rng);
        let (attempt, mut around) = self.process.around(place, at, parts);
        if panics {
            attempt.panics(&mut around)?;
        } else {
            attempt.advance(&mut around)?;
        }
        let line = self.trace.is_some().then(|| attempt.to_string());
        self.note(|it| {
            let attempt = line.unwrap_or_default();
            format!("{attempt}\n                 {}", show::record(it.process.books.get(&key).as_ref()))
        });
        Ok(())
    }

    fn read(&mut self, place: usize) {
        let reads = &self.process.shards[place].reads;
        if reads.is_empty() {
            return;
        }
        let at = self.rng.usize(..reads.len());
        let (key, not_older_than) = reads[at].clone();
        let fails = self.rng.u8(..100) < self.knobs.fetches_fail;
        let result = if fails {
            ReadResult::Failed { reason: pipeline_core::Reason::Timeout, after: None }
        } else {
            // A cache may lag, but not behind what it was asked for, nor behind what it gave to the watch; what asks
            // for nothing asks for the newest.
            let newest = self.world.version();
            let lags = not_older_than.0 > 0 && self.rng.u8(..3) == 0;
            let oldest = not_older_than.0.max(self.process.watch.version()).min(newest);
            let version = if lags { self.rng.u64(oldest..=newest) } else { newest };
            self.learned(&key, version);
            self.process.look_up(place, at, &self.world, version)
        };
        self.note(|_| format!("read {key}, not older than {}: {}", not_older_than.0, show::result(&result)));
        self.process.read(place, at, result, &mut self.rng);
    }

    /// A read shows which lives are over.
    fn learned(&mut self, key: &Key, version: u64) {
        let app = self.world.app(key);
        let there = self.world.at(app, version);
        let lives = there.map_or_else(|| self.world.lives(app, version), |moved| World::life(&moved.uid) - 1);
        self.check.over((1..=lives).map(|life| Uid::from(format!("{app}-{life}"))));
        let event =
            there.map(|moved| self.world.event(moved, pipeline_core::Cause::Read, Timestamp::UNIX_EPOCH));
        if let Some(event) = event {
            self.check.delivered(&event);
        }
    }

    fn commit(&mut self) {
        self.process.note_done();
        let worked = self.process.books.commit();
        self.note(|_| format!("the ledger commits: {worked}"));
        if !worked {
            return;
        }
        for taken in &mut self.receiver.taken {
            taken.durable = taken.acked;
        }
    }

    fn pass(&mut self) {
        let millis = match self.rng.u8(..20) {
            0..14 => self.rng.u64(..2_000),
            14..19 => self.rng.u64(..600_000),
            _ => self.rng.u64(..20_000_000),
        };
        self.tick(self.process.now + Duration::from_millis(millis));
    }

    fn tick(&mut self, now: Duration) {
        self.process.now = now;
        for place in 0..self.process.shards.len() {
            self.process.step(place, Input::Tick);
            self.process.probe(place);
            self.process.keep(place);
        }
    }

    /// The process ends, and the next one begins.
    fn ends(&mut self) -> Result<(), String> {
        let end = match self.rng.u8(..10) {
            0..2 => End::Orderly,
            2..8 => End::Killed,
            _ => End::PowerLoss,
        };
        self.restart(end)
    }

    fn restart(&mut self, end: End) -> Result<(), String> {
        for place in 0..self.process.shards.len() {
            for at in 0..self.process.shards[place].attempts.len() {
                let parts = (&self.knobs, &mut self.receiver, &mut self.check, &mut self.rng);
                let (attempt, mut around) = self.process.around(place, at, parts);
                attempt.abandoned(&mut around)?;
            }
            if end == End::Orderly {
                self.process.keep_all(place);
            }
        }
        if end == End::Orderly {
            self.commit();
        }
        for taken in &mut self.receiver.taken {
            taken.acked = taken.durable;
        }
        if self.process.books.forgets(end) {
            self.check.lost_power(&mut self.receiver);
        }
        let mut books = self.process.books.after(end);
        if self.knobs.mutant == Some(Mutant::ForgetsDoubt) {
            books.trusts();
        }
        self.process = Process::start(books, &self.knobs, self.process.attempts, &mut self.check);
        self.note(|it| {
            let journaled = it.process.books.ledger.journaled();
            let lines =
                journaled.iter().map(|(key, pending)| format!("\n    {key}: {}", show::pending(pending)));
            format!("the process ends: {end:?}; journaled: {}", lines.collect::<String>())
        });
        Ok(())
    }

    /// What must hold at every step.
    fn look(&mut self) -> Result<(), String> {
        for shard in &self.process.shards {
            Check::lane(shard, &self.knobs.lane, self.knobs.apps as u64, self.process.now)?;
            Check::only_refused(shard, &self.receiver)?;
            self.dropped |= shard.lane.counts(self.process.now).summaries_dropped > 0;
        }
        let moved = std::mem::take(&mut self.process.books.moved);
        let records = moved.iter().filter_map(|key| self.process.books.get(key));
        records.into_iter().try_for_each(|record| Check::record(&record, &self.receiver))
    }
}
