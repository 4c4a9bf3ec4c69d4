//! The tests of the engine to which it matters what is between its watch and its shards once more, with NATS JetStream there, and
//! those of what stands on a server alone. Each starts a real `nats-server` on a free port, with its storage in a temporary folder.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's fakes fail by panicking")]

mod bus;
mod config_maps_bucket;
mod fakes;
mod flow;
mod hostile;
mod in_doubt;
mod on_jetstream;
mod others;
mod proofs;
mod replayed;
mod reports;
mod restart;
mod results;
mod running;
mod server;
mod shares;
mod verify;

use on_jetstream as on;
