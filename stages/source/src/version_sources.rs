//! The place of an application's version in its files, as settings or the platform say it.

use std::time::Duration;

use pipeline_core::async_trait;
use serde_json::Value;

use crate::versions::VersionSource;

/// How long an answer is cached.
pub(crate) const KEPT: Duration = Duration::from_secs(180);

/// Knows the places of versions.
#[async_trait]
pub trait VersionSources: std::fmt::Debug + Send + Sync {
    /// The place of the version of the application with this `metadata`; `None`: the default one.
    async fn of(&self, metadata: &Value) -> Option<VersionSource>;
}

/// The same place for every application; `None`: the default one.
#[derive(Debug, Clone, Default)]
pub struct FixedVersionSource(pub Option<VersionSource>);

#[async_trait]
impl VersionSources for FixedVersionSource {
    async fn of(&self, _: &Value) -> Option<VersionSource> {
        self.0.clone()
    }
}
