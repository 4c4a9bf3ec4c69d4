//! The lane: a pure state machine that orders, limits, retries, folds and parks the events of one shard.
//!
//! takes: what happened ([`Input`]) and what time it is - gives: what to do ([`Action`])
//! calls: nothing; no clock, no randomness, no I/O, so that a simulation drives the same code
//!
//! Per key strictly in order, one attempt at a time; across keys up to [`Config::concurrency`]. A key that must
//! be retried waits with its later events behind it, and the others go on. A full queue drops nothing: the
//! key becomes dirty and its object is read again on its turn. State may be folded into a newer state;
//! deletions and facts are kept in the key's dirty entry.
//!
//! Every event leaves by exactly one exit; see [`LaneCounts`].

mod attempt;
mod backlog;
mod dirty_entry;
#[cfg(test)]
mod gauges;
mod input;
mod key_state;
#[cfg(test)]
mod mutant;
mod parked;
mod pending;
mod read;
mod refetch_times;
mod take;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::time::Duration;

use pipeline_core::{Backoff, Event, Key, LaneCounts, Parked, Step, Trace, Version};
use seahash::SeaHasher;

pub(crate) use backlog::Backlog;
pub(crate) use dirty_entry::KEPT_FACTS;

pub use input::{Action, Blame, Input, Outcome, ReadResult, Standing, Start};

#[cfg(test)]
pub(crate) use mutant::Mutant;

use crate::limit::{KindLimits, Limiters, RateLimit};
use dirty_entry::DirtyEntry;
use key_state::{KeyState, State};
use refetch_times::Refetches;

/// Room for so many keys is kept, however few are busy.
const SPARE_KEYS: usize = 512;

/// Bounds of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Events that may be queued or waiting.
    pub queue_events: usize,
    /// Of these, events of one key: one busy object cannot take the place of all others.
    pub queue_events_per_key: usize,
    /// Bytes of all events held.
    pub queue_bytes: u64,
    /// Bytes of all facts kept for keys that are to be read again.
    pub summary_bytes: u64,
    /// Attempts and reads that may run at a time.
    pub concurrency: u64,
    /// Of these, reads.
    pub reads: u64,
    /// Between tries.
    pub backoff: Backoff,
    /// Keys remembered as refused for good.
    pub parked: usize,
    /// Per object.
    pub rate_limit: Option<RateLimit>,
    /// Per object of some kinds, in place of it.
    pub kind_limits: KindLimits,
    /// Between two tries to fetch what is missing of an object.
    pub refetch: Backoff,
    /// What one call of such a try, made in vain, takes of the time of all: so much later the next one begins.
    pub refetch_every: Duration,
}

#[cfg(test)]
impl Default for Config {
    fn default() -> Self {
        Self {
            queue_events: 1000,
            queue_events_per_key: 1000,
            queue_bytes: 32 << 20,
            summary_bytes: 16 << 20,
            concurrency: 16,
            reads: 16,
            backoff: Backoff { min: Duration::from_secs(1), max: Duration::from_secs(300) },
            parked: 10_000,
            rate_limit: None,
            kind_limits: &[],
            refetch: Backoff { min: Duration::from_secs(60), max: Duration::from_secs(3600) },
            refetch_every: Duration::from_secs(1),
        }
    }
}

/// One shard's state machine.
#[derive(Debug)]
pub struct Lane {
    config: Config,
    /// Hashed without a seed, so that the same inputs always give the same actions. What is held of a key stands apart:
    /// a table has room for more keys than it holds, and for half of them once more while it grows.
    keys: HashMap<Key, Box<KeyState>, BuildHasherDefault<SeaHasher>>,
    /// Keys in line for an attempt, with the ticket that orders them against `reads`.
    attempts: VecDeque<(u64, Key)>,
    /// Keys in line for a read.
    reads: VecDeque<(u64, Key)>,
    ticket: u64,
    timers: BTreeSet<(Duration, Key)>,
    parked: BTreeMap<Key, Parked>,
    limiters: Limiters,
    refetches: Refetches,
    counts: LaneCounts,
    stopped: bool,
    #[cfg(test)]
    mutant: Option<Mutant>,
}

impl Lane {
    /// An empty lane.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            keys: HashMap::default(),
            attempts: VecDeque::new(),
            reads: VecDeque::new(),
            ticket: 0,
            timers: BTreeSet::new(),
            parked: BTreeMap::new(),
            limiters: Limiters::new(config.rate_limit, config.kind_limits),
            refetches: Refetches::default(),
            counts: LaneCounts::default(),
            stopped: false,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// Takes one input at `now` (time since the engine started, never going back) and appends what is to
    /// be done to `out`.
    pub fn step(&mut self, input: Input, now: Duration, out: &mut Vec<Action>) {
        let (named, dropped) = (input.key().cloned(), self.counts.summaries_dropped);
        self.wake(now);
        let delivered = matches!(
            input,
            Input::Event(_) | Input::Redelivered(_) | Input::InDoubt(_) | Input::PassedOver(_)
        );
        self.counts.delivered += u64::from(delivered);
        match input {
            Input::Event(event) => self.take(event, false, now, out),
            Input::Redelivered(event) => self.take(event, true, now, out),
            Input::InDoubt(event) => self.take_in_doubt(event, now, out),
            Input::PassedOver(event) => self.pass_over(&event, out),
            Input::Attempted { key, outcome, seed } => self.attempted(&key, outcome, seed, now, out),
            Input::Read { key, result, seed } => self.read(&key, result, seed, now, out),
            Input::Replay { key, uid } => self.replay(&key, uid, now),
            Input::Restore { key, pending, awaited } => self.restore(&key, pending, awaited, now),
            Input::Refetched { calls, lacking } => {
                self.refetches.took(calls, lacking, self.config.refetch_every);
            }
            Input::Park { key, parked } => self.remember(key, parked),
            Input::Discard { key } => {
                self.parked.remove(&key);
            }
            Input::Pause => self.counts.paused = true,
            Input::Resume => self.resume(now),
            Input::Probe => self.probe(now, out),
            Input::Stop => self.stopped = true,
            Input::Tick => {}
        }
        let gave_up = self.counts.summaries_dropped - dropped;
        if let Some(key) = named.filter(|_| gave_up > 0) {
            let step = Step::GaveUp(gave_up);
            out.push(Action::Tell(Trace { key, version: Version(0), trace: 0, step }));
        }
        self.refetch(now);
        while !self.stopped && !self.counts.paused && self.has_place() {
            let Some(key) = self.pick() else { break };
            self.begin(&key, false, now, out);
        }
    }

    /// When the lane wants an [`Input::Tick`], if nothing else happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at).into_iter().chain(self.refetches.next()).min()
    }

    /// The counters and gauges at `now`, from one moment.
    #[must_use]
    pub fn counts(&self, now: Duration) -> LaneCounts {
        let since = self.keys.values().filter_map(|slot| slot.since()).min();
        let held = self.keys.values().map(|slot| slot.oldest_version());
        LaneCounts {
            oldest_version: held.fold(Version(0), Version::older),
            oldest: since.map_or(Duration::ZERO, |since| now.saturating_sub(since)),
            ready: (self.attempts.len() + self.reads.len()) as u64,
            parked_keys: self.parked.len() as u64,
            ..self.counts
        }
    }

    /// What there is to do, from one moment.
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog::from(&self.counts)
    }

    /// Whether there is anything that [`Input::Probe`] could start.
    #[must_use]
    pub fn has_probe(&self) -> bool {
        !self.stopped
            && (!self.attempts.is_empty() || !self.reads.is_empty() || self.waiting_for_sink().is_some())
    }

    fn has_place(&self) -> bool {
        self.counts.in_flight + self.counts.reading < self.config.concurrency
    }

    fn may_read(&self) -> bool {
        self.counts.reading < self.config.reads
            && (self.counts.bytes < self.config.queue_bytes || self.counts.in_flight == 0)
    }

    /// The key that has been in line longest, reads and attempts taken together.
    fn pick(&mut self) -> Option<Key> {
        let attempt = self.attempts.front().map(|(ticket, _)| *ticket);
        let read = self.reads.front().map(|(ticket, _)| *ticket).filter(|_| self.may_read());
        let line = match (attempt, read) {
            (Some(attempt), Some(read)) if read < attempt => &mut self.reads,
            (None, Some(_)) => &mut self.reads,
            _ => &mut self.attempts,
        };
        line.pop_front().map(|(_, key)| key)
    }

    fn wake(&mut self, now: Duration) {
        while let Some((at, key)) = self.timers.pop_first() {
            if at > now {
                self.timers.insert((at, key));
                return;
            }
            if let Some(slot) = self.keys.get_mut(&key) {
                slot.timer = None;
            }
            self.schedule(&key, now);
        }
    }

    /// Puts a key that is not busy where it belongs: in line, asleep until its time, or away.
    fn schedule(&mut self, key: &Key, now: Duration) {
        let Some(slot) = self.keys.get_mut(key) else { return };
        if !matches!(slot.state, State::Idle | State::Waiting) {
            return;
        }
        if let Some(at) = slot.timer.take() {
            self.timers.remove(&(at, key.clone()));
        }
        if slot.limited.is_some_and(|until| until <= now) {
            slot.limited = None;
        }
        if slot.queue.is_empty() && slot.dirty.is_none() {
            slot.retry = None;
            if slot.refetch.take_paced(now) {
                slot.look(DirtyEntry::look(now), &mut self.counts);
            } else if slot.refetch.lines_up(now) {
                self.refetches.join(key.clone());
            }
        }
        let has_work = !slot.queue.is_empty() || slot.dirty.is_some();
        let due = slot.due();
        let (state, timer) = match (has_work, slot.refetch.timer()) {
            (true, _) if due > now => (State::Waiting, Some(due)),
            (true, _) if slot.queue.is_empty() => (State::Read, None),
            (true, _) => (State::Attempt, None),
            (false, refetch) => (State::Idle, refetch.into_iter().chain(slot.forget(now)).min()),
        };
        slot.state = state;
        let waits = state == State::Waiting && !slot.queue.is_empty();
        if waits && !slot.head_waits {
            self.counts.queued -= 1;
            self.counts.waiting += 1;
        } else if !waits && slot.head_waits {
            self.counts.waiting -= 1;
            self.counts.queued += 1;
        }
        slot.head_waits = waits;
        slot.timer = timer;
        if let Some(at) = timer {
            self.timers.insert((at, key.clone()));
        }
        match state {
            State::Attempt => self.attempts.push_back((self.ticket, key.clone())),
            State::Read => self.reads.push_back((self.ticket, key.clone())),
            State::Idle if timer.is_none() && !slot.is_ahead() && !slot.refetch.is_some() => {
                self.keys.remove(key);
                if self.keys.len() * 8 < self.keys.capacity() && self.keys.capacity() > SPARE_KEYS {
                    // After a burst of all objects few are busy.
                    self.keys.shrink_to(SPARE_KEYS);
                    self.attempts.shrink_to(SPARE_KEYS);
                    self.reads.shrink_to(SPARE_KEYS);
                }
            }
            _ => {}
        }
        self.ticket += 1;
    }

    fn resume(&mut self, now: Duration) {
        self.counts.paused = false;
        let waiting = self
            .timers
            .iter()
            .filter(|(_, key)| self.keys.get(key).is_some_and(|slot| slot.waits_for_sink()));
        let keys: Vec<Key> = waiting.map(|(_, key)| key.clone()).collect();
        for key in keys {
            self.hasten(&key, now);
        }
    }

    /// Makes a retry due now.
    fn hasten(&mut self, key: &Key, now: Duration) {
        if let Some(retry) = self.keys.get_mut(key).and_then(|slot| slot.retry.as_mut()) {
            retry.due = retry.due.min(now);
        }
        self.schedule(key, now);
    }

    fn waiting_for_sink(&self) -> Option<&Key> {
        let mut waiting = self.timers.iter().map(|(_, key)| key);
        waiting.find(|key| self.keys.get(key).is_some_and(|slot| slot.waits_for_sink()))
    }

    fn probe(&mut self, now: Duration, out: &mut Vec<Action>) {
        while !self.stopped {
            if self.attempts.is_empty()
                && self.reads.is_empty()
                && let Some(key) = self.waiting_for_sink().cloned()
            {
                self.hasten(&key, now);
            }
            // A probe may read although other reads are under way: it is one.
            let line = if self.attempts.is_empty() { &mut self.reads } else { &mut self.attempts };
            let Some((_, key)) = line.pop_front() else { return };
            if self.begin(&key, true, now, out) {
                return;
            }
        }
    }

    /// Whether a key is to be read again, or is being read.
    pub(crate) fn is_dirty(&self, key: &Key) -> bool {
        self.keys.get(key).is_some_and(|slot| slot.is_dirty())
    }

    /// What is held of a key at `now`; `None` when there is nothing to do for it.
    #[must_use]
    pub fn standing(&self, key: &Key, now: Duration) -> Option<Standing> {
        self.keys.get(key)?.standing(now)
    }

    /// Keys of which something waits or is under way.
    #[must_use]
    pub fn held(&self, now: Duration) -> Vec<Key> {
        let held = self.keys.iter().filter(|(_, slot)| slot.standing(now).is_some());
        held.map(|(key, _)| key.clone()).collect()
    }
}

fn tell(event: &Event, step: Step) -> Action {
    Action::Tell(Trace { key: event.key.clone(), version: event.version, trace: event.trace, step })
}
