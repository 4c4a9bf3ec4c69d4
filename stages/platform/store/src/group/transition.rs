//! Transitions within a group: those that are kept, and those that it adds.

use super::said::Said;
use crate::report::{Millis, Pods, Report};

/// Which transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransitionRef {
    /// One that is kept, by its number.
    Kept(i64),
    /// One that this group adds, by its place among those.
    New(usize),
}

/// One that a group adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewTransition<'a> {
    /// Its entity, by the place among those that are known.
    pub(super) entity: usize,
    pub(super) at: Millis,
    pub(super) uid: &'a str,
    pub(super) version: Option<i64>,
    pub(super) pods: Option<Pods>,
    pub(super) said: Said<'a>,
    /// In how many reports.
    pub(super) reports: Reported,
}

/// Reports that say the same, and when the last of them was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) times: i64,
    pub(super) last_at: Millis,
}

impl Reported {
    /// Once, by a report that was made then.
    pub(super) const fn once(at: Millis) -> Self {
        Self { times: 1, last_at: at }
    }

    pub(super) fn again(&mut self, at: Millis) {
        self.times += 1;
        self.last_at = self.last_at.max(at);
    }
}

impl<'a> NewTransition<'a> {
    /// By a report, of an entity that is so since then.
    pub(super) fn by(report: &'a Report, entity: usize, since: Millis, said: Said<'a>) -> Self {
        let Report { at, uid, version, pods, .. } = report;
        Self { entity, at: since, uid, version: *version, pods: *pods, said, reports: Reported::once(*at) }
    }
}
