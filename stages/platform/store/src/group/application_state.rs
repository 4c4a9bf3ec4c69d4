//! An application, as it is kept and as the reports of a group change it.

use std::borrow::Cow;

use crate::fleet::Index;
use crate::report::{Millis, Report};

/// Its runtime, its namespace, its name.
pub(super) type ApplicationKey<'a> = (i64, Cow<'a, str>, Cow<'a, str>);

/// An application.
#[derive(Debug, Clone)]
pub(super) struct ApplicationState<'a> {
    pub(super) key: ApplicationKey<'a>,
    /// `None`: it is new.
    pub(super) id: Option<i64>,
    /// The newest right by which was reported of it.
    pub(super) epoch: i64,
    /// Whether that right is newer than what is kept.
    pub(super) has_new_epoch: bool,
    pub(super) index: Index<'a>,
    /// The report of it that came last.
    pub(super) last: Option<&'a Report>,
    /// The newest report of it that does not tell its end.
    pub(super) newest: Option<&'a Report>,
    /// What was held of its entities for whoever compares is held no more.
    pub(super) forgets_held: bool,
    /// Its entities, by their places among those that are known.
    pub(super) entities: Vec<usize>,
}

impl<'a> ApplicationState<'a> {
    pub(super) fn new(key: ApplicationKey<'a>, id: Option<i64>, epoch: i64, index: Index<'a>) -> Self {
        let (has_new_epoch, forgets_held) = (false, false);
        let (last, newest, entities) = (None, None, Vec::new());
        Self { key, id, epoch, has_new_epoch, index, last, newest, forgets_held, entities }
    }

    /// Whether whoever reports by this right may still do so.
    pub(super) const fn admits(&mut self, epoch: i64) -> bool {
        if epoch < self.epoch {
            return false;
        }
        self.has_new_epoch |= epoch > self.epoch;
        self.epoch = epoch;
        true
    }

    /// Follows a report of the application itself, which is so since then.
    pub(super) fn follow(&mut self, report: &'a Report, since: Millis, is_newer: bool) {
        self.index.hold(report);
        self.last = Some(report);
        if is_newer {
            self.index.follow(report, since);
            if !report.deleted {
                self.newest = Some(report);
            }
        }
    }
}
