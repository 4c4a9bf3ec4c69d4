//! The engine between a source, an enrichment and a sink made for these tests. No I/O: time is paused, and
//! passes only when nothing can run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's fakes fail by panicking")]

mod circuit;
mod fakes;
mod flow;
mod reports;
mod running;
