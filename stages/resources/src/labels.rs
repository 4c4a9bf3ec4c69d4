//! What this stage counts by.

use pipeline_core::{Filtered, Labels, Peer, ReportKind};

/// Of an object.
pub const OBJECT: ReportKind = ReportKind::of_object("object");

/// Only members changed that nobody would call a change.
pub const HEARTBEAT: Filtered = Filtered::Of("heartbeat");
/// It is of no use now, and was none before.
pub const IDLE: Filtered = Filtered::Of("idle");

/// All of them.
pub const LABELS: Labels =
    Labels { kinds: &[OBJECT], filtered: &[HEARTBEAT, IDLE], ..Labels::of_calls(Peer::KUBERNETES, &[]) };
