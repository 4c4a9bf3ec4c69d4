//! Long lists whose rows are only looked at: told without a future for every field.
//!
//! async-graphql makes a future of each field of each row, as large as that of whatever takes longest of the type, and waits for
//! all of them: of a page of 500 rows that is most of the work. Where every field that is asked for is only looked up, the row is
//! read at once; anything else, from a fragment to an argument, is left to async-graphql.

use std::borrow::Cow;

use async_graphql::parser::types::{Field, Selection};
use async_graphql::registry::Registry;
use async_graphql::resolver_utils::enum_value;
use async_graphql::{ContextSelectionSet, Name, OutputType, Positioned, ServerResult, Value};

use super::application::{Application, ApplicationEdge, Label, ObjectMeta};

/// Reads something of a `T`.
pub(super) type Read<T> = Box<dyn Fn(&T) -> Value + Send + Sync>;

/// An object of the schema that has fields which are only looked up.
pub(super) trait Flat: Sized + 'static {
    /// As the schema calls it.
    const NAME: &'static str;

    /// Reads a field; `None`: that is no such one.
    fn field(field: &Field) -> Option<Read<Self>>;
}

/// Rows of a list.
pub(crate) struct Rows<T>(pub(crate) Vec<T>);

impl<T: Flat + OutputType> OutputType for Rows<T> {
    fn type_name() -> Cow<'static, str> {
        Vec::<T>::type_name()
    }

    fn qualified_type_name() -> String {
        Vec::<T>::qualified_type_name()
    }

    fn create_type_info(registry: &mut Registry) -> String {
        Vec::<T>::create_type_info(registry)
    }

    async fn resolve(
        &self,
        context: &ContextSelectionSet<'_>,
        field: &Positioned<Field>,
    ) -> ServerResult<Value> {
        match object::<T>(&context.item.node.items) {
            Some(read) => Ok(Value::List(self.0.iter().map(read).collect())),
            None => self.0.resolve(context, field).await,
        }
    }
}

/// Reads what is asked for of an object; `None`: not all of it is only looked up.
fn object<T: Flat>(asked: &[Positioned<Selection>]) -> Option<Read<T>> {
    let mut fields: Vec<(Name, Read<T>)> = Vec::with_capacity(asked.len());
    for one in asked {
        let Selection::Field(field) = &one.node else { return None };
        let (key, field) = (&field.node.response_key().node, &field.node);
        let is_plain = field.directives.is_empty() && field.arguments.is_empty();
        // What is asked for twice is merged.
        if !is_plain || fields.iter().any(|(known, _)| known == key) {
            return None;
        }
        let read: Read<T> = match field.name.node.as_str() {
            "__typename" => Box::new(|_: &T| Value::from(T::NAME)),
            _ => T::field(field)?,
        };
        fields.push((key.clone(), read));
    }
    if fields.is_empty() {
        return None;
    }
    Some(Box::new(move |of| {
        Value::Object(fields.iter().map(|(key, read)| (key.clone(), read(of))).collect())
    }))
}

/// Reads an object within another.
fn within<T: 'static, U: Flat>(field: &Field, of: fn(&T) -> &U) -> Option<Read<T>> {
    let read = object::<U>(&field.selection_set.node.items)?;
    Some(Box::new(move |one| read(of(one))))
}

fn text<T: 'static>(of: fn(&T) -> &str) -> Read<T> {
    Box::new(move |one| Value::from(of(one)))
}

/// A text that may not be there.
fn told<T: 'static>(of: fn(&T) -> &Option<String>) -> Read<T> {
    Box::new(move |one| of(one).as_deref().map_or(Value::Null, Value::from))
}

impl Flat for ApplicationEdge {
    const NAME: &'static str = "ApplicationEdge";

    fn field(field: &Field) -> Option<Read<Self>> {
        match field.name.node.as_str() {
            "node" => within(field, |edge: &Self| &edge.node),
            "cursor" => Some(text(|edge: &Self| &edge.cursor)),
            _ => None,
        }
    }
}

impl Flat for Application {
    const NAME: &'static str = "Application";

    fn field(field: &Field) -> Option<Read<Self>> {
        Some(match field.name.node.as_str() {
            "metadata" => within(field, |one: &Self| &one.metadata)?,
            "labels" => {
                let read = object::<Label>(&field.selection_set.node.items)?;
                Box::new(move |one: &Self| Value::List(one.labels.iter().map(&read).collect()))
            }
            "healthStatus" => Box::new(|one: &Self| one.health_status.map_or(Value::Null, enum_value)),
            "syncStatus" => Box::new(|one: &Self| one.sync_status.map_or(Value::Null, enum_value)),
            "deleted" => Box::new(|one: &Self| Value::from(one.deleted)),
            "uid" => text(|one: &Self| &one.uid),
            "healthMessage" => told(|one: &Self| &one.health_message),
            "revision" => told(|one: &Self| &one.revision),
            "lastReportAt" => text(|one: &Self| &one.last_report_at),
            "project" => text(|one: &Self| &one.project),
            "environment" => text(|one: &Self| &one.environment),
            "cluster" => text(|one: &Self| &one.cluster),
            "destinationNamespace" => text(|one: &Self| &one.destination_namespace),
            "repoUrl" => text(|one: &Self| &one.repo_url),
            "path" => text(|one: &Self| &one.path),
            "commitAuthor" => text(|one: &Self| &one.commit_author),
            "commitMessage" => text(|one: &Self| &one.commit_message),
            "operationPhase" => told(|one: &Self| &one.operation_phase),
            "operationMessage" => told(|one: &Self| &one.operation_message),
            "deployedAt" => told(|one: &Self| &one.deployed_at),
            _ => return None,
        })
    }
}

impl Flat for ObjectMeta {
    const NAME: &'static str = "ObjectMeta";

    fn field(field: &Field) -> Option<Read<Self>> {
        match field.name.node.as_str() {
            "runtime" => Some(text(|one: &Self| &one.runtime)),
            "namespace" => Some(text(|one: &Self| &one.namespace)),
            "name" => Some(text(|one: &Self| &one.name)),
            "account" => Some(text(|_: &Self| super::ACCOUNT)),
            "cluster" => Some(text(|_: &Self| stages_platform_store::OWN_CLUSTER_SERVER)),
            _ => None,
        }
    }
}

impl Flat for Label {
    const NAME: &'static str = "Label";

    fn field(field: &Field) -> Option<Read<Self>> {
        match field.name.node.as_str() {
            "key" => Some(text(|one: &Self| &one.key)),
            "value" => Some(text(|one: &Self| &one.value)),
            _ => None,
        }
    }
}
