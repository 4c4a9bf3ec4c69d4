//! The engine between a source, an enrichment and a sink made for these tests. Without I/O time is paused, and passes
//! only when nothing can run; tests with a ledger in a file take real time.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's fakes fail by panicking")]

mod circuit;
mod credentials;
mod divergence;
mod explain;
mod fakes;
mod flow;
mod in_doubt;
mod on_memory;
mod others;
mod proofs;
mod replayed;
mod reports;
mod restart;
mod running;
mod top;
mod verify;

use on_memory as on;
