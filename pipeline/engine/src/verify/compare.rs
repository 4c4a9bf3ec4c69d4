//! What one object's state in the cluster and its record tell when they are laid side by side. Pure.

use pipeline_core::{Record, Surveyed};

/// How an object differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Difference {
    /// In the cluster, and nothing is remembered.
    Missing,
    /// In the cluster, and another life is remembered.
    Recreated,
    /// Remembered, and not in the list. Whether it is gone must be asked: the list holds what is watched alone.
    Unlisted,
    /// Its state may be newer than what was acknowledged, or nothing is sure of what the receiver holds.
    Newer,
    /// What is reported of it may have changed without a newer state: only reading it again tells.
    MayDrift,
}

/// Compares what a list said of an object with what is remembered by now, which may be newer.
pub(super) fn difference(listed: Option<&Surveyed>, known: Option<&Record>) -> Option<Difference> {
    match (listed, known) {
        (None, None) => None,
        (Some(_), None) => Some(Difference::Missing),
        (None, Some(_)) => Some(Difference::Unlisted),
        (Some(listed), Some(known)) if listed.uid != known.uid => Some(Difference::Recreated),
        (Some(listed), Some(known)) => {
            // What a restored store shows as it was before has been compared when the era began, and was left as it is.
            let newer = known.version < listed.version && known.version.number() != listed.version.number();
            match newer || !is_whole(known) {
                true => Some(Difference::Newer),
                false => listed.may_drift.then_some(Difference::MayDrift),
            }
        }
    }
}

/// Whether everything of an object was acknowledged, and it is known what the receiver holds.
pub(super) fn is_whole(record: &Record) -> bool {
    record.is_settled() && !record.is_in_doubt()
}

/// Reports that were acknowledged of one object since it was remembered as `before`.
pub(super) fn acknowledged(before: Option<&Record>, after: Option<&Record>) -> u64 {
    // An entity of which nothing was remembered began where the record's counters begin.
    let since = |before: Option<&Record>, after: &Record| {
        let moved = |entity| {
            let now = after.counter(entity);
            let moved = before.map(|before| now.saturating_sub(before.counter(entity)));
            moved.unwrap_or_else(|| Record::counted(now))
        };
        after.entities.iter().map(|row| moved(row.id)).sum::<u64>()
    };
    match (before, after) {
        (None, None) => 0,
        (Some(_), None) => 1,
        // The end of the one life, and what was said of the other.
        (Some(before), Some(after)) if before.uid != after.uid => 1 + since(None, after),
        (before, Some(after)) => since(before, after),
    }
}
