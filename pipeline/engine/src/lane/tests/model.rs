//! The lane against a model of the world: objects that change, a watch that lags, reads that see the truth.
//!
//! After every step the conservation law holds and every gauge equals what the lane really holds; turns of a
//! key neither overlap nor go back in time. When everything has come to rest, the newest state of every
//! object was processed, and no deletion and no end of an operation was lost: of those that a process saw which
//! was killed, the journaled ones.

use pipeline_core::Pending;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::acts::{Act, How, act, config};
use super::*;

/// What the world holds of one object.
#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) life: u64,
    pub(super) there: bool,
    pub(super) version: u64,
    pub(super) operation: Option<u64>,
}

/// What became of one object's events.
#[derive(Debug, Default)]
pub(super) struct Fate {
    /// Newest life and version that a turn began with.
    newest: (String, u64),
    /// The life that the ledger knows.
    pub(super) ledger: Option<String>,
    /// The last event that was processed.
    last: Option<String>,
    /// Lives of which an event was delivered, and lives whose deletion was processed.
    pub(super) lives: BTreeSet<String>,
    pub(super) deleted: BTreeSet<String>,
    /// When the deletion of a life was processed.
    ended: BTreeMap<String, Duration>,
    /// Lives that a read showed to be over.
    over: BTreeSet<String>,
    /// Ends that were delivered, and ends that were processed, by life.
    pub(super) due: BTreeSet<(String, String)>,
    pub(super) told: BTreeSet<(String, String)>,
    /// Lives whose end was delivered.
    pub(super) ends: BTreeSet<String>,
    /// A read was refused: what it would have shown is parked.
    pub(super) refused: bool,
}

pub(super) struct World {
    pub(super) bench: Bench,
    pub(super) config: Config,
    pub(super) objects: Vec<Object>,
    pub(super) fates: BTreeMap<String, Fate>,
    pub(super) watch: VecDeque<Event>,
    pub(super) delivered: Vec<Event>,
    pub(super) running: BTreeSet<String>,
    /// What was last written down of each key.
    pub(super) journal: BTreeMap<String, Pending>,
    /// Processes that were killed.
    pub(super) crashes: u64,
    /// Summaries that those had to give up.
    pub(super) dropped: u64,
    pub(super) clock: u64,
    started: usize,
}

impl World {
    fn new(config: Config) -> Self {
        Self {
            bench: Bench::new(config),
            config,
            objects: (0..3).map(|_| Object::default()).collect(),
            fates: (0..3).map(|key| (format!("k{key}"), Fate::default())).collect(),
            watch: VecDeque::new(),
            delivered: Vec::new(),
            running: BTreeSet::new(),
            journal: BTreeMap::new(),
            crashes: 0,
            dropped: 0,
            clock: 0,
            started: 0,
        }
    }

    pub(super) fn snapshot(&self, key: usize) -> Event {
        let object = &self.objects[key];
        let event = of(&format!("life{:04}", object.life), state(&format!("k{key}"), object.version));
        Event { fact: object.operation.map(end), ..event }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Change { key, ends } => {
                self.clock += 1;
                let (clock, object) = (self.clock, &mut self.objects[key]);
                if !object.there {
                    *object = Object { life: object.life + 1, there: true, version: clock, operation: None };
                }
                object.version = clock;
                object.operation =
                    if ends { Some(clock) } else { object.operation.filter(|_| clock % 3 > 0) };
                self.watch.push_back(self.snapshot(key));
            }
            Act::Delete { key } => {
                if self.objects[key].there {
                    self.clock += 1;
                    self.objects[key].version = self.clock;
                    self.objects[key].there = false;
                    let last = self.snapshot(key);
                    let change = Change::Deleted { body: last.body().cloned() };
                    self.watch.push_back(Event { change, fact: None, ..last });
                }
            }
            Act::Deliver => {
                if let Some(event) = self.watch.pop_front() {
                    self.deliver(&event);
                    self.delivered.push(event);
                }
            }
            Act::Repeat { which } => {
                let last = self.delivered.last().map_or(0, |event| event.version.0);
                let newest = |event: &&Event| !event.is_deleted() && event.version.0 + 6 > last;
                let old: Vec<_> = self.delivered.iter().filter(newest).cloned().collect();
                // A relist delivers the newest state of an object alone.
                if let Some(event) = old.get(which % old.len().max(1))
                    && !self
                        .delivered
                        .iter()
                        .any(|other| other.key == event.key && other.version > event.version)
                {
                    self.step(Input::Event(Arc::new(event.clone())));
                }
            }
            Act::Turn { which, how } => self.turn(which, how),
            Act::Read { which, how } => self.read(which, how),
            Act::Replay { key } => {
                let name = format!("k{key}");
                let uid = self.fates[&name].ledger.as_deref().map(Into::into);
                self.step(Input::Replay { key: super::key(&name), uid });
            }
            Act::Pass { millis } => {
                self.bench.now += Duration::from_millis(millis);
                self.step(Input::Tick);
            }
            Act::Pause => self.step(Input::Pause),
            Act::Resume => self.step(Input::Resume),
            Act::Probe => self.step(Input::Probe),
            Act::Journal { key } => self.journal(&format!("k{key}")),
            Act::Crash => self.crash(),
        }
    }

    fn deliver(&mut self, event: &Event) {
        let fate = self.fates.get_mut(event.key.name()).expect("is known");
        let life = event.uid.to_string();
        // What happened in a life that a read already showed to be over is of no use to anybody.
        let newest = self.bench.lane.keys.get(&event.key).and_then(|slot| slot.newest.as_ref());
        let former = newest.is_some_and(|(newest, _)| **newest > *life);
        let over = former || fate.over.contains(&life) || self.running.contains(&life);
        if let Some(end) = &event.fact
            && !over
        {
            fate.due.insert((life.clone(), text_of(end)));
        }
        if event.is_deleted() && !over {
            fate.ends.insert(life.clone());
        }
        if !former {
            fate.lives.insert(life);
        }
        self.step(Input::Event(Arc::new(event.clone())));
    }

    fn turn(&mut self, which: usize, how: How) {
        if self.bench.starts.is_empty() {
            return;
        }
        let start = self.bench.starts[which % self.bench.starts.len()].clone();
        let event = &start.event;
        let name = event.key.name();
        let outcome = match how {
            How::Acked => ACKED,
            How::Incomplete => Outcome::Acked { refetch: Some(Refetch::Incomplete) },
            How::Filtered => Outcome::Filtered { why: Filtered::Unchanged, refetch: None, settled: false },
            How::Retry(blame) => retry(blame),
            How::Reject => reject(Reason::Refused),
        };
        if !matches!(how, How::Retry(_)) {
            let crashed = self.crashes > 0;
            let fate = self.fates.get_mut(name).expect("is known");
            let life = event.uid.to_string();
            let repeats = event.is_deleted() && crashed && fate.deleted.contains(&life);
            if !repeats {
                fate.last = Some(show(event));
            }
            // Of an earlier life that ended while nobody watched, the next one tells that it is over.
            let former = fate.ledger.clone().filter(|former| crashed && *former < life);
            fate.deleted.extend(former);
            let later = crashed && fate.ledger.as_ref().is_some_and(|known| *known > life);
            if event.is_deleted() {
                fate.ended.insert(life.clone(), self.bench.now);
                fate.ledger = fate.ledger.take().filter(|_| later);
                fate.deleted.insert(life);
            } else {
                fate.ledger = Some(life);
            }
            for end in event.coalesced.iter().chain(&event.fact) {
                fate.told.insert((event.uid.to_string(), text_of(end)));
            }
        }
        self.running.remove(name);
        self.running.remove(&*event.uid);
        self.bench.starts.retain(|other| other.event.key != event.key);
        self.step(Input::Turned { key: event.key.clone(), outcome, seed: 1 << 63 });
    }

    fn read(&mut self, which: usize, how: u8) {
        if self.bench.reads.is_empty() {
            return;
        }
        let (key, _) = self.bench.reads.remove(which % self.bench.reads.len()).expect("is in range");
        let number: usize = key.name().trim_start_matches('k').parse().expect("ends in its number");
        let result = match how {
            0..40 => ReadResult::Failed { reason: Reason::Timeout, after: None },
            40..45 => {
                self.fates.get_mut(key.name()).expect("is known").refused = true;
                ReadResult::Refused { reason: Reason::Malformed, at: Timestamp::UNIX_EPOCH }
            }
            _ if self.objects[number].there => ReadResult::Found(Arc::new(self.snapshot(number))),
            _ => {
                let uid = self.fates[key.name()].ledger.as_deref().map(Into::into);
                ReadResult::Gone { uid, observed: Timestamp::UNIX_EPOCH }
            }
        };
        if matches!(result, ReadResult::Found(_) | ReadResult::Gone { .. }) {
            let object = &self.objects[number];
            let over = (1..=object.life).take_while(|life| *life < object.life || !object.there);
            let fate = self.fates.get_mut(key.name()).expect("is known");
            fate.over.extend(over.map(|life| format!("life{life:04}")));
        }
        self.running.remove(key.name());
        self.step(Input::Read { key, result, seed: 0 });
    }

    pub(super) fn step(&mut self, input: Input) {
        let (starts, reads) = (self.bench.starts.len(), self.bench.reads.len());
        self.bench.step(input);
        for start in self.bench.starts.range(starts..).cloned().collect::<Vec<_>>() {
            let event = &start.event;
            assert!(!self.bench.lane.is_parked(event), "was refused for good: {}", show(event));
            assert!(self.running.insert(event.key.name().to_owned()), "two at a time: {}", show(event));
            self.started += 1;
            if event.is_deleted() {
                self.running.insert(event.uid.to_string());
                continue;
            }
            let fate = self.fates.get_mut(event.key.name()).expect("is known");
            let this = (event.uid.to_string(), event.version.0);
            assert!(this >= fate.newest, "{this:?} after {:?}", fate.newest);
            let ended = fate.ended.get(&this.0).is_some_and(|at| self.bench.now < *at + WATCH_LAG);
            assert!(!ended, "{this:?} after its end");
            fate.newest = this;
        }
        for (key, _) in self.bench.reads.range(reads..).cloned().collect::<Vec<_>>() {
            assert!(self.running.insert(key.name().to_owned()), "read while busy: {key}");
        }
        self.gauges();
    }

    /// Every gauge equals what the lane really holds.
    fn gauges(&self) {
        let (lane, counts) = (&self.bench.lane, self.bench.counts());
        let slots = || lane.keys.values();
        let waiting = slots().filter(|slot| slot.state == State::Waiting && !slot.queue.is_empty()).count();
        let held = || slots().flat_map(|slot| slot.queue.iter().chain(&slot.running));
        let marks = || slots().flat_map(|slot| slot.mark.iter().chain(&slot.asked));
        let loads = || marks().map(|mark| mark.load());
        let real = [
            slots().map(|slot| slot.queue.len()).sum::<usize>() - waiting,
            waiting,
            slots().filter(|slot| slot.running.is_some()).count(),
            slots().filter(|slot| slot.is_dirty()).count(),
            slots().filter(|slot| slot.state == State::Reading).count(),
            slots().filter(|slot| slot.refetch.is_some()).count(),
        ];
        let told = [
            counts.queued,
            counts.waiting,
            counts.in_flight,
            counts.dirty,
            counts.reading,
            counts.incomplete,
        ];
        assert_eq!(told, real.map(|count| count as u64), "{counts:?}");
        assert_eq!(counts.bytes, held().map(|held| held.event.size() as u64).sum::<u64>());
        assert_eq!(counts.summaries, loads().map(|load| load.ends).sum::<u64>());
        assert_eq!(counts.summary_bytes, loads().map(|load| load.bytes).sum::<u64>());
        let line = |state| slots().filter(|slot| slot.state == state).count();
        assert_eq!((lane.turns.len(), lane.reads.len()), (line(State::Turn), line(State::Read)));
        assert_eq!(lane.timers.len(), slots().filter(|slot| slot.timer.is_some()).count());
    }

    /// Lets everything come to rest, then looks whether anything was lost.
    fn rest(&mut self) {
        self.act(&Act::Resume);
        for _ in 0..10_000 {
            if !self.watch.is_empty() {
                self.act(&Act::Deliver);
            } else if !self.bench.starts.is_empty() {
                self.act(&Act::Turn { which: 0, how: How::Acked });
            } else if !self.bench.reads.is_empty() {
                self.act(&Act::Read { which: 0, how: 255 });
            } else if let Some(at) = self.bench.lane.next_deadline() {
                self.bench.now = at;
                self.act(&Act::Pass { millis: 0 });
            } else {
                break;
            }
        }
        let counts = self.bench.counts();
        let held = counts.queued
            + counts.waiting
            + counts.in_flight
            + counts.dirty
            + counts.incomplete
            + counts.bytes;
        assert_eq!(held, 0, "came to rest: {counts:?}");
        let kept = |slot: &KeyState| slot.state == State::Idle && slot.is_ahead();
        assert!(self.bench.lane.keys.values().all(|slot| kept(slot)), "{:?}", self.bench.lane.keys);
        for (number, object) in self.objects.iter().enumerate() {
            let fate = &self.fates[&format!("k{number}")];
            if object.version == 0 || fate.refused {
                continue;
            }
            let truth = self.snapshot(number);
            let last = fate.last.as_deref().unwrap_or("nothing");
            if object.there {
                assert_eq!(last, show(&truth));
            } else if fate.lives.contains(&*truth.uid) {
                let deletion = format!("-{}/{}@", truth.key.name(), truth.uid);
                assert!(last.starts_with(&deletion), "{last} instead of {deletion}");
            }
            let current = object.there.then(|| truth.uid.to_string());
            let ended = fate.lives.iter().filter(|life| Some(*life) != current.as_ref());
            let forgotten: Vec<_> = ended.filter(|life| !fate.deleted.contains(*life)).collect();
            assert!(forgotten.is_empty(), "deletions lost: {forgotten:?}");
            let lost: Vec<_> = fate.due.difference(&fate.told).collect();
            assert!(lost.is_empty() || counts.summaries_dropped + self.dropped > 0, "ends lost: {lost:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_overtaken(config in config(), acts in prop::collection::vec(act(), 1..120)) {
        let mut world = World::new(config);
        for act in &acts {
            world.act(act);
        }
        world.rest();
    }
}
