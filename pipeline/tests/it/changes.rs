//! The role `change-revision`: which commits changed which application, over real repositories.

use std::path::PathBuf;

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Oid, Repository, Signature, Time};
use loadtest::process::Start;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::kube::Collection;
use loadtest::sim::{Simulation, wait_for};
use pipeline_core::Key;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::platform::Platform;
use crate::runtime::{Runtime, eventually, http_client, merge, object, start};
use crate::told;

/// A repository of many applications.
pub(crate) struct Monorepo {
    folder: TempDir,
    repository: Repository,
}

impl Monorepo {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let repository = Repository::init_bare(folder.path().join("mono.git")).unwrap();
        Self { folder, repository }
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.folder.path().join("mono.git").display())
    }

    /// A commit that writes these files over those of its first parent.
    pub(crate) fn commit(&self, parents: &[Oid], files: &[(&str, &str)]) -> Oid {
        let of = &self.repository;
        let parents: Vec<_> = parents.iter().map(|id| of.find_commit(*id).unwrap()).collect();
        let base = match parents.first() {
            Some(parent) => parent.tree().unwrap(),
            None => of.find_tree(of.treebuilder(None).unwrap().write().unwrap()).unwrap(),
        };
        let mut update = TreeUpdateBuilder::new();
        for (path, content) in files {
            update.upsert(*path, of.blob(content.as_bytes()).unwrap(), FileMode::Blob);
        }
        let tree = of.find_tree(update.create_updated(of, &base).unwrap()).unwrap();
        let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 0)).unwrap();
        let parents: Vec<_> = parents.iter().collect();
        let id = of.commit(None, &who, &who, "Change it\n", &tree, &parents).unwrap();
        self.branch("main", id);
        id
    }

    /// The commit of a branch.
    pub(crate) fn head(&self, name: &str) -> Oid {
        self.repository.refname_to_id(&format!("refs/heads/{name}")).unwrap()
    }

    /// Makes or moves a branch.
    pub(crate) fn branch(&self, name: &str, to: Oid) {
        self.repository.reference(&format!("refs/heads/{name}"), to, true, "moved").unwrap();
    }
}

/// An application of one source that was synced to these revisions, one after the other.
pub(crate) fn synced(name: &str, url: &str, path: &str, revisions: &[Oid]) -> Value {
    let history: Vec<Value> = revisions.iter().map(|id| json!({"revision": id.to_string()})).collect();
    let newest = history.last().unwrap()["revision"].clone();
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"source": {"repoURL": url, "path": path, "targetRevision": "main"}},
        "status": {
            "sync": {"status": "Synced", "revision": newest},
            "operationState": {"phase": "Succeeded", "syncResult": {"revision": newest}},
            "history": history,
        },
    })
}

pub(crate) fn put(simulation: &Simulation, application: Value) {
    simulation.kube.apply(Collection::Applications, application).unwrap();
}

fn reports(simulation: &Simulation) -> PathBuf {
    simulation.directory().join("changes.ndjson")
}

pub(crate) fn how(simulation: &Simulation, more: &Value) -> Start {
    let mut settings = json!({
        "reporter": {"sink": {"kind": "file", "file": {"path": reports(simulation)}}},
        "changeRevision": {"repositories": {"files": true}},
    });
    merge(&mut settings, more);
    Start { args: vec!["change-revision".into()], ..start(simulation, &settings) }
}

/// What was told of one application, in order. What a kill may repeat stands once.
pub(crate) fn told_of(simulation: &Simulation, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(reports(simulation)).unwrap_or_default();
    let whole = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut all: Vec<Value> =
        whole.map(|line| line["data"].clone()).filter(|of| of["name"] == name).collect();
    all.dedup();
    all
}

/// Of each report of an application: its change revision, the revision before, and the commits, of the first source.
pub(crate) fn changes(simulation: &Simulation, name: &str) -> Vec<(String, String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |report: &Value| {
        let source = &report["sources"][0];
        let commits = source["changes"].as_array().into_iter().flatten();
        let commits = commits.map(|commit| text(&commit["revision"])).collect();
        (text(&report["changeRevision"]), text(&source["previousRevision"]), commits)
    };
    told_of(simulation, name).iter().map(of).collect()
}

pub(crate) fn change(newest: Oid, previous: Oid, commits: &[Oid]) -> (String, String, Vec<String>) {
    (newest.to_string(), previous.to_string(), commits.iter().map(Oid::to_string).collect())
}

/// What the applications of a cluster are annotated with, but for what they were made with.
pub(crate) fn annotations(simulation: &Simulation, name: &str) -> Value {
    let text = simulation.kube.text(Collection::Applications, &Key::new("argocd", name).unwrap()).unwrap();
    let object: Value = serde_json::from_slice(&text).unwrap();
    object["metadata"]["annotations"].clone()
}

#[tokio::test]
async fn each_application_is_told_with_the_commits_that_changed_it_and_a_kill_loses_none() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let first = mono.commit(&[], &[("apps/a/x", "1"), ("apps/b/x", "1"), ("shared/x", "1"), ("README", "1")]);
    let of_a = mono.commit(&[first], &[("apps/a/x", "2")]);
    let of_b = mono.commit(&[first], &[("apps/b/x", "2")]);
    // The merge brings both together and changes neither; what follows it changes no application.
    let merged = mono.commit(&[of_a, of_b], &[("apps/b/x", "2")]);
    let tip = mono.commit(&[merged], &[("README", "2")]);
    for name in ["a", "b"] {
        put(&simulation, synced(name, &mono.url(), &format!("apps/{name}"), &[first, tip]));
    }
    let mut shared = synced("shared", &mono.url(), "apps/b", &[first, tip]);
    shared["metadata"]["annotations"] =
        json!({"argocd.argoproj.io/manifest-generate-paths": "/apps/a;/shared"});
    put(&simulation, shared);
    let mut never = synced("never", &mono.url(), "apps/a", &[tip]);
    never["status"] = json!({"sync": {"status": "OutOfSync"}});
    put(&simulation, never);

    let runtime = Runtime::launch(how(&simulation, &json!({}))).await;
    eventually("three reports", || ["a", "b", "shared"].iter().all(|of| changes(&simulation, of).len() == 1))
        .await;
    assert_eq!(changes(&simulation, "a"), [change(of_a, first, &[of_a])]);
    assert_eq!(changes(&simulation, "b"), [change(of_b, first, &[of_b])]);
    assert_eq!(changes(&simulation, "shared"), [change(of_a, first, &[of_a])]);
    let report = told_of(&simulation, "a").remove(0);
    assert_eq!(
        report["sources"][0]["changes"],
        json!([{
            "revision": of_a.to_string(), "author": "Ada <ada@example.com>", "date": "2023-11-14T22:13:20Z",
            "message": "Change it\n", "paths": ["apps/a/x"], "diffs": [{"path": "apps/a/x", "untold": "unreadable"}],
        }])
    );
    runtime.counts("gitops_runtime_filtered_total", &[("reason", "never_synced")], 1.0).await;
    runtime.counts("gitops_runtime_reports_total", &[("kind", "change_revision")], 3.0).await;
    assert_eq!(runtime.says("an application was changed").await.field("repository"), mono.url());

    runtime.until("rest", |status| status.total.idle()).await;
    runtime.kill().await;
    let second = mono.commit(&[tip], &[("apps/a/x", "3")]);
    let third = mono.commit(&[second], &[("apps/a/y", "1"), ("apps/b/x", "3")]);
    put(&simulation, synced("a", &mono.url(), "apps/a", &[first, tip, second, third]));
    // A rollback brings no new commit: the newest that the application has there is told.
    put(&simulation, synced("b", &mono.url(), "apps/b", &[first, tip, of_a]));
    let runtime = Runtime::launch(how(&simulation, &json!({}))).await;
    let again = |name: &str| changes(&simulation, name).len() == 2;
    eventually("what came meanwhile", || again("a") && again("b")).await;
    assert_eq!(
        changes(&simulation, "a")[1],
        change(third, tip, &[third, second]),
        "the sync in between is in it"
    );
    assert_eq!(changes(&simulation, "b")[1], change(first, tip, &[first]));
    assert_eq!(told_of(&simulation, "b")[1]["sources"][0]["noneIsNew"], true);
    runtime.until("rest", |status| status.total.idle()).await;
    assert!(simulation.kube.delete(Collection::Applications, &Key::new("argocd", "a").unwrap()));
    eventually("its end", || told_of(&simulation, "a").len() == 3).await;
    assert_eq!(told_of(&simulation, "a")[2], json!({"namespace": "argocd", "name": "a", "deleted": true}));
    assert_eq!(changes(&simulation, "shared").len(), 1, "what did not change is not told again");
    assert_eq!(simulation.kube.counts().patches, 0, "nothing is written to the cluster");
    runtime.stop().await;
}

#[tokio::test]
async fn what_a_commit_changed_in_files_is_told_without_secrets_and_only_where_it_is_wanted() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let secret = |word: &str| {
        let more: String = (0..9).map(|n| format!("  more-{n}: none\n")).collect();
        format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n{more}  note: {word}\n")
    };
    let first = mono
        .commit(&[], &[("apps/a/s.yaml", &secret("first-hidden-word")), ("apps/a/v.yaml", "replicas: 2\n")]);
    let second = mono.commit(
        &[first],
        &[("apps/a/s.yaml", &secret("second-hidden-word")), ("apps/a/v.yaml", "replicas: 3\n")],
    );
    put(&simulation, synced("a", &mono.url(), "apps/a", &[first, second]));
    let runtime = Runtime::launch(how(&simulation, &json!({}))).await;
    eventually("a report", || changes(&simulation, "a").len() == 1).await;
    let diffs = |report: &Value| report["sources"][0]["changes"][0]["diffs"].clone();
    let told = diffs(&told_of(&simulation, "a")[0]);
    assert_eq!(
        told[1],
        json!({"path": "apps/a/v.yaml", "text": "@@ -1,1 +1,1 @@\n-replicas: 2\n+replicas: 3\n"})
    );
    let of_secret = told[0]["text"].as_str().unwrap();
    let changed: Vec<&str> = of_secret.lines().filter(|line| line.starts_with(['-', '+'])).collect();
    assert_eq!(changed.len(), 2, "{of_secret}");
    assert!(changed[0].starts_with("-  note: redacted:hmac-sha256:"), "{of_secret}");
    assert!(changed[1].starts_with("+  note: redacted:hmac-sha256:"), "{of_secret}");
    assert_ne!(changed[0].split_at(1).1, changed[1].split_at(1).1, "that it is another one is seen");
    let third = mono.commit(&[second], &[("apps/a/v.yaml", "replicas: 4\n")]);
    runtime.stop().await;
    let runtime = Runtime::launch(how(&simulation, &json!({"changeRevision": {"diffs": "0"}}))).await;
    put(&simulation, synced("a", &mono.url(), "apps/a", &[first, second, third]));
    eventually("the next", || changes(&simulation, "a").len() == 2).await;
    assert_eq!(changes(&simulation, "a")[1], change(third, second, &[third]));
    assert_eq!(diffs(&told_of(&simulation, "a")[1]), Value::Null);
    assert!(!std::fs::read_to_string(reports(&simulation)).unwrap().contains("hidden-word"));
    runtime.stop().await;
}

#[tokio::test]
async fn annotations_are_written_exactly_and_once() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let first = mono.commit(&[], &[("apps/a/x", "1"), ("apps/b/x", "1")]);
    let of_a = mono.commit(&[first], &[("apps/a/x", "2")]);
    let tip = mono.commit(&[of_a], &[("apps/b/x", "2")]);
    put(&simulation, synced("a", &mono.url(), "apps/a", &[first, tip]));
    let mut several = synced("several", &mono.url(), "", &[tip]);
    let sources = json!([
        {"repoURL": mono.url(), "path": "apps/b"},
        {"repoURL": "https://charts.example", "chart": "web", "targetRevision": "1.x"},
        {"repoURL": mono.url(), "path": "apps/a"},
    ]);
    let revisions = json!([tip.to_string(), "1.2.3", tip.to_string()]);
    several["spec"] = json!({"sources": sources});
    several["status"]["operationState"]["syncResult"] = json!({"revisions": revisions});
    several["status"]["history"] = json!([{"revisions": revisions, "sources": sources}]);
    put(&simulation, several);
    // A write that fails is tried again.
    simulation
        .kube
        .faults()
        .add(Rule::always(Fault::Status { status: 503, retry_after: None }).on("patch").times(1));
    let settings = json!({"changeRevision": {"annotations": true}});
    let runtime = Runtime::launch(how(&simulation, &settings)).await;
    eventually("annotations", || {
        ["a", "several"].iter().all(|name| annotations(&simulation, name).is_object())
    })
    .await;
    let (tip, of_a) = (tip.to_string(), of_a.to_string());
    assert_eq!(
        annotations(&simulation, "a"),
        json!({
            "mrp-controller.argoproj.io/change-revision": of_a,
            "mrp-controller.argoproj.io/change-revisions": format!("[\"{of_a}\"]"),
            "mrp-controller.argoproj.io/git-revision": tip,
            "mrp-controller.argoproj.io/git-revisions": format!("[\"{tip}\"]"),
        })
    );
    assert_eq!(
        annotations(&simulation, "several"),
        json!({
            "mrp-controller.argoproj.io/change-revision": tip,
            "mrp-controller.argoproj.io/change-revisions": format!("[\"{tip}\",\"1.2.3\",\"{of_a}\"]"),
            "mrp-controller.argoproj.io/git-revision": tip,
            "mrp-controller.argoproj.io/git-revisions": format!("[\"{tip}\",\"1.2.3\",\"{tip}\"]"),
        })
    );
    // What was written comes back on the watch and changes nothing.
    runtime.counts("gitops_runtime_filtered_total", &[("reason", "unchanged")], 2.0).await;
    runtime.until("rest", |status| status.total.idle()).await;
    let written = simulation.kube.counts().patches;
    runtime.stop().await;
    let runtime = Runtime::launch(how(&simulation, &settings)).await;
    runtime.counts("gitops_runtime_filtered_total", &[("reason", "unchanged")], 2.0).await;
    runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(simulation.kube.counts().patches, written);
    assert_eq!(told_of(&simulation, "several").len(), 1);
    runtime.stop().await;
}

#[tokio::test]
async fn a_source_that_is_away_keeps_its_annotations_and_the_other_is_written() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let tip = mono.commit(&[], &[("apps/a/x", "1")]);
    let mut several = synced("several", &mono.url(), "", &[tip]);
    let sources = json!([
        {"repoURL": mono.url(), "path": "apps/a"}, {"repoURL": "file:///nowhere/mono.git", "path": "apps/b"},
    ]);
    let revisions = json!([tip.to_string(), tip.to_string()]);
    several["spec"] = json!({"sources": sources});
    several["status"]["operationState"]["syncResult"] = json!({"revisions": revisions});
    several["status"]["history"] = json!([{"revisions": revisions, "sources": sources}]);
    several["metadata"]["annotations"] = json!({
        "mrp-controller.argoproj.io/change-revision": "1",
        "mrp-controller.argoproj.io/change-revisions": r#"["1","2"]"#,
        "mrp-controller.argoproj.io/git-revision": "3",
        "mrp-controller.argoproj.io/git-revisions": r#"["3","4"]"#,
    });
    put(&simulation, several);
    let settings = json!({"changeRevision": {"annotations": true}});
    let runtime = Runtime::launch(how(&simulation, &settings)).await;
    let expected = json!({
        "mrp-controller.argoproj.io/change-revision": tip.to_string(),
        "mrp-controller.argoproj.io/change-revisions": format!("[\"{tip}\",\"2\"]"),
        "mrp-controller.argoproj.io/git-revision": tip.to_string(),
        "mrp-controller.argoproj.io/git-revisions": format!("[\"{tip}\",\"4\"]"),
    });
    eventually("the annotations of one source", || annotations(&simulation, "several") == expected).await;
    runtime.stop().await;
}

#[tokio::test]
async fn a_sync_is_told_and_written_once_however_many_states_argo_cd_shows_of_it() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let first = mono.commit(&[], &[("apps/a/x", "1")]);
    let second = mono.commit(&[first], &[("apps/a/x", "2")]);
    let third = mono.commit(&[second], &[("README", "1")]);
    let mut application = synced("a", &mono.url(), "apps/a", &[first]);
    application["status"]["operationState"]["startedAt"] = "2026-11-25T10:00:00Z".into();
    put(&simulation, application.clone());
    let runtime = Runtime::launch(how(&simulation, &json!({"changeRevision": {"annotations": true}}))).await;
    let filtered = async |reason: &str, times: usize| {
        runtime.counts("gitops_runtime_filtered_total", &[("reason", reason)], times as f64).await;
    };
    // Each write comes back on the watch as a state in which nothing that counts has changed.
    filtered("unchanged", 1).await;
    // The second commit changes the application, which is out of sync until it is there; the third does not.
    let syncs = [(second, "OutOfSync", "2026-11-25T11:00:00Z"), (third, "Synced", "2026-11-25T12:00:00Z")];
    for (before, (to, compared, at)) in syncs.into_iter().enumerate() {
        let revision = to.to_string();
        application["status"]["sync"] = json!({"status": compared, "revision": revision});
        put(&simulation, application.clone());
        filtered("unchanged", 6 * before + 2).await;
        // Who asks for a sync takes the state of the last one away.
        application["operation"] = json!({"sync": {"revision": revision}});
        application["status"].as_object_mut().unwrap().remove("operationState");
        put(&simulation, application.clone());
        filtered("not_begun", before + 1).await;
        application["status"]["operationState"] =
            json!({"phase": "Running", "startedAt": at, "operation": application["operation"]});
        put(&simulation, application.clone());
        filtered("unchanged", 6 * before + 3).await;
        // Its revision stands, then it is in the history, then it is over, and then the application is compared anew.
        application["status"]["operationState"]["syncResult"] = json!({"revision": revision});
        put(&simulation, application.clone());
        filtered("unchanged", 6 * before + 4).await;
        application["status"]["history"].as_array_mut().unwrap().push(json!({"revision": revision}));
        put(&simulation, application.clone());
        filtered("unchanged", 6 * before + 5).await;
        application["status"]["operationState"]["phase"] = "Succeeded".into();
        application.as_object_mut().unwrap().remove("operation");
        put(&simulation, application.clone());
        filtered("unchanged", 6 * before + 6).await;
        application["status"]["sync"]["status"] = "Synced".into();
        application["status"]["reconciledAt"] = at.into();
        put(&simulation, application.clone());
        filtered("unchanged", 6 * before + 7).await;
    }
    // Fifteen states and three writes.
    assert_eq!(runtime.idle(18).await.total.observed, 18);
    let begun = (first.to_string(), String::new(), vec![first.to_string()]);
    let nothing_new = change(second, second, &[second]);
    assert_eq!(changes(&simulation, "a"), [begun, change(second, first, &[second]), nothing_new]);
    let began: Vec<Value> =
        told_of(&simulation, "a").into_iter().map(|told| told["startedAt"].clone()).collect();
    assert_eq!(began, ["2026-11-25T10:00:00Z", "2026-11-25T11:00:00Z", "2026-11-25T12:00:00Z"]);
    assert_eq!(simulation.kube.counts().patches, 3, "one write for each sync");
    runtime.stop().await;
}

#[tokio::test]
async fn reports_carry_what_the_applications_are_annotated_with() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let first = mono.commit(&[], &[("apps/a/x", "1")]);
    let of_a = mono.commit(&[first], &[("apps/a/x", "2")]);
    let tip = mono.commit(&[of_a], &[("README", "1")]);
    told::put_object(&simulation, synced("a", &mono.url(), "apps/a", &[first, tip]));
    let reporter = Runtime::start(&simulation, &json!({})).await;
    let marks = || {
        let last = simulation.platform.last().into_iter().find(|(entity, _)| entity.resource.is_none())?;
        let object = object(&last.1.payload?);
        let marks = object["metadata"]["annotations"]["app.meta.revisions-metadata"].as_str()?;
        serde_json::from_str::<Value>(marks).ok()
    };
    let is = |revisions: &Value| marks().is_some_and(|marks| marks["changeRevisions"] == *revisions);
    eventually("a report", || is(&Value::Null)).await;
    let runtime = Runtime::launch(how(&simulation, &json!({"changeRevision": {"annotations": true}}))).await;
    let commit = json!({"author": "A <a@example.com>", "date": "2026-01-01T00:00:00Z", "message": "first"});
    let changed = json!([{"revision": of_a.to_string(), "metadata": commit}]);
    eventually("a report of what changed it", || is(&changed)).await;
    assert_eq!(marks().unwrap()["syncRevisions"][0]["revision"], tip.to_string());
    runtime.stop().await;
    reporter.stop().await;
}

#[tokio::test]
async fn a_platform_that_takes_them_has_what_each_sync_brought() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let platform = Platform::start().await;
    let first = mono.commit(&[], &[("apps/a/x", "1")]);
    let of_a = mono.commit(&[first], &[("apps/a/x", "2"), ("apps/a/y", "1")]);
    let tip = mono.commit(&[of_a], &[("README", "1")]);
    let begun = |mut application: Value, at: &str| {
        application["status"]["operationState"]["startedAt"] = at.into();
        application["status"]["operationState"]["finishedAt"] = at.into();
        application
    };
    told::put_object(
        &simulation,
        begun(synced("a", &mono.url(), "apps/a", &[first, tip]), "2026-11-25T10:00:00Z"),
    );
    let to_platform = json!({"platform": {"url": platform.url(), "tokenFile": platform.token_file()}});
    let mut settings = to_platform.clone();
    merge(
        &mut settings,
        &json!({"reporter": {"sink": {"kind": "platform", "platform": {"changes": {"enabled": true}}}}}),
    );
    let runtime = Runtime::launch(how(&simulation, &settings)).await;
    runtime.counts("gitops_runtime_reports_total", &[("kind", "change_revision")], 1.0).await;
    runtime.until("rest", |status| status.total.idle()).await;
    let reporter = Runtime::start(&simulation, &to_platform).await;
    let client = http_client();
    let brought = async || {
        let page = platform.page(&client, "/api/v1/applications/argocd/a/timeline").await;
        let of = |one: &Value| {
            let source = &one["changes"][0];
            let commits = source["commits"].as_array().cloned().unwrap_or_default();
            let commits = commits.iter().map(|one| (one["revision"].clone(), one["paths"].clone()));
            (one["startedAt"].clone(), source["noneIsNew"].clone(), commits.collect::<Vec<_>>())
        };
        page["deployments"].as_array().map(|all| all.iter().map(of).collect::<Vec<_>>()).unwrap_or_default()
    };
    wait_for("a deployment", async || brought().await, |brought| brought.len() == 1).await;
    let by_a = vec![(json!(of_a.to_string()), json!(["apps/a/x", "apps/a/y"]))];
    let one = (json!("2026-11-25T10:00:00.000Z"), json!(false), by_a.clone());
    assert_eq!(brought().await, std::slice::from_ref(&one));
    // Synced once more to where it stands: that brings nothing new.
    told::put_object(
        &simulation,
        begun(synced("a", &mono.url(), "apps/a", &[first, tip, tip]), "2026-11-25T11:00:00Z"),
    );
    let again = (json!("2026-11-25T11:00:00.000Z"), json!(true), by_a);
    wait_for(
        "the deployment after it",
        async || brought().await,
        |brought| *brought == [again.clone(), one.clone()],
    )
    .await;
    reporter.stop().await;
    runtime.stop().await;
}

#[tokio::test]
async fn a_repository_that_harms_changes_nothing_for_others() {
    let (mono, simulation) = (Monorepo::new(), told::world(|_| {}).await);
    let first = mono.commit(&[], &[("apps/a/x", "1")]);
    let tip = mono.commit(&[first], &[("apps/a/x", "2")]);
    // One that takes connections and never says a word, and one that speaks of something else.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}/repo.git", silent.local_addr().unwrap());
    let garbage = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = garbage.local_addr().unwrap().to_string();
    let garbage_url = format!("http://{host}/repo.git");
    let speaking = tokio::spawn(async move {
        while let Ok((mut stream, _)) = garbage.accept().await {
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n\xff\x00garbage";
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer).await;
        }
    });
    // One with names that are no names, links in circles, and a kustomization that takes itself.
    let evil = Monorepo::new();
    let kustomization = "resources: [., .., ../.., ../../../../etc, \"a\\nb\", ../x]\ncomponents: [.]\n";
    let evil_first =
        evil.commit(&[], &[("x/kustomization.yaml", kustomization), ("x/new\nline", "1"), ("x/-rf", "1")]);
    let evil_tip = evil.commit(&[evil_first], &[("x/new\nline", "2")]);
    let nowhere = format!("file://{}", mono.folder.path().join("none.git").display());
    put(&simulation, synced("silent", &silent, "x", &[first, tip]));
    put(&simulation, synced("garbage", &garbage_url, "x", &[first, tip]));
    put(&simulation, synced("nowhere", &nowhere, "x", &[first, tip]));
    put(&simulation, synced("password", "https://user:hidden-word@git.example/x.git", "x", &[first, tip]));
    put(&simulation, synced("evil", &evil.url(), "x", &[evil_first, evil_tip]));
    put(&simulation, synced("good", &mono.url(), "apps/a", &[first, tip]));
    let runtime = Runtime::launch(how(&simulation, &json!({"changeRevision": {"annotations": true}}))).await;
    let failing = ["garbage", "nowhere", "password"];
    let all = || failing.iter().chain(&["evil", "good"]).all(|of| !told_of(&simulation, of).is_empty());
    eventually("all but the silent one", all).await;
    assert_eq!(changes(&simulation, "good"), [change(tip, first, &[tip])]);
    assert_eq!(changes(&simulation, "evil"), [change(evil_tip, evil_first, &[evil_tip])]);
    let error =
        |name: &str| told_of(&simulation, name)[0]["sources"][0]["error"].as_str().unwrap().to_owned();
    assert_eq!(
        error("garbage"),
        format!(
            "{host} does not answer as a Git server does: what is at this address is a page, or files without a server of Git's protocol"
        )
    );
    assert_eq!(
        error("nowhere"),
        format!("no repository is at {nowhere}: it was moved or deleted, or the credentials may not see it")
    );
    assert_eq!(
        error("password"),
        "the address of the repository is refused: it holds a password: give it in a Secret, a file or the environment"
    );
    assert_eq!(told_of(&simulation, "silent"), [] as [Value; 0]);
    eventually("an annotation", || annotations(&simulation, "good").is_object()).await;
    for name in failing {
        assert!(annotations(&simulation, name).is_null(), "{name}");
    }
    let text = std::fs::read_to_string(reports(&simulation)).unwrap();
    assert!(!text.contains("hidden-word"));
    runtime.kill().await;
    speaking.abort();
}
