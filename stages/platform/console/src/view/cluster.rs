//! A cluster that applications are deployed to.

/// A cluster, as one runtime names it.
#[derive(Debug, Clone)]
pub struct ClusterRow {
    /// The runtime whose applications go there.
    pub runtime: String,
    /// By its name, or else by its address.
    pub name: String,
    /// How many applications go there.
    pub applications: u64,
    /// How many of them are healthy.
    pub healthy: u64,
    /// How many of them are degraded or missing.
    pub unwell: u64,
    /// How many of them are out of sync.
    pub out_of_sync: u64,
    /// Its runtime is silent: all of it is as of then.
    pub silent: bool,
}
