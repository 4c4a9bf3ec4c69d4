//! The engine: shards and lanes, retry, supervision, ledger, health and metrics. It alone acknowledges,
//! retries, orders, counts and spawns; stages say only "here is the result", "retry", or "reject".

pub mod admin;
pub mod bus;
pub mod circuit;
mod divergence;
pub mod health;
pub mod lane;
pub mod ledger;
pub mod limit;
pub mod metrics;
pub mod ownership;
pub mod run;
pub mod serve;
mod shard;
pub mod sharding;
#[cfg(test)]
mod simulation;
pub mod spans;
pub mod supervise;
pub mod top;
pub mod verify;
