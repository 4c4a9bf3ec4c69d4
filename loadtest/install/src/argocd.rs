//! The chart as the cluster's own Argo CD installs it: an Application that points at it in a Git repository.
//!
//! takes: an installed release - gives: what Argo CD shows that nobody changed: a difference, a health that is not Healthy, a
//! sync that nobody asked for, a condition; and what is left when the Application is deleted with all that it made
//! calls: Argo CD's API, the API server - fails: when one of them does
//!
//! Argo CD puts right by itself what differs, so that a difference would show as a sync as well.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use loadtest_cluster::argocd::ArgoCd;
use loadtest_cluster::git::{BRANCH, Commit, Repository, files_of};
use loadtest_cluster::objects::Reference;
use loadtest_judge::screen::say;
use loadtest_sim::reporter::merge;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::ground::{CHART, Ground};
use crate::neighbour::Neighbour;
use crate::{LOOK, until};

/// The namespace that Argo CD installs into, and the Application's name.
const OWN: &str = "runtime-git";
/// Of the release, which is not called as the Application is.
const RELEASE: &str = "from-git";
/// The chart's folder in the repository, and its values for this cluster.
const FOLDER: &str = "gitops-runtime";
const VALUES: &str = "of-this-cluster.yaml";
/// What Argo CD leaves when the Application is deleted, by an annotation of the chart.
const KEPT: [&str; 2] = ["-reporter", "-generated"];
/// Between two comparisons with everything anew, where the Application is watched for long.
const ANEW: Duration = Duration::from_secs(30);

/// What Argo CD says of the Application.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    revision: String,
    sync: String,
    health: String,
    /// Syncs so far.
    syncs: usize,
    /// Warnings and errors.
    conditions: Vec<String>,
}

/// Has it installed, watched, upgraded by a commit, and deleted.
pub(crate) async fn take(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let mut neighbour = Neighbour::start(ground, OWN).await?;
    let trust = json!({"secret": {"create": true, "content": neighbour.authority}});
    merge(&mut neighbour.values, &json!({"global": {"codefresh": {"tls": {"caCerts": trust}}}}));
    if !ground.quiet.is_zero() {
        merge(&mut neighbour.values, &everything());
    }
    let repository = ground.cluster.git.repository("charts").await?;
    let first = commit(&repository, chart(&neighbour.values)?, "The chart").await?;
    ground.objects.apply_value(&application(repository.url()), ArgoCd::NAMESPACE).await?;
    let mut wrong = quiet(ground, &first, 1, ground.quiet).await?;
    wrong.extend(neighbour.follow(ground).await?);

    // Another version of the chart, and other values.
    let mut files = chart(&neighbour.values)?;
    let metadata = files.get_mut(&format!("{FOLDER}/Chart.yaml")).and_then(Option::as_mut);
    let metadata = metadata.context("find the version of the chart")?;
    ensure!(metadata.contains("\nversion: 0.1.0\n"), "the version of the chart is another one");
    *metadata = metadata.replace("\nversion: 0.1.0\n", "\nversion: 0.1.1\n");
    merge(&mut neighbour.values, &json!({"reporter": {"podAnnotations": {"example.com/upgraded": "yes"}}}));
    files.insert(format!("{FOLDER}/{VALUES}"), Some(neighbour.values.to_string()));
    let second = commit(&repository, files, "The next version").await?;
    let client = ground.cluster.argocd.client();
    client.refreshed(OWN, "normal").await?;
    wrong.extend(quiet(ground, &second, 2, Duration::ZERO).await?);
    wrong.extend(neighbour.follow(ground).await?);

    client.delete(OWN).await?;
    let kept = |line: &str| {
        let claim = line.strip_prefix(&format!("PersistentVolumeClaim {OWN}/"));
        // Those of a StatefulSet are kept by Kubernetes.
        claim.is_some_and(|name| name.starts_with("data-"))
            || KEPT.iter().any(|end| line.ends_with(&format!("{OWN}/{RELEASE}-gitops-runtime{end}")))
            || claim.is_some_and(|name| KEPT_CLAIMS.iter().any(|end| name.ends_with(end)))
    };
    wrong.extend(neighbour.gone(ground, kept).await?);
    Ok(wrong)
}

/// Claims of further components, which are kept as that of the reporter is.
const KEPT_CLAIMS: [&str; 2] = ["-change-revision", "-resource-reporter"];

/// Further components and objects, for the long form.
fn everything() -> Value {
    let local = json!({"storageClass": "local"});
    json!({
        "nats": {"mode": "embedded", "persistence": local, "resources": {"requests": {"cpu": "10m"}}},
        "reporter": {"replicaCount": 2, "resources": {"requests": {"cpu": "10m"}}},
        "resourceReporter": {"enabled": true, "persistence": local},
        "changeRevision": {"enabled": true, "persistence": local},
        "sourceServer": {"enabled": true, "allowed": ["https://git.example.com/"]},
        "tunnelServer": {"enabled": true, "domain": "tunnels.example.com"},
        "metrics": {"dashboards": {"enabled": true}},
    })
}

/// The chart with values for this cluster, as files of a commit.
fn chart(values: &Value) -> anyhow::Result<BTreeMap<String, Option<String>>> {
    let files = files_of(Path::new(CHART))?.into_iter();
    let mut files: BTreeMap<_, _> =
        files.map(|(path, text)| (format!("{FOLDER}/{path}"), Some(text))).collect();
    // JSON is YAML.
    files.insert(format!("{FOLDER}/{VALUES}"), Some(values.to_string()));
    Ok(files)
}

async fn commit(
    repository: &Repository,
    files: BTreeMap<String, Option<String>>,
    message: &str,
) -> anyhow::Result<String> {
    repository.commit(&Commit::of_ada(message, files)).await
}

fn application(url: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": OWN},
        "spec": {
            "project": "default",
            "source": {
                "repoURL": url, "path": FOLDER, "targetRevision": BRANCH,
                "helm": {"releaseName": RELEASE, "valueFiles": [VALUES]},
            },
            "destination": {"server": ArgoCd::DESTINATION, "namespace": OWN},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
        },
    })
}

/// Waits until a revision is synced and healthy, and says what is shown otherwise from then on, for so long, and when all is
/// compared anew.
async fn quiet(ground: &Ground, revision: &str, syncs: usize, long: Duration) -> anyhow::Result<Vec<String>> {
    let expected = Shown {
        revision: revision.to_owned(),
        sync: "Synced".to_owned(),
        health: "Healthy".to_owned(),
        syncs,
        conditions: Vec::new(),
    };
    let began = Instant::now();
    let shown = until(async || Shown::now(ground).await, |shown| *shown == expected).await?;
    ensure!(shown == expected, "Argo CD shows {shown:?}, and not {expected:?}");
    say(&format!("  synced and healthy after {:.0} s", began.elapsed().as_secs_f64()));
    let client = ground.cluster.argocd.client();
    let (began, mut comparisons) = (Instant::now(), 0_u32);
    loop {
        if comparisons == 0 || began.elapsed() > ANEW * comparisons || began.elapsed() >= long {
            client.refreshed(OWN, "hard").await?;
            comparisons += 1;
            let resources = client.managed_resources(OWN).await?;
            let wrong = differences(&resources)?;
            if !wrong.is_empty() {
                return Ok(wrong);
            }
        }
        let shown = Shown::now(ground).await?;
        if shown != expected {
            return Ok(vec![format!("nobody changed anything, and Argo CD shows {shown:?}")]);
        }
        if began.elapsed() >= long {
            break;
        }
        sleep(LOOK).await;
    }
    say(&format!(
        "  no difference in {:.0} s and {comparisons} comparisons with everything anew",
        began.elapsed().as_secs_f64()
    ));
    Ok(Vec::new())
}

/// What differs between what is wanted and what is there, a line each.
fn differences(resources: &Value) -> anyhow::Result<Vec<String>> {
    let items = resources["items"].as_array().context("read the resources of the Application")?;
    ensure!(items.len() > 5, "Argo CD manages {} resources", items.len());
    let mut wrong = Vec::new();
    for item in items.iter().filter(|item| item["hook"] != true) {
        let (live, wanted) = (&item["normalizedLiveState"], &item["predictedLiveState"]);
        if live != wanted || item["modified"] == true {
            wrong.push(format!("{} {} differs: {live} and {wanted}", item["kind"], item["name"]));
        }
    }
    Ok(wrong)
}

impl Shown {
    async fn now(ground: &Ground) -> anyhow::Result<Self> {
        let reference = Reference::new("argoproj.io/v1alpha1", "Application", Some(ArgoCd::NAMESPACE), OWN);
        let object = ground.objects.get(&reference).await?;
        Ok(Self::of(&object.with_context(|| format!("find {reference}"))?))
    }

    fn of(object: &Value) -> Self {
        let status = &object["status"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            revision: text(&status["sync"]["revision"]),
            sync: text(&status["sync"]["status"]),
            health: text(&status["health"]["status"]),
            syncs: status["history"].as_array().map_or(0, Vec::len),
            conditions: conditions.iter().map(|one| text(&one["message"])).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_and_hooks_are_not() {
        let same =
            json!({"kind": "Service", "name": "a", "normalizedLiveState": "{}", "predictedLiveState": "{}"});
        let mut items = vec![same; 6];
        assert_eq!(differences(&json!({"items": items})).unwrap(), Vec::<String>::new());
        items.push(json!({"kind": "Pod", "name": "test", "hook": true, "predictedLiveState": "{}"}));
        items.push(
            json!({"kind": "Secret", "name": "b", "normalizedLiveState": "{}", "predictedLiveState": "{\"a\":1}"}),
        );
        items.push(json!({"kind": "ConfigMap", "name": "c", "modified": true}));
        let found = differences(&json!({"items": items})).unwrap();
        assert_eq!(
            found,
            [r#""Secret" "b" differs: "{}" and "{\"a\":1}""#, r#""ConfigMap" "c" differs: null and null"#]
        );
        assert!(differences(&json!({"items": []})).is_err());
    }

    #[test]
    fn an_application_is_shown_with_its_conditions_and_syncs() {
        let object = json!({"status": {
            "sync": {"revision": "abc", "status": "OutOfSync"}, "health": {"status": "Progressing"},
            "history": [{}, {}], "conditions": [{"type": "SharedResourceWarning", "message": "shared"}],
        }});
        let shown = Shown::of(&object);
        let expected = Shown {
            revision: "abc".to_owned(),
            sync: "OutOfSync".to_owned(),
            health: "Progressing".to_owned(),
            syncs: 2,
            conditions: vec!["shared".to_owned()],
        };
        assert_eq!(shown, expected);
        assert_eq!(Shown::of(&Value::Null).syncs, 0);
    }
}
