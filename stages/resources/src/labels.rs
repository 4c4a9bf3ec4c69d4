//! The labels of this stage's metrics.

use pipeline_core::{Filtered, Labels, Peer, ReportKind};

/// A report of an object.
pub const OBJECT: ReportKind = ReportKind::of_object("object");

/// Only members changed whose changes nobody would call a change of the object.
pub const HEARTBEAT: Filtered = Filtered::Of("heartbeat");
/// Nothing of it runs, and nothing did before.
pub const IDLE: Filtered = Filtered::Of("idle");
/// The filter of its kind does not take it, and it was not reported before.
pub const EXCLUDED: Filtered = Filtered::Of("excluded");
/// The filter of its kind has no answer for it.
pub const UNANSWERED: Filtered = Filtered::Of("filter-unanswered");
/// It does not belong to an application that its route takes.
pub const OTHER_APPLICATION: Filtered = Filtered::Of("other-application");

/// All labels of this stage.
pub const LABELS: Labels = Labels {
    kinds: &[OBJECT],
    filtered: &[HEARTBEAT, IDLE, EXCLUDED, UNANSWERED, OTHER_APPLICATION],
    ..Labels::of_calls(Peer::KUBERNETES, &[])
};
