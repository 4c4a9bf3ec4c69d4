//! What the ledger remembers of one object: enough for every decision, and no object.
//!
//! Only acknowledgements change a record, through [`Record::acknowledge`] and [`Record::checkpoint`]; both are
//! pure, so that the engine, the replay and the simulation move records in the same way.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Digest, EntityId, Fact, Lengthened, Report, Uid, Version};

pub use send_intent::SendIntent;

mod send_intent;

/// Whether a delivery was acknowledged as a whole, and nothing came after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Settled {
    /// No delivery was acknowledged as a whole yet: [`Record::state`] is at most that of one under way.
    #[default]
    Never,
    /// One was, and a report of the object itself came after it: the receiver holds a state of which
    /// [`Record::state`] says nothing, so that whatever comes next is looked at, also a return to what was settled.
    Before,
    /// [`Record::state`] is that of the last delivery, which was acknowledged as a whole.
    Now,
    /// One was, and the process was killed before that was written: its version is known, and nothing else of what it left.
    Unwritten,
}

/// What of an entity was sent and not answered for certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unacked {
    /// Content of the last report that went out without an acknowledgement; none when there is no such report. All ends
    /// of one stay count as one content.
    pub content: Digest,
    /// By how much the counter moved since the last acknowledgement. It moves when another content follows one that
    /// was not answered: were that first content sent again later, under the key that it had, a receiver which drops
    /// what it has seen would keep the one in between.
    pub skipped: u32,
}

impl Unacked {
    /// What a report of `content` makes of this, and by how much the entity's counter moves before it goes.
    #[must_use]
    fn then(self, content: Digest) -> (Self, u64) {
        let moves = u32::from(!self.content.is_none() && self.content != content);
        (Self { content, skipped: self.skipped.saturating_add(moves) }, moves.into())
    }
}

/// What is remembered of one entity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityRow {
    /// Which entity.
    pub id: EntityId,
    /// Of what was acknowledged last: is it worth a report.
    pub decision: Digest,
    /// Of the last acknowledged report.
    pub content: Digest,
    /// How many reports of it were acknowledged, above [`Record::floor`] as it was when the row began; never restarts
    /// while the object lives.
    pub counter: u64,
    /// A fact was missing from the last report: it is to be built again.
    pub incomplete: bool,
    /// A report of it was sent and not answered for certain: what the receiver holds is not known, so that its next
    /// state is reported even if it equals the acknowledged one.
    pub in_doubt: bool,
    /// What was sent of it since the last acknowledgement.
    pub unacked: Unacked,
}

impl EntityRow {
    /// A row that begins where the counters of others ended.
    fn above(id: EntityId, floor: u64) -> Self {
        Self { id, counter: floor, ..Self::default() }
    }
}

/// Reads rows, without what a later version adds to them.
fn rows<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<EntityRow>, D::Error> {
    let rows = Vec::<Lengthened<EntityRow>>::deserialize(from)?;
    Ok(rows.into_iter().map(|Lengthened(row)| row).collect())
}

/// What the ledger remembers of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The incarnation that was reported.
    pub uid: Uid,
    /// Acknowledged resourceVersion; until a first delivery has been acknowledged as a whole, the newest one
    /// that any report carried.
    pub version: Version,
    /// What is known of [`Record::state`].
    pub settled: Settled,
    /// What the stage that builds the reports remembers of the object: it alone knows what it says.
    pub state: Bytes,
    /// The fact that was acknowledged last.
    pub fact: Digest,
    /// When the last report was acknowledged, in seconds since 1970; 0 means unknown.
    pub reported: u32,
    /// Where the counter of an entity begins that has no row: above that of every row that went.
    ///
    /// A row goes as soon as the object does not list its entity any more: generated names never come
    /// back, and a record would grow by each of them. No counter restarts for it: of an entity that does come back all
    /// former keys had counters below this, so that it repeats none. One number of each object keeps that promise,
    /// where a tombstone of each entity would have to be dropped some day and could then not keep it; no clock and no
    /// count says when. It grows by two each time that a row began above it and went: 48 bits, all that there are below the
    /// next era's counters ([`Record::first`]), would take 140 trillion deliveries.
    pub floor: u64,
    /// The object itself, and the entities that it lists, or listed before a delivery that is not settled; sorted by id.
    #[serde(deserialize_with = "rows")]
    pub entities: Vec<EntityRow>,
    /// The newest state of which a report went out, whether or not it is known to have arrived. 0 in records of former versions.
    #[serde(default)]
    pub sent: Version,
    /// Up to which state the watch had shown the object when a delivery was last acknowledged as a whole: a read may have shown a
    /// newer one before the watch showed what led to it. `None` in records of former versions, and before a first delivery.
    #[serde(default)]
    pub watched: Option<Version>,
}

/// What moves when every report of a delivery is acknowledged; the object's decision moves last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The incarnation.
    pub uid: Uid,
    /// The state.
    pub version: Version,
    /// What the stage remembers: see [`Record::state`].
    pub state: Bytes,
    /// Up to which state the watch has shown the object, as the engine knows.
    pub watched: Version,
    /// The fact that the state shows.
    pub fact: Digest,
    /// Whether the object's own report lacked a fact.
    pub incomplete: bool,
    /// Decisions of entities whose report would have equalled its predecessor and was not sent, with
    /// whether a fact was missing.
    pub unsent: Vec<(EntityId, Digest, bool)>,
    /// Every entity beside the object itself that it lists now; others are gone.
    pub present: Vec<EntityId>,
}

impl Checkpoint {
    /// What moves when a state without facts, of an object that lists nothing, was reported in full.
    #[must_use]
    pub fn new(uid: Uid, version: Version, state: Bytes) -> Self {
        let (fact, unsent, present) = (Digest::NONE, Vec::new(), Vec::new());
        Self { uid, version, state, watched: version, fact, incomplete: false, unsent, present }
    }
}

/// Bits of a counter below the era in which it began.
const ERA: u32 = 48;

impl Record {
    /// A record of which nothing is acknowledged yet.
    #[must_use]
    pub fn new(uid: Uid) -> Self {
        Self::above(uid, 0)
    }

    /// A record that begins with a state of this version.
    #[must_use]
    pub fn begun(uid: Uid, version: Version) -> Self {
        Self::above(uid, Self::first(version))
    }

    fn above(uid: Uid, floor: u64) -> Self {
        Self {
            uid,
            version: Version(0),
            settled: Settled::Never,
            state: Bytes::new(),
            fact: Digest::NONE,
            reported: 0,
            floor,
            entities: vec![EntityRow::above(EntityId::OBJECT, floor)],
            sent: Version(0),
            watched: None,
        }
    }

    /// Where counters begin: what was gone may be there again in a restored store, under its uid and in its very state,
    /// and its reports must not have the keys of those before its end.
    #[must_use]
    pub fn first(version: Version) -> u64 {
        u64::from(version.era()) << ERA
    }

    /// How many reports a counter has counted.
    #[must_use]
    pub fn counted(counter: u64) -> u64 {
        counter & ((1 << ERA) - 1)
    }

    /// What is remembered of one entity.
    #[must_use]
    pub fn entity(&self, id: EntityId) -> Option<&EntityRow> {
        let at = self.entities.binary_search_by_key(&id, |row| row.id).ok()?;
        self.entities.get(at)
    }

    /// What is remembered of the object itself.
    #[must_use]
    pub fn object(&self) -> EntityRow {
        self.entity(EntityId::OBJECT)
            .copied()
            .unwrap_or_else(|| EntityRow::above(EntityId::OBJECT, self.floor))
    }

    /// What is remembered of the object itself, to be changed.
    pub fn object_mut(&mut self) -> &mut EntityRow {
        self.row(EntityId::OBJECT)
    }

    /// What is remembered of the entities that the object lists.
    pub fn listed(&self) -> impl Iterator<Item = &EntityRow> {
        self.entities.iter().filter(|row| !row.id.is_object())
    }

    /// The acknowledged-report counter of an entity, for its next idempotency key.
    #[must_use]
    pub fn counter(&self, entity: EntityId) -> u64 {
        self.entity(entity).map_or(self.floor, |row| row.counter)
    }

    /// Whether any entity is incomplete.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.entities.iter().any(|row| row.incomplete)
    }

    /// Which stay this is of an object that may go and be back under its uid: what is acknowledged of a later one has a
    /// later version. It stands still while nothing but the stay's end is told, also over a kill
    /// ([`Record::resume`]); two ends between which something was sent, and not answered, have other counters.
    #[must_use]
    pub fn stay(&self) -> Digest {
        Digest::of(&self.version.0.to_be_bytes())
    }

    /// Whether a delivery was acknowledged as a whole, and no report of the object came after it.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.settled == Settled::Now
    }

    /// Whether of any entity it is not known what the receiver holds.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.entities.iter().any(|row| row.in_doubt)
    }

    /// Doubts everything: each entity's next state is reported even if it equals the acknowledged one.
    pub fn doubt(&mut self) {
        self.object_mut();
        self.entities.iter_mut().for_each(|row| row.in_doubt = true);
    }

    /// Moves a record by one acknowledged report: only that report's entity. `None` in means that nothing
    /// was remembered; `None` out means that nothing is any more.
    #[must_use]
    pub fn acknowledge(record: Option<Self>, report: &Report) -> Option<Self> {
        if report.ends {
            return record.filter(|record| record.uid != report.uid);
        }
        let mut record = match record {
            Some(record) if record.uid == report.uid => record,
            _ => Self::begun(report.uid.clone(), report.version),
        };
        if record.settled == Settled::Never {
            // Of two incarnations the later one is told by its version, also before a first delivery is settled.
            record.version = record.version.max(report.version);
        }
        let row = record.row(report.entity);
        row.decision = report.decision;
        row.content = report.content;
        row.counter = row.counter.saturating_add(1);
        row.incomplete = report.incomplete;
        // A fact that no state shows any more is not what the receiver should hold last.
        row.in_doubt = report.fact.is_some();
        row.unacked = Unacked::default();
        if report.entity.is_object() {
            record.unsettle();
            record.fact = report.fact.unwrap_or(record.fact);
        }
        Some(record)
    }

    /// Moves a record by a delivery whose reports were all acknowledged (there may have been none).
    #[must_use]
    pub fn checkpoint(record: Option<Self>, checkpoint: &Checkpoint) -> Self {
        let mut record = match record {
            Some(record) if record.uid == checkpoint.uid => record,
            _ => Self::new(checkpoint.uid.clone()),
        };
        if record.settled == Settled::Never {
            // That of a newer state which went out, and may not have arrived: what lies between, and that state, is shown again.
            record.version = checkpoint.version;
        }
        // A newer state had been acknowledged: it is looked at once more when it is shown again.
        record.settled = if checkpoint.version < record.version { Settled::Before } else { Settled::Now };
        record.version = record.version.max(checkpoint.version);
        record.watched = record.watched.max(Some(checkpoint.watched));
        record.state = checkpoint.state.clone();
        record.fact = checkpoint.fact;
        record.object_mut().incomplete = checkpoint.incomplete;
        for &(id, decision, incomplete) in &checkpoint.unsent {
            let row = record.row(id);
            row.decision = decision;
            row.incomplete = incomplete;
        }
        let mut present = checkpoint.present.clone();
        present.sort_unstable();
        record.forget(|row| present.binary_search(&row.id).is_err());
        record
    }

    /// The receiver holds a state of which the record says nothing.
    fn unsettle(&mut self) {
        if self.settled == Settled::Now {
            self.settled = Settled::Before;
        }
    }

    /// Forgets rows of listed entities, and raises [`Record::floor`] above every counter under which a report of them may have gone out.
    pub fn forget(&mut self, goes: impl Fn(&EntityRow) -> bool) {
        let floor = &mut self.floor;
        self.entities.retain(|row| {
            let goes = !row.id.is_object() && goes(row);
            if goes {
                *floor = (*floor).max(row.counter.saturating_add(1));
            }
            !goes
        });
    }

    /// What of it fits where the whole does not: it knows no listed entity, and that none of them is known. Whoever goes on with
    /// it reports them all again, under keys that no report had.
    #[must_use]
    pub fn without_listed(mut self) -> Self {
        self.forget(|_| true);
        self.unsettle();
        self
    }

    /// Of `facts` of one incarnation those that `record`, what is remembered of that life, does not say to be told.
    ///
    /// A record knows the one that was told last. Others may have been told before it or not: a read may show a later one
    /// before the watch shows an earlier one. What was told and is followed, the ledger keeps apart.
    pub fn unreported<'f>(
        record: Option<&Self>,
        facts: &'f [Fact],
    ) -> impl Iterator<Item = &'f Fact> + use<'f> {
        let last = record.map_or(Digest::NONE, |record| record.fact);
        facts.iter().filter(move |fact| last.is_none() || fact.id != last)
    }

    /// Whether the watch had shown this state when a delivery was last acknowledged.
    #[must_use]
    pub fn was_watched(&self, version: Version) -> bool {
        self.watched.is_none_or(|watched| version <= watched)
    }

    /// Whether this is the fact that was told last.
    #[must_use]
    pub fn reported_last(&self, fact: &Fact) -> bool {
        !self.fact.is_none() && fact.id == self.fact
    }

    fn row(&mut self, id: EntityId) -> &mut EntityRow {
        let at = match self.entities.binary_search_by_key(&id, |row| row.id) {
            Ok(at) => at,
            Err(at) => {
                self.entities.insert(at, EntityRow::above(id, self.floor));
                at
            }
        };
        &mut self.entities[at]
    }
}

#[cfg(test)]
mod tests;
