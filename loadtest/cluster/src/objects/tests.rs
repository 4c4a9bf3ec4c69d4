use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};

use super::*;

/// An API server that answers discovery, and every other request by `answer`.
#[derive(Clone)]
struct Api {
    asked: Arc<Mutex<Vec<Asked>>>,
    discovered: Arc<AtomicUsize>,
    answer: fn(&Asked, usize) -> (u16, Value),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    line: String,
    media: String,
    body: Value,
}

impl Api {
    async fn start(answer: fn(&Asked, usize) -> (u16, Value)) -> (Self, Objects) {
        let api = Self { asked: Arc::default(), discovered: Arc::default(), answer };
        let router = axum::Router::new().fallback(serve).with_state(api.clone());
        let url = loadtest_sim::server::serve(router).await.unwrap().parse().unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        (api, Objects::new(kube::Client::try_from(kube::Config::new(url)).unwrap()))
    }

    fn lines(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| asked.line.clone()).collect()
    }

    fn last(&self) -> Asked {
        self.asked.lock().unwrap().last().unwrap().clone()
    }
}

async fn serve(
    State(api): State<Api>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let resource = |name: &str, kind: &str, namespaced: bool| json!({ "name": name, "kind": kind, "namespaced": namespaced });
    let kinds = match uri.path() {
        "/api/v1" => Some(json!([
            resource("pods", "Pod", true),
            resource("pods/status", "Pod", true),
            resource("namespaces", "Namespace", false),
            resource("configmaps", "ConfigMap", true),
        ])),
        "/apis/apps/v1" => Some(json!([
            resource("deployments", "Deployment", true),
            resource("deployments/scale", "Scale", true),
        ])),
        "/apis/apiextensions.k8s.io/v1" => {
            Some(json!([resource("customresourcedefinitions", "CustomResourceDefinition", false)]))
        }
        // Served from the third question on.
        "/apis/example.com/v1" if api.discovered.fetch_add(1, Ordering::SeqCst) >= 2 => {
            Some(json!([resource("things", "Thing", true)]))
        }
        "/apis/example.com/v1" => return status(404, ""),
        _ => None,
    };
    if let Some(kinds) = kinds {
        return Json(json!({ "kind": "APIResourceList", "resources": kinds })).into_response();
    }
    let media =
        headers.get("content-type").map(|media| media.to_str().unwrap().to_owned()).unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let asked = Asked { line: format!("{method} {uri}"), media, body };
    let earlier = api.asked.lock().unwrap().len();
    api.asked.lock().unwrap().push(asked.clone());
    let (code, answer) = (api.answer)(&asked, earlier);
    (StatusCode::from_u16(code).unwrap(), Json(answer)).into_response()
}

fn status(code: u16, name: &str) -> Response {
    (StatusCode::from_u16(code).unwrap(), Json(refusal(code, name))).into_response()
}

fn refusal(code: u16, name: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "Refused",
        "message": "no", "details": { "name": name },
    })
}

const DEFINED: &str = "{ apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: { name: things.example.com } }";

fn web() -> Reference {
    Reference::new("apps/v1", "Deployment", Some("shop"), "web")
}

#[tokio::test]
async fn objects_are_applied_in_order_and_those_without_a_namespace_get_one() {
    let (api, objects) = Api::start(|asked, _| (200, asked.body.clone())).await;
    let yaml = "
# nothing but a comment
---
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: v1
kind: List
items:
- { apiVersion: v1, kind: ConfigMap, metadata: { name: one } }
- { apiVersion: v1, kind: ConfigMap, metadata: { name: two, namespace: other } }
";
    let applied = objects.apply(yaml, "shop").await.unwrap();
    let expected = [
        Reference::new("v1", "Namespace", None, "shop"),
        Reference::new("v1", "ConfigMap", Some("shop"), "one"),
        Reference::new("v1", "ConfigMap", Some("other"), "two"),
    ];
    assert_eq!(applied, expected);
    let lines = [
        "PATCH /api/v1/namespaces/shop?fieldManager=cluster&force=true",
        "PATCH /api/v1/namespaces/shop/configmaps/one?fieldManager=cluster&force=true",
        "PATCH /api/v1/namespaces/other/configmaps/two?fieldManager=cluster&force=true",
    ];
    assert_eq!(api.lines(), lines);
    assert_eq!(api.last().media, "application/apply-patch+yaml");
    let one = api.asked.lock().unwrap()[1].body.clone();
    assert_eq!(one["metadata"], json!({ "name": "one", "namespace": "shop" }));
}

#[tokio::test]
async fn a_kind_that_is_not_served_yet_is_waited_for() {
    // Discovery names it, and the first apply still finds nothing there.
    let (api, objects) = Api::start(|asked, earlier| match earlier {
        0 => (404, refusal(404, "")),
        _ => (200, asked.body.clone()),
    })
    .await;
    objects
        .apply("{ apiVersion: example.com/v1, kind: Thing, metadata: { name: it } }", "shop")
        .await
        .unwrap();
    assert_eq!(api.discovered.load(Ordering::SeqCst), 3);
    let line = "PATCH /apis/example.com/v1/namespaces/shop/things/it?fieldManager=cluster&force=true";
    assert_eq!(api.lines(), [line, line]);
}

#[tokio::test]
async fn a_namespace_that_is_missing_is_not_waited_for() {
    let (_api, objects) = Api::start(|_, _| (404, refusal(404, "shop"))).await;
    let yaml = "{ apiVersion: v1, kind: ConfigMap, metadata: { name: one } }";
    let error = objects.apply(yaml, "shop").await.unwrap_err();
    assert_eq!(error.to_string(), "apply v1 ConfigMap shop/one");
}

#[tokio::test]
async fn a_definition_is_waited_for_until_it_is_established() {
    let (api, objects) = Api::start(|asked, earlier| {
        let established = if earlier < 3 { "False" } else { "True" };
        let conditions = json!([{ "type": "NamesAccepted", "status": "True" }, { "type": "Established", "status": established }]);
        let mut object = asked.body.clone();
        object["status"] = json!({ "conditions": conditions });
        (200, object)
    })
    .await;
    objects.apply(DEFINED, "shop").await.unwrap();
    let post = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=cluster";
    let get = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
    assert_eq!(api.lines(), [post, get, get, get]);
}

#[tokio::test]
async fn a_definition_that_is_there_already_is_applied() {
    let (api, objects) = Api::start(|asked, earlier| {
        let mut object = asked.body.clone();
        object["status"] = json!({ "conditions": [{ "type": "Established", "status": "True" }] });
        if earlier == 0 { (409, refusal(409, "things.example.com")) } else { (200, object) }
    })
    .await;
    objects.apply(DEFINED, "shop").await.unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
    let patch = format!("PATCH {path}?fieldManager=cluster&force=true");
    assert_eq!(api.lines()[1..], [patch, format!("GET {path}")]);
}

#[tokio::test]
async fn what_is_no_object_is_refused() {
    let (_api, objects) = Api::start(|_, _| (500, Value::Null)).await;
    let error = objects.apply("kind: ConfigMap\nmetadata: { name: one }", "shop").await.unwrap_err();
    assert_eq!(error.to_string(), "an object needs apiVersion, kind and metadata.name");
    let error = objects.apply("kind: [", "shop").await.unwrap_err();
    assert_eq!(error.to_string(), "read YAML documents");
}

#[tokio::test]
async fn a_folder_is_applied_by_the_names_of_its_files() {
    let (api, objects) = Api::start(|asked, _| (200, asked.body.clone())).await;
    let folder = tempfile::tempdir().unwrap();
    let object = |name: &str| format!("{{ apiVersion: v1, kind: ConfigMap, metadata: {{ name: {name} }} }}");
    std::fs::write(folder.path().join("b.yaml"), object("second")).unwrap();
    std::fs::write(folder.path().join("a.yaml"), object("first")).unwrap();
    std::fs::write(folder.path().join("kustomization.yaml"), "resources: [a.yaml]").unwrap();
    std::fs::write(folder.path().join("README.md"), "none").unwrap();
    objects.apply_folder(folder.path(), "shop").await.unwrap();
    let names: Vec<Value> =
        api.asked.lock().unwrap().iter().map(|one| one.body["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["first", "second"]);

    let absent = folder.path().join("absent");
    let error = objects.apply_folder(&absent, "shop").await.unwrap_err().to_string();
    assert_eq!(error, format!("read {}", absent.display()));
}

#[tokio::test]
async fn what_is_not_there_is_none_and_a_refusal_is_told() {
    let (api, objects) = Api::start(|_, earlier| match earlier {
        0 => (200, json!({ "kind": "Deployment" })),
        1 => (404, refusal(404, "web")),
        _ => (403, refusal(403, "web")),
    })
    .await;
    assert_eq!(objects.get(&web()).await.unwrap(), Some(json!({ "kind": "Deployment" })));
    assert_eq!(objects.get(&web()).await.unwrap(), None);
    assert_eq!(objects.get(&web()).await.unwrap_err().to_string(), "get apps/v1 Deployment shop/web");
    assert_eq!(api.lines()[0], "GET /apis/apps/v1/namespaces/shop/deployments/web");
}

#[tokio::test]
async fn a_patch_says_how_it_is_meant_and_may_be_of_a_subresource() {
    let (api, objects) = Api::start(|_, _| (200, json!({ "spec": { "replicas": 3 } }))).await;
    let patch = json!({ "spec": { "replicas": 3 } });
    let scaled = objects.patch(&web(), &patch, Patch::Merge, Some("scale")).await.unwrap();
    assert_eq!(scaled, patch);
    let line = "PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale?fieldManager=cluster";
    let media = "application/merge-patch+json";
    assert_eq!(api.last(), Asked { line: line.to_owned(), media: media.to_owned(), body: patch });

    let patch = json!([{ "op": "remove", "path": "/spec/paused" }]);
    objects.patch(&web(), &patch, Patch::Json, None).await.unwrap();
    let line = "PATCH /apis/apps/v1/namespaces/shop/deployments/web?fieldManager=cluster";
    let media = "application/json-patch+json";
    assert_eq!(api.last(), Asked { line: line.to_owned(), media: media.to_owned(), body: patch });
}

#[tokio::test]
async fn a_deletion_says_what_becomes_of_owned_objects_and_whether_there_was_one() {
    let (api, objects) = Api::start(|_, earlier| match earlier {
        0 => (200, json!({})),
        1 => (404, refusal(404, "web")),
        _ => (409, refusal(409, "web")),
    })
    .await;
    assert!(objects.delete(&web(), Propagation::Orphan).await.unwrap());
    assert_eq!(api.last().body["propagationPolicy"], "Orphan");
    assert!(!objects.delete(&web(), Propagation::Foreground).await.unwrap());
    assert_eq!(api.last().body["propagationPolicy"], "Foreground");
    let error = objects.delete(&web(), Propagation::Background).await.unwrap_err().to_string();
    assert_eq!(error, "delete apps/v1 Deployment shop/web");
}

#[test]
fn references_are_read_from_data_and_nothing_else_may_stand_in_them() {
    let read = |text| serde_json::from_str::<Reference>(text);
    let text = r#"{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web"}"#;
    assert_eq!(read(text).unwrap(), web());
    assert_eq!(serde_json::to_string(&web()).unwrap(), text);
    let error = read(r#"{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"}"#).unwrap_err().to_string();
    assert!(error.starts_with("unknown field `uid`"), "{error}");
    assert_eq!(Reference::of(&json!({ "kind": "Node", "metadata": { "name": "n" } })), None);
}
