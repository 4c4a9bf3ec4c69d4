//! Every test of the engine once more, with NATS JetStream between its watch and its shards.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's fakes fail by panicking")]

mod circuit;
mod credentials;
mod divergence;
mod explain;
mod fakes;
mod flow;
mod hostile;
#[path = "on_jetstream.rs"]
mod on;
mod replayed;
mod reports;
mod restart;
mod running;
#[expect(dead_code, reason = "other tests kill it, and take its storage away")]
#[path = "../bus/server.rs"]
mod server;
mod shares;
mod top;
mod unsure;
mod verify;
