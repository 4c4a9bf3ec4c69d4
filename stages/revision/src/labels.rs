//! What this stage counts by.

use pipeline_core::{Call, Filtered, Labels, Peer, ReportKind};

/// Of an application.
pub const CHANGE: ReportKind = ReportKind::of_object("change_revision");

/// It was never synced to a revision of a repository.
pub const NEVER_SYNCED: Filtered = Filtered::Of("never_synced");

/// A sync of it is asked for, and has not begun; or it is a dry run, which never does.
pub const NOT_BEGUN: Filtered = Filtered::Of("not_begun");

/// No call is counted: repositories are not one peer.
const CALLS: &[Call] = &[];

/// All of them.
pub const LABELS: Labels = Labels {
    kinds: &[CHANGE],
    filtered: &[NEVER_SYNCED, NOT_BEGUN],
    ..Labels::of_calls(Peer::KUBERNETES, CALLS)
};
