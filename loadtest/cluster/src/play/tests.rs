use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::body::Bytes;
use axum::http::Method;
use serde_json::json;

use super::*;
use loadtest_sim::platform;

fn step(yaml: &str) -> Step {
    let text = format!("about: A\napplications: [shop]\nsteps:\n  - {yaml}\n");
    Scenario::read("shop", &text).unwrap().steps.remove(0)
}

fn made(yaml: &str) -> Value {
    let Step::Create(create) = step(yaml) else { panic!("{yaml}") };
    application("shop", "http://git/shop.git", "shop-1", &create)
}

#[test]
fn an_application_gets_what_its_step_leaves_out() {
    let object = made("create: {finalizer: true, spec: {source: {path: plain}}}");
    assert_eq!(object["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(
        object["spec"],
        json!({
            "project": "default",
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
            "source": {"path": "plain", "repoURL": "http://git/shop.git", "targetRevision": "main"},
            "syncPolicy": {"syncOptions": ["CreateNamespace=true"]},
        })
    );
}

#[test]
fn what_a_step_says_stands() {
    let object = made(
        "create: {spec: {project: own, sources: [{ref: a, targetRevision: v1}, {path: b}], \
         destination: {namespace: \"$APPLICATION-x\"}, syncPolicy: {automated: {}, syncOptions: []}}}",
    );
    assert!(object["metadata"].get("finalizers").is_none());
    let spec = &object["spec"];
    assert_eq!(spec["project"], "own");
    assert_eq!(spec["destination"]["namespace"], "shop-1-x");
    assert_eq!(spec["sources"][0]["targetRevision"], "v1");
    assert_eq!(spec["sources"][1]["repoURL"], "http://git/shop.git");
    assert_eq!(spec["syncPolicy"], json!({"automated": {}, "syncOptions": []}));
}

fn state() -> State {
    State::new(json!({
        "metadata": {"annotations": {"a": "b"}},
        "status": {
            "health": {"status": "Healthy"}, "sync": {"status": "Synced", "revision": "abc"},
            "resources": [{}, {}], "history": [{"id": 3}, {"id": 4}],
            "operationState": {"phase": "Succeeded", "message": "all went well"},
            "conditions": [{"type": "SharedResourceWarning", "message": "shared"}],
        },
    }))
}

#[test]
fn everything_that_is_waited_for_must_hold_at_once() {
    let holds = |yaml: &str, head: Option<&str>| {
        let Step::Wait(wait) = step(&format!("wait: {{{yaml}}}")) else { panic!("{yaml}") };
        state().is(&wait, head)
    };
    for good in [
        "health: Healthy, sync: Synced, resources: 2",
        "condition: SharedResourceWarning",
        "message: went well",
        "message: shared, phase: Succeeded",
    ] {
        assert!(holds(good, None), "{good}");
    }
    for bad in [
        "health: Healthy, sync: OutOfSync",
        "resources: 3",
        "condition: ComparisonError",
        "message: failed",
        "phase: Running",
    ] {
        assert!(!holds(bad, None), "{bad}");
    }
    assert!(holds("head: true", Some("abc")));
    assert!(!holds("head: true", Some("abd")));
}

#[test]
fn an_operation_is_over_when_it_is_asked_for_no_more() {
    let mut state = state();
    assert!(state.has_ended() && !state.is_asked_for() && !state.is_running());
    assert_eq!((state.history(0), state.history(1), state.history(2)), (Some(4), Some(3), None));
    state =
        State::new(json!({"operation": {"sync": {}}, "status": {"operationState": {"phase": "Running"}}}));
    assert!(state.is_running() && !state.has_ended());
}

#[test]
fn a_state_is_told_in_one_line() {
    assert_eq!(
        state().to_string(),
        "health Healthy, sync Synced of abc, operation Succeeded, 2 resources, SharedResourceWarning; shared; \
         all went well"
    );
    assert_eq!(
        State::new(json!({})).to_string(),
        "health unset, sync unset of unset, operation unset, 0 resources"
    );
}

/// An API server and an Argo CD that know one application. A request for a comparison is answered at the next look:
/// by one with the commit that the first look found, and from the second request on by one with the newest.
#[derive(Clone)]
struct Late {
    application: Arc<Mutex<Value>>,
    requests: Arc<AtomicUsize>,
}

impl Late {
    async fn start(self) -> kube::Client {
        let router =
            axum::Router::new().fallback(async move |method: Method, uri: axum::http::Uri, body: Bytes| {
                Json(self.answer(&method, uri.path(), &body))
            });
        let url = loadtest_sim::server::serve(router).await.unwrap().parse().unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        kube::Client::try_from(kube::Config::new(url)).unwrap()
    }

    fn answer(&self, method: &Method, path: &str, body: &[u8]) -> Value {
        if !path.ends_with("/shop") {
            let kind = json!({"name": "applications", "kind": "Application", "namespaced": true});
            return json!({"kind": "APIResourceList", "resources": [kind]});
        }
        let mut application = self.application.lock().unwrap();
        if method == Method::PATCH {
            let patch: Value = serde_json::from_slice(body).unwrap();
            application["metadata"]["annotations"] = patch["metadata"]["annotations"].clone();
            return application.clone();
        }
        if application["metadata"]["annotations"].as_object_mut().unwrap().remove(REFRESH).is_some()
            && self.requests.fetch_add(1, Ordering::SeqCst) > 0
        {
            application["status"]["sync"]["revision"] = application["newest"].clone();
        }
        application.clone()
    }
}

#[tokio::test]
async fn argo_cd_is_asked_again_when_it_compares_with_a_commit_that_is_no_longer_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("template")).unwrap();
    std::fs::write(folder.path().join("template/a.yaml"), "a: 1").unwrap();
    let git = Git::start(&folder.path().join("git"), &folder.path().join("template")).await.unwrap();
    let platform = PlatformSim::start(platform::Config::default()).await.unwrap();
    let repository = git.repository("shop").await.unwrap();
    let old = repository.head().await.unwrap();
    let files = BTreeMap::from([("a.yaml".to_owned(), Some("a: 2".to_owned()))]);
    let newest = repository.commit(&GitCommit::of_ada("Two", files)).await.unwrap();
    let application = json!({
        "metadata": {"name": "shop", "annotations": {}}, "newest": newest,
        "status": {"sync": {"status": "Synced", "revision": old}},
    });
    let late = Late { application: Arc::new(Mutex::new(application)), requests: Arc::default() };
    let kubernetes = late.clone().start().await;
    let player = Player {
        objects: Objects::new(kubernetes.clone()),
        kubernetes,
        argocd: Client::new(reqwest::Client::new(), "http://127.0.0.1:1", ""),
        git: &git,
        platform: &platform,
        behind: None,
    };
    let text =
        "about: A\napplications: [shop]\nsteps: [refresh: {}, wait: {head: true, sync: Synced, within: 60s}]";
    let scenario = Scenario::read("shop", text).unwrap();
    player.play(&scenario, async |_| Ok(()), async |_| Ok(())).await.unwrap();
    assert_eq!(late.requests.load(Ordering::SeqCst), 2);
}
