//! Where clones of repositories are kept, what they may cost, and what their servers are asked with. What each setting means,
//! and its default, stands in `config/default.yaml`, and there alone.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::problem::Problems;
use super::units::{As, Size};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Repositories {
    pub(crate) directory: As<Option<PathBuf>>,
    pub(crate) size: As<Size>,
    pub(crate) fetch_size: As<Size>,
    pub(crate) object_size: As<Size>,
    pub(crate) timeout: As<Duration>,
    pub(crate) idle_timeout: As<Duration>,
    #[schemars(range(min = 1, max = 64))]
    pub(crate) concurrency: usize,
    pub(crate) files: bool,
    pub(crate) argocd_secrets: bool,
    pub(crate) argocd_certificates: bool,
    pub(crate) ca_file: As<Option<PathBuf>>,
}

impl Repositories {
    /// `of` is where they stand, such as `changeRevision.repositories`.
    pub(super) fn check(&self, of: &str, problems: &mut Problems) {
        problems.positive(&format!("{of}.timeout"), *self.timeout);
        problems.positive(&format!("{of}.idleTimeout"), *self.idle_timeout);
        problems.at_least(&format!("{of}.size"), &self.size, "1Mi");
        problems.at_least(&format!("{of}.fetchSize"), &self.fetch_size, "1Mi");
        problems.at_least(&format!("{of}.objectSize"), &self.object_size, "1Mi");
    }

    /// The clones; without a directory of their own they are in this one.
    pub(crate) fn checkouts(&self, otherwise: PathBuf) -> stages_git::remote::Config {
        stages_git::remote::Config {
            bytes: self.size.0,
            fetch_bytes: self.fetch_size.0,
            object_bytes: self.object_size.0,
            idle: *self.idle_timeout,
            timeout: *self.timeout,
            concurrent: self.concurrency,
            files: self.files,
            ..stages_git::remote::Config::new(self.directory.clone().unwrap_or(otherwise))
        }
    }
}
