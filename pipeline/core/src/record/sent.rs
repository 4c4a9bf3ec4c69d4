//! A report that is on its way: what is written down before it goes, and what a record makes of it after a kill.

use serde::{Deserialize, Serialize};

use crate::{Digest, Entity, EntityId, Report, Uid, Version};

use super::{Record, ResourceRow, Sections, Stub, Unanswered};

/// So many ends are remembered of one application, the latest, should no commit succeed for long.
const TOLD: usize = 256;

/// What was acknowledged of one entity at the moment when a report of it went out. It stands for itself: from the
/// record of an earlier moment and this alone, the record of this moment can be made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Which life.
    pub uid: Uid,
    /// What is remembered of the application; of a first report, the state that it shows.
    pub version: Version,
    /// What the report is about.
    pub entity: Entity,
    /// It reports a deletion.
    pub ends: bool,
    /// Nothing was remembered of this life before.
    pub first: bool,
    /// The entity's counter, of which the report's idempotency key is made.
    pub counter: u64,
    /// What went out without an acknowledgement, the report itself included.
    pub unanswered: Unanswered,
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
    pub told: Vec<Digest>,
    /// Of a first report.
    pub stub: Option<Stub>,
}

impl Sent {
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
                (record.counter, record.content, Digest::NONE, record.owed, record.unanswered)
            }
            _ => (row.counter, row.content, row.decision, row.owed, row.unanswered),
        };
        let (unanswered, moves) = before.then(report.content);
        Some(Self {
            uid: report.uid.clone(),
            version: same.map_or(report.version, |record| record.version),
            entity: report.entity,
            ends: report.ends,
            first,
            counter: counter.saturating_add(moves),
            unanswered,
            content,
            decision,
            owed,
            fact: same.map_or(Digest::NONE, |record| record.fact),
            told: Vec::new(),
            stub: stub.filter(|_| first).cloned(),
        })
    }

    /// Takes over what only an earlier note about the same entity knows.
    pub fn follows(&mut self, earlier: Self) {
        if earlier.uid != self.uid {
            return;
        }
        let own = std::mem::take(&mut self.told);
        let mut told: Vec<Digest> = earlier.told().filter(|end| *end != self.fact).chain(own).collect();
        told.drain(..told.len().saturating_sub(TOLD));
        self.told = told;
        if earlier.first {
            self.first = true;
            self.stub = earlier.stub;
        }
    }

    /// What of the life's operations was told when the report went out.
    pub fn told(&self) -> impl Iterator<Item = Digest> {
        self.told.iter().copied().chain([self.fact]).filter(|fact| !fact.is_none())
    }
}

impl Record {
    /// Notes that a report is about to be sent: until it is acknowledged, what the receiver holds of its entity is
    /// not known. `stub` serves a first report, of which nothing else is remembered yet. Moves no digest; moves the
    /// entity's counter when another content than this went out last and was not answered.
    ///
    /// A report of a later life takes the place of the former life's record, of which nothing more is sent by then;
    /// else the later life could not be reported as deleted, were the process killed before an acknowledgement.
    #[must_use]
    pub fn sending(record: Option<Self>, report: &Report, stub: Option<&Stub>) -> Option<Self> {
        match Sent::new(record.as_ref(), report, stub) {
            Some(sent) => Self::resume(record, &sent),
            None => record,
        }
    }

    /// Moves the record of an earlier moment to the one of which `sent` was written down, as far as that entity
    /// goes. A counter that is behind shows acknowledgements that were lost: they are taken over, so that the next
    /// report has the idempotency key that it would have had. A counter that is ahead shows that the report was
    /// acknowledged.
    #[must_use]
    pub fn resume(record: Option<Self>, sent: &Sent) -> Option<Self> {
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
                record.unsure = true;
                record.unanswered = sent.unanswered;
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
                row.unsure = true;
                row.unanswered = sent.unanswered;
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
#[path = "sent_tests.rs"]
mod tests;
