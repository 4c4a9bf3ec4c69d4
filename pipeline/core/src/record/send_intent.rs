//! A report that is on its way: what is written down before it goes, and what a record makes of it after a kill.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Digest, EntityId, Report, Uid, Version};

use super::{EntityRow, Record, Settled, Unacked};

/// The content of every end: it may be told with a last state and again without, and is sent under one key.
const END: Digest = Digest(u64::MAX);
/// So many facts are remembered of one object, the latest, should no commit succeed for long.
const REPORTED: usize = 256;

/// What was acknowledged of one entity at the moment when a report of it went out. It stands for itself: from the
/// record of an earlier moment and this alone, the record of this moment can be made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendIntent {
    /// Which incarnation.
    pub uid: Uid,
    /// What is remembered of the object; of a first report, the state that it shows.
    pub version: Version,
    /// What the report is about.
    pub entity: EntityId,
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
    /// Of the entity's last acknowledged report.
    pub decision: Digest,
    /// Whether the entity's last acknowledged report lacked a fact.
    pub incomplete: bool,
    /// The fact that was acknowledged last.
    pub fact: Digest,
    /// Facts of which earlier intents say that they were told, the latest last: since the ledger's last
    /// commit, in which they go.
    pub reported: Vec<Digest>,
    /// What the stage remembers, for a first report: see [`Record::state`].
    pub state: Option<Bytes>,
    /// A delivery of this incarnation had been acknowledged as a whole, and [`SendIntent::version`] is that of the last one.
    #[serde(default)]
    pub settled: bool,
    /// The state that the report is of.
    #[serde(default)]
    pub sent: Version,
}

impl SendIntent {
    /// What is to be written down, with `before` remembered, before `report` goes out; `None` when nothing is
    /// remembered of the report's life, or to be remembered.
    #[must_use]
    pub fn new(before: Option<&Record>, report: &Report, state: Option<&Bytes>) -> Option<Self> {
        let same = before.filter(|record| record.uid == report.uid);
        let first = same.is_none();
        if first && (report.ends || before.is_some_and(|record| record.version > report.version)) {
            return None;
        }
        let floor = same.map_or_else(|| Record::first(report.version), |record| record.floor);
        let known = same.and_then(|record| record.entity(report.entity)).copied();
        let row = known.unwrap_or_else(|| EntityRow::above(report.entity, floor));
        let (unacked, moves) = row.unacked.then(if report.ends { END } else { report.content });
        Some(Self {
            uid: report.uid.clone(),
            version: same.map_or(report.version, |record| record.version),
            entity: report.entity,
            ends: report.ends,
            first,
            counter: row.counter.saturating_add(moves),
            unacked,
            content: row.content,
            decision: row.decision,
            incomplete: row.incomplete,
            fact: same.map_or(Digest::NONE, |record| record.fact),
            reported: Vec::new(),
            state: state.filter(|_| first).cloned(),
            settled: same.is_some_and(|record| record.settled != Settled::Never),
            sent: report.version,
        })
    }

    /// Takes over what only an earlier note about the same entity knows.
    pub fn follows(&mut self, earlier: Self) {
        if earlier.uid != self.uid {
            return;
        }
        let own = std::mem::take(&mut self.reported);
        self.reported = earlier.facts().filter(|fact| *fact != self.fact).chain(own).collect();
        self.reported.drain(..self.reported.len().saturating_sub(REPORTED));
        if earlier.first {
            self.first = true;
            self.state = earlier.state;
        }
    }

    /// All facts of the incarnation that are known to have been reported when the report went out.
    pub fn facts(&self) -> impl Iterator<Item = Digest> {
        self.reported.iter().copied().chain([self.fact]).filter(|fact| !fact.is_none())
    }
}

impl Record {
    /// Notes that a report is about to be sent: until it is acknowledged, what the receiver holds of its entity is
    /// not known. `state` serves a first report, of which nothing else is remembered yet. Moves no digest; moves the
    /// entity's counter when another content than this went out last and was not answered.
    ///
    /// A report of a later incarnation takes the place of the former incarnation's record, of which nothing more is sent by then;
    /// else the later incarnation could not be reported as deleted, were the process killed before an acknowledgement.
    #[must_use]
    pub fn sending(record: Option<Self>, report: &Report, state: Option<&Bytes>) -> Option<Self> {
        match SendIntent::new(record.as_ref(), report, state) {
            Some(sent) => Self::resume(record, &sent),
            None => record,
        }
    }

    /// Moves the record of an earlier moment to the one of which `sent` was written down, as far as that entity
    /// goes. A counter that is behind shows acknowledgements that were lost: they are taken over, so that the next
    /// report has the idempotency key that it would have had. A counter that is ahead shows that the report was
    /// acknowledged. The version is taken over too: the key of an end is made of it ([`Record::stay`]), and a watch that shows
    /// once more what came before it brings no report.
    #[must_use]
    pub fn resume(record: Option<Self>, sent: &SendIntent) -> Option<Self> {
        let mut record = match record {
            Some(record) if record.uid == sent.uid => record,
            Some(other) if !sent.first || other.version > sent.version => return Some(other),
            None if !sent.first => return None,
            _ => Self {
                version: sent.version,
                state: sent.state.clone().unwrap_or_default(),
                ..Self::begun(sent.uid.clone(), sent.version)
            },
        };
        if record.counter(sent.entity) > sent.counter {
            return Some(record);
        }
        record.sent = record.sent.max(sent.sent);
        // Of a row that went meanwhile nothing is left that the intent could be behind.
        let behind = record.entity(sent.entity).is_none_or(|row| row.counter < sent.counter);
        // That of what had been acknowledged when the report went out, or of the first report.
        if sent.settled && record.settled == Settled::Never {
            record.version = sent.version;
            record.settled = Settled::Unwritten;
        } else {
            record.version = record.version.max(sent.version);
        }
        if sent.entity.is_object() {
            // A settled delivery moves the fact, and no counter.
            if (record.object().content, record.fact) != (sent.content, sent.fact) {
                record.unsettle();
            }
            record.fact = sent.fact;
        }
        let row = record.row(sent.entity);
        row.in_doubt = true;
        row.unacked = sent.unacked;
        if behind {
            let SendIntent { counter, content, decision, incomplete, .. } = *sent;
            *row = EntityRow { counter, content, decision, incomplete, ..*row };
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests;
