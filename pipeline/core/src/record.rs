//! What the ledger remembers of one application: enough for every decision, and no object.
//!
//! Only acknowledgements change a record, through [`Record::acknowledge`] and [`Record::checkpoint`]; both are
//! pure, so that the engine, the replay and the simulation move records in the same way.

use serde::{Deserialize, Serialize};

use crate::{Digest, Entity, EntityId, Fact, Report, Uid, Version};

pub use send_intent::SendIntent;

mod send_intent;

/// Digests of the four sections of an application that are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sections {
    /// `spec`, without what does not count.
    pub spec: Digest,
    /// `status`, without what does not count.
    pub status: Digest,
    /// `operation`.
    pub operation: Digest,
    /// `metadata`, without what does not count.
    pub metadata: Digest,
}

impl Sections {
    /// Of a round that is not settled, of which the application's report was acknowledged. Equals no state's.
    pub const UNSETTLED: Self =
        Self { spec: Digest::NONE, status: Digest::NONE, operation: Digest::NONE, metadata: Digest::NONE };
}

/// The application that tracks this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRef {
    /// Namespace, empty when the tracking value names none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// What a deletion that nobody watched can still be reported with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stub {
    /// The report's `repoURL`.
    pub repo_url: String,
    /// `spec.destination.server`.
    pub server: String,
    /// The parent, for a child application.
    pub parent: Option<ParentRef>,
}

/// What of an entity was sent and not answered for certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unacked {
    /// Content of the last report that went out without an acknowledgement; none when there is no such report.
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

/// What is remembered of one resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceRow {
    /// Which resource.
    pub id: EntityId,
    /// Of the latest revision, the normalised entry of `status.resources[]`, and the tree's health.
    pub decision: Digest,
    /// Of the last acknowledged report.
    pub content: Digest,
    /// How many reports of it were acknowledged, above [`Record::floor`] as it was when the row began; never restarts
    /// while the application lives.
    pub counter: u64,
    /// A fact was missing from the last report: it is to be built again.
    pub owed: bool,
    /// A report of it was sent and not answered for certain: what the receiver holds is not known, so that its next
    /// state is reported even if it equals the acknowledged one.
    pub in_doubt: bool,
    /// What was sent of it since the last acknowledgement.
    pub unacked: Unacked,
}

impl ResourceRow {
    /// A row that begins where the counters of others ended.
    fn above(id: EntityId, floor: u64) -> Self {
        Self { id, counter: floor, ..Self::default() }
    }
}

/// What the ledger remembers of one application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The incarnation that was reported.
    pub uid: Uid,
    /// Acknowledged resourceVersion; until a first round has been acknowledged as a whole, the newest one
    /// that any report carried.
    pub version: Version,
    /// Acknowledged section digests; `None` until a first round has been acknowledged as a whole, and
    /// [`Sections::UNSETTLED`] between the acknowledgement of the application's report and that of its round.
    pub sections: Option<Sections>,
    /// Last acknowledged health was `Healthy`; moves together with `sections`.
    pub healthy: bool,
    /// The fact that was acknowledged last.
    pub fact: Digest,
    /// Of the last acknowledged report of the application itself.
    pub content: Digest,
    /// How many reports of the application itself were acknowledged, above [`Record::first`].
    pub counter: u64,
    /// A fact was missing from the application's last report.
    pub owed: bool,
    /// As [`ResourceRow::in_doubt`], for the application's own report.
    pub in_doubt: bool,
    /// As [`ResourceRow::unacked`].
    pub unacked: Unacked,
    /// When the last report was acknowledged, in seconds since 1970; 0 means unknown.
    pub reported: u32,
    /// Where the counter of a resource begins that has no row: above that of every row that went.
    ///
    /// A row goes as soon as its resource has left `status.resources`: generated names (of Jobs, of Workflows) never come
    /// back, and a record would grow by each of them. No counter restarts for it: of a resource that does come back all
    /// former keys had counters below this, so that it repeats none. One number of each application keeps that promise,
    /// where a tombstone of each resource would have to be dropped some day and could then not keep it; no clock and no
    /// count says when. It grows by two each time that a row began above it and went: 48 bits, all that there are below the
    /// next era's counters ([`Record::first`]), would take 140 trillion rounds.
    pub floor: u64,
    /// Its resources that `status.resources` lists, or listed before a round that is not settled; sorted by id.
    pub resources: Vec<ResourceRow>,
    /// For a deletion that nobody watched.
    pub stub: Stub,
}

/// What moves when every report of a round is acknowledged; the application's decision moves last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The incarnation.
    pub uid: Uid,
    /// The state.
    pub version: Version,
    /// Section digests.
    pub sections: Sections,
    /// Whether health was `Healthy`.
    pub healthy: bool,
    /// The fact that the state shows.
    pub fact: Digest,
    /// Whether the application's own report lacked a fact.
    pub owed: bool,
    /// Decisions of resources whose report would have equalled its predecessor and was not sent, with
    /// whether a fact was missing.
    pub unsent: Vec<(EntityId, Digest, bool)>,
    /// Every resource that `status.resources` lists now; others are gone.
    pub present: Vec<EntityId>,
    /// The stub.
    pub stub: Stub,
}

/// Bits of a counter below the era in which it began.
const ERA: u32 = 48;

impl Record {
    /// A record of which nothing is acknowledged yet.
    #[must_use]
    pub fn new(uid: Uid) -> Self {
        Self {
            uid,
            version: Version(0),
            sections: None,
            healthy: false,
            fact: Digest::NONE,
            content: Digest::NONE,
            counter: 0,
            owed: false,
            in_doubt: false,
            unacked: Unacked::default(),
            reported: 0,
            floor: 0,
            resources: Vec::new(),
            stub: Stub::default(),
        }
    }

    /// A record that begins with a state of this version.
    #[must_use]
    pub fn begun(uid: Uid, version: Version) -> Self {
        let first = Self::first(version);
        Self { counter: first, floor: first, ..Self::new(uid) }
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

    /// What is remembered of one resource.
    #[must_use]
    pub fn resource(&self, id: EntityId) -> Option<&ResourceRow> {
        let at = self.resources.binary_search_by_key(&id, |row| row.id).ok()?;
        self.resources.get(at)
    }

    /// The acknowledged-report counter of an entity, for its next idempotency key.
    #[must_use]
    pub fn counter(&self, entity: Entity) -> u64 {
        match entity {
            Entity::Application => self.counter,
            Entity::Resource(id) => self.resource(id).map_or(self.floor, |row| row.counter),
        }
    }

    /// Whether any entity of the application is owed.
    #[must_use]
    pub fn is_owed(&self) -> bool {
        self.owed || self.resources.iter().any(|row| row.owed)
    }

    /// Whether a round was acknowledged as a whole, and no report of the application came after it.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.sections.is_some_and(|sections| sections != Sections::UNSETTLED)
    }

    /// Whether of any entity it is not known what the receiver holds.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt || self.resources.iter().any(|row| row.in_doubt)
    }

    /// Doubts everything: each entity's next state is reported even if it equals the acknowledged one.
    pub fn doubt(&mut self) {
        self.in_doubt = true;
        for row in &mut self.resources {
            row.in_doubt = true;
        }
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
        if record.sections.is_none() {
            // Of two incarnations the later one is told by its version, also before a first round is settled.
            record.version = record.version.max(report.version);
        }
        match report.entity {
            Entity::Application => {
                record.content = report.content;
                record.counter = record.counter.saturating_add(1);
                record.owed = report.owed;
                // A fact that no state shows any more is not what the receiver should hold last.
                record.in_doubt = report.fact.is_some();
                record.unacked = Unacked::default();
                // Until the round is settled the receiver holds a state whose sections are not known: whatever
                // comes next is looked at, also a return to what was settled before.
                record.sections = record.sections.map(|_| Sections::UNSETTLED);
                if let Some(fact) = report.fact {
                    record.fact = fact;
                }
            }
            Entity::Resource(id) => {
                let row = record.row(id);
                row.decision = report.decision;
                row.content = report.content;
                row.counter = row.counter.saturating_add(1);
                row.owed = report.owed;
                row.in_doubt = false;
                row.unacked = Unacked::default();
            }
        }
        Some(record)
    }

    /// Moves a record by a round whose reports were all acknowledged (there may have been none).
    #[must_use]
    pub fn checkpoint(record: Option<Self>, checkpoint: &Checkpoint) -> Self {
        let mut record = match record {
            Some(record) if record.uid == checkpoint.uid => record,
            _ => Self::new(checkpoint.uid.clone()),
        };
        record.version = record.version.max(checkpoint.version);
        record.sections = Some(checkpoint.sections);
        record.healthy = checkpoint.healthy;
        record.fact = checkpoint.fact;
        record.owed = checkpoint.owed;
        record.stub = checkpoint.stub.clone();
        for &(id, decision, owed) in &checkpoint.unsent {
            let row = record.row(id);
            row.decision = decision;
            row.owed = owed;
        }
        let mut present = checkpoint.present.clone();
        present.sort_unstable();
        record.forget(|row| present.binary_search(&row.id).is_err());
        record
    }

    /// Forgets rows, and raises [`Record::floor`] above every counter under which a report of them may have gone out.
    pub fn forget(&mut self, goes: impl Fn(&ResourceRow) -> bool) {
        let floor = &mut self.floor;
        self.resources.retain(|row| {
            let goes = goes(row);
            if goes {
                *floor = (*floor).max(row.counter.saturating_add(1));
            }
            !goes
        });
    }

    /// What of it fits where the whole does not: it knows no resource, and that none of them is known. Whoever goes on with
    /// it reports them all again, under keys that no report had.
    #[must_use]
    pub fn without_resources(mut self) -> Self {
        self.forget(|_| true);
        self.sections = self.sections.map(|_| Sections::UNSETTLED);
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

    /// Whether this is the fact that was told last.
    #[must_use]
    pub fn reported_last(&self, fact: &Fact) -> bool {
        !self.fact.is_none() && fact.id == self.fact
    }

    fn row(&mut self, id: EntityId) -> &mut ResourceRow {
        let at = match self.resources.binary_search_by_key(&id, |row| row.id) {
            Ok(at) => at,
            Err(at) => {
                self.resources.insert(at, ResourceRow::above(id, self.floor));
                at
            }
        };
        &mut self.resources[at]
    }
}

#[cfg(test)]
mod tests;
