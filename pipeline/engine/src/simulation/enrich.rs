//! A small enrichment that decides as the real one does: first seen, changed, became healthy, incomplete, in doubt, ends of
//! operations, deletions watched and unwatched, another life under the same name. What it fetches may fail.
//!
//! Pure: what comes of the calls is drawn before, as [`Facts`].

use bytes::Bytes;
use fastrand::Rng;
use pipeline_core::{
    Cause, Checkpoint, Digest, Enriched, EntityId, Event, Filtered, Record, Refetch, Report, ReportKind,
    Settled, Version,
};

use super::world::{Operation, RESOURCES, State, end, operation_of};

const OBJECT: ReportKind = ReportKind::of_object("object");
const LISTED: ReportKind = ReportKind::of_listed("listed");

/// What came of the calls of one try.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// The commit, without which reports are incomplete.
    pub(super) commit: bool,
    /// The live state of each resource, without which it is not reported.
    pub(super) live: [bool; RESOURCES],
    /// Of a life of which nothing is remembered, and no state is known, the end is told all the same.
    pub(super) stubs: bool,
}

impl Facts {
    pub(super) const ALL: Self = Self { commit: true, live: [true; RESOURCES], stubs: true };

    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self { commit: rng.u8(..4) > 0, live: std::array::from_fn(|_| rng.u8(..4) > 0), stubs: true }
    }
}

/// The digest of some numbers.
fn digest(parts: &[u64]) -> Digest {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_be_bytes()).collect();
    Digest(seahash::hash(&bytes).max(1))
}

fn number(operation: Option<Operation>) -> u64 {
    operation.map_or(0, |operation| u64::from(operation.number) * 2 + u64::from(operation.ended) + 1)
}

/// Of an operation; of one that has ended it is that of its end.
fn operation(operation: Option<Operation>) -> Digest {
    operation.map_or(Digest::NONE, |it| match it.ended {
        true => end(it).id,
        false => digest(&[9, number(Some(it))]),
    })
}

/// What is reported of an object in `state`.
pub(super) fn object(state: &State, commit: bool) -> Digest {
    let parts = [1, state.spec.into(), state.healthy.into(), number(state.operation), commit.into()];
    digest(&parts)
}

/// The entity that the resource of this number is.
pub(super) fn entity_of(number: usize) -> EntityId {
    EntityId(number as u64 + 1)
}

/// What is reported of a resource.
pub(super) fn resource(id: usize, value: u8, commit: bool) -> Digest {
    digest(&[2, id as u64, value.into(), commit.into()])
}

fn decision(state: &State, value: u8) -> Digest {
    digest(&[3, state.spec.into(), value.into()])
}

/// What of a state decides whether another differs.
fn sections(state: &State) -> Digest {
    let values =
        state.resources.iter().fold(0, |sum, value| sum * 8 + value.map_or(0, |it| u64::from(it) + 1));
    let (healthy, label) = (state.healthy.into(), state.label.into());
    digest(&[4, state.spec.into(), healthy, values, number(state.operation), label])
}

/// What was acknowledged last as a whole, and whether nothing came after it.
fn acknowledged(known: &Record) -> Option<(State, bool)> {
    match known.settled {
        Settled::Never | Settled::Unwritten => None,
        Settled::Before | Settled::Now => Some((State::decode(&known.state), known.is_settled())),
    }
}

/// The operation that a report shows, from its body.
pub(super) fn told(report: &Report) -> Option<Operation> {
    let (ended, number) = report.body.split_first()?;
    Some(Operation { number: u32::from_be_bytes(number.try_into().unwrap()), ended: *ended == 1 })
}

fn body(operation: Option<Operation>) -> Bytes {
    let Some(operation) = operation else { return Bytes::new() };
    let mut body = vec![u8::from(operation.ended)];
    body.extend(operation.number.to_be_bytes());
    body.into()
}

/// Decides and builds.
pub(super) fn enrich(event: &Event, known: Option<&Record>, facts: &Facts) -> Enriched {
    let (known, earlier) = match known {
        Some(record) if record.uid == event.uid => (Some(record), None),
        other => (None, other),
    };
    if event.is_deleted() && earlier.is_some_and(|later| event.version.0 > 0 && event.version < later.version)
    {
        return Enriched::filtered(Filtered::Stale);
    }
    let Some(bytes) = event.body() else {
        let unseen = || Record::new(event.uid.clone());
        let mut reports: Vec<_> = earlier.map(|earlier| stub(event, earlier)).into_iter().collect();
        let own = facts.stubs || known.is_some() || !event.coalesced.is_empty();
        if own && earlier.is_none_or(|_| !event.uid.is_empty()) {
            reports.extend(departed(event, &known.cloned().unwrap_or_else(unseen)));
        }
        if reports.is_empty() {
            return Enriched::filtered(Filtered::NeverReported);
        }
        return Enriched { reports, settle: None, filtered: None, refetch: None };
    };
    let state = State::decode(bytes);
    let draft = Draft { event, known, state, facts };
    let (whole, all) = match draft.scope() {
        Ok(scope) => scope,
        Err(filtered) => {
            // What is incomplete stays incomplete: a process that has just begun does not wait for it yet.
            let refetch = known.is_some_and(Record::is_incomplete).then_some(Refetch::Incomplete);
            return Enriched { refetch, ..Enriched::filtered(filtered) };
        }
    };
    let mut enriched = draft.build(whole, all);
    if let Some(earlier) = earlier {
        enriched.reports.insert(0, stub(event, earlier));
    }
    enriched
}

/// Ends that are still to be told, oldest first, but for the one that the newest state shows.
fn untold(event: &Event, known: Option<&Record>, shown: Option<Operation>) -> Vec<Operation> {
    let ends = Record::unreported(known, &event.coalesced).map(operation_of);
    let mut ends: Vec<_> = ends.filter(|end| Some(*end) != shown).collect();
    ends.sort_by_key(|end| end.number);
    ends
}

/// One event being turned into reports.
struct Draft<'a> {
    event: &'a Event,
    known: Option<&'a Record>,
    state: State,
    facts: &'a Facts,
}

impl Draft<'_> {
    /// Whether the object is reported, and whether each of its resources is looked at.
    fn scope(&self) -> Result<(bool, bool), Filtered> {
        if self.event.is_deleted() {
            return Ok((true, false));
        }
        let Some((known, (before, settled))) =
            self.known.and_then(|known| Some((known, acknowledged(known)?)))
        else {
            return Ok((true, false));
        };
        if self.event.cause == Cause::Watch && self.event.version < known.version {
            return Err(Filtered::Stale);
        }
        if self.state.healthy && !before.healthy {
            return Ok((true, true));
        }
        if !settled || sections(&before) != sections(&self.state) || !self.ends().is_empty() {
            return Ok((true, false));
        }
        if known.is_in_doubt() {
            return Ok((known.object().in_doubt, false));
        }
        if self.event.cause == Cause::Refetch && known.is_incomplete() {
            return Ok((known.object().incomplete, false));
        }
        Err(Filtered::Unchanged)
    }

    fn ends(&self) -> Vec<Operation> {
        untold(self.event, self.known, self.state.operation)
    }

    fn build(&self, whole: bool, all: bool) -> Enriched {
        let (event, state, gone) = (self.event, &self.state, self.event.is_deleted());
        let commit = self.facts.commit;
        let mut reports = Vec::new();
        let own = self.known.map(Record::object);
        let lacks = |commit: bool| !commit && !gone;
        if whole {
            for end in self.ends() {
                let showing = State { operation: Some(end), ..*state };
                let content = object(&showing, commit);
                let fact = Some(operation(Some(end)));
                // A delivery that was cut off may have told it as the state that it was then.
                let told = own.is_some_and(|own| own.content == content && !own.in_doubt);
                if !told || !reports.is_empty() {
                    reports.push(Report {
                        fact,
                        body: body(Some(end)),
                        ..self.report(content, lacks(commit))
                    });
                }
            }
            let content = if gone { digest(&[8, state.spec.into()]) } else { object(state, commit) };
            let same = own.is_some_and(|own| own.content == content && !own.in_doubt);
            if gone || !same || !reports.is_empty() {
                let report = self.report(content, lacks(commit));
                reports.push(Report { ends: gone, body: body(state.operation), ..report });
            }
        }
        if gone {
            return Enriched { reports, settle: None, filtered: None, refetch: None };
        }
        let incomplete = if whole { lacks(commit) } else { own.is_some_and(|own| own.incomplete) };
        let mut missing = incomplete;
        let mut unsent = Vec::new();
        for (at, value) in state.resources.iter().enumerate() {
            let Some(value) = *value else { continue };
            let id = entity_of(at);
            let row = self.known.and_then(|known| known.entity(id));
            let decision = decision(state, value);
            let changed = row.is_none_or(|row| {
                all || row.in_doubt
                    || (row.incomplete && event.cause == Cause::Refetch)
                    || row.decision != decision
            });
            if !changed {
                // It was not looked at, and what it lacks is still incomplete.
                missing |= row.is_some_and(|row| row.incomplete);
                continue;
            }
            if !self.facts.live[at] {
                missing = true;
                unsent.push((id, row.map_or(Digest::NONE, |row| row.decision), true));
                continue;
            }
            missing |= lacks(commit);
            let content = resource(at, value, commit);
            if row.is_some_and(|row| row.content == content && !row.in_doubt) {
                unsent.push((id, decision, lacks(commit)));
            } else {
                let (entity, kind) = (id, LISTED);
                reports.push(Report { entity, kind, decision, ..self.report(content, lacks(commit)) });
            }
        }
        let present = state.resources.iter().enumerate().filter(|(_, value)| value.is_some());
        let settle = Checkpoint {
            fact: operation(state.operation),
            incomplete,
            unsent,
            present: present.map(|(at, _)| entity_of(at)).collect(),
            ..Checkpoint::new(event.uid.clone(), event.version, state.encode())
        };
        Enriched {
            filtered: reports.is_empty().then_some(Filtered::SameContent),
            settle: Some(settle),
            reports,
            refetch: missing.then_some(Refetch::Incomplete),
        }
    }

    fn report(&self, content: Digest, incomplete: bool) -> Report {
        Report { decision: digest(&[10]), incomplete, ..Report::of_object(self.event, OBJECT, content) }
    }
}

/// All that is to be told of a life of which nothing but the record is left.
fn departed(event: &Event, record: &Record) -> Vec<Report> {
    let ends = if record.uid == event.uid { untold(event, Some(record), None) } else { Vec::new() };
    let told = ends.into_iter().map(|end| {
        let content = digest(&[11, number(Some(end))]);
        let fact = Some(operation(Some(end)));
        Report { ends: false, content, fact, body: body(Some(end)), ..stub(event, record) }
    });
    told.chain([stub(event, record)]).collect()
}

/// The report of a deletion of which nothing but the record is left.
fn stub(event: &Event, record: &Record) -> Report {
    let version = if record.uid == event.uid { event.version } else { Version(0) };
    let content = digest(&[8, record.state.len() as u64]);
    let draft = Draft { event, known: None, state: State::decode(&[0; 12]), facts: &Facts::ALL };
    Report { uid: record.uid.clone(), version, ends: true, ..draft.report(content, false) }
}
