//! What Git says where Argo CD does not.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::async_trait;
use serde_json::{Value, json};

use super::{REVISION, body, event, healthy, payload, run_with, settings, store};
use crate::plan::{Fetch, RawManifests, Response, Settings};
use crate::sources::{AsksGit, Described, SourceFile, Sources, SourcesAt, composed};

const SERVICE: &str = r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"store"}}"#;

/// Upstream's Argo CD has told that its manifests are compiled ones alone.
fn asking_git() -> Settings {
    Settings { sources: AsksGit::Always, ..settings(RawManifests::Absent) }
}

fn answered(described: Option<&Described>) -> impl Fn(&Fetch) -> Response {
    move |fetch| match fetch {
        Fetch::Manifests { .. } => Response::Body(composed(&[SERVICE.to_owned()], described)),
        fetch => healthy(fetch),
    }
}

#[test]
fn git_is_asked_about_the_sources_at_the_revisions_that_argo_cd_resolved() {
    let mut store = store();
    store["status"]["operationState"]["syncResult"]["revision"] = json!("2222");
    let (result, asked) = run_with(&event(&store), None, &asking_git(), Duration::ZERO, answered(None));
    result.unwrap();
    let of: Vec<_> = asked
        .iter()
        .filter_map(|fetch| match fetch {
            Fetch::Manifests { sources, .. } => sources.clone(),
            _ => None,
        })
        .collect();
    let revisions: Vec<&str> = of.iter().map(|of| of.sources[0].revision.as_str()).collect();
    assert_eq!(revisions, [REVISION, "2222"]);
    let source: Value = serde_json::from_str(&of[0].sources[0].source).unwrap();
    assert_eq!(source, store["spec"]["source"]);
    assert_eq!(of[0].namespace, "store");
    let metadata: Value = serde_json::from_str(&of[0].metadata).unwrap();
    assert_eq!(
        metadata,
        json!({"name": "store", "namespace": "argocd", "uid": "u1", "labels": {"team": "web"}})
    );
}

#[test]
fn git_is_asked_about_what_argo_cd_writes_to_a_branch_and_not_about_what_it_is_made_from() {
    let mut store = store();
    let mono = "https://git.example.com/mono.git";
    store["spec"]["source"] = json!(null);
    store["spec"]["sourceHydrator"] = json!({
        "drySource": {"repoURL": mono, "path": "charts/store", "targetRevision": "main"},
        "syncSource": {"targetBranch": "environments/dev", "path": "store"},
    });
    let (result, asked) = run_with(&event(&store), None, &asking_git(), Duration::ZERO, answered(None));
    result.unwrap();
    let of: Vec<(Value, &str)> = asked
        .iter()
        .filter_map(|fetch| match fetch {
            Fetch::Manifests { sources, .. } => sources.as_ref(),
            _ => None,
        })
        .map(|of| (serde_json::from_str(&of.sources[0].source).unwrap(), of.sources[0].revision.as_str()))
        .collect();
    let branch = json!({"repoURL": mono, "path": "store", "targetRevision": "environments/dev"});
    assert_eq!(of, [(branch.clone(), REVISION), (branch, REVISION)]);
}

/// Is asked of every repository.
#[derive(Debug)]
struct Git;

#[async_trait]
impl Sources for Git {
    fn is_asked_of(&self, _: &str) -> bool {
        true
    }

    async fn describe(&self, _: &SourcesAt, _: &[String]) -> Option<Described> {
        None
    }
}

#[test]
fn git_is_asked_about_no_application_that_comes_from_elsewhere_alone() {
    let settings = Settings { sources: AsksGit::By(Arc::new(Git)), ..settings(RawManifests::Absent) };
    let is_asked = |sources: Value| {
        let mut store = store();
        store["status"]["sync"]["revisions"] = sources.as_array().unwrap().iter().map(|_| "1.2.3").collect();
        store["spec"]["sources"] = sources;
        let (result, asked) = run_with(&event(&store), None, &settings, Duration::ZERO, healthy);
        result.unwrap();
        asked.iter().any(|fetch| matches!(fetch, Fetch::Manifests { sources: Some(_), .. }))
    };
    let chart = json!({"repoURL": "https://charts.example.com", "chart": "web"});
    let artifact = json!({"repoURL": "oci://registry.example.com/team/web", "path": "."});
    let git = json!({"repoURL": "https://git.example.com/mono.git", "path": "store"});
    for (sources, expected) in [
        (json!([chart]), false),
        (json!([artifact]), false),
        (json!([artifact, chart]), false),
        (json!([git]), true),
        (json!([artifact, git]), true),
    ] {
        assert_eq!(is_asked(sources.clone()), expected, "{sources}");
    }
}

#[test]
fn what_git_says_is_of_what_is_desired_and_the_versions_of_what_was_synced() {
    const MAIN: &str = "3333333333333333333333333333333333333333";
    // It was synced back to an older commit; the branch that it follows is ahead.
    let mut store = store();
    store["status"]["sync"]["status"] = json!("OutOfSync");
    store["status"]["sync"]["revision"] = json!(MAIN);
    let at = |revision: &str| Described {
        files: vec![Some(SourceFile {
            path: "store/web.yaml".to_owned(),
            text: format!("# {revision}").into(),
        })],
        versions: Some(json!({"appVersion": revision})),
    };
    let answer = |fetch: &Fetch| match fetch {
        Fetch::Manifests { revision, sources, .. } => {
            let asked = revision.as_deref().unwrap_or_default();
            assert_eq!(sources.as_ref().unwrap().sources[0].revision, asked, "of the same as Argo CD");
            Response::Body(composed(&[SERVICE.to_owned()], Some(&at(asked))))
        }
        fetch => healthy(fetch),
    };
    let (result, _) = run_with(&event(&store), None, &asking_git(), Duration::ZERO, answer);
    let enriched = result.unwrap();
    let service = &payload(&enriched, "Service")["source"];
    assert_eq!(service["gitManifest"], json!(format!("# {MAIN}")), "beside the desired manifest");
    assert_eq!(service["revision"], json!(REVISION));
    assert_eq!(service["operationSyncRevision"], json!(REVISION));
    assert_eq!(payload(&enriched, "Application")["appVersions"], json!({"appVersion": REVISION}));
}

#[test]
fn what_git_says_is_reported() {
    let file = SourceFile { path: "store/web.yaml".to_owned(), text: "kind: Service\n".into() };
    let versions = json!({"appVersion": "2.7.1", "dependencies": {"deps": "name: shop\n"}});
    let described = Described { files: vec![Some(file)], versions: Some(versions.clone()) };
    let store = store();
    let (result, _) =
        run_with(&event(&store), None, &asking_git(), Duration::ZERO, answered(Some(&described)));
    let enriched = result.unwrap();
    let source = &payload(&enriched, "Service")["source"];
    assert_eq!(
        (&source["path"], &source["gitManifest"]),
        (&json!("store/web.yaml"), &json!("kind: Service\n"))
    );
    assert_eq!(payload(&enriched, "Application")["appVersions"], versions);
    assert!(enriched.reports.iter().all(|report| !report.incomplete));
}

#[test]
fn what_git_could_not_say_is_asked_for_again_and_holds_nothing_up() {
    let store = store();
    let (result, _) = run_with(&event(&store), None, &asking_git(), Duration::ZERO, answered(None));
    let enriched = result.unwrap();
    assert_eq!(enriched.reports.len(), 3);
    assert!(enriched.reports.iter().all(|report| report.incomplete));
    let source = &payload(&enriched, "Service")["source"];
    assert_eq!(source["path"], json!(""));
    assert!(source["gitManifest"].as_str().unwrap().contains("kind: Service"), "the desired state stands in");
    assert_eq!(payload(&enriched, "Application")["appVersions"], json!({}));
}

#[test]
fn without_revisions_there_is_nothing_to_ask_git_about() {
    let mut store = store();
    store["status"]["sync"]["revision"] = json!("");
    store["status"].as_object_mut().unwrap().remove("operationState");
    let (result, asked) =
        run_with(&event(&store), None, &asking_git(), Duration::ZERO, |fetch| match fetch {
            Fetch::Manifests { .. } => body(json!({"manifests": [SERVICE]})),
            fetch => healthy(fetch),
        });
    result.unwrap();
    assert!(asked.iter().all(|fetch| !matches!(fetch, Fetch::Manifests { sources: Some(_), .. })));
}

#[test]
fn the_target_state_is_reported_whatever_becomes_of_manifests() {
    let store = store();
    for manifests in [Response::GenerationError, Response::NotFound, Response::Body(composed(&[], None))] {
        let (result, _) =
            run_with(&event(&store), None, &asking_git(), Duration::ZERO, |fetch| match fetch {
                Fetch::Manifests { .. } => manifests.clone(),
                fetch => healthy(fetch),
            });
        let source = &payload(&result.unwrap(), "Service")["source"];
        assert_ne!(source["desiredManifest"], json!(""), "{manifests:?}");
    }
}
