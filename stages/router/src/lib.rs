//! One entrance: requests from outside, each to the service that it is for.
//!
//! takes: HTTP/1.1 and HTTP/2, plain or over TLS, upgrades and streams - gives: what the service behind a path answers
//! calls: the App Proxy, Argo Workflows, and the webhooks of event sources
//! fails: a request that two servers could read in two ways is refused before anybody else sees it; a service that is
//! away is answered for with 502, 503 or 504, and every other route goes on

mod access;
mod config;
mod connection;
mod connection_state;
mod exchange;
mod expiring_body;
mod forwarded;
mod head;
mod metrics;
mod moment;
mod names;
mod path;
mod probe;
mod proxy;
mod refusal;
mod replayable_body;
mod route;
mod router;
mod streamed;
mod upgrade;
mod upstream;

pub use config::{Allowed, Limits, NamesConfig, Proxied, RouterConfig, Webhooks};
pub use names::NamesError;
pub use router::{BuildError, Router};
pub use upstream::UpstreamError;
