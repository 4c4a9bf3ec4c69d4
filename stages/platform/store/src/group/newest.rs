//! Which of two reports of an entity is the newer one.

use std::borrow::Cow;

use crate::report::{Millis, Report};

/// An older version, or life, that says it was reported this much later than a newer one is of a cluster that was restored, whose
/// versions went back, or of another cluster that an application moved back to; two watches of one object are never so far apart.
/// A report that does not say when may have waited for as long.
const VERSIONS_WENT_BACK: Millis = 10 * 60 * 1000;

/// Of the report that an entity's state is of: what decides whether another is newer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Newest<'a> {
    pub(super) uid: Cow<'a, str>,
    pub(super) version: Option<i64>,
    pub(super) created_at: Option<Millis>,
    pub(super) at: Millis,
}

impl<'a> Newest<'a> {
    pub(super) fn of(report: &'a Report) -> Self {
        let Report { uid, version, created_at, at, .. } = report;
        Self { uid: uid.into(), version: *version, created_at: *created_at, at: *at }
    }

    /// Whether a report is not older than the state, by incarnation and version, and by the time of the report where these do
    /// not tell: what was never live has neither.
    pub(super) fn gives_way_to(&self, report: &Report) -> bool {
        let later = report.at >= self.at;
        let is_back = report.timed && report.at.saturating_sub(self.at) > VERSIONS_WENT_BACK;
        if self.uid.is_empty() || report.uid.is_empty() {
            return later;
        }
        if self.uid != report.uid {
            return match (self.created_at, report.created_at) {
                (Some(held), Some(new)) if held != new => new > held || is_back,
                _ => later,
            };
        }
        match (self.version, report.version) {
            (Some(held), Some(new)) if new == held => later,
            (Some(held), Some(new)) => new > held || is_back,
            _ => later,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::samples::report;

    #[test]
    fn versions_and_lives_tell_which_is_newer_and_times_where_they_do_not() {
        let one = |uid: &str, version, created_at, at, timed| {
            let mut one = report("shop", None);
            (one.uid, one.version, one.created_at, one.at, one.timed) =
                (uid.to_owned(), version, created_at, at, timed);
            one
        };
        let held = one("u", Some(5), Some(100), 1_000, true);
        for (is_newer, uid, version, created_at, at, timed) in [
            (true, "u", Some(6), None, 1, true),
            (false, "u", Some(4), None, 2_000, true),
            (true, "u", Some(5), None, 1_000, true),
            (false, "u", Some(5), None, 999, true),
            // So much later that versions went back; one that does not say when may have waited.
            (true, "u", Some(4), None, 601_001, true),
            (false, "u", Some(4), None, 601_000, true),
            (false, "u", Some(4), None, 601_001, false),
            (true, "u", None, None, 1_000, true),
            (false, "u", None, None, 999, true),
            (true, "v", Some(1), Some(101), 1, true),
            (false, "v", Some(9), Some(99), 2_000, true),
            // A restored cluster, or another one, has an earlier life.
            (true, "v", Some(9), Some(99), 601_001, true),
            (false, "v", Some(9), Some(99), 601_000, true),
            (false, "v", Some(9), Some(99), 601_001, false),
            (true, "v", Some(1), Some(100), 1_000, true),
            (false, "v", Some(9), None, 999, true),
            (true, "", Some(1), None, 1_000, true),
            (false, "", Some(9), None, 999, true),
        ] {
            let other = one(uid, version, created_at, at, timed);
            assert_eq!(
                Newest::of(&held).gives_way_to(&other),
                is_newer,
                "{uid} {version:?} {created_at:?} {at}"
            );
        }
    }
}
