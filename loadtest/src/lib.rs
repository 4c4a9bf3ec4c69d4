//! Simulators of the runtime's peers, recordings, replay, scenarios and benchmarks.

pub mod recordings;
pub mod replay;
pub mod sim;
