//! Who says where the version of an application stands.

use std::time::Duration;

use pipeline_core::async_trait;
use serde_json::Value;

use crate::versions::VersionSource;

/// How long what was said holds.
pub(crate) const KEPT: Duration = Duration::from_secs(180);

/// Says where versions stand.
#[async_trait]
pub trait VersionSources: std::fmt::Debug + Send + Sync {
    /// Of the application with this `metadata`; `None` where nobody says it, and it is as everywhere.
    async fn of(&self, metadata: &Value) -> Option<VersionSource>;
}

/// The same for every application, or nothing.
#[derive(Debug, Clone, Default)]
pub struct OneForAll(pub Option<VersionSource>);

#[async_trait]
impl VersionSources for OneForAll {
    async fn of(&self, _: &Value) -> Option<VersionSource> {
        self.0.clone()
    }
}
