//! Names of what is in a runtime, which its app proxy tells.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use clap_complete::CompletionCandidate;
use serde_json::{Value, json};

use super::line::Line;
use super::{ENVIRONMENT, MOST, within};
use crate::app::find::AppName;
use crate::app::{AppConnection, actions, history_of};
use crate::arguments::workflow::NamespaceArgs;
use crate::error::RemoteError;
use crate::proxy::Proxy;
use crate::resource::Node;
use crate::show::plain;
use crate::workflow::{self, WorkflowSummary};

/// Resources of the application that is typed.
pub(crate) fn resources(begin: &OsStr) -> Vec<CompletionCandidate> {
    let found = of_application(async |proxy, name, _| proxy.tree(&name).await);
    let all = found.unwrap_or_default();
    let called = |one: &Node| {
        let is_alike = |other: &&Node| other.kind == one.kind && other.name == one.name;
        if all.iter().filter(is_alike).count() > 1 { one.whole() } else { one.title() }
    };
    offered(begin, all.iter().map(|one| (called(one), Some(one.state().to_owned()))))
}

/// Rollouts of the application that is typed.
pub(crate) fn rollouts(begin: &OsStr) -> Vec<CompletionCandidate> {
    let found = of_application(async |proxy, name, _| proxy.tree(&name).await);
    let all = found.unwrap_or_default();
    let is_one = |one: &&Node| one.kind == "Rollout" && one.group.as_deref() == Some("argoproj.io");
    offered(begin, all.iter().filter(is_one).map(|one| (one.name.clone(), Some(one.state().to_owned()))))
}

/// What can be done to the resource that is typed.
pub(crate) fn of_resource(begin: &OsStr) -> Vec<CompletionCandidate> {
    let found = of_application(async |proxy, name, line| {
        let Some(resource) = line.text("resource") else { return Ok(Vec::new()) };
        let node = proxy.resource(&name, &resource).await?;
        actions(&proxy, &name, &node).await
    });
    offered(begin, found.unwrap_or_default().into_iter().map(|name| (name, None)))
}

/// Deployments of the application that is typed, but for the last one, to which nobody goes back.
pub(crate) fn deployments(begin: &OsStr) -> Vec<CompletionCandidate> {
    let found = of_application(async |proxy, name, _| history_of(&proxy, &name).await);
    offered(
        begin,
        found.unwrap_or_default().iter().skip(1).map(|one| (one.id.to_string(), Some(one.short_revisions()))),
    )
}

/// Workflows of the namespace that is typed.
pub(crate) fn workflows(begin: &OsStr) -> Vec<CompletionCandidate> {
    let all = newest().into_iter();
    offered(begin, all.map(|one| (one.name, Some(one.phase))))
}

/// Templates that workflows of the namespace that is typed were made of.
pub(crate) fn templates(begin: &OsStr) -> Vec<CompletionCandidate> {
    let all: BTreeSet<String> = newest().into_iter().filter_map(|one| one.template).collect();
    offered(begin, all.into_iter().map(|name| (name, None)))
}

/// The newest workflows of the namespace that is typed.
fn newest() -> Vec<WorkflowSummary> {
    let found = of_runtime(async |line, environment| {
        let given = NamespaceArgs {
            runtime: line.text("runtime"),
            namespace: line.text("namespace"),
            way: line.way(),
        };
        workflow::newest(&given, MOST, environment).await
    });
    found.unwrap_or_default()
}

/// Git integrations of the runtime that is typed.
pub(crate) fn integrations(begin: &OsStr) -> Vec<CompletionCandidate> {
    let found = of_runtime(async |line, environment| {
        let proxy = workflow::proxy(line.text("runtime").as_deref(), &line.way(), environment).await?;
        let query = "query Integrations { gitIntegrations { name apiUrl } }";
        proxy.get::<Vec<Value>>("list Git integrations", query, json!({}), "gitIntegrations").await
    });
    let text = |one: &Value, part: &str| one[part].as_str().unwrap_or_default().to_owned();
    let all = found.unwrap_or_default();
    offered(begin, all.iter().map(|one| (text(one, "name"), Some(text(one, "apiUrl")))))
}

/// Those that begin so, each with what is known of it.
fn offered(begin: &OsStr, all: impl Iterator<Item = (String, Option<String>)>) -> Vec<CompletionCandidate> {
    let begin = begin.to_string_lossy();
    let begins = all.filter(|(name, _)| name.starts_with(&*begin)).take(MOST);
    let candidate = |(name, help): (String, Option<String>)| {
        let help = help.filter(|help| !help.is_empty()).map(|help| plain(&help).into());
        CompletionCandidate::new(plain(&name)).help(help)
    };
    begins.map(candidate).collect()
}

/// What is asked of a runtime, which answers in a moment or is not waited for.
fn of_runtime<T>(
    ask: impl AsyncFnOnce(Line, &'static crate::environment::Environment) -> Result<T, RemoteError>,
) -> Option<T> {
    let (line, environment) = (Line::typed()?, ENVIRONMENT.get()?);
    within(async { ask(line, environment).await.ok() })
}

/// The same of the application that is typed.
fn of_application<T>(ask: impl AsyncFnOnce(Proxy, AppName, Line) -> Result<T, RemoteError>) -> Option<T> {
    of_runtime(async |line, environment| {
        let none = || RemoteError::Missing("no application is typed".to_owned());
        let (named, way) = (line.application().ok_or_else(none)?, line.way());
        let AppConnection { proxy, name, .. } = AppConnection::find(&named, &way, environment).await?;
        ask(proxy, name, line).await
    })
}
