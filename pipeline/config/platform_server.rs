//! The settings of the role `platform`. What each means, and its default, stands in `config/default.yaml`, and there alone.

use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::problem::Problems;
use super::units::{As, Size};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PlatformServer {
    pub(crate) external_url: As<Option<Url>>,
    pub(crate) store: Store,
    pub(crate) ingest: Ingest,
    pub(crate) retention: Retention,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Store {
    pub(crate) path: As<Option<PathBuf>>,
    pub(crate) postgres_url: As<Option<SecretString>>,
    pub(crate) postgres_url_file: As<Option<PathBuf>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Ingest {
    pub(crate) max_body: As<Size>,
    pub(crate) max_unpacked: As<Size>,
    pub(crate) body_timeout: As<Duration>,
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) runtime_requests: usize,
    pub(crate) runtime_bytes: As<Size>,
    pub(crate) all_bytes: As<Size>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retention {
    pub(crate) history: As<Duration>,
    pub(crate) keys: As<Duration>,
    pub(crate) interval: As<Duration>,
}

impl PlatformServer {
    pub(super) fn check(&self, problems: &mut Problems) {
        let Store { path, postgres_url, postgres_url_file } = &self.store;
        let server = postgres_url.is_some() || postgres_url_file.is_some();
        problems.exclusive(
            path.is_some() && server,
            "platformServer.store.path",
            "platformServer.store.postgresUrl",
        );
        let both = postgres_url.is_some() && postgres_url_file.is_some();
        problems.exclusive(both, "platformServer.store.postgresUrl", "platformServer.store.postgresUrlFile");
        problems.positive("platformServer.ingest.bodyTimeout", *self.ingest.body_timeout);
        problems.at_least("platformServer.ingest.maxBody", &self.ingest.max_body, "1Ki");
        problems.at_least("platformServer.ingest.maxUnpacked", &self.ingest.max_unpacked, "1Ki");
        problems.positive("platformServer.retention.history", *self.retention.history);
        problems.positive("platformServer.retention.keys", *self.retention.keys);
        problems.positive("platformServer.retention.interval", *self.retention.interval);
    }
}
