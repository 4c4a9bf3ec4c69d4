//! A report that is on its way: what is written down before it goes, and what a record makes of it after a kill.

use serde::{Deserialize, Serialize};

use crate::{Digest, Entity, EntityId, Report, Uid, Version};

use super::{Record, ResourceRow, Sections, Stub, Unacked};

/// So many ends are remembered of one application, the latest, should no commit succeed for long.
const TOLD: usize = 256;

/// What was acknowledged of one entity at the moment when a report of it went out. It stands for itself: from the
/// record of an earlier moment and this alone, the record of this moment can be made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendIntent {
    /// Which incarnation.
    pub uid: Uid,
    /// What is remembered of the application; of a first report, the state that it shows.
    pub version: Version,
    /// What the report is about.
    pub entity: Entity,
    /// It reports a deletion.
    pub ends: bool,
    /// Nothing was remembered of this incarnation before.
    pub first: bool,
    /// The entity's counter, of which the report's idempotency key is made.
    pub counter: u64,
    /// What went out without an acknowledgement, the report itself included.
    pub unacked: Unacked,
    /// Of the entity's last acknowledged report.
    pub content: Digest,
    /// Of the entity's last acknowledged report; of resources alone.
    pub decision: Digest,
    /// Whether the entity's last acknowledged report lacked a fact.
    pub owed: bool,
    /// Of the operation that the last acknowledged report showed; of applications alone.
    pub fact: Digest,
    /// Ends of operations of which earlier notes say that they were told, the latest last: since the ledger's last
    /// commit, in which they go.
    pub reported_ends: Vec<Digest>,
    /// Of a first report.
    pub stub: Option<Stub>,
}

impl SendIntent {
    /// What is to be written down, with `before` remembered, before `report` goes out; `None` when nothing is
    /// remembered of the report's life, or to be remembered.
    #[must_use]
    pub fn new(before: Option<&Record>, report: &Report, stub: Option<&Stub>) -> Option<Self> {
        let same = before.filter(|record| record.uid == report.uid);
        let first = same.is_none();
        if first && (report.ends || before.is_some_and(|record| record.version > report.version)) {
            return None;
        }
        let floor = same.map_or_else(|| Record::first(report.version), |record| record.floor);
        let row = match report.entity {
            Entity::Application => ResourceRow::above(EntityId::default(), floor),
            Entity::Resource(id) => {
                let known = same.and_then(|record| record.resource(id)).copied();
                known.unwrap_or_else(|| ResourceRow::above(id, floor))
            }
        };
        let (counter, content, decision, owed, before) = match (report.entity, same) {
            (Entity::Application, Some(record)) => {
                (record.counter, record.content, Digest::NONE, record.owed, record.unacked)
            }
            _ => (row.counter, row.content, row.decision, row.owed, row.unacked),
        };
        let (unacked, moves) = before.then(report.content);
        Some(Self {
            uid: report.uid.clone(),
            version: same.map_or(report.version, |record| record.version),
            entity: report.entity,
            ends: report.ends,
            first,
            counter: counter.saturating_add(moves),
            unacked,
            content,
            decision,
            owed,
            fact: same.map_or(Digest::NONE, |record| record.fact),
            reported_ends: Vec::new(),
            stub: stub.filter(|_| first).cloned(),
        })
    }

    /// Takes over what only an earlier note about the same entity knows.
    pub fn follows(&mut self, earlier: Self) {
        if earlier.uid != self.uid {
            return;
        }
        let own = std::mem::take(&mut self.reported_ends);
        let mut told: Vec<Digest> =
            earlier.reported_ends().filter(|end| *end != self.fact).chain(own).collect();
        told.drain(..told.len().saturating_sub(TOLD));
        self.reported_ends = told;
        if earlier.first {
            self.first = true;
            self.stub = earlier.stub;
        }
    }

    /// What of the incarnation's operations was told when the report went out.
    pub fn reported_ends(&self) -> impl Iterator<Item = Digest> {
        self.reported_ends.iter().copied().chain([self.fact]).filter(|fact| !fact.is_none())
    }
}

impl Record {
    /// Notes that a report is about to be sent: until it is acknowledged, what the receiver holds of its entity is
    /// not known. `stub` serves a first report, of which nothing else is remembered yet. Moves no digest; moves the
    /// entity's counter when another content than this went out last and was not answered.
    ///
    /// A report of a later incarnation takes the place of the former incarnation's record, of which nothing more is sent by then;
    /// else the later incarnation could not be reported as deleted, were the process killed before an acknowledgement.
    #[must_use]
    pub fn sending(record: Option<Self>, report: &Report, stub: Option<&Stub>) -> Option<Self> {
        match SendIntent::new(record.as_ref(), report, stub) {
            Some(sent) => Self::resume(record, &sent),
            None => record,
        }
    }

    /// Moves the record of an earlier moment to the one of which `sent` was written down, as far as that entity
    /// goes. A counter that is behind shows acknowledgements that were lost: they are taken over, so that the next
    /// report has the idempotency key that it would have had. A counter that is ahead shows that the report was
    /// acknowledged.
    #[must_use]
    pub fn resume(record: Option<Self>, sent: &SendIntent) -> Option<Self> {
        let mut record = match record {
            Some(record) if record.uid == sent.uid => record,
            Some(other) if !sent.first || other.version > sent.version => return Some(other),
            None if !sent.first => return None,
            _ => Self {
                version: sent.version,
                stub: sent.stub.clone().unwrap_or_default(),
                ..Self::begun(sent.uid.clone(), sent.version)
            },
        };
        if record.counter(sent.entity) > sent.counter {
            return Some(record);
        }
        let behind = record.counter(sent.entity) < sent.counter;
        if record.sections.is_none() {
            record.version = record.version.max(sent.version);
        }
        match sent.entity {
            Entity::Application => {
                record.in_doubt = true;
                record.unacked = sent.unacked;
                // A settled round moves the operation, and no counter.
                let lost = (record.content, record.fact) != (sent.content, sent.fact);
                record.fact = sent.fact;
                if behind {
                    (record.counter, record.content, record.owed) = (sent.counter, sent.content, sent.owed);
                }
                // Of a round whose acknowledgements were lost nobody knows the sections.
                if lost {
                    record.sections = record.sections.map(|_| Sections::UNSETTLED);
                }
            }
            Entity::Resource(id) => {
                // Of a row that went meanwhile nothing is left that the note could be behind.
                let behind = behind || record.resource(id).is_none();
                let row = record.row(id);
                row.in_doubt = true;
                row.unacked = sent.unacked;
                if behind {
                    let (counter, content, decision) = (sent.counter, sent.content, sent.decision);
                    let owed = sent.owed;
                    *row = ResourceRow { counter, content, decision, owed, ..*row };
                }
            }
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests;
