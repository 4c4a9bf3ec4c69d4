//! Where versions of applications stand, as those ask who work them out.

use async_graphql::{InputObject, InputValueResult, Scalar, ScalarType, SimpleObject, Value, from_value};
use serde::Deserialize;
use stages_platform_store as kept;

/// What is known of how an application is promoted.
#[derive(SimpleObject)]
pub(crate) struct PromotionTemplate {
    version_source: VersionSource,
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

impl From<kept::VersionSource> for PromotionTemplate {
    fn from(one: kept::VersionSource) -> Self {
        Self { version_source: VersionSource { file: one.file, json_path: one.json_path } }
    }
}

impl From<VersionSourceInput> for kept::VersionSource {
    fn from(one: VersionSourceInput) -> Self {
        Self { file: one.file, json_path: one.json_path }
    }
}
