//! How a failed run is told: short enough to be read.

use std::fmt;

use pipeline_core::{Digest, EntityId, Event, Pending, Record, Report};

use super::world::{State, operation_of};
use crate::lane::{Outcome, ReadResult};

/// The first digits.
fn short(Digest(digest): Digest) -> String {
    format!("{:04x}", digest >> 48)
}

fn entity(entity: EntityId) -> String {
    if entity.is_object() { "object".to_owned() } else { format!("r{}", entity.0) }
}

fn mark(is: bool, text: &str) -> &str {
    if is { text } else { "" }
}

pub(super) fn state(state: &State) -> String {
    let State { spec, healthy, label, noise, operation, resources } = state;
    let operation = operation.map_or("-".to_owned(), |it| format!("{}{}", it.number, mark(it.ended, "!")));
    let resources = resources.map(|value| value.map_or("-".to_owned(), |value| value.to_string())).join("");
    format!(
        "spec {spec} {} op {operation} r {resources} {label}/{noise}",
        if *healthy { "healthy" } else { "sick" }
    )
}

pub(super) fn event(event: &Event) -> String {
    let ends: Vec<_> = event.coalesced.iter().map(|end| operation_of(end).number).collect();
    let body = event.body().map_or("no body".to_owned(), |body| state(&State::decode(body)));
    let deleted = mark(event.is_deleted(), "deleted, ");
    format!(
        "{} {} at {} ({:?}): {deleted}{body}, ends {ends:?}",
        event.key, event.uid, event.version.0, event.cause
    )
}

pub(super) fn report(report: &Report) -> String {
    let Report { uid, version, content, incomplete, ends, .. } = report;
    let marks = [mark(*incomplete, " incomplete"), mark(*ends, " ends")].concat();
    format!("{uid} {} at {} {}{marks}", entity(report.entity), version.0, short(*content))
}

pub(super) fn record(record: Option<&Record>) -> String {
    let Some(it) = record else { return "not known".to_owned() };
    let mut out = format!("{} at {}, ", it.uid, it.version.0);
    out += &format!("settled {:?}, op {}", it.settled, short(it.fact));
    for row in &it.entities {
        out += &format!(", {} {}#{}", entity(row.id), short(row.content), row.counter);
        out += &[mark(row.incomplete, " incomplete"), mark(row.in_doubt, " in doubt")].concat();
    }
    out
}

pub(super) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Acked { refetch } => format!("acked, refetch {refetch:?}"),
        Outcome::Filtered { why, refetch, settled } => {
            format!("filtered {why:?}, refetch {refetch:?}{}", mark(*settled, ", settled"))
        }
        Outcome::Retry { reason, blame, after, .. } => format!("retry {reason:?} {blame:?} {after:?}"),
        Outcome::Reject { reason, .. } => format!("reject {reason:?}"),
    }
}

pub(super) fn result(result: &ReadResult) -> String {
    match result {
        ReadResult::Found(found) => event(found),
        ReadResult::Gone { uid, .. } => format!("gone, the ledger knows {uid:?}"),
        other => format!("{other:?}"),
    }
}

pub(super) fn pending(pending: &Pending) -> String {
    let ends: Vec<_> = pending.facts.iter().map(|(uid, _, end)| (uid, operation_of(end).number)).collect();
    format!("ends {ends:?} gone {:?}", pending.gone)
}

impl fmt::Display for super::Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, step, why, trace } = self;
        trace.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        write!(f, "seed {seed}, step {step}: {why}")
    }
}
