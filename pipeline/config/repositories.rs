//! Where clones of repositories are kept, what they may cost, and what their servers are asked with. What each setting means,
//! and its default, stands in `config/default.yaml`, and there alone.

use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use schemars::JsonSchema;
use serde::Deserialize;
use stages_git::UrlPrefix;

use super::problem::Problems;
use super::units::{As, Size, Unit};

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
    pub(crate) known_hosts_file: As<Option<PathBuf>>,
    pub(crate) credentials: Vec<As<CredentialDirectory>>,
    pub(crate) credential: OwnCredential,
}

/// A credential that stands in the settings themselves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct OwnCredential {
    pub(crate) url: As<Option<UrlPrefix>>,
    pub(crate) username: As<Option<String>>,
    pub(crate) password: As<Option<SecretString>>,
}

/// A directory with the files of one credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CredentialDirectory(pub(crate) PathBuf);

impl Unit for CredentialDirectory {
    const FORMAT: &'static str = "credential-directory";

    fn read(text: &str) -> Result<Self, String> {
        match text.starts_with('/') {
            true => Ok(Self(text.into())),
            // It may be the credential itself.
            false => Err("is not a directory such as /etc/gitops-runtime/repositories/team".to_owned()),
        }
    }
}

impl Repositories {
    /// `of` is where they stand, such as `changeRevision.repositories`.
    pub(super) fn check(&self, of: &str, problems: &mut Problems) {
        problems.positive(&format!("{of}.timeout"), *self.timeout);
        problems.positive(&format!("{of}.idleTimeout"), *self.idle_timeout);
        problems.at_least(&format!("{of}.size"), &self.size, "1Mi");
        problems.at_least(&format!("{of}.fetchSize"), &self.fetch_size, "1Mi");
        problems.at_least(&format!("{of}.objectSize"), &self.object_size, "1Mi");
        let own = &self.credential;
        match (&*own.url, own.password.is_some()) {
            (None, true) => {
                let text = "not set, and credential.password needs it: nobody else is shown the password";
                problems.add(format!("{of}.credential.url"), text);
            }
            (Some(_), false) => {
                let text = "not set, and credential.url needs it: give it in the environment";
                problems.add(format!("{of}.credential.password"), text);
            }
            (Some(url), true) if !url.as_str().starts_with("http") => {
                let text =
                    "must begin with https:// or http://: SSH takes a key, in a directory of credentials";
                problems.add(format!("{of}.credential.url"), text);
            }
            _ => {}
        }
    }

    /// Whether there are credentials of some repositories, wherever they stand.
    pub(crate) fn has_credentials(&self) -> bool {
        self.argocd_secrets || !self.credentials.is_empty() || self.credential.url.is_some()
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
