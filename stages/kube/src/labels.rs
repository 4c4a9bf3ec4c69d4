//! What this stage counts by.

use pipeline_core::{Call, Labels, Peer};

/// One page of a list.
pub const LIST: Call = Call::new(Peer::KUBERNETES, "list");
/// One watch connection.
pub const WATCH: Call = Call::new(Peer::KUBERNETES, "watch");
/// One object by name.
pub const GET: Call = Call::new(Peer::KUBERNETES, "get");

/// All of them.
pub const LABELS: Labels = Labels::of_calls(Peer::KUBERNETES, &[LIST, WATCH, GET]);
