//! Which of two reports of an entity is the newer one.

use std::borrow::Cow;

use crate::report::{Delivery, Millis, Report};

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
    /// The highest era that was told of the entity.
    pub(super) era: i64,
}

impl<'a> Newest<'a> {
    /// What a report says of itself; its era is told beside it.
    pub(super) fn of(report: &'a Report) -> Self {
        let Report { uid, version, created_at, at, .. } = report;
        Self { uid: uid.into(), version: *version, created_at: *created_at, at: *at, era: 0 }
    }

    /// Whether a report shows an earlier version of the object than the state does.
    pub(super) fn is_ahead_of(&self, report: &Report) -> bool {
        let is_earlier = matches!((self.version, report.version), (Some(held), Some(new)) if new < held);
        is_earlier && !self.uid.is_empty() && self.uid == report.uid
    }

    /// Whether a report is not older than the state: by its era, its incarnation and its version, in this order. Where these do not
    /// tell, whoever reports of the application itself sends one report of an entity after the other, and what comes later is
    /// later: the times of two of its processes are of two clocks. Else the time of the report decides.
    pub(super) fn gives_way_to(&self, delivery: &Delivery) -> bool {
        let report = &delivery.report;
        let later = report.at >= self.at;
        let follows = later || (delivery.keyed && report.has_source);
        let is_application = report.entity.resource.is_none();
        let is_back = delivery.era > self.era
            || (report.timed && report.at.saturating_sub(self.at) > VERSIONS_WENT_BACK);
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
            (Some(held), Some(new)) if new == held => follows,
            (Some(held), Some(new)) => new > held || is_back,
            // The end of an application that was not seen any more has no version.
            (Some(_), None) if is_application => follows,
            _ => later,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::samples::{delivery, report};

    #[test]
    fn versions_and_lives_tell_which_is_newer_and_times_where_they_do_not() {
        let one = |uid: &str, version, created_at, at, timed| {
            let mut one = report("shop", None);
            (one.uid, one.version, one.created_at, one.at, one.timed) =
                (uid.to_owned(), version, created_at, at, timed);
            one
        };
        // Of two reporters nobody knows whose report was made first.
        let sent = |report: Report, era| Delivery { keyed: false, era, ..delivery(1, report) };
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
                Newest::of(&held).gives_way_to(&sent(other, 0)),
                is_newer,
                "{uid} {version:?} {created_at:?} {at}"
            );
        }
    }

    #[test]
    fn what_one_reporter_sends_of_an_application_is_newer_the_later_it_comes_whatever_its_clock_says() {
        let of = |version, at, deleted| Report { version, at, deleted, ..report("shop", None) };
        let held = of(Some(5), 1_000, false);
        let gives_way = |report: Report, keyed| {
            Newest::of(&held).gives_way_to(&Delivery { keyed, ..delivery(1, report) })
        };
        assert!(gives_way(of(Some(5), 1, false), true));
        assert!(gives_way(of(None, 1, true), true), "an end that was found by its absence");
        assert!(!gives_way(of(Some(4), 2_000, false), true), "its version says that it is older");
        let over = of(None, 1_000, true);
        let late = Delivery { keyed: true, ..delivery(1, of(Some(5), 999, false)) };
        assert!(!Newest::of(&over).gives_way_to(&late), "it was under way when its application ended");
        assert!(!gives_way(of(Some(5), 1, false), false), "without a key");
        assert!(
            !gives_way(Report { has_source: false, ..of(Some(5), 1, false) }, true),
            "of another reporter"
        );
        let resource = |version| Report { version, at: 1, ..report("shop", Some("web")) };
        assert!(gives_way(resource(Some(5)), true));
        assert!(!gives_way(resource(None), true), "what is not there yet may be told late");
    }

    #[test]
    fn what_is_of_a_later_era_is_newer_whatever_its_version_and_its_incarnation() {
        let of = |uid: &str, version, created_at| {
            let mut one = report("shop", None);
            (one.uid, one.version, one.created_at) = (uid.to_owned(), version, created_at);
            one
        };
        let of_held = of("u", Some(9), Some(100));
        let held = Newest { era: 1, ..Newest::of(&of_held) };
        for (is_newer, uid, version, created_at, era) in [
            (true, "u", Some(4), Some(100), 2),
            (true, "v", Some(4), Some(50), 2),
            (false, "u", Some(4), Some(100), 1),
            (false, "v", Some(4), Some(50), 1),
            // Another reporter, or one that lost what it remembered, may count from the start.
            (true, "u", Some(10), Some(100), 0),
            (false, "u", Some(4), Some(100), 0),
        ] {
            let sent = Delivery { era, ..delivery(1, of(uid, version, created_at)) };
            assert_eq!(held.gives_way_to(&sent), is_newer, "{uid} {version:?} {era}");
        }
    }
}
