//! `gitops-runtime crds adopt`: hands definitions that are in the cluster over to a release, so that Helm takes them for
//! its own.
//!
//! takes: a release's name and namespace - gives: a line for each definition of argoproj.io
//! calls: the API server: the definitions' metadata, and a `PATCH` of labels and annotations for each that changes
//! fails: before anything is changed, when one belongs to another release and `--force` is not given; else with the
//! first that cannot be changed

use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use pipeline_doctor::Cluster as _;
use serde_json::{Value, json};

use super::print;
use super::values::KubeconfigCluster;
use super::{Adopt, CrdsCommand};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAME: &str = "meta.helm.sh/release-name";
const NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// Runs the command.
pub(crate) fn run(command: &CrdsCommand) -> anyhow::Result<ExitCode> {
    let CrdsCommand::Adopt(adopt) = command;
    let cluster = KubeconfigCluster::find(adopt.kubeconfig.clone(), adopt.context.clone())?;
    let cluster = cluster.context("no cluster was found: give --kubeconfig")?;
    let all = cluster.metadata(DEFINITIONS).map_err(|why| anyhow!(why)).context("list the definitions")?;
    let all = all.unwrap_or_default();
    let mut definitions: Vec<Definition> = all["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|object| Definition::read(object, adopt))
        .collect();
    definitions.sort_by(|one, other| one.name.cmp(&other.name));
    if definitions.is_empty() {
        print("there are no definitions of argoproj.io in the cluster: Helm will make them\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let refused: Vec<&Definition> = definitions.iter().filter(|one| one.other.is_some()).collect();
    if let (Some(first), false) = (refused.first(), adopt.force) {
        let other = first.other.as_deref().unwrap_or_default();
        bail!(
            "{} of {} definitions belong to another release ({} to {other}): uninstall that, or give --force",
            refused.len(),
            definitions.len(),
            first.name
        );
    }
    let (release, namespace) = (&adopt.release, &adopt.namespace);
    let mut text = String::new();
    for Definition { name, other, is_own } in &definitions {
        let from = other.as_ref().map_or_else(String::new, |other| format!(" from {other}"));
        if *is_own {
            text.push_str(&format!("{name}: is of {release} in namespace {namespace} already\n"));
            continue;
        }
        let patch = json!({"metadata": {
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {NAME: release, NAMESPACE: namespace},
        }});
        // With a dry run the API server still says whether it would.
        cluster
            .merge(&format!("{DEFINITIONS}/{name}"), &patch, adopt.dry_run)
            .with_context(|| format!("hand {name} over"))?;
        let done = if adopt.dry_run { "would be handed" } else { "is handed" };
        text.push_str(&format!("{name}: {done} over to {release} in namespace {namespace}{from}\n"));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A definition of argoproj.io.
struct Definition {
    name: String,
    /// The release that it belongs to, unless it is the one that takes over.
    other: Option<String>,
    is_own: bool,
}

impl Definition {
    fn read(object: &Value, adopt: &Adopt) -> Option<Self> {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().filter(|name| name.ends_with(".argoproj.io"))?;
        let owner = metadata["annotations"][NAME].as_str();
        let place = metadata["annotations"][NAMESPACE].as_str();
        let is_same = owner == Some(adopt.release.as_str()) && place == Some(adopt.namespace.as_str());
        let other = owner.filter(|_| !is_same);
        let other = other.map(|owner| format!("{owner} in namespace {}", place.unwrap_or("unknown")));
        let is_own = is_same && metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm";
        Some(Self { name: name.to_owned(), other, is_own })
    }
}
