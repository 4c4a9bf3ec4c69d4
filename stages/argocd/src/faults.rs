//! The `errors` of a report: what went wrong in the sync, and what is degraded below a resource.

use pipeline_redact::Redactor;

use crate::application::{Application, Entry, Health, Operation, SyncedResource};
use crate::payload::{ErrorKind, Fault, Level, Moment, Reference};
use crate::plan::ResourceRef;
use crate::responses::Tree;

/// What an application's report says of its conditions and of its operation's resources.
pub(crate) fn of_conditions(app: &Application) -> Vec<Fault> {
    let results = app.operation.as_ref().and_then(|operation| operation.results.as_ref());
    let mut faults = Vec::new();
    for condition in &app.conditions {
        match results {
            Some(results) if condition.message.contains("one or more synchronization tasks") => {
                faults.extend(results.iter().filter(|result| failed(result)).filter_map(of_result));
            }
            _ => {
                let level = if condition.kind.ends_with("Error") {
                    Level::Error
                } else if condition.kind.ends_with("Warning") {
                    Level::Warning
                } else {
                    continue;
                };
                let last_seen = Moment::or_now(&condition.last_transition_time);
                faults.push(Fault { level, ..Fault::of_sync(condition.message.clone(), last_seen) });
            }
        }
    }
    faults
}

fn failed(result: &SyncedResource) -> bool {
    matches!(result.hook_phase.as_str(), "Failed" | "Error") || result.status == "SyncFailed"
}

fn of_result(result: &SyncedResource) -> Option<Fault> {
    let message = || format!("Resource {}({}): \n {}", result.kind, result.name, result.message);
    (!result.message.is_empty()).then(|| Fault::of_sync(message(), Moment::Now))
}

/// What the operation of an application says of one resource of it.
pub(crate) fn of_sync_result(operation: Option<&Operation>, resource: &ResourceRef) -> Option<Fault> {
    let operation = operation?;
    let result = operation.results.as_ref()?.iter().find(|result| {
        result.sync_phase == "Sync"
            && result.group == resource.group
            && result.kind == resource.kind
            && result.namespace == resource.namespace
            && result.name == resource.name
    })?;
    failed(result).then(|| Fault::of_sync(result.message.clone(), Moment::or_now(&operation.started_at)))
}

/// What a child application's own operation says.
pub(crate) fn of_operation(operation: Option<&Operation>) -> Option<Fault> {
    let operation = operation.filter(|operation| matches!(operation.phase.as_str(), "Error" | "Failed"))?;
    Some(Fault::of_sync(operation.message.clone(), Moment::or_now(&operation.started_at)))
}

/// What is degraded below the unhealthy ones of an application's resources.
pub(crate) fn of_resources<'a>(
    entries: impl Iterator<Item = (&'a Entry, Option<Health>)>,
    tree: &Tree,
    redactor: &Redactor,
) -> Vec<Fault> {
    entries
        .filter(|(_, health)| health.as_ref().is_some_and(|health| !health.is_healthy()))
        .flat_map(|(entry, _)| {
            let resource = &entry.resource;
            let reference = Reference {
                group: resource.group.clone(),
                version: resource.version.clone(),
                kind: resource.kind.clone(),
                name: resource.name.clone(),
                namespace: resource.namespace.clone(),
            };
            below(resource, tree, redactor, Some(&reference))
        })
        .collect()
}

/// What is degraded below one resource.
pub(crate) fn below(
    resource: &ResourceRef,
    tree: &Tree,
    redactor: &Redactor,
    reference: Option<&Reference>,
) -> Vec<Fault> {
    tree.degraded_below(resource)
        .map(|(node, health)| Fault {
            kind: ErrorKind::Health,
            level: Level::Error,
            message: redactor.text(&health.message).into_owned(),
            last_seen: Moment::or_now(&node.created_at),
            reference: reference.cloned(),
        })
        .collect()
}
