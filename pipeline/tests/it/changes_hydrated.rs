//! Which commits changed an application that is not synced from what people write: Argo CD writes its manifests to a branch first
//! (`spec.sourceHydrator`), or only tries whether they could be applied.

use git2::Oid;
use loadtest::sim::Simulation;
use serde_json::{Value, json};

use crate::changes::{Monorepo, change, changes, how, put, synced, told_of};
use crate::changes_asked::{changed_by, commit};
use crate::runtime::{Runtime, eventually};
use crate::told;

/// Slashes in it are no directories.
const BRANCH: &str = "environments/dev";

/// An application whose manifests Argo CD writes to a branch, which was synced to these of its commits.
fn hydrated(name: &str, url: &str, revisions: &[Oid]) -> Value {
    let mut application = synced(name, url, "", revisions);
    application["spec"] = json!({"sourceHydrator": {
        "drySource": {"repoURL": url, "path": format!("charts/{name}"), "targetRevision": "main"},
        "syncSource": {"targetBranch": BRANCH, "path": name},
    }});
    application
}

/// As Argo CD writes the manifests of all applications: beside each it says of which commit they are made.
fn hydrate(mono: &Monorepo, parents: &[Oid], made_from: Oid, manifests: &[(&str, &str)]) -> Oid {
    let metadata = format!("{{\"drySha\": \"{made_from}\"}}\n");
    let mut files = vec![("hydrator.metadata".to_owned(), metadata.clone())];
    for (name, content) in manifests {
        files.push((format!("{name}/hydrator.metadata"), metadata.clone()));
        files.push((format!("{name}/README.md"), format!("git checkout {made_from}\n")));
        files.push((format!("{name}/manifest.yaml"), format!("kind: ConfigMap\ndata: {{a: {content}}}\n")));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, content)| (&**path, &**content)).collect();
    mono.commit(parents, &files)
}

/// Two commits that people wrote, the second of which changes `a` alone, and what Argo CD made of each.
fn two(mono: &Monorepo) -> [Oid; 2] {
    let first = mono.commit(&[], &[("charts/a/x", "1"), ("charts/b/x", "1")]);
    let of_a = mono.commit(&[first], &[("charts/a/x", "2")]);
    let made = hydrate(mono, &[], first, &[("a", "1"), ("b", "1")]);
    let made_of_a = hydrate(mono, &[made], of_a, &[("a", "2"), ("b", "1")]);
    mono.branch(BRANCH, made_of_a);
    mono.branch("main", of_a);
    [made, made_of_a]
}

fn put_both(mono: &Monorepo, revisions: &[Oid], put: impl Fn(Value)) {
    put(hydrated("a", &mono.url(), revisions));
    let mut annotated = hydrated("b", &mono.url(), revisions);
    // It is of the branch that people write to.
    annotated["metadata"]["annotations"] = json!({"argocd.argoproj.io/manifest-generate-paths": "/charts/b"});
    put(annotated);
}

#[tokio::test]
async fn what_argo_cd_writes_to_a_branch_is_told_with_its_commits_that_changed_manifests() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let [made, made_of_a] = two(&mono);
    put_both(&mono, &[made, made_of_a], |application| put(&simulation, application));
    let runtime = Runtime::launch(how(&simulation, &json!({}))).await;
    eventually("both reports", || ["a", "b"].iter().all(|name| changes(&simulation, name).len() == 1)).await;
    assert_eq!(changes(&simulation, "a"), [change(made_of_a, made, &[made_of_a])]);
    let report = told_of(&simulation, "a").remove(0);
    let told = &report["sources"][0]["changes"][0];
    assert_eq!(told["paths"], json!(["a/manifest.yaml"]));
    assert_eq!(told["madeFrom"]["revision"], mono.head("main").to_string());
    // Argo CD made it anew, and it is the same.
    assert_eq!(changes(&simulation, "b"), [change(made, made, &[made])]);
    assert_eq!(told_of(&simulation, "b")[0]["sources"][0]["noneIsNew"], true);
    runtime.stop().await;
}

#[tokio::test]
async fn reports_carry_the_commits_that_changed_what_argo_cd_writes_to_a_branch() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let [made, made_of_a] = two(&mono);
    put_both(&mono, &[made, made_of_a], |application| told::put_object(&simulation, application));
    let settings = json!({
        "reporter": {"changeRevisions": {"from": "here"}},
        "changeRevision": {"repositories": {"files": true}},
    });
    let reporter = Runtime::start(&simulation, &settings).await;
    let is = |name: &str, id: Oid| changed_by(&simulation, name) == Some(commit(id));
    eventually("what changed both", || is("a", made_of_a) && is("b", made)).await;
    reporter.stop().await;
}

/// Argo CD's state of an operation that succeeded.
fn succeeded(simulation: &Simulation, application: &mut Value, sync: &Value) {
    application["status"]["operationState"] = json!({"phase": "Succeeded", "startedAt": "2026-11-25T11:00:00Z",
        "operation": {"sync": sync}, "syncResult": {"revision": sync["revision"]}});
    put(simulation, application.clone());
}

#[tokio::test]
async fn a_dry_run_is_not_told_as_a_sync() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let first = mono.commit(&[], &[("apps/a/x", "1")]);
    let second = mono.commit(&[first], &[("apps/a/x", "2")]);
    let third = mono.commit(&[second], &[("apps/a/x", "3")]);
    let mut application = synced("a", &mono.url(), "apps/a", &[first, second]);
    put(&simulation, application.clone());
    let runtime = Runtime::launch(how(&simulation, &json!({}))).await;
    eventually("the sync", || changes(&simulation, "a") == [change(second, first, &[second])]).await;
    application["status"]["sync"] = json!({"status": "OutOfSync", "revision": third.to_string()});
    succeeded(&simulation, &mut application, &json!({"revision": third.to_string(), "dryRun": true}));
    runtime.counts("gitops_runtime_filtered_total", &[("reason", "not_begun")], 1.0).await;
    let history = application["status"]["history"].as_array_mut().unwrap();
    history.push(json!({"revision": third.to_string()}));
    succeeded(&simulation, &mut application, &json!({"revision": third.to_string()}));
    eventually("the next sync", || changes(&simulation, "a").len() == 2).await;
    assert_eq!(changes(&simulation, "a")[1], change(third, second, &[third]));
    runtime.stop().await;
}
