//! The applications, the commits that change them, and what is to be said of each.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::Cluster;
use crate::argocd::{ArgoCd, SyncRequest};
use crate::git::{Commit, Repository};
use crate::objects::{Objects, Reference};
use loadtest_judge::report::object_of;
use loadtest_sim::platform::{EntityName, Last, PlatformSim};
use loadtest_sim::{PATIENCE, until};

/// How many there are: every second one is a chart, the last of the others a kustomization, the rest are directories.
pub(super) const APPLICATIONS: usize = 10;
/// The one whose annotation names a directory that it shares with others.
const SHARES: usize = 9;
const KUSTOMIZED: usize = 7;
/// The one that an ApplicationSet makes.
const GENERATED: usize = 3;
const NAMESPACE: &str = "monorepo";
const LOOK: Duration = Duration::from_millis(150);
/// What the applications are annotated with.
pub(super) const ANNOTATIONS: [&str; 4] = [
    "mrp-controller.argoproj.io/change-revision",
    "mrp-controller.argoproj.io/change-revisions",
    "mrp-controller.argoproj.io/git-revision",
    "mrp-controller.argoproj.io/git-revisions",
];

/// What is to be said once all are synced to a revision.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) revision: String,
    /// Of each application: the commit that changed it last,
    changed: Vec<String>,
    /// and the round in which it did.
    rounds: Vec<usize>,
}

pub(super) struct Fleet {
    repository: Repository,
}

fn name(number: usize) -> String {
    format!("mono-{number}")
}

fn is_chart(number: usize) -> bool {
    number.is_multiple_of(2)
}

fn chart(number: usize, round: usize) -> String {
    format!("apiVersion: v2\nname: a{number}\nversion: 0.1.0\nappVersion: \"1.{round}.{number}\"\n")
}

/// The manifest of an application's only object.
fn manifest(number: usize, round: usize) -> String {
    let name = name(number);
    format!(
        "# Round {round}.\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  round: \"{round}\"\n"
    )
}

/// The files of an application in a round.
fn files(number: usize, round: usize) -> Vec<(String, String)> {
    let at = |file: &str| format!("apps/a{number}/{file}");
    match number {
        _ if is_chart(number) => vec![
            (at("Chart.yaml"), chart(number, round)),
            (at("templates/config.yaml"), manifest(number, round)),
        ],
        KUSTOMIZED => vec![
            (at("kustomization.yaml"), "resources: [config.yaml]\n".to_owned()),
            (at("config.yaml"), manifest(number, round)),
        ],
        _ => vec![(at("config.yaml"), manifest(number, round))],
    }
}

fn commit(message: &str, files: impl IntoIterator<Item = (String, String)>) -> Commit {
    Commit::of_ada(message, files.into_iter().map(|(path, text)| (path, Some(text))).collect())
}

fn changes(numbers: &[usize], round: usize) -> Commit {
    commit("Change some", numbers.iter().flat_map(|&number| files(number, round)))
}

impl Expected {
    /// After these were changed by a commit.
    fn then(&mut self, numbers: &[usize], commit: &str, round: usize) {
        for &number in numbers {
            if let (Some(changed), Some(last)) = (self.changed.get_mut(number), self.rounds.get_mut(number)) {
                commit.clone_into(changed);
                // What is shared changes no object.
                if number != SHARES {
                    *last = round;
                }
            }
        }
    }
}

impl Fleet {
    pub(super) async fn make(cluster: &Cluster) -> anyhow::Result<Self> {
        Ok(Self { repository: cluster.git.repository("monorepo").await? })
    }

    pub(super) fn url(&self) -> &str {
        self.repository.url()
    }

    /// All of them, in one commit.
    pub(super) async fn first(&self) -> anyhow::Result<Expected> {
        let all: Vec<usize> = (0..APPLICATIONS).collect();
        let shared = ("shared/note.txt".to_owned(), "1\n".to_owned());
        let commit = commit("Begin", all.iter().flat_map(|&number| files(number, 1)).chain([shared]));
        let revision = self.repository.commit(&commit).await?;
        let changed = vec![revision.clone(); APPLICATIONS];
        Ok(Expected { revision, changed, rounds: vec![1; APPLICATIONS] })
    }

    /// Two branches that change different ones.
    pub(super) async fn merge(&self, before: &Expected) -> anyhow::Result<Expected> {
        self.merged(before, &[&[1, 2], &[3]], 2).await
    }

    /// Three branches, and a commit before that changes only what one shares.
    pub(super) async fn octopus(&self, before: &Expected) -> anyhow::Result<Expected> {
        let shared = commit("Change what is shared", [("shared/note.txt".to_owned(), "2\n".to_owned())]);
        let shared = self.repository.commit(&shared).await?;
        let mut expected = self.merged(before, &[&[4], &[5, KUSTOMIZED], &[6]], 3).await?;
        expected.then(&[SHARES], &shared, 3);
        Ok(expected)
    }

    async fn merged(&self, before: &Expected, sides: &[&[usize]], round: usize) -> anyhow::Result<Expected> {
        let commits: Vec<Commit> = sides.iter().map(|numbers| changes(numbers, round)).collect();
        let (ids, merge) = self.repository.merge(&commits, "Bring all together").await?;
        let mut expected = Expected { revision: merge, ..before.clone() };
        for (numbers, id) in sides.iter().zip(&ids) {
            expected.then(numbers, id, round);
        }
        Ok(expected)
    }

    /// A commit that changes the one that an ApplicationSet makes.
    pub(super) async fn change_generated(&self) -> anyhow::Result<String> {
        self.repository.commit(&changes(&[GENERATED], 4)).await
    }

    /// Makes those that are not there, one of them by an ApplicationSet, syncs all of them to a revision, and waits for it.
    pub(super) async fn sync(&self, cluster: &Cluster, revision: &str) -> anyhow::Result<()> {
        let objects = Objects::new(cluster.control.client());
        // Ten that make it at once would be in each other's way.
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        objects.apply_value(&namespace, ArgoCd::NAMESPACE).await?;
        for number in 0..APPLICATIONS {
            if objects.get(&reference(number)).await?.is_some() {
                continue;
            }
            let application = self.application(number);
            let made = if number == GENERATED { set_of(&application) } else { application };
            objects.apply_value(&made, ArgoCd::NAMESPACE).await?;
            let look = async || objects.get(&reference(number)).await;
            let made = until(PATIENCE, LOOK, look, Option::is_some).await?;
            made.with_context(|| format!("wait until {} is made", name(number)))?;
        }
        let all: Vec<usize> = (0..APPLICATIONS).collect();
        Self::sync_these(cluster, &all, revision).await
    }

    /// Syncs the one that an ApplicationSet makes to a revision, and waits for it.
    pub(super) async fn sync_generated(&self, cluster: &Cluster, revision: &str) -> anyhow::Result<()> {
        Self::sync_these(cluster, &[GENERATED], revision).await
    }

    async fn sync_these(cluster: &Cluster, these: &[usize], revision: &str) -> anyhow::Result<()> {
        let objects = Objects::new(cluster.control.client());
        let argocd = cluster.argocd.client();
        for &number in these {
            let name = name(number);
            argocd.refreshed(&name, "normal").await?;
            let request = SyncRequest { revision: Some(revision.to_owned()), ..SyncRequest::default() };
            argocd.sync(&name, &request).await.with_context(|| format!("sync {name}"))?;
        }
        let is_synced = |object: &Value| {
            let state = &object["status"]["operationState"];
            object["operation"].is_null()
                && state["syncResult"]["revision"] == revision
                && state["phase"] == "Succeeded"
        };
        for &number in these {
            let look = async || Ok(objects.get(&reference(number)).await?.unwrap_or_default());
            let object = until(PATIENCE, LOOK, look, is_synced).await?;
            let state = &object["status"]["operationState"];
            ensure!(is_synced(&object), "wait for the sync of {} to {revision}: {state}", name(number));
        }
        Ok(())
    }

    fn application(&self, number: usize) -> Value {
        let mut annotations = json!({});
        if number == SHARES {
            annotations["argocd.argoproj.io/manifest-generate-paths"] = ".;/shared".into();
        }
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name(number), "namespace": ArgoCd::NAMESPACE, "annotations": annotations},
            "spec": {
                "project": "default",
                "destination": {"server": ArgoCd::DESTINATION, "namespace": NAMESPACE},
                "source": {"repoURL": self.url(), "path": format!("apps/a{number}"), "targetRevision": "main"},
            },
        })
    }

    /// The name of the one that an ApplicationSet makes.
    pub(super) fn generated(&self) -> String {
        name(GENERATED)
    }

    /// What is reported to have changed the one that an ApplicationSet makes; nothing where that is not reported.
    pub(super) fn reported_changes(&self, platform: &PlatformSim) -> Value {
        payload(&platform.last(), GENERATED, true).map_or(Value::Null, |report| change_revisions(&report))
    }

    /// Which of our annotations the one has that an ApplicationSet makes.
    pub(super) async fn kept(&self, objects: &Objects) -> anyhow::Result<Vec<&'static str>> {
        let object = objects.get(&reference(GENERATED)).await?.context("an application is gone")?;
        let annotations = &object["metadata"]["annotations"];
        Ok(ANNOTATIONS.into_iter().filter(|key| !annotations[*key].is_null()).collect())
    }

    /// What differs from what is expected: of annotations, and of the last reports.
    pub(super) async fn differences(
        &self,
        objects: &Objects,
        platform: &PlatformSim,
        expected: &Expected,
    ) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for (number, (changed, round)) in expected.changed.iter().zip(&expected.rounds).enumerate() {
            let object = objects.get(&reference(number)).await?.context("an application is gone")?;
            let wanted = [
                changed.clone(),
                json!([changed]).to_string(),
                expected.revision.clone(),
                json!([expected.revision]).to_string(),
            ];
            for (key, wanted) in ANNOTATIONS.iter().zip(wanted) {
                let is = &object["metadata"]["annotations"][*key];
                if *is != json!(wanted) {
                    found.push(format!("{}: annotation {key} is {is}, expected {wanted}", name(number)));
                }
            }
            let of = |what: String| format!("{}: {what}", name(number));
            found.extend(reported(platform, number, changed, *round).into_iter().map(of));
        }
        Ok(found)
    }
}

/// An ApplicationSet that makes this application, and no other.
fn set_of(application: &Value) -> Value {
    let elements = json!([{"name": application["metadata"]["name"]}]);
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
        "metadata": {"name": "monorepo", "namespace": ArgoCd::NAMESPACE},
        "spec": {
            "generators": [{"list": {"elements": elements}}],
            "template": {"metadata": {"name": "{{name}}"}, "spec": application["spec"]},
        },
    })
}

/// What was reported last of an application itself, or of its object.
fn payload(last: &[(EntityName, Last)], number: usize, is_itself: bool) -> Option<Value> {
    let is_object =
        |entity: &EntityName| entity.resource.as_ref().is_some_and(|resource| resource.kind == "ConfigMap");
    let is_it = |entity: &EntityName| entity.app_name == name(number) && is_object(entity) != is_itself;
    let (_, last) = last.iter().find(|(entity, _)| is_it(entity))?;
    serde_json::from_slice(last.payload.as_ref()?).ok()
}

/// What differs in what was reported last of an application and of its object.
fn reported(platform: &PlatformSim, number: usize, changed: &str, round: usize) -> Vec<String> {
    let last = platform.last();
    let (Some(itself), Some(object)) = (payload(&last, number, true), payload(&last, number, false)) else {
        return vec!["it is not reported, or its object is not".to_owned()];
    };
    let mut found = Vec::new();
    let mut differ = |what: &str, is: &Value, wanted: &Value| {
        if is != wanted {
            found.push(format!("{what} is {is}, expected {wanted}"));
        }
    };
    let chart = chart(number, round);
    let versions = match is_chart(number) {
        true => json!({"appVersion": format!("1.{round}.{number}"), "dependencies": {"deps": chart}}),
        false => json!({}),
    };
    differ("appVersions", &itself["appVersions"], &versions);
    differ("changeRevisions", &change_revisions(&itself), &json!([changed]));
    let source = &object["source"];
    if is_chart(number) {
        // Argo CD does not say which template made it.
        differ("path", &source["path"], &json!(format!("apps/a{number}/Chart.yaml")));
        let manifest = source["gitManifest"].as_str().unwrap_or_default();
        let manifest: Value = serde_saphyr::from_str(manifest).unwrap_or_default();
        differ("the round of gitManifest", &manifest["data"]["round"], &json!(round.to_string()));
    } else {
        differ("path", &source["path"], &json!(format!("apps/a{number}/config.yaml")));
        differ("gitManifest", &source["gitManifest"], &json!(manifest(number, round)));
    }
    found
}

/// The revisions that a report's object carries of what changed it.
fn change_revisions(report: &Value) -> Value {
    let read = || {
        let object = object_of(report)?;
        let marks = object["metadata"]["annotations"]["app.meta.revisions-metadata"].as_str()?;
        let marks: Value = serde_json::from_str(marks).ok()?;
        let revisions = marks["changeRevisions"].as_array()?.iter().map(|of| of["revision"].clone());
        Some(Value::Array(revisions.collect()))
    };
    read().unwrap_or_default()
}

fn reference(number: usize) -> Reference {
    Reference::new("argoproj.io/v1alpha1", "Application", Some(ArgoCd::NAMESPACE), &name(number))
}
