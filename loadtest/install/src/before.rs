//! A release of the version of the chart before, upgraded to this one.
//!
//! takes: a cluster - gives: what the API server would not take, what was made anew that must not be, and what the platform was not
//! told
//! calls: `helm`, `kubectl` - fails: when one of them does: an upgrade that the API server refuses is one
//!
//! The charts of earlier versions are kept as they were packaged. Their images are not: both run the one that is tried, as its name
//! and tag are the same in either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use loadtest_judge::screen::say;
use loadtest_sim::reporter::merge;
use serde_json::{Value, json};

use crate::ground::{CHART, Ground, NAME, RELEASE};
use crate::neighbour::Neighbour;

/// Where the charts of earlier versions are kept.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pipeline/tests/chart/before");
/// Commits that a load makes at the least, after an upgrade.
const COMMITS: u64 = 2;

/// One replica with a volume, and two on a bus; each in a namespace of its own.
pub(crate) async fn take(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let small = json!({"requests": {"cpu": "10m"}});
    let on_bus = json!({
        "nats": {"mode": "embedded", "persistence": {"storageClass": "local"}, "resources": small},
        "reporter": {"replicaCount": 2, "resources": small},
    });
    let mut wrong = Vec::new();
    for archive in archives()? {
        let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (namespace, more) in [("runtime-before", json!({})), ("runtime-before-bus", on_bus.clone())] {
            let found = upgraded(ground, &archive, namespace, &more).await?;
            wrong.extend(found.into_iter().map(|line| format!("from {name} in {namespace}: {line}")));
        }
    }
    Ok(wrong)
}

/// Components that the first version did not have, and a change of the pods of one that it had.
fn newer() -> Value {
    let small = json!({"requests": {"cpu": "10m"}});
    json!({
        "reporter": {"podAnnotations": {"example.com/upgraded": "yes"}},
        "resourceReporter": {"enabled": true, "persistence": {"storageClass": "local"}, "resources": small},
        "sourceServer": {"enabled": true, "allowed": ["https://git.example.com/"], "resources": small},
        "metrics": {"dashboards": {"enabled": true}},
    })
}

/// Every earlier version that is kept.
fn archives() -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(KEPT).with_context(|| format!("read {KEPT}"))? {
        let path = entry.with_context(|| format!("read {KEPT}"))?.path();
        if path.extension().is_some_and(|end| end == "tgz") {
            all.push(path);
        }
    }
    all.sort();
    ensure!(!all.is_empty(), "{KEPT} holds no chart");
    Ok(all)
}

async fn upgraded(
    ground: &Ground,
    archive: &Path,
    namespace: &'static str,
    more: &Value,
) -> anyhow::Result<Vec<String>> {
    let mut neighbour = Neighbour::start(ground, namespace).await?;
    let trust = json!({"secret": {"create": true, "content": neighbour.authority}});
    merge(&mut neighbour.values, &json!({"global": {"codefresh": {"tls": {"caCerts": trust}}}}));
    merge(&mut neighbour.values, more);
    ground.release_of(archive, namespace, &neighbour.values, &["--wait"]).await?;
    let mut wrong = neighbour.follow(ground).await?;
    let (before, manifest) = (workloads(ground, namespace).await?, ground.manifest(namespace).await?);

    // What that version does not have comes along, and the pods of what it has are replaced.
    merge(&mut neighbour.values, &newer());
    judged_whole(ground, namespace, &neighbour.values).await?;
    let load = ground.applications.load();
    ground.release_of(Path::new(CHART), namespace, &neighbour.values, &["--wait"]).await?;
    say(&format!("  {namespace}: {} commits meanwhile", load.stop(COMMITS).await?));
    wrong.extend(neighbour.applications.lacking().await?);
    let after = workloads(ground, namespace).await?;
    for (name, workload) in &before {
        match after.get(name) {
            Some(now) if now == workload => {}
            now => wrong.push(format!("{name} was {workload}, and is {now:?}")),
        }
    }
    let now = ground.manifest(namespace).await?;
    ensure!(manifest != now, "both versions are rendered the same");
    let again = ["upgrade", RELEASE, CHART, "--namespace", namespace, "--dry-run=server", "--output=json"];
    let values = ["--values", &values_of(ground, namespace)];
    let again = ground.tools.json("helm", &[&again[..], &values].concat()).await?;
    if again["manifest"].as_str().map(str::trim) != Some(now.trim()) {
        wrong.push("the same upgrade once more would change something".to_owned());
    }
    say(&format!("  {namespace}: {} workloads are the same objects, with the same selectors", before.len()));

    ground.tools.run("helm", &["uninstall", RELEASE, "--namespace", namespace, "--wait"]).await?;
    let kept = [
        format!("PersistentVolumeClaim {namespace}/{NAME}-reporter"),
        format!("Secret {namespace}/{NAME}-generated"),
    ];
    let claims = ["data-{NAME}-nats-", "{NAME}-resource-reporter"].map(|name| name.replace("{NAME}", NAME));
    let claims = claims.map(|name| format!("PersistentVolumeClaim {namespace}/{name}"));
    let may_stay = |line: &str| {
        kept.iter().any(|kept| kept == line) || claims.iter().any(|claim| line.starts_with(claim))
    };
    wrong.extend(neighbour.gone(ground, may_stay).await?);
    Ok(wrong)
}

/// Has the API server judge every object of this version as a whole, which Helm's comparison of three states would hide.
async fn judged_whole(ground: &Ground, namespace: &str, values: &Value) -> anyhow::Result<()> {
    let file = ground.folder.join(format!("rendered-{namespace}.yaml"));
    let given = values_of(ground, namespace);
    std::fs::write(&given, values.to_string()).context("write values")?;
    let template = ["template", RELEASE, CHART, "--namespace", namespace, "--no-hooks", "--values", &given];
    let template = [&template[..], &["--kube-version", "1.31.0"]].concat();
    std::fs::write(&file, ground.tools.run("helm", &template).await?).context("write what is rendered")?;
    let path = file.display().to_string();
    let dry = ["--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts"];
    let judged = [&["apply", "--filename", &path][..], &dry].concat();
    ground.tools.run("kubectl", &judged).await.map(drop).context("judge the objects of this version")
}

/// The file with what a release was last installed with.
fn values_of(ground: &Ground, namespace: &str) -> String {
    ground.folder.join(format!("values-{namespace}.json")).display().to_string()
}

/// Which object each workload is, and whom it takes for its own.
async fn workloads(ground: &Ground, namespace: &str) -> anyhow::Result<BTreeMap<String, Value>> {
    let args = ["get", "deployments,statefulsets", "--namespace", namespace, "--output=json"];
    let list = ground.tools.json("kubectl", &args).await?;
    let items = list["items"].as_array().context("read workloads")?;
    ensure!(!items.is_empty(), "{namespace} has no workloads");
    let of = |item: &Value| {
        let name = format!("{} {}", item["kind"], item["metadata"]["name"]).replace('"', "");
        (name, json!({"uid": item["metadata"]["uid"], "selector": item["spec"]["selector"]}))
    };
    Ok(items.iter().map(of).collect())
}
