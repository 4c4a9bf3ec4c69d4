//! A resource of an application.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use stages_platform_store::{ApplicationName, Pods};

use super::state::{Health, SyncStatus};

/// Which resource of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey {
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for one of the whole cluster.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// As it stands in addresses: `group/kind/namespace/name`, none of which can hold a slash.
impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.group, self.kind, self.namespace, self.name)
    }
}

impl FromStr for ResourceKey {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<_> = text.splitn(4, '/').map(str::to_owned).collect();
        let [group, kind, namespace, name] = <[String; 4]>::try_from(parts).map_err(|_| ())?;
        Ok(Self { group, kind, namespace, name })
    }
}

/// A resource of an application, at the end of an interval.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Which one.
    pub key: ResourceKey,
    /// Its health, if it has one.
    pub health: Option<Health>,
    /// Whether it is what Git says.
    pub sync: SyncStatus,
    /// What was said of its health.
    pub message: String,
    /// Of a ReplicaSet: its pods.
    pub pods: Option<Pods>,
    /// The resource above it; `None`: the application.
    pub parent: Option<ResourceKey>,
    /// Since when it is as it is.
    pub since: Timestamp,
    /// Its manifest differs between the two moments.
    pub changed: bool,
}

/// A resource of the fleet.
#[derive(Debug, Clone)]
pub struct ResourceRow {
    /// Of which application.
    pub application: ApplicationName,
    /// What it is.
    pub resource: Resource,
    /// When it was seen to be gone.
    pub gone: Option<Timestamp>,
}
