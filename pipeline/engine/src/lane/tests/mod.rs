mod dirty;
mod flow;
mod order;
mod parked;
mod reasons;
mod refetch_times;
mod restore;

use pipeline_core::Digest;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pipeline_core::{
    Cause, Change, Event, Fact, Filtered, Key, Pending, Reason, Refetch, Refused, Timestamp, Uid, Version,
};

use super::key_state::WATCH_LAG;
use super::*;

const ACKED: Outcome = Outcome::Acked { refetch: None };

fn retry(blame: Blame) -> Outcome {
    Outcome::Retry {
        reason: Reason::Unreachable,
        after: None,
        blame,
        refused: Arc::new([]),
        told: Vec::new(),
    }
}

fn reject(reason: Reason) -> Outcome {
    Outcome::Reject { reason, refused: Refused::default(), at: Timestamp::UNIX_EPOCH }
}

fn key(name: &str) -> Key {
    Key::new("ns", name).unwrap()
}

/// A state of object `name`, life `a`.
fn state(name: &str, version: u64) -> Event {
    let change = Change::Applied { body: Bytes::from_static(b"0123456789") };
    let event = Event::watched(key(name), "a".into(), Version(version), change, Timestamp::UNIX_EPOCH);
    Event { trace: u128::from(version), ..event }
}

fn of(uid: &str, event: Event) -> Event {
    Event { uid: uid.into(), ..event }
}

fn deleted(name: &str, version: u64) -> Event {
    Event { change: Change::Deleted { body: Some(Bytes::from_static(b"{}")) }, ..state(name, version) }
}

/// The state with the end of operation `number`.
fn ending(number: u64, event: Event) -> Event {
    Event { fact: Some(end(number)), ..event }
}

fn end(number: u64) -> Fact {
    let text = format!("end {number}");
    Fact { id: Digest(number), body: text.into() }
}

/// What a fact says.
fn text_of(fact: &Fact) -> String {
    String::from_utf8(fact.body.to_vec()).unwrap()
}

/// A lane, its time, and what it asked for.
struct Bench {
    lane: Lane,
    now: Duration,
    starts: VecDeque<Start>,
    reads: VecDeque<(Key, Version)>,
    traces: Vec<Trace>,
}

impl Bench {
    fn new(config: Config) -> Self {
        let now = Duration::from_secs(10);
        Self {
            lane: Lane::new(config),
            now,
            starts: VecDeque::new(),
            reads: VecDeque::new(),
            traces: Vec::new(),
        }
    }

    fn step(&mut self, input: Input) {
        let mut out = Vec::new();
        self.lane.step(input, self.now, &mut out);
        for action in out {
            match action {
                Action::Start(start) => self.starts.push_back(start),
                Action::Read { key, not_older_than, .. } => self.reads.push_back((key, not_older_than)),
                Action::Tell(trace) => self.traces.push(trace),
            }
        }
        assert_eq!(self.lane.counts(self.now).balance(), 0, "{:?}", self.lane.counts(self.now));
    }

    fn take(&mut self, event: Event) {
        self.step(Input::Event(Arc::new(event)));
    }

    /// Ends the attempt of `name` and takes it off the list of starts.
    fn end(&mut self, name: &str, outcome: Outcome) {
        let at = self.starts.iter().position(|start| start.event.key.name() == name).expect("is running");
        let key = self.starts.remove(at).expect("was found").event.key.clone();
        self.step(Input::Attempted { key, outcome, seed: 0 });
    }

    /// Ends the read of `name`.
    fn read(&mut self, name: &str, result: ReadResult) {
        let at = self.reads.iter().position(|(key, _)| key.name() == name).expect("is being read");
        let (key, _) = self.reads.remove(at).expect("was found");
        self.step(Input::Read { key, result, seed: 0 });
    }

    fn found(&mut self, name: &str, event: Event) {
        self.read(name, ReadResult::Found(Arc::new(event)));
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.step(Input::Tick);
    }

    /// What is running, as `name@version`, in the order in which it began.
    fn running(&self) -> Vec<String> {
        self.starts.iter().map(|start| show(&start.event)).collect()
    }

    fn reading(&self) -> Vec<String> {
        self.reads.iter().map(|(key, version)| format!("{}>={}", key.name(), version.0)).collect()
    }

    /// What would be journaled of `name`: ends as `life@version end`, then lives that are over.
    fn pending(&self, name: &str) -> Option<(Vec<String>, Vec<String>)> {
        let pending = self.lane.pending(&key(name))?;
        let end =
            |(uid, version, end): &(Uid, Version, Fact)| format!("{uid}@{} {}", version.0, text_of(end));
        let over = |(uid, version): &(Uid, Version)| format!("{uid}@{}", version.0);
        Some((pending.facts.iter().map(end).collect(), pending.gone.iter().map(over).collect()))
    }

    fn restore(&mut self, name: &str, ends: &[(&str, u64, u64)], gone: &[(&str, u64)]) {
        self.restored(name, ends, gone, false);
    }

    /// The same, where the watch shows more of it first.
    fn restore_awaited(&mut self, name: &str, ends: &[(&str, u64, u64)]) {
        self.restored(name, ends, &[], true);
    }

    fn restored(&mut self, name: &str, ends: &[(&str, u64, u64)], gone: &[(&str, u64)], awaited: bool) {
        let pending = Pending {
            facts: ends
                .iter()
                .map(|(uid, version, number)| ((*uid).into(), Version(*version), end(*number)))
                .collect(),
            gone: gone.iter().map(|(uid, version)| ((*uid).into(), Version(*version))).collect(),
        };
        self.step(Input::Restore { key: key(name), pending, awaited });
    }

    fn counts(&self) -> LaneCounts {
        self.lane.counts(self.now)
    }

    /// The ends that the running attempt of `name` carries from coalesced events.
    fn carried(&self, name: &str) -> Vec<String> {
        let start = self.starts.iter().find(|start| start.event.key.name() == name).expect("is running");
        start.event.coalesced.iter().map(text_of).collect()
    }
}

fn show(event: &Event) -> String {
    let gone = if event.is_deleted() { "-" } else { "" };
    let uid = if &*event.uid == "a" { String::new() } else { format!("/{}", event.uid) };
    format!("{gone}{}{uid}@{}", event.key.name(), event.version.0)
}

fn gone() -> ReadResult {
    ReadResult::Gone { uid: None, observed: Timestamp::UNIX_EPOCH }
}

fn small() -> Config {
    Config { queue_events: 2, concurrency: 1, ..Config::default() }
}
