//! How a tunnel server tells its own answer from that of whatever it leads to.

use reqwest::header::HeaderName;

/// Stands in the answer of a tunnel server that has no client connected for the host: whoever asked was led nowhere.
pub const NO_TUNNEL: HeaderName = HeaderName::from_static("gitops-runtime-no-tunnel");
