//! Tunnels over real connections: visitors, a server, clients, and the services that they forward to.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod attempts;
mod compatible;
mod drains;
mod ears;
mod ended;
mod failures;
mod heads;
mod lost;
mod proxied;
mod recorded;
mod secured;
mod served;
mod service;
mod spoken;
mod strangers;
mod visits;
mod ways;
mod world;
