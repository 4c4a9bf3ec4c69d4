//! What a stage counts by, declared before anything happens.

use crate::{Call, Filtered, Peer, ReportKind};

/// The labels of one stage: metrics show them from the start, at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Labels {
    /// Whom it calls.
    pub peer: Peer,
    /// Every call that it makes of its peer.
    pub calls: &'static [Call],
    /// Its calls may be answered from a cache.
    pub caches: bool,
    /// So many of its calls may be under way at once, and others wait.
    pub limits: bool,
    /// The kinds of the reports that it builds.
    pub kinds: &'static [ReportKind],
    /// Why it filters, beside [`Filtered::COMMON`].
    pub filtered: &'static [Filtered],
}

impl Labels {
    /// Those of a stage that calls `peer`, and builds no reports.
    #[must_use]
    pub const fn of_calls(peer: Peer, calls: &'static [Call]) -> Self {
        Self { peer, calls, caches: false, limits: false, kinds: &[], filtered: &[] }
    }
}
