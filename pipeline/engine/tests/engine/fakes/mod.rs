//! A cluster that is read and watched, an enrichment that remembers what the ledger says, a sink that writes
//! down what came.

mod cluster;
mod enricher;
mod held;
mod receiver;

use pipeline_core::Key;

pub(crate) use cluster::{Cluster, Failure};
pub(crate) use enricher::{Enricher, QUIET};
pub(crate) use held::Compares;
pub(crate) use receiver::{Came, Receiver};

pub(crate) fn key(name: &str) -> Key {
    Key::new("ns", name).unwrap()
}
