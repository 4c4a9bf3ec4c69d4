//! The client against real servers on loopback.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod answers;
mod support;
mod tls;
mod traced;
