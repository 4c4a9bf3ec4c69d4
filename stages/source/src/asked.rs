//! What the source server is asked, and answers; the same in the process and over HTTP.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_git::remote::Tenant;

use crate::provenance::{Listed, Provenance};
use crate::versions::Versions;

/// One source, and the revision that is asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AskedSource {
    /// As an Application's `spec` says it.
    pub source: Value,
    /// A branch, a tag or a commit's id; empty is what the source says, else `HEAD`.
    #[serde(default)]
    pub revision: String,
    /// Its repository is told of by somebody else, and not looked at: of what it makes nothing is known here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
}

/// What is asked of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Asked {
    /// The application's `metadata`: whoever knows where its version stands is asked with it.
    #[serde(default)]
    pub metadata: Value,
    /// The application's `spec.project`; empty is `default`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The namespace that the application deploys to.
    #[serde(default)]
    pub namespace: String,
    /// Its sources.
    pub sources: Vec<AskedSource>,
    /// Manifests as Argo CD compiled them, JSON or YAML; without any, all that the files make is listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compiled: Vec<String>,
}

impl Asked {
    /// As whom the application may read repositories.
    pub(crate) fn tenant(&self) -> Tenant {
        tenant(&self.metadata, &self.project)
    }
}

/// As whom an application with this `metadata` may read repositories.
pub(crate) fn tenant(metadata: &Value, project: &str) -> Tenant {
    Tenant::new(project, metadata["namespace"].as_str().unwrap_or_default())
}

/// A file that makes objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// The position of its source.
    pub source: usize,
    /// From the root of the repository.
    pub path: String,
    /// All that stands in it.
    pub text: String,
}

/// What is answered of manifests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestsResponse {
    /// The commits that the revisions name, one for each source; empty for what is not looked at, as what has no commits.
    pub revisions: Vec<String>,
    /// What made each compiled manifest, in their order.
    pub objects: Vec<Provenance>,
    /// The objects that the files make, where no compiled ones were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<Listed>,
    /// The files that make the compiled manifests, each once.
    pub files: Vec<File>,
    /// Why there may be more than is known.
    pub gaps: Vec<String>,
    /// What the application packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<Versions>,
    /// Why its versions are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_error: Option<String>,
}

/// What of an answer a reporter reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heard {
    /// What made each compiled manifest.
    pub objects: Vec<HeardObject>,
    /// The files.
    pub files: Vec<File>,
    /// What the application packages.
    pub versions: Option<Versions>,
}

/// What made one of them; without a path it is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeardObject {
    /// The position of the source.
    #[serde(default)]
    pub source: usize,
    /// The file.
    #[serde(default)]
    pub path: Option<String>,
}
