//! The truth: objects that change, end operations, go, and come back under the same name.

use bytes::Bytes;
use fastrand::Rng;
use pipeline_core::Digest;
use pipeline_core::{Cause, Change, Event, Fact, Key, Timestamp, Uid, Version};

/// Resources that an object may have.
pub(super) const RESOURCES: usize = 3;
/// States of one life that it may return to exactly.
const REMEMBERED: usize = 4;

/// An operation; it has ended, or runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Operation {
    pub(super) number: u32,
    pub(super) ended: bool,
}

/// One state of an object. Values are few, so that a state often equals an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    /// What is wanted, and with it the revision.
    pub(super) spec: u8,
    pub(super) healthy: bool,
    /// Counts for the decision, and is not reported.
    pub(super) label: u8,
    /// Counts for nothing.
    pub(super) noise: u8,
    pub(super) operation: Option<Operation>,
    pub(super) resources: [Option<u8>; RESOURCES],
}

impl State {
    pub(super) fn encode(&self) -> Bytes {
        let operation = self.operation.unwrap_or(Operation { number: 0, ended: false });
        let mut body = vec![self.spec, u8::from(self.healthy), self.label, self.noise];
        body.push(u8::from(self.operation.is_some()) + u8::from(operation.ended));
        body.extend(operation.number.to_be_bytes());
        body.extend(self.resources.map(|value| value.map_or(0, |value| value + 1)));
        body.into()
    }

    pub(super) fn decode(body: &[u8]) -> Self {
        let number = u32::from_be_bytes(body[5..9].try_into().unwrap());
        Self {
            spec: body[0],
            healthy: body[1] == 1,
            label: body[2],
            noise: body[3],
            operation: (body[4] > 0).then_some(Operation { number, ended: body[4] == 2 }),
            resources: std::array::from_fn(|at| body[9 + at].checked_sub(1)),
        }
    }
}

/// The end of an operation, as an event carries it.
pub(super) fn end(operation: Operation) -> Fact {
    let number = operation.number.to_be_bytes();
    Fact { id: Digest::of(&number), body: Bytes::copy_from_slice(&number) }
}

/// Which operation an end is of.
pub(super) fn operation_of(end: &Fact) -> Operation {
    Operation { number: u32::from_be_bytes(end.body[..].try_into().unwrap()), ended: true }
}

/// One change of one object.
#[derive(Debug, Clone)]
pub(super) struct Moved {
    pub(super) version: u64,
    pub(super) app: usize,
    pub(super) uid: Uid,
    pub(super) state: State,
    pub(super) deleted: bool,
}

struct App {
    key: Key,
    lives: u32,
    /// The latest change is the last one of these in the log.
    changes: Vec<usize>,
    earlier: Vec<State>,
}

/// The cluster.
pub(super) struct World {
    apps: Vec<App>,
    log: Vec<Moved>,
    operations: u32,
    /// Objects list no resources.
    bare: bool,
}

impl World {
    pub(super) fn new(apps: usize, bare: bool) -> Self {
        let app = |number| App {
            key: Key::new("ns", &format!("app{number}")).unwrap(),
            lives: 0,
            changes: Vec::new(),
            earlier: Vec::new(),
        };
        Self { apps: (0..apps).map(app).collect(), log: Vec::new(), operations: 0, bare }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.apps.iter().map(|app| &app.key)
    }

    pub(super) fn app(&self, key: &Key) -> usize {
        self.apps.iter().position(|app| app.key == *key).unwrap()
    }

    pub(super) fn key(&self, app: usize) -> &Key {
        &self.apps[app].key
    }

    /// The newest version; the n-th change has version n.
    pub(super) fn version(&self) -> u64 {
        self.log.len() as u64
    }

    /// The change that made `version`.
    pub(super) fn moved(&self, version: u64) -> &Moved {
        &self.log[version as usize - 1]
    }

    /// What was there of an object at `version`.
    pub(super) fn at(&self, app: usize, version: u64) -> Option<&Moved> {
        let changes = &self.apps[app].changes;
        let last = changes.partition_point(|at| (*at as u64) < version).checked_sub(1)?;
        Some(&self.log[changes[last]]).filter(|moved| !moved.deleted)
    }

    /// What is there now.
    pub(super) fn now(&self, app: usize) -> Option<&Moved> {
        self.at(app, self.version())
    }

    /// Lives that an object had begun by `version`.
    pub(super) fn lives(&self, app: usize, version: u64) -> u32 {
        let changes = self.apps[app].changes.iter().map(|at| &self.log[*at]);
        changes.rev().find(|moved| moved.version <= version).map_or(0, |moved| Self::life(&moved.uid))
    }

    /// Whether a later life of its object has begun.
    pub(super) fn is_followed(&self, uid: &str) -> bool {
        let app = uid.rsplit_once('-').map_or(0, |(app, _)| app.parse().unwrap());
        Self::life(uid) < self.lives(app, self.version())
    }

    /// Which life of its object `uid` is, from 1.
    pub(super) fn life(uid: &str) -> u32 {
        uid.rsplit_once('-').map_or(0, |(_, life)| life.parse().unwrap())
    }

    /// Whether both are lives of one object.
    pub(super) fn is_of(uid: &str, other: &str) -> bool {
        uid.rsplit_once('-').map(|(app, _)| app) == other.rsplit_once('-').map(|(app, _)| app)
    }

    /// Changes something.
    pub(super) fn change(&mut self, rng: &mut Rng) -> &Moved {
        let app = rng.usize(..self.apps.len());
        let (uid, state, deleted) = match self.now(app).cloned() {
            None => {
                self.apps[app].lives += 1;
                self.apps[app].earlier.clear();
                let uid = format!("{app}-{}", self.apps[app].lives);
                (Uid::from(uid), self.first(rng), false)
            }
            Some(now) if rng.u8(..100) < 6 => (now.uid, now.state, true),
            Some(now) => (now.uid, self.next(app, now.state, rng), false),
        };
        let state = if self.bare { State { resources: [None; RESOURCES], ..state } } else { state };
        let earlier = &mut self.apps[app].earlier;
        earlier.push(state);
        if earlier.len() > REMEMBERED {
            earlier.remove(0);
        }
        self.apps[app].changes.push(self.log.len());
        self.log.push(Moved { version: self.log.len() as u64 + 1, app, uid, state, deleted });
        self.log.last().unwrap()
    }

    fn first(&mut self, rng: &mut Rng) -> State {
        State {
            spec: rng.u8(..3),
            healthy: rng.bool(),
            label: 0,
            noise: 0,
            operation: None,
            resources: std::array::from_fn(|_| rng.bool().then(|| rng.u8(..2))),
        }
    }

    fn next(&mut self, app: usize, mut state: State, rng: &mut Rng) -> State {
        match rng.u8(..100) {
            0..15 => state.spec = rng.u8(..3),
            15..25 => state.healthy = !state.healthy,
            25..30 => state.label = rng.u8(..2),
            30..35 => state.noise = state.noise.wrapping_add(1),
            35..60 => match &mut state.operation {
                Some(running) if !running.ended => running.ended = true,
                _ => {
                    self.operations += 1;
                    // Some are over before anybody sees them run.
                    let ended = rng.bool();
                    state.operation = Some(Operation { number: self.operations, ended });
                }
            },
            60..80 => {
                let value = &mut state.resources[rng.usize(..RESOURCES)];
                *value = if value.is_some() && rng.u8(..4) == 0 { None } else { Some(rng.u8(..2)) };
            }
            // Exactly as it was before, but for the operation, of which no two are the same.
            _ => {
                if let Some(earlier) = rng.choice(&self.apps[app].earlier) {
                    state = State { operation: state.operation, ..*earlier };
                }
            }
        }
        state
    }

    /// The event that tells of a change.
    pub(super) fn event(&self, moved: &Moved, cause: Cause, observed: Timestamp) -> Event {
        let body = moved.state.encode();
        let ended = moved.state.operation.filter(|operation| operation.ended);
        let (key, uid) = (self.apps[moved.app].key.clone(), moved.uid.clone());
        let change =
            if moved.deleted { Change::Deleted { body: Some(body) } } else { Change::Applied { body } };
        let event = Event::watched(key, uid, Version(moved.version), change, observed);
        Event { cause, fact: ended.map(end), trace: u128::from(moved.version), ..event }
    }
}
