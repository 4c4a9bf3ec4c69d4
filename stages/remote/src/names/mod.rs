//! Names that shells complete: those of contexts from their file, those of runtimes and applications from the platform, and what a
//! runtime has from its app proxy. Whoever does not answer in a moment is given up on.

mod line;
mod runtime;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use clap_complete::CompletionCandidate;
use serde_json::{Value, json};

use self::line::Line;
pub(crate) use self::runtime::{
    deployments, integrations, of_resource, resources, rollouts, templates, workflows,
};
use crate::contexts::Contexts;
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::platform::Platform;

/// Whoever pressed a key does not wait for longer.
const WITHIN: Duration = Duration::from_millis(1_500);
/// Names that are offered.
const MOST: usize = 200;
/// Applications that are looked at for what they have in common: what the platform gives at a time.
const LOOKED_AT: usize = 500;

static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();

/// Has names completed by what this environment says; without it there are none.
pub fn complete_with(mut environment: Environment) {
    environment.completes = true;
    // Whoever was first stays.
    let _ = ENVIRONMENT.set(environment);
}

/// Contexts whose names begin so.
pub(crate) fn contexts(begin: &OsStr) -> Vec<CompletionCandidate> {
    let Some(all) = ENVIRONMENT.get().and_then(|environment| Contexts::read(environment).ok()) else {
        return Vec::new();
    };
    let begins = |name: &String| begin.to_str().is_some_and(|begin| name.starts_with(begin));
    let names = all.contexts.into_iter().filter(|one| begins(&one.name));
    names.map(|one| CompletionCandidate::new(one.name).help(Some(one.platform.into()))).collect()
}

/// Runtimes whose names begin so.
pub(crate) fn runtimes(begin: &OsStr) -> Vec<CompletionCandidate> {
    let query = "query Runtimes($pagination: SlicePaginationArgs) { runtimes(pagination: $pagination) { pageInfo { endCursor hasNextPage } edges { node { metadata { name } } } } }";
    let begin = begin.to_string_lossy().into_owned();
    let name = |node: &Value| node["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let found = asked(&async |platform: &Platform| {
        platform.rows("list runtimes", query, &json!({}), "runtimes", MOST).await
    });
    let names = found.iter().map(name).filter(|name| name.starts_with(&begin));
    names.map(CompletionCandidate::new).collect()
}

/// Applications whose names begin so: by their names, and once there is a slash by the names of their namespaces and runtimes
/// before.
pub(crate) fn applications(begin: &OsStr) -> Vec<CompletionCandidate> {
    let query = "query Applications($pagination: SlicePaginationArgs, $runtime: String, $filters: ApplicationsFilterArgs) { applications(pagination: $pagination, runtime: $runtime, filters: $filters) { pageInfo { endCursor hasNextPage } edges { node { metadata { runtime namespace name } } } } }";
    let begin = begin.to_string_lossy().into_owned();
    let parts: Vec<&str> = begin.split('/').collect();
    let (runtime, namespace, prefix) = match parts[..] {
        [prefix] => (None, None, prefix),
        [namespace, prefix] => (None, Some(namespace), prefix),
        [runtime, namespace, prefix] => (Some(runtime), Some(namespace), prefix),
        _ => return Vec::new(),
    };
    let runtime = runtime.map(str::to_owned).or_else(|| Line::typed()?.text("runtime"));
    let variables = json!({
        "runtime": runtime,
        "filters": {"namespace": namespace, "namePrefix": prefix, "deleted": false},
    });
    let found = asked(&async |platform: &Platform| {
        platform.rows("list applications", query, &variables, "applications", MOST).await
    });
    let part = |node: &Value, name: &str| node["metadata"][name].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<String> = found
        .iter()
        .map(|node| match parts.len() {
            1 => part(node, "name"),
            2 => format!("{}/{}", part(node, "namespace"), part(node, "name")),
            _ => format!("{}/{}/{}", part(node, "runtime"), part(node, "namespace"), part(node, "name")),
        })
        .collect();
    names.sort();
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Namespaces that applications stand in, which begin so.
pub(crate) fn namespaces(begin: &OsStr) -> Vec<CompletionCandidate> {
    of_applications(begin, |node| node["metadata"]["namespace"].as_str())
}

/// Namespaces that applications go to, which begin so.
pub(crate) fn destinations(begin: &OsStr) -> Vec<CompletionCandidate> {
    of_applications(begin, |node| node["destinationNamespace"].as_str())
}

/// Something of each application of the runtime that is typed, or of all: each once.
fn of_applications(begin: &OsStr, of: fn(&Value) -> Option<&str>) -> Vec<CompletionCandidate> {
    let query = "query Applications($pagination: SlicePaginationArgs, $runtime: String, $filters: ApplicationsFilterArgs) { applications(pagination: $pagination, runtime: $runtime, filters: $filters) { pageInfo { endCursor hasNextPage } edges { node { metadata { namespace } destinationNamespace } } } }";
    let variables = json!({
        "runtime": Line::typed().and_then(|line| line.text("runtime")),
        "filters": {"deleted": false},
    });
    let found = asked(&async |platform: &Platform| {
        platform.rows("list applications", query, &variables, "applications", LOOKED_AT).await
    });
    let begin = begin.to_string_lossy();
    let begins = |name: &&str| !name.is_empty() && name.starts_with(&*begin);
    let names: BTreeSet<&str> = found.iter().filter_map(of).filter(begins).collect();
    names.into_iter().take(MOST).map(CompletionCandidate::new).collect()
}

/// What the platform of the context that is typed answers in a moment; nothing, where it does not.
fn asked(ask: &impl AsyncFn(&Platform) -> Result<crate::platform::Rows, RemoteError>) -> Vec<Value> {
    let answer = async {
        let environment = ENVIRONMENT.get()?;
        let all = Contexts::read(environment).ok()?;
        let context = Line::typed().and_then(|line| line.text("context"));
        let kept = all.chosen(context.as_deref(), environment).ok()?;
        let platform = Platform::of(kept, WITHIN).await.ok()?;
        Some(ask(&platform).await.ok()?.nodes)
    };
    within(answer).unwrap_or_default()
}

fn within<T>(answer: impl Future<Output = Option<T>>) -> Option<T> {
    stages_client::install_crypto();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let done = tokio.block_on(async { tokio::time::timeout(WITHIN, answer).await }).ok().flatten();
    // A name that is still looked up keeps nobody.
    tokio.shutdown_background();
    done
}
