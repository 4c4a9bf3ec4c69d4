//! Where versions of applications stand, as those ask who work them out.

use async_graphql::{InputObject, InputValueResult, Scalar, ScalarType, SimpleObject, Value, from_value};
use serde::Deserialize;
use stages_platform_store as kept;

/// What is known of how an application is promoted.
#[derive(SimpleObject)]
pub(crate) struct PromotionTemplate {
    /// What of its files is taken over; empty: nothing was set, and whoever asks takes whole files.
    promotion: Vec<PromotionSource>,
    version_source: Option<VersionSource>,
}

/// Values of files that are taken over.
#[derive(SimpleObject)]
struct PromotionSource {
    glob: String,
    json_paths: Vec<String>,
}

/// A part of a product.
#[derive(SimpleObject)]
pub(crate) struct ProductComponent {
    id: String,
    name: String,
    /// Requests that it waits for.
    pending_pull_requests: Option<Vec<PullRequest>>,
}

/// A request to take a change into a repository.
#[derive(SimpleObject)]
struct PullRequest {
    id: String,
    repo: String,
}

/// Which parts of products are listed.
#[derive(InputObject)]
pub(crate) struct ProductComponentFilterArgs {
    partial_name: Option<String>,
    app_names: Option<Vec<Option<String>>>,
    products: Option<Vec<String>>,
    environments: Option<Vec<String>>,
    has_pending_pull_requests: Option<bool>,
}

/// Where a version stands.
#[derive(SimpleObject)]
struct VersionSource {
    /// Below the path of the application.
    file: String,
    json_path: String,
}

/// Where a version is to be looked for.
#[derive(InputObject)]
pub(crate) struct VersionSourceInput {
    /// Below the path of the application, such as `Chart.yaml`.
    pub(crate) file: String,
    /// Such as `$.appVersion`.
    pub(crate) json_path: String,
}

/// Of an Application's metadata, which is taken as it is, what says which one it is.
#[derive(Deserialize)]
pub(crate) struct ApplicationMetadata {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: String,
}

/// The metadata of an Application, as Kubernetes has it.
pub(crate) struct Metadata(pub(crate) ApplicationMetadata);

#[Scalar(name = "Object")]
impl ScalarType for Metadata {
    fn parse(value: Value) -> InputValueResult<Self> {
        Ok(Self(from_value(value)?))
    }

    fn to_value(&self) -> Value {
        // It is only taken.
        Value::Null
    }
}

impl From<Option<kept::VersionSource>> for PromotionTemplate {
    fn from(one: Option<kept::VersionSource>) -> Self {
        let version_source = one.map(|one| VersionSource { file: one.file, json_path: one.json_path });
        Self { promotion: Vec::new(), version_source }
    }
}

impl From<VersionSourceInput> for kept::VersionSource {
    fn from(one: VersionSourceInput) -> Self {
        Self { file: one.file, json_path: one.json_path }
    }
}
