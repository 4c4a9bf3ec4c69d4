//! What must hold: at every step, whenever a report is taken, and once everything has come to rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pipeline_core::{
    Digest, EntityId, EntityRow, Event, Key, Pending, Record, Report, Shipment, Uid, Version,
};

use super::books::Books;
use super::enrich::{entity_of, object, resource, told};
use super::process::Shard;
use super::receiver::{Came, Receiver};
use super::show;
use super::world::{World, operation_of};
use crate::lane::Config;

/// Facts that one dirty entry keeps.
const KEPT_FACTS: u64 = 64;
/// Deletions that one dirty entry keeps.
const KEPT_LIVES: u64 = 8;

/// What the receiver is to be told, and what it was told.
#[derive(Debug, Default)]
pub(super) struct Check {
    /// Ends of operations that this process knows of, or that were journaled.
    pub(super) ends: BTreeSet<(Uid, u32)>,
    /// Lives whose end this process knows of, or that was journaled.
    pub(super) gone: BTreeSet<Uid>,
    /// Lives that a read showed to be over, in this process.
    over: BTreeSet<Uid>,
    /// What arrived last of each entity, repetitions included, and of which state: where a kill lost an answer, an earlier state
    /// that looks the same is taken for a repetition.
    arrived: BTreeMap<(Uid, EntityId), (Digest, Version)>,
    ends_told: BTreeSet<(Uid, u32)>,
    gone_told: BTreeSet<Uid>,
    /// Lives whose end was told by a former process: nobody remembers them.
    forgotten: BTreeSet<Uid>,
    /// Whether an entity might be told the same twice, as of its last sending.
    doubtful: BTreeMap<(Uid, EntityId), bool>,
    /// Objects of whose resources a report was taken in an attempt.
    resources: BTreeMap<Uid, u64>,
    /// The latest life of each object of which anything was taken.
    lives: BTreeMap<Key, u32>,
    /// What a power loss took away of what the receiver holds: see [`Check::lost_power`].
    excused: BTreeSet<(Uid, EntityId)>,
    /// Lives of which an earlier process had journaled an end: it may be told again, under its key.
    restored: BTreeSet<Uid>,
    /// Watches go on where a former process ended: a life that came and went since then, and that nobody remembers, is told
    /// again as a whole.
    goes_on: bool,
    /// Lives of which the ledger once remembered a state that their watch had not shown yet: what led to it may be told again.
    read_ahead: BTreeSet<Uid>,
}

macro_rules! ensure {
    ($holds:expr, $($why:tt)*) => {
        if !$holds {
            return Err(format!($($why)*));
        }
    };
}

impl Check {
    pub(super) fn new(goes_on: bool) -> Self {
        Self { goes_on, ..Self::default() }
    }

    /// Whether a life may be told again as a whole.
    fn retold(&self, uid: &Uid) -> bool {
        self.goes_on && self.gone_told.contains(uid)
    }

    /// An event reaches a lane.
    pub(super) fn delivered(&mut self, event: &Event) {
        // What happened in a life that a read already showed to be over is of no use to anybody.
        if self.over.contains(&event.uid) {
            return;
        }
        // Nor is the end of a life that nobody watched, and of which the receiver was told nothing.
        if event.again && event.is_deleted() {
            return;
        }
        if let Some(end) = &event.fact {
            self.ends.insert((event.uid.clone(), operation_of(end).number));
        }
        if event.is_deleted() {
            self.gone.insert(event.uid.clone());
        }
    }

    /// A person wants to be told again what is known: of a life that is over, its end.
    pub(super) fn asked_again(&mut self, uid: Option<&Uid>) {
        self.restored.extend(uid.cloned());
    }

    /// A read shows that lives are over.
    pub(super) fn over(&mut self, lives: impl Iterator<Item = Uid>) {
        self.over.extend(lives);
    }

    /// A report is about to be sent.
    pub(super) fn sending(&mut self, books: &Books, report: &Report) {
        let record = books.get(&report.key).filter(|record| record.uid == report.uid);
        // One that comes back is reported anew.
        let row = record.as_ref().and_then(|record| record.entity(report.entity).copied());
        let doubtful = row.is_none_or(|row| row.in_doubt || row.content.is_none());
        self.doubtful.insert((report.uid.clone(), report.entity), doubtful);
        if record.is_some_and(|record| record.watched.is_some_and(|watched| watched < record.version)) {
            self.read_ahead.insert(report.uid.clone());
        }
    }

    /// A report has reached the receiver.
    pub(super) fn came(
        &mut self,
        receiver: &Receiver,
        shipment: &Shipment,
        came: &Came,
    ) -> Result<(), String> {
        let report = &shipment.report;
        let entity = (report.uid.clone(), report.entity);
        let at = match came {
            Came::Not => return Ok(()),
            Came::Repeated(at) => {
                let taken = &receiver.taken[*at];
                if taken.lost {
                    // Counted again from where the ledger was, a report may meet the key of one that nobody remembers.
                    self.excused.insert(entity.clone());
                }
                let once = report.ends || report.fact.is_some();
                // A list that lacks a name ends whatever life of it is known, in the name of the one that it had shown.
                let former = report.ends && self.lives.get(&report.key) > Some(&World::life(&report.uid));
                let journaled = once && (self.restored.contains(&report.uid) || former);
                // What led to a state that a read had shown first is shown again, and may have been told.
                let ahead = self.goes_on && report.fact.is_some() && self.read_ahead.contains(&report.uid);
                let retold = self.retold(&report.uid) || ahead;
                ensure!(
                    !taken.acked || journaled || retold,
                    "sent again although it was acknowledged: {}",
                    show::report(report)
                );
                ensure!(
                    receiver.last.get(&entity) == Some(at)
                        || once
                        || retold
                        || self.excused.contains(&entity),
                    "taken for a repetition, though another was taken since: {}",
                    show::report(report)
                );
                *at
            }
            Came::First(at) => {
                self.first(receiver, *at)?;
                *at
            }
        };
        self.arrived.insert(entity, (report.content, report.version));
        let Report { uid, .. } = &receiver.taken[at].report;
        if let (EntityId::OBJECT, Some(operation)) = (report.entity, told(report))
            && operation.ended
        {
            self.ends_told.insert((uid.clone(), operation.number));
        }
        if report.ends {
            self.gone_told.insert(uid.clone());
        }
        Ok(())
    }

    fn first(&mut self, receiver: &Receiver, at: usize) -> Result<(), String> {
        let taken = &receiver.taken[at];
        let report = &taken.report;
        let entity = (report.uid.clone(), report.entity);
        // An end that was taken in the instant before a kill is not known to have arrived. Ends of operations of that
        // life are then told again before it, and arrive after it.
        let mut over = receiver.of_life(&report.uid).filter(|taken| taken.report.ends);
        let unheard = over.all(|taken| !taken.acked);
        let told_again = (unheard && report.fact.is_some()) || self.retold(&report.uid);
        ensure!(
            !self.gone_told.contains(&report.uid) || told_again,
            "after the end of its life: {}",
            show::report(report)
        );
        let life = World::life(&report.uid);
        let latest = self.lives.entry(report.key.clone()).or_insert(life);
        // A power loss may take away all that is known of the later life.
        let is_latest = |uid: &Uid| World::life(uid) == *latest && World::is_of(uid, &report.uid);
        let lost = |(uid, _): &(Uid, EntityId)| is_latest(uid);
        // What came before a life that nobody remembers is shown again, and told, as that life is.
        let forgotten = self.goes_on && self.forgotten.iter().any(is_latest);
        // What was refused for good, and then asked for by a person, comes when it comes.
        let refused = report.ends && receiver.refused_ends.contains(&report.uid);
        ensure!(
            life >= *latest || refused || told_again || forgotten || self.excused.iter().any(lost),
            "of a former life, after life {latest}: {}",
            show::report(report)
        );
        *latest = life.max(*latest);
        let excused = self.excused.remove(&entity);
        if let Some(before) = taken.before.map(|before| &receiver.taken[before]) {
            // What leads to a state that was not answered, or of which the answer was lost, is shown again, and so told after it;
            // or after what happened before it, which is told with a later state.
            let doubted = before.lost || before.report.fact.is_some();
            let (unanswered, before) = (self.goes_on && doubted, &before.report);
            let doubtful = excused || self.doubtful.get(&entity).copied().unwrap_or_default();
            // What was refused for good is left out of a delivery: what follows may equal what went before it.
            let doubtful = doubtful || receiver.refused.contains(&report.key) || told_again;
            let last = self.arrived.get(&entity).copied();
            ensure!(
                last.is_none_or(|(content, _)| content != report.content) || doubtful,
                "the same under another key: {}",
                show::report(report)
            );
            let (was, is) = (last.map_or(before.version, |(_, version)| version), report.version);
            // What happens once is told with the state at which it was noted: a list, or the journal, may be behind.
            let once = report.ends || report.fact.is_some();
            ensure!(
                once || told_again || unanswered || is >= was,
                "state {} after {}: {}",
                is.0,
                was.0,
                show::report(report)
            );
        }
        if !report.entity.is_object() {
            self.resources.insert(report.uid.clone(), taken.attempt);
            return Ok(());
        }
        ensure!(
            self.resources.get(&report.uid) != Some(&taken.attempt),
            "the object after its resources: {}",
            show::report(report)
        );
        Ok(())
    }

    /// A process begins, and finds this in the ledger. What only the former process knew is forgotten.
    pub(super) fn restarted(&mut self, journaled: &[(Key, Pending)]) {
        let journaled = || journaled.iter().map(|(_, pending)| pending);
        let ends = journaled().flat_map(|pending| &pending.facts);
        self.ends = ends.map(|(uid, _, end)| (uid.clone(), operation_of(end).number)).collect();
        self.gone = journaled().flat_map(|pending| &pending.gone).map(|(uid, _)| uid.clone()).collect();
        let ends = self.ends.iter().map(|(uid, _)| uid);
        self.restored = self.gone.iter().chain(ends).cloned().collect();
        self.forgotten.clone_from(&self.gone_told);
        self.over.clear();
    }

    /// Power was lost: of entities whose last report was taken after the last commit, nothing tells that they are
    /// in doubt. If their state returns to exactly what was acknowledged before, or if their whole life is over, the
    /// ledger cannot know that the receiver holds something else: the stated gap.
    pub(super) fn lost_power(&mut self, receiver: &mut Receiver) {
        for taken in &mut receiver.taken {
            taken.lost |= !taken.durable;
        }
        for (entity, at) in &receiver.last {
            if !receiver.taken[*at].durable {
                self.excused.insert(entity.clone());
            }
        }
    }

    /// The lane's books balance, and what it holds is bounded.
    pub(super) fn lane(shard: &Shard, config: &Config, keys: u64, now: Duration) -> Result<(), String> {
        let counts = shard.lane.counts(now);
        ensure!(counts.balance() == 0, "the balance is {}: {counts:?}", counts.balance());
        if let Some(told) = shard.lane.miscounted() {
            return Err(format!("the lane tells {told}"));
        }
        // A read is granted before anybody knows what it brings: at most the deletions that a dirty entry kept.
        let held = counts.queued + counts.waiting;
        let most = config.queue_events as u64 + config.concurrency + keys * (2 * KEPT_LIVES + 1);
        ensure!(held <= most, "{held} events held: {counts:?}");
        let bytes = config.queue_bytes + (config.concurrency + keys * (2 * KEPT_FACTS + 1)) * 4096;
        ensure!(counts.bytes <= bytes, "{} bytes held: {counts:?}", counts.bytes);
        ensure!(counts.summaries <= keys * 2 * KEPT_FACTS, "too many summaries: {counts:?}");
        ensure!(counts.summary_bytes <= config.summary_bytes, "too long summaries: {counts:?}");
        // A probe goes beside a full house, and the next one while the attempt of the former winds down.
        ensure!(
            counts.in_flight + counts.reading <= config.concurrency + 2,
            "too much at a time: {counts:?}"
        );
        ensure!(shard.attempts.len() as u64 == counts.in_flight, "attempts are not as counted: {counts:?}");
        ensure!(shard.reads.len() as u64 == counts.reading, "reads are not as counted: {counts:?}");
        ensure!(counts.parked_keys <= config.parked as u64, "too many parked: {counts:?}");
        Ok(())
    }

    /// No digest moved without an acknowledgement.
    pub(super) fn record(record: &Record, receiver: &Receiver) -> Result<(), String> {
        for &EntityRow { id: entity, content, counter, unacked, .. } in &record.entities {
            let skipped = u64::from(unacked.skipped);
            let told = || show::record(Some(record));
            ensure!(counter >= skipped, "{entity:?} skipped more than it counts: {}", told());
            let acknowledged = counter - skipped;
            ensure!(content.is_none() || acknowledged > 0, "{entity:?} counts what is not there: {}", told());
            let mut taken = receiver.of_life(&record.uid).rev();
            let arrived = content.is_none()
                || taken.any(|taken| {
                    let report = &taken.report;
                    report.entity == entity && report.content == content && taken.counter == acknowledged - 1
                })
                || receiver.retold.contains(&(record.uid.clone(), acknowledged - 1, content));
            ensure!(arrived, "{entity:?} moved without an acknowledgement: {}", told());
        }
        Ok(())
    }

    /// Only what was refused for good is parked.
    pub(super) fn only_refused(shard: &Shard, receiver: &Receiver) -> Result<(), String> {
        for (key, parked) in shard.lane.parked() {
            ensure!(receiver.refused.contains(key), "{key} is parked, but nobody refused it: {parked:?}");
        }
        Ok(())
    }

    /// Everything has come to rest: the receiver holds the truth, and was told what happens once.
    pub(super) fn rest(
        &self,
        world: &World,
        receiver: &Receiver,
        summaries_dropped: bool,
    ) -> Result<(), String> {
        for (app, key) in world.keys().enumerate() {
            let Some(now) = world.now(app) else { continue };
            let state = &now.state;
            let values = state.resources.iter().enumerate();
            let there = values.filter_map(|(id, value)| Some((id, (*value)?)));
            let mut wanted = vec![(EntityId::OBJECT, object(state, true))];
            wanted.extend(there.map(|(id, value)| (entity_of(id), resource(id, value, true))));
            for (entity, content) in wanted {
                let last = receiver.last(&now.uid, entity).map(|taken| taken.report.content);
                let excused = self.excused.contains(&(now.uid.clone(), entity));
                ensure!(
                    last == Some(content) || excused,
                    "{key} {entity:?} is {content:?}, last told {last:?}"
                );
            }
        }
        let current: BTreeSet<_> = (0..world.keys().count())
            .filter_map(|app| world.now(app))
            .map(|moved| moved.uid.clone())
            .collect();
        for (uid, entity) in receiver.last.keys() {
            let told = current.contains(uid) || self.gone_told.contains(uid);
            let excused = self.excused.contains(&(uid.clone(), EntityId::OBJECT))
                || (self.excused.contains(&(uid.clone(), *entity)));
            // The parked end of a life is given up when a later life of the same name is reported: its record makes room.
            let refused = receiver.refused_ends.contains(uid);
            ensure!(told || excused || refused, "nobody was told that {uid} is over");
        }
        for uid in &self.gone {
            // Of a life of which the receiver was told nothing, and which another has followed since, it need not know.
            // Nor of any such, where nothing but what is remembered is told of.
            let heard = receiver.of_life(uid).next().is_some() || !(self.goes_on || world.is_followed(uid));
            let refused = receiver.refused_ends.contains(uid);
            let excused = self.excused.contains(&(uid.clone(), EntityId::OBJECT));
            ensure!(
                self.gone_told.contains(uid) || !heard || refused || excused,
                "the end of {uid} was lost"
            );
        }
        for (uid, number) in &self.ends {
            let told = self.ends_told.contains(&(uid.clone(), *number));
            let refused = receiver.refused_ops.contains(&(uid.clone(), *number));
            ensure!(told || summaries_dropped || refused, "the end of operation {number} of {uid} was lost");
        }
        Ok(())
    }
}
