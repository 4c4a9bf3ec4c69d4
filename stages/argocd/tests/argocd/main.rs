//! The Argo CD side of enrichment against real servers on loopback.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod content;
mod events;
mod hanging;
mod kept;
mod known;
mod login;
mod responses;
mod sources;
mod support;
