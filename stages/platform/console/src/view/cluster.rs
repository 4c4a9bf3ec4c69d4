//! A cluster that applications are deployed to.

use stages_platform_store::FleetCluster;

/// A cluster, as one runtime names it.
#[derive(Debug, Clone)]
pub struct ClusterRow {
    /// With how its applications are.
    pub cluster: FleetCluster,
    /// Its runtime is silent: all of it is as of then.
    pub silent: bool,
}
