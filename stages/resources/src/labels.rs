//! What this stage counts by.

use pipeline_core::{Filtered, Labels, Peer, ReportKind};

/// Of an object.
pub const OBJECT: ReportKind = ReportKind::of_object("object");

/// Only members changed that nobody would call a change.
pub const HEARTBEAT: Filtered = Filtered::Of("heartbeat");
/// It is of no use now, and was none before.
pub const IDLE: Filtered = Filtered::Of("idle");
/// The filter of its kind does not take it, and it was not reported before.
pub const EXCLUDED: Filtered = Filtered::Of("excluded");
/// The filter of its kind has no answer for it.
pub const UNANSWERED: Filtered = Filtered::Of("filter-unanswered");

/// All of them.
pub const LABELS: Labels = Labels {
    kinds: &[OBJECT],
    filtered: &[HEARTBEAT, IDLE, EXCLUDED, UNANSWERED],
    ..Labels::of_calls(Peer::KUBERNETES, &[])
};
