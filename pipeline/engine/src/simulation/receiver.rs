//! The receiver: takes reports, remembers every one, and fails in every way that a platform may.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use pipeline_core::{Digest, EntityId, Key, Reason, Report, Shipment, Uid};

use super::enrich::told;
use crate::circuit::SinkResponse;

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Well,
    Away,
    /// It does not know our token.
    Unauthorized,
}

/// A report that it took.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) report: Report,
    /// How many reports of the entity were acknowledged when it was sent.
    pub(super) counter: u64,
    /// In which attempt it was sent.
    pub(super) attempt: u64,
    /// The report of the same entity that it had taken before.
    pub(super) before: Option<usize>,
    /// Its acknowledgement is in the ledger.
    pub(super) acked: bool,
    /// Its acknowledgement outlives the machine.
    pub(super) durable: bool,
    /// A power loss took away that it was sent.
    pub(super) lost: bool,
}

/// What the receiver made of a report.
pub(super) enum Came {
    /// It did not take it.
    Not,
    /// It took it, as the n-th.
    First(usize),
    /// It had taken it before, as the n-th.
    Repeated(usize),
}

/// The other side.
pub(super) struct Receiver {
    pub(super) mood: Mood,
    /// Of a hundred reports, so many fail in some way.
    pub(super) failing: u8,
    /// One in so many contents is refused for good.
    pub(super) poison: Option<u64>,
    /// Everything that was taken for the first time.
    pub(super) taken: Vec<Taken>,
    pub(super) repeated: u64,
    by_key: HashMap<Arc<str>, usize>,
    /// The last report of each entity.
    pub(super) last: BTreeMap<(Uid, EntityId), usize>,
    /// Ends of operations that were told again, in other words: life, how often it was acknowledged, content.
    pub(super) retold: BTreeSet<(Uid, u64, Digest)>,
    /// Objects of which a report was refused for good.
    pub(super) refused: BTreeSet<Key>,
    /// Ends of operations that were refused for good.
    pub(super) refused_ops: BTreeSet<(Uid, u32)>,
    /// Lives whose end was refused for good.
    pub(super) refused_ends: BTreeSet<Uid>,
}

impl Receiver {
    pub(super) fn new(failing: u8, poison: Option<u64>) -> Self {
        Self {
            mood: Mood::Well,
            failing,
            poison,
            taken: Vec::new(),
            repeated: 0,
            by_key: HashMap::new(),
            last: BTreeMap::new(),
            retold: BTreeSet::new(),
            refused: BTreeSet::new(),
            refused_ops: BTreeSet::new(),
            refused_ends: BTreeSet::new(),
        }
    }

    /// A request arrives.
    pub(super) fn handle(
        &mut self,
        shipment: &Shipment,
        counter: u64,
        attempt: u64,
        rng: &mut Rng,
    ) -> (Came, SinkResponse) {
        match self.mood {
            Mood::Well => {}
            Mood::Away => {
                let after = (rng.u8(..10) == 0).then(|| Duration::from_secs(rng.u64(1..120)));
                return (Came::Not, SinkResponse::Failed { reason: Reason::Unreachable, after });
            }
            Mood::Unauthorized => return (Came::Not, SinkResponse::Refused { reason: Reason::Unauthorized }),
        }
        let fails = rng.u8(..100) < self.failing;
        if fails && rng.bool() {
            return (Came::Not, SinkResponse::Failed { reason: Reason::ServerError, after: None });
        }
        if self.is_poison(shipment.report.content) {
            self.refused.insert(shipment.report.key.clone());
            if let Some(operation) = told(&shipment.report) {
                self.refused_ops.insert((shipment.report.uid.clone(), operation.number));
            }
            if shipment.report.ends {
                self.refused_ends.insert(shipment.report.uid.clone());
            }
            return (Came::Not, SinkResponse::Refused { reason: Reason::Refused });
        }
        let came = self.take(shipment, counter, attempt);
        let lost = SinkResponse::Failed { reason: Reason::Timeout, after: None };
        (came, if fails { lost } else { SinkResponse::Accepted })
    }

    pub(super) fn is_poison(&self, Digest(content): Digest) -> bool {
        self.poison.is_some_and(|one_in| content.is_multiple_of(one_in))
    }

    /// Takes a report, whatever becomes of the answer. One whose key it knows changes nothing.
    pub(super) fn take(&mut self, shipment: &Shipment, counter: u64, attempt: u64) -> Came {
        let key = &shipment.idempotency_key;
        if let Some(at) = self.by_key.get(key) {
            self.repeated += 1;
            if shipment.report.fact.is_some() {
                let Report { uid, content, .. } = &shipment.report;
                self.retold.insert((uid.clone(), counter, *content));
            }
            return Came::Repeated(*at);
        }
        let at = self.taken.len();
        let report = shipment.report.clone();
        let before = self.last.insert((report.uid.clone(), report.entity), at);
        self.by_key.insert(key.clone(), at);
        let (acked, durable, lost) = (false, false, false);
        self.taken.push(Taken { report, counter, attempt, before, acked, durable, lost });
        Came::First(at)
    }

    /// The last report of an entity.
    pub(super) fn last(&self, uid: &Uid, entity: EntityId) -> Option<&Taken> {
        self.last.get(&(uid.clone(), entity)).map(|at| &self.taken[*at])
    }

    /// The report that a key stands for.
    pub(super) fn of_key(&mut self, key: &str) -> Option<&mut Taken> {
        self.by_key.get(key).map(|at| &mut self.taken[*at])
    }

    /// Reports of one life, in the order in which they were taken.
    pub(super) fn of_life<'a>(&'a self, uid: &'a Uid) -> impl DoubleEndedIterator<Item = &'a Taken> {
        self.taken.iter().filter(move |taken| taken.report.uid == *uid)
    }
}
