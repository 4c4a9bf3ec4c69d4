//! Reports with what Git says, of some repositories from Argo CD and of others from Git itself.

use loadtest::sim::Simulation;
use loadtest::sim::argocd::Kind;
use serde_json::{Value, json};

use crate::runtime::{Runtime, eventually};
use crate::sources::{Kept, THING, URL};
use crate::told;

/// A repository that nobody but Argo CD knows.
const OTHER: &str = "https://git.example/other.git";

/// An application of these repositories, synced at this commit.
fn application(name: &str, repositories: &[&str], revision: &str) -> Value {
    let mut object = told::application(name, &told::thing());
    let source = |url: &&str| json!({"repoURL": url, "path": "shop", "directory": {"recurse": true}});
    let sources: Vec<Value> = repositories.iter().map(source).collect();
    let revisions = vec![revision; sources.len()];
    if let [source] = &sources[..] {
        object["spec"]["source"] = source.clone();
        object["status"]["sync"]["revision"] = json!(revision);
    } else {
        object["spec"].as_object_mut().unwrap().remove("source");
        object["spec"]["sources"] = json!(sources);
        object["status"]["sync"] = json!({"status": "OutOfSync", "revisions": revisions});
        object["status"]["history"] = json!([{"id": 1, "revisions": revisions, "sources": sources}]);
    }
    object
}

/// Of an application's resource `thing`, the path and the manifest that were reported last.
fn told_of(simulation: &Simulation, application: &str) -> Option<(String, String)> {
    let (_, last) = simulation.platform.last().into_iter().find(|(entity, _)| {
        let is_thing = entity.resource.as_ref().is_some_and(|key| key.name == "thing");
        entity.app_name == application && is_thing
    })?;
    let report: Value = serde_json::from_slice(&last.payload?).ok()?;
    let text = |name: &str| report["source"][name].as_str().unwrap_or_default().to_owned();
    Some((text("path"), text("gitManifest")))
}

async fn server(kept: &Kept) -> Runtime {
    let settings = json!({"sourceServer": {
        "listen": "127.0.0.1:0", "callers": {"tokenFile": kept.token()}, "repositories": [kept.place()],
    }});
    kept.server_of(&settings).await
}

/// The settings of a reporter that asks this server, as `from` and `repositories` say.
fn asking(server: &Runtime, kept: &Kept, from: &str, repositories: &[String]) -> Value {
    let server =
        json!({"from": from, "url": server.url(), "tokenFile": kept.token(), "repositories": repositories});
    json!({"reporter": {"sources": server}})
}

fn from_git() -> Option<(String, String)> {
    Some(("shop/thing.yaml".to_owned(), THING.to_owned()))
}

#[tokio::test]
async fn git_is_asked_of_the_repositories_that_are_named_and_argo_cd_of_all_others() {
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    told::put_object(&simulation, application("ours", &[URL], &kept.revision));
    told::put_object(&simulation, application("theirs", &[OTHER], &kept.revision));
    told::put_object(&simulation, application("both", &[OTHER, URL], &kept.revision));
    let server = server(&kept).await;
    let named = asking(&server, &kept, "argocd", &[format!("{URL}=server")]);
    let runtime = Runtime::start(&simulation, &named).await;
    eventually("what git says of one", || told_of(&simulation, "ours") == from_git()).await;
    eventually("what git says of a part", || told_of(&simulation, "both") == from_git()).await;
    eventually("the other", || told_of(&simulation, "theirs").is_some()).await;
    runtime.until("rest", |status| status.total.idle()).await;
    let (path, manifest) = told_of(&simulation, "theirs").unwrap();
    assert_eq!(path, "", "upstream's Argo CD says nothing of files");
    assert!(manifest.contains("name: thing") && !manifest.contains("By hand"), "{manifest}");
    runtime.stop().await;
    let metrics = server.metrics().await;
    let asked = [("operation", "manifests")];
    let answered = metrics.sum("gitops_runtime_source_requests_total", &asked);
    let ok = metrics.sum("gitops_runtime_source_requests_total", &[asked[0], ("status", "ok")]);
    assert_eq!((answered, ok > 0.0), (ok, true), "it is never asked of what it does not know");
    server.stop().await;
}

#[tokio::test]
async fn argo_cd_is_asked_of_a_repository_below_one_that_git_is_asked_of() {
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    told::put_object(&simulation, application("ours", &[URL], &kept.revision));
    told::put_object(&simulation, application("theirs", &[OTHER], &kept.revision));
    let server = server(&kept).await;
    let but_one =
        ["https://git.example=server".to_owned(), format!("{}=argocd", OTHER.trim_end_matches(".git"))];
    let runtime = Runtime::start(&simulation, &asking(&server, &kept, "argocd", &but_one)).await;
    eventually("what git says of one", || told_of(&simulation, "ours") == from_git()).await;
    eventually("the other", || told_of(&simulation, "theirs").is_some()).await;
    runtime.until("rest", |status| status.total.idle()).await;
    assert_eq!(told_of(&simulation, "theirs").unwrap().0, "");
    runtime.stop().await;
    let refused = server.metrics().await.sum("gitops_runtime_source_requests_total", &[("status", "wrong")]);
    assert_eq!(refused, 0.0, "it is never asked of what it does not know");
    server.stop().await;
}

/// What a fork of Argo CD says of an application: it knows the files itself.
fn say_as_a_fork(simulation: &Simulation, application: &str) {
    let compiled =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "thing", "namespace": "shop"}});
    let manifest = json!({"compiledManifest": compiled.to_string(), "rawManifest": "# The fork's.\n", "path": "fork.yaml"});
    let body = json!({"manifests": [manifest], "applicationVersions": {"appVersion": "0"}});
    simulation.argocd.set(Kind::Manifests, application, 200, body.to_string());
}

#[tokio::test]
async fn of_a_fork_that_knows_the_files_itself_git_has_its_say_where_it_is_asked() {
    let (kept, simulation) = (Kept::new(), told::world(|_| {}).await);
    for (name, url) in [("ours", URL), ("theirs", OTHER)] {
        told::put_object(&simulation, application(name, &[url], &kept.revision));
        say_as_a_fork(&simulation, name);
    }
    let server = server(&kept).await;
    let named = asking(&server, &kept, "argocd", &[format!("{URL}=server")]);
    let runtime = Runtime::start(&simulation, &named).await;
    let from_fork = Some(("fork.yaml".to_owned(), "# The fork's.\n".to_owned()));
    eventually("what git says of one", || told_of(&simulation, "ours") == from_git()).await;
    eventually("what the fork says of the other", || told_of(&simulation, "theirs") == from_fork).await;
    runtime.stop().await;
    server.stop().await;
}
