//! Drift of an entity, from its onset to its end.

use crate::report::{Millis, Report};

/// From when to when an entity was out of sync, and how many of its states were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drift {
    /// `None`: it began in this group.
    pub(super) id: Option<i64>,
    pub(super) onset: Millis,
    pub(super) ended: Option<Millis>,
    /// Of one that is kept: how many more.
    pub(super) repeats: i64,
}

/// The one of an entity that goes on, and those that follow it in a group, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Drifts(Vec<Drift>);

impl Drifts {
    /// With the one that is kept and goes on, if there is one.
    pub(super) fn going_on(id: Option<i64>) -> Self {
        Self(id.map(|id| Drift { id: Some(id), onset: 0, ended: None, repeats: 0 }).into_iter().collect())
    }

    /// A new state, since then, that is out of sync begins one, or goes on with the one that goes on; one in sync ends it.
    pub(super) fn follow(&mut self, report: &Report, at: Millis) {
        let is_out_of_sync = report.sync.as_deref() == Some("OutOfSync") && !report.deleted;
        let is_in_sync = report.deleted || report.sync.as_deref() == Some("Synced");
        match self.0.last_mut().filter(|drift| drift.ended.is_none()) {
            Some(drift) if is_out_of_sync => drift.repeats += 1,
            Some(drift) if is_in_sync => drift.ended = Some(at),
            None if is_out_of_sync => {
                self.0.push(Drift { id: None, onset: at, ended: None, repeats: 1 });
            }
            _ => {}
        }
    }

    /// Those that are new or not as they are kept.
    pub(super) fn changed(&self) -> impl Iterator<Item = &Drift> {
        self.0.iter().filter(|drift| drift.id.is_none() || drift.ended.is_some() || drift.repeats > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::samples::report;

    fn follow(drifts: &mut Drifts, said: &[(&str, Millis, bool)]) {
        for (sync, at, deleted) in said {
            let mut one = report("shop", None);
            (one.sync, one.deleted) = (Some((*sync).to_owned()), *deleted);
            drifts.follow(&one, *at);
        }
    }

    fn drift(id: Option<i64>, onset: Millis, ended: Option<Millis>, repeats: i64) -> Drift {
        Drift { id, onset, ended, repeats }
    }

    #[test]
    fn a_drift_begins_goes_on_and_ends_as_often_as_it_is_reported() {
        let mut drifts = Drifts::default();
        follow(&mut drifts, &[("Synced", 1, false), ("OutOfSync", 2, false), ("OutOfSync", 3, false)]);
        follow(&mut drifts, &[("Unknown", 4, false), ("Synced", 5, false), ("Synced", 6, false)]);
        follow(&mut drifts, &[("OutOfSync", 7, false), ("OutOfSync", 8, true), ("OutOfSync", 9, false)]);
        let expected = [drift(None, 2, Some(5), 2), drift(None, 7, Some(8), 1), drift(None, 9, None, 1)];
        assert_eq!(drifts.changed().cloned().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn of_a_drift_that_is_kept_what_is_new_is_told_and_nothing_where_nothing_is() {
        let mut drifts = Drifts::going_on(Some(7));
        follow(&mut drifts, &[("Unknown", 1, false)]);
        assert_eq!(drifts.changed().count(), 0);
        follow(&mut drifts, &[("OutOfSync", 2, false), ("Synced", 3, false), ("OutOfSync", 4, false)]);
        let expected = [drift(Some(7), 0, Some(3), 1), drift(None, 4, None, 1)];
        assert_eq!(drifts.changed().cloned().collect::<Vec<_>>(), expected);
    }
}
