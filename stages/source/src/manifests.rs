//! The question which files make the manifests of an application, and its answer; the same in the process and over HTTP.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_git::remote::Tenant;

use crate::provenance::{ListedObject, Provenance};
use crate::versions::Versions;

/// One source, and the revision that is asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RequestedSource {
    /// The source, as an Application's `spec` has it.
    pub source: Value,
    /// A branch, a tag or a commit's id; empty: the source's `targetRevision`, or else `HEAD`.
    #[serde(default)]
    pub revision: String,
    /// Whether another server answers for its repository. It is not read then, and what it makes is not known here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
}

/// A question about the manifests of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ManifestsRequest {
    /// The application's `metadata`, by which the platform is asked where its version stands.
    #[serde(default)]
    pub metadata: Value,
    /// The application's `spec.project`; empty is `default`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The namespace that the application deploys to.
    #[serde(default)]
    pub namespace: String,
    /// Its sources.
    pub sources: Vec<RequestedSource>,
    /// Manifests as Argo CD compiled them, JSON or YAML; empty: all objects that the files make are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compiled: Vec<String>,
}

impl ManifestsRequest {
    /// The tenant as which the application reads repositories.
    pub(crate) fn tenant(&self) -> Tenant {
        tenant(&self.metadata, &self.project)
    }
}

/// The tenant as which an application with this `metadata` reads repositories.
pub(crate) fn tenant(metadata: &Value, project: &str) -> Tenant {
    Tenant::new(project, metadata["namespace"].as_str().unwrap_or_default())
}

/// A file that makes objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestFile {
    /// The position of its source.
    pub source: usize,
    /// Its path from the root of the repository.
    pub path: String,
    /// Its whole text.
    pub text: String,
}

/// The answer to a [`ManifestsRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestsResponse {
    /// The commits that the revisions name, one for each source; empty for a source that is not read, or has no commits.
    pub revisions: Vec<String>,
    /// Which file made each compiled manifest, in their order.
    pub objects: Vec<Provenance>,
    /// The objects that the files make, where the request has no compiled ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<ListedObject>,
    /// The files that make the compiled manifests, each once.
    pub files: Vec<ManifestFile>,
    /// Why there may be more than is known.
    pub gaps: Vec<String>,
    /// The versions that the application packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<Versions>,
    /// Why its versions are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_error: Option<String>,
}

/// A [`ManifestsResponse`] as a reporter reads it: without what it does not need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceivedManifests {
    /// Which file made each compiled manifest, in their order.
    pub objects: Vec<ReceivedObject>,
    /// The files that make the compiled manifests, each once.
    pub files: Vec<ManifestFile>,
    /// The versions that the application packages.
    pub versions: Option<Versions>,
}

/// Which file made a compiled manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceivedObject {
    /// The position of the source in the request.
    #[serde(default)]
    pub source: usize,
    /// The path of the file; `None`: it is not known.
    #[serde(default)]
    pub path: Option<String>,
}
