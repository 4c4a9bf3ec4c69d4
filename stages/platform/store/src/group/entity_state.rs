//! An entity, as it is kept and as the reports of a group change it.

use super::drifts::Drifts;
use super::newest::Newest;
use super::transition::TransitionRef;
use crate::report::{Millis, ResourceName};

/// An entity.
#[derive(Debug, Clone, Default)]
pub(super) struct EntityState<'a> {
    /// `None`: it is new.
    pub(super) id: Option<i64>,
    /// Its application, by the place among those that are known.
    pub(super) application: usize,
    /// `None`: the application itself.
    pub(super) resource: Option<&'a ResourceName>,
    /// Its state: the newest that was told.
    pub(super) current: Option<TransitionRef>,
    /// Since when it is in that state.
    pub(super) since: Millis,
    /// What came last, be it older than `current`.
    pub(super) latest: Option<TransitionRef>,
    /// Since when `latest` was so.
    pub(super) latest_since: Millis,
    /// The digest of `latest`.
    pub(super) content: Vec<u8>,
    pub(super) newest: Newest<'a>,
    /// The beginning of the digest of its last key, where the group brought one.
    pub(super) held_key: Option<&'a [u8]>,
    /// What owns it, as its reports say: `None` where none of the group does.
    pub(super) owner: Option<&'a str>,
    pub(super) drifts: Drifts,
    /// Whether a report of the group was about it.
    pub(super) is_reported: bool,
}
