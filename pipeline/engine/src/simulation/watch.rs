//! The watch: lists in pages, then delivers every change in order; it may break, repeat itself, list anew, or be
//! blind for a while. It follows the rules of the real one: what a relist shows unchanged is not delivered again, and
//! what was known and is missing in a complete list is gone.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use fastrand::Rng;
use pipeline_core::{Cause, Change, Event, Key, ObjectIndex, Timestamp, Uid, Version};

use super::world::{Moved, World};
use pipeline_ledger::Ledger;

/// Where it stands.
enum Phase {
    /// A list has to come first.
    Away,
    /// A list as of `version` is being read: these objects are still to come. `known` was there before, and these are the
    /// `newest` states that are left to the watch.
    Listing { version: u64, left: VecDeque<usize>, known: BTreeMap<Key, Uid>, newest: BTreeMap<Key, u64> },
    /// What was not in the complete list of `version` is being told.
    Vanished { version: u64, left: Vec<(Key, Uid)> },
    /// Every change up to `version` was delivered.
    Following { version: u64 },
}

/// What a first list left to the watch.
struct Resumed {
    until: u64,
    newest: BTreeMap<Key, u64>,
    lacking: BTreeMap<Key, Uid>,
}

/// One process's watch.
pub(super) struct Watch {
    phase: Phase,
    /// Where a former process ended, while it can be gone on from there.
    from: Option<u64>,
    resumed: Option<Resumed>,
    /// All up to this version was delivered.
    reached: u64,
    /// What was there when it was last heard of.
    seen: ObjectIndex,
    listed: bool,
    /// The newest version that it was given.
    served: u64,
    /// When it last knew everything, or began a list.
    at: Duration,
}

/// An API server keeps the changes of so many minutes: whoever asks for older ones must list.
const KEPT: Duration = Duration::from_secs(300);

impl Watch {
    pub(super) fn new(from: Option<Version>) -> Self {
        Self {
            phase: Phase::Away,
            from: from.map(|version| version.0),
            resumed: None,
            reached: 0,
            seen: ObjectIndex::default(),
            listed: false,
            served: 0,
            at: Duration::ZERO,
        }
    }

    /// Whether everything that is so has been delivered.
    pub(super) fn is_done(&self, world: &World) -> bool {
        matches!(self.phase, Phase::Following { version } if version == world.version())
    }

    /// The connection ends: a watch goes on where it was, or must begin with a list; a list begins anew.
    pub(super) fn breaks(&mut self, rng: &mut Rng) {
        // What vanished is told from memory: that cannot break.
        match self.phase {
            Phase::Following { .. } if rng.bool() => self.phase = Phase::Away,
            Phase::Listing { .. } => self.phase = Phase::Away,
            _ => {}
        }
    }

    /// What it was given: the cache that serves it serves reads too, and never goes back.
    pub(super) fn version(&self) -> u64 {
        self.served
    }

    /// All up to this version was delivered.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    /// Time has passed. A watch that could not go on for too long must begin with a list.
    pub(super) fn goes_on(&mut self, world: &World, now: Duration) {
        if self.is_done(world) {
            self.at = now;
        } else if now.saturating_sub(self.at) > KEPT && !matches!(self.phase, Phase::Vanished { .. }) {
            // What vanished is told from memory, whatever is kept.
            self.phase = Phase::Away;
        }
        if matches!(self.phase, Phase::Away) {
            self.at = now;
        }
    }

    /// A read has shown a life.
    pub(super) fn read(&mut self, key: &Key, uid: &Uid, version: u64) {
        self.seen.read(key, uid, Version(version));
    }

    /// The newest state of an object that is still there is delivered once more.
    pub(super) fn repeats(&self, world: &World, now: Duration, rng: &mut Rng) -> Option<Event> {
        let follows = matches!(self.phase, Phase::Following { .. }) && self.resumed.is_none();
        if now.saturating_sub(self.at) > KEPT || !follows {
            return None;
        }
        let seen = world.keys().filter_map(|key| self.seen.get(key));
        let versions: Vec<_> =
            seen.map(|(_, Version(version))| version).filter(|version| *version > 0).collect();
        let version = *rng.choice(&versions)?;
        Some(world.event(world.moved(version), Cause::Watch, Timestamp::UNIX_EPOCH))
    }

    /// Goes on by one object; gives the event that comes of it, if one does. `ledger` knows what was reported.
    pub(super) fn step(&mut self, world: &World, ledger: &Ledger, now: Timestamp) -> Option<Event> {
        match &mut self.phase {
            Phase::Away => {
                self.begin_list(world, ledger);
                None
            }
            Phase::Listing { version, left, known, newest } => {
                let (version, from) = (*version, self.from.filter(|_| !self.listed));
                let Some(app) = left.pop_front() else {
                    let (mut known, newest) = (std::mem::take(known), std::mem::take(newest));
                    known.retain(|key, _| world.at(world.app(key), version).is_none());
                    if let Some(from) = from {
                        self.listed = true;
                        self.resumed = Some(Resumed { until: version, newest, lacking: known });
                        self.phase = Phase::Following { version: from };
                        self.caught_up(from);
                    } else {
                        self.phase = Phase::Vanished { version, left: known.into_iter().collect() };
                    }
                    return None;
                };
                let moved = world.at(app, version)?;
                let (key, version) = (world.key(app), Version(moved.version));
                if from.is_some_and(|from| moved.version > from) {
                    newest.insert(key.clone(), moved.version);
                    return None;
                }
                let known = self.seen.get(key).is_some_and(|(uid, at)| uid == moved.uid && at == version);
                self.seen.note(key, &moved.uid, version);
                let repeated = self.listed && known;
                (!repeated).then(|| world.event(moved, Cause::Watch, now))
            }
            Phase::Vanished { version, left } => {
                let version = *version;
                let Some((key, uid)) = left.pop() else {
                    self.listed = true;
                    self.reached = self.reached.max(version);
                    self.phase = Phase::Following { version };
                    return None;
                };
                self.seen.ended(&key, &uid);
                Some(vanished(key, uid, version, now))
            }
            Phase::Following { version } => {
                if *version == world.version() {
                    return None;
                }
                *version += 1;
                let version = *version;
                self.served = self.served.max(version);
                self.reached = self.reached.max(version);
                let moved = world.moved(version);
                let key = world.key(moved.app);
                self.seen.shown(key, &moved.uid, Version(moved.version), moved.deleted);
                let again = self.resumed.as_mut().is_some_and(|resumed| resumed.takes(key, moved));
                self.caught_up(version);
                Some(Event { again, ..world.event(moved, Cause::Watch, now) })
            }
        }
    }

    fn begin_list(&mut self, world: &World, ledger: &Ledger) {
        if self.resumed.take().is_some() {
            // What was left to the watch is handed over now.
            (self.from, self.listed) = (None, false);
        }
        let mut known: BTreeMap<Key, Uid> = BTreeMap::new();
        if !self.listed {
            // What was journaled may be reported, and go, before it is in the ledger.
            let journaled = ledger.journaled().into_iter();
            known.extend(journaled.filter_map(|(key, pending)| Some((key, pending.latest()?.clone()))));
            known.extend(ledger.known());
        }
        let seen = self.seen.keys().into_iter();
        known.extend(seen.filter_map(|key| self.seen.get(&key).map(|(uid, _)| (key, uid))));
        let left = (0..world.keys().count()).filter(|app| world.now(*app).is_some()).collect();
        self.served = world.version();
        self.phase = Phase::Listing { version: world.version(), left, known, newest: BTreeMap::new() };
    }

    /// The watch has come to this version: what the list lacked, and it has not shown to be gone, another list finds.
    fn caught_up(&mut self, version: u64) {
        let over = self.resumed.take_if(|resumed| version >= resumed.until);
        if over.is_some_and(|resumed| !resumed.lacking.is_empty()) {
            (self.from, self.listed) = (None, false);
            self.phase = Phase::Away;
        }
    }
}

impl Resumed {
    /// The watch shows a change; whether it shows what followed it as well.
    fn takes(&mut self, key: &Key, moved: &Moved) -> bool {
        if moved.deleted && self.lacking.get(key) == Some(&moved.uid) {
            self.lacking.remove(key);
        }
        let newest = self.newest.get(key).is_some_and(|version| moved.version >= *version);
        moved.version <= self.until && (moved.deleted || !newest)
    }
}

/// An object is gone, of which nothing but its identity is known.
fn vanished(key: Key, uid: Uid, version: u64, observed: Timestamp) -> Event {
    Event::watched(key, uid, Version(version), Change::Deleted { body: None }, observed)
}
