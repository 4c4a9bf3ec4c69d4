//! The engine: shards and lanes, retry, supervision, ledger, health and metrics. It alone acknowledges,
//! retries, orders, counts and spawns; stages say only "here is the result", "retry", or "reject".

pub mod circuit;
mod divergence;
pub mod lane;
pub mod limit;
pub mod run;
mod shard;
#[cfg(test)]
mod simulation;
pub mod supervise;
pub mod verify;
