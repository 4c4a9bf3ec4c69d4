//! Simulators of the runtime's peers, recordings, replay, scenarios and benchmarks.

pub mod bench;
pub mod cluster;
pub mod demo;
pub mod faults;
pub mod full;
pub mod interrupt;
pub mod nats;
pub mod oracle;
pub mod process;
pub mod proxy;
pub mod recordings;
pub mod replay;
pub mod replicas;
pub mod reporter;
pub mod screen;
pub mod sim;
