//! The commands of `loadtest`, on top of its crates: the simulators, the judge, the real cluster and the benchmark.

pub mod demo;
pub mod faults;
pub mod full;
pub mod replay;
pub mod replicas;

// The tests of the workspace speak of these by one name.
pub use loadtest_judge::{canary, oracle};
pub use loadtest_sim as sim;
pub use loadtest_sim::{nats, port, process, proxy, recordings, reporter};
