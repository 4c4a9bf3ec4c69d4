//! What this stage counts by.

use pipeline_core::{Call, Labels, Peer};

/// One report.
pub const REPORT: Call = Call::new(Peer::PLATFORM, "report");

/// All of them.
pub const LABELS: Labels = Labels::of_calls(Peer::PLATFORM, &[REPORT]);
