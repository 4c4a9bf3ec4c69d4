//! Every test of the engine once more, with NATS JetStream between its watch and its shards, and those of what stands on a
//! server alone. Each starts a real `nats-server` on a free port, with its storage in a temporary folder.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's fakes fail by panicking")]

mod bus;
mod circuit;
mod config_maps_bucket;
mod credentials;
mod divergence;
mod explain;
mod fakes;
mod flow;
mod hostile;
mod in_doubt;
mod on_jetstream;
mod proofs;
mod replayed;
mod reports;
mod restart;
mod results;
mod running;
mod server;
mod shares;
mod top;
mod verify;

use on_jetstream as on;
