//! The schema: what may be asked, and how much at a time.

mod application;
mod git;
mod git_token;
mod inputs;
mod log;
mod mutation;
mod query;
mod rollout;
mod runtime;
mod sealing;
mod source;
mod subscription;
mod workflow;

use std::sync::Arc;

use async_graphql::{Context, InputValueResult, Scalar, ScalarType, SimpleObject};
use serde_json::Value;

use crate::argocd::ArgoCd;
use crate::component_logs::ComponentLogs;
use crate::dispatcher::{Caller, Dispatcher};
use crate::git::{GitFiles, Integrations, OAuth};
use crate::platform::Platform;
use crate::rollouts::Rollouts;
use crate::sealing::Sealing;
use crate::streams::Streams;
use crate::workflows::Workflows;

pub(crate) use self::runtime::{AppProxyInfo, ArgoCdState, RuntimeStatus, StatusOfCheck, SyncMode};

pub(crate) type Schema = async_graphql::Schema<query::Query, mutation::Mutation, subscription::Subscription>;

/// How deep fields may stand within each other: what introspection asks stands thirteen deep.
const DEPTH: usize = 15;
/// How many fields a document may have.
const COMPLEXITY: usize = 500;
/// Directives on a field.
const DIRECTIVES: usize = 8;

/// All that resolvers work with.
pub(crate) struct Services {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) argocd: Arc<ArgoCd>,
    pub(crate) rollouts: Rollouts,
    pub(crate) workflows: Workflows,
    pub(crate) git: Integrations,
    pub(crate) files: GitFiles,
    pub(crate) oauth: OAuth,
    pub(crate) platform: Platform,
    pub(crate) sealing: Sealing,
    pub(crate) components: ComponentLogs,
    /// Streams of logs that may be open.
    pub(crate) streams: Streams,
    /// What was found of the runtime.
    pub(crate) status: tokio::sync::watch::Receiver<RuntimeStatus>,
}

/// What is told of an act of which nothing is.
pub(crate) struct Void;

/// Nothing, which is always null: what other clients of an app proxy expect of an act that tells nothing.
#[Scalar]
impl ScalarType for Void {
    fn parse(_: async_graphql::Value) -> InputValueResult<Self> {
        Ok(Self)
    }

    fn to_value(&self) -> async_graphql::Value {
        async_graphql::Value::Null
    }
}

/// An object of Kubernetes.
#[derive(SimpleObject)]
pub(crate) struct ObjectMeta {
    name: String,
    namespace: Option<String>,
}

/// What an act was done to.
#[derive(SimpleObject)]
pub(crate) struct ActedOn {
    metadata: ObjectMeta,
}

impl ActedOn {
    fn named(namespace: &str, name: &str) -> Self {
        let metadata = ObjectMeta { name: name.to_owned(), namespace: Some(namespace.to_owned()) };
        Self { metadata }
    }
}

/// An operation of an application that was begun. Argo CD gives it no name: it is the first that starts after the one before.
#[derive(SimpleObject)]
pub(crate) struct BegunOperation {
    metadata: ObjectMeta,
    /// When the operation before it started; null: there was none.
    previous_started_at: Option<String>,
}

impl BegunOperation {
    fn new(application: &inputs::ApplicationId, previous_started_at: Option<String>) -> Self {
        let ActedOn { metadata } = ActedOn::named(&application.namespace, &application.name);
        Self { metadata, previous_started_at }
    }
}

fn builder() -> async_graphql::SchemaBuilder<query::Query, mutation::Mutation, subscription::Subscription> {
    Schema::build(query::Query, mutation::Mutation::default(), subscription::Subscription)
        .limit_depth(DEPTH)
        .limit_complexity(COMPLEXITY)
        .limit_directives(DIRECTIVES)
        .disable_suggestions()
}

pub(crate) fn build(services: Services) -> Schema {
    builder().data(services).finish()
}

/// The schema, in the language that schemas are written in.
#[must_use]
pub fn sdl() -> String {
    builder().finish().sdl()
}

fn services<'c>(context: &Context<'c>) -> async_graphql::Result<&'c Services> {
    context.data::<Services>()
}

fn caller<'c>(context: &Context<'c>) -> async_graphql::Result<&'c Caller> {
    context.data::<Caller>()
}

/// A text somewhere in an object.
fn text(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

fn is_true(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer) == Some(&Value::Bool(true))
}

fn meta(object: &Value) -> ObjectMeta {
    ObjectMeta {
        name: text(object, "/metadata/name").unwrap_or_default(),
        namespace: text(object, "/metadata/namespace"),
    }
}
