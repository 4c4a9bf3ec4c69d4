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
/// It does not belong to an application that its route takes.
pub const OTHER_APPLICATION: Filtered = Filtered::Of("other-application");

/// All of them.
pub const LABELS: Labels = Labels {
    kinds: &[OBJECT],
    filtered: &[HEARTBEAT, IDLE, EXCLUDED, UNANSWERED, OTHER_APPLICATION],
    ..Labels::of_calls(Peer::KUBERNETES, &[])
};
