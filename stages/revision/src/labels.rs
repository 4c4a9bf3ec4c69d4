//! What this stage counts by.

use pipeline_core::{Call, Filtered, Labels, Peer, ReportKind};

/// Of an application.
pub const CHANGE: ReportKind = ReportKind::of_object("change_revision");

/// It was never synced to a revision of a repository.
pub const NEVER_SYNCED: Filtered = Filtered::Of("never_synced");

/// No call is counted: repositories are not one peer.
const CALLS: &[Call] = &[];

/// All of them.
pub const LABELS: Labels =
    Labels { kinds: &[CHANGE], filtered: &[NEVER_SYNCED], ..Labels::of_calls(Peer::KUBERNETES, CALLS) };
