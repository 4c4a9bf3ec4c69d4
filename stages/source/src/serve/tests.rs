//! The source server asked over real HTTP.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{SecretString, async_trait};
use prometheus::{Registry, TextEncoder};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ServeBounds, routes};
use crate::callers::{Admission, Callers};
use crate::library::LibraryConfig;
use crate::operation::{Operation, Operations};
use crate::question::SourceApi;
use crate::repositories::Directories;
use crate::testing::{commit, repository};
use crate::version_sources::FixedVersionSource;

const URL: &str = "https://git.example.com/team/mono.git";
const CHART: &str = "name: shop\nappVersion: \"2.7.1\"\n";
const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";

/// Knows one token, one that is good for versions alone, and of one other that it cannot tell.
#[derive(Debug)]
struct One;

#[async_trait]
impl Callers for One {
    async fn admit(&self, token: &SecretString) -> Admission {
        use pipeline_core::ExposeSecret as _;
        match token.expose_secret() {
            "good" => Admission::To(Operations::ALL),
            "versions" => Admission::To(Operations::from_iter([Operation::AppVersion])),
            "unsure" => Admission::Unknown,
            _ => Admission::No,
        }
    }
}

struct Served {
    address: String,
    client: Client,
    registry: Registry,
    directory: TempDir,
    first: String,
}

impl Served {
    async fn new() -> Self {
        stages_client::install_crypto();
        let files =
            [("chart/Chart.yaml", CHART), ("chart/Chart.lock", "digest: x\n"), ("plain/web.yaml", WEB)];
        let (directory, _repository, first) = repository(&files);
        let directories = Directories::new([(URL, directory.path().to_owned())]);
        let config =
            LibraryConfig { concurrency: 2, timeout: Duration::from_secs(120), cache_bytes: 1 << 20 };
        let library = config.build(Arc::new(directories), Arc::new(FixedVersionSource(None)));
        let registry = Registry::new();
        let answering = SourceApi::new(library, &registry);
        let routes = routes(answering, Arc::new(One), ServeBounds { body: 4096 });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address, client: Client::new(), registry, directory, first: first.to_string() }
    }

    fn get(&self, path: &str, query: &[(&str, &str)]) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.address)).query(query).bearer_auth("good")
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.address)).json(body).bearer_auth("good")
    }
}

async fn told(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

async fn refused(request: RequestBuilder, status: u16, why: &str) {
    assert_eq!(told(request).await, (StatusCode::from_u16(status).unwrap(), json!({"error": why})));
}

fn application(path: &str) -> Value {
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"},
        "spec": {"source": {"repoURL": URL, "path": path}}})
}

#[tokio::test]
async fn both_forms_of_the_question_for_a_version_are_answered() {
    let served = Served::new().await;
    let expected = json!({"appVersion": "2.7.1", "dependencies": {"helm/dependencies": CHART, "helm/Chart.lock": "digest: x\n"}});
    let app = application("chart");
    assert_eq!(told(served.post("/getAppVersion", &app)).await, (StatusCode::OK, expected.clone()));
    commit(served.directory.path(), &[("chart/Chart.yaml", "appVersion: \"3\"\n")]);
    let at_first = json!({"app": app, "revision": served.first});
    assert_eq!(told(served.post("/getAppVersion", &at_first)).await, (StatusCode::OK, expected));
    let newest = told(served.post("/getAppVersion", &app)).await.1;
    assert_eq!(newest["appVersion"], "3");
    let several = json!({"metadata": {"name": "shop"}, "status": {"sync": {"revisions": [served.first, ""]}},
        "spec": {"sources": [{"repoURL": URL, "path": "chart"}, {"repoURL": URL, "ref": "values"}]}});
    assert_eq!(told(served.post("/getAppVersion", &several)).await.1["appVersion"], "2.7.1");
    let nothing = json!({"app": application("plain"), "revision": served.first});
    assert_eq!(told(served.post("/getAppVersion", &nothing)).await, (StatusCode::OK, json!({})));
    let mut hydrated = application("nowhere");
    hydrated["status"]["sync"]["revision"] = served.first.clone().into();
    hydrated["spec"]["sourceHydrator"] = json!({"drySource": {"repoURL": URL, "path": "nowhere"},
        "syncSource": {"targetBranch": "environments/dev", "path": "chart"}});
    assert_eq!(told(served.post("/getAppVersion", &hydrated)).await.1["appVersion"], "2.7.1");
    refused(served.post("/getAppVersion", &json!({"app": {}})), 400, "it names no source").await;
    let broken =
        served.client.post(format!("{}/getAppVersion", served.address)).bearer_auth("good").body("{");
    refused(broken, 400, "the body is no JSON").await;
}

#[tokio::test]
async fn manifests_are_described_listed_and_kept_by_their_tag() {
    let served = Served::new().await;
    let asked = json!({"sources": [{"source": {"repoURL": URL, "path": "plain"}, "revision": "HEAD"}], "compiled": [WEB]});
    let (status, answer) = told(served.post("/v1/manifests", &asked)).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(answer["objects"][0]["path"], "plain/web.yaml");
    assert_eq!(answer["files"], json!([{"source": 0, "path": "plain/web.yaml", "text": WEB}]));
    assert_eq!(answer["revisions"], json!([served.first]));
    let query = [("repoURL", URL), ("path", "plain"), ("directory", "{\"recurse\": true}")];
    let response = served.get("/v1/manifests", &query).send().await.unwrap();
    let tag = response.headers()["etag"].clone();
    let listed: Value = response.json().await.unwrap();
    assert_eq!(listed["listed"][0]["name"], "web");
    let again =
        served.get("/v1/manifests", &query).header("if-none-match", tag.clone()).send().await.unwrap();
    assert_eq!((again.status(), &again.headers()["etag"]), (StatusCode::NOT_MODIFIED, &tag));
    assert_eq!(again.bytes().await.unwrap().len(), 0);
    commit(served.directory.path(), &[("plain/web.yaml", &format!("# moved\n{WEB}"))]);
    let moved = served.get("/v1/manifests", &query).header("if-none-match", tag).send().await.unwrap();
    assert_eq!(moved.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_commit_and_what_changed_are_told() {
    let served = Served::new().await;
    commit(served.directory.path(), &[("plain/web.yaml", "changed")]);
    let first = served.first.as_str();
    let (_, commit) = told(served.get("/v1/commit", &[("repoURL", URL), ("revision", first)])).await;
    assert_eq!(
        commit,
        json!({"revision": first, "author": "Ada <ada@example.com>", "date": "2023-11-14T22:13:20Z",
            "message": "All of it\n", "tags": [], "signed": false})
    );
    let changed = [("repoURL", URL), ("from", first), ("to", "HEAD"), ("paths", "plain; none")];
    let (_, changes) = told(served.get("/v1/changes", &changed)).await;
    assert_eq!((&changes["files"], &changes["more"]), (&json!(["plain/web.yaml"]), &json!(0)));
}

#[tokio::test]
async fn the_commits_and_files_that_changed_an_application_are_told() {
    let served = Served::new().await;
    let write = |files: &[(&str, &str)]| commit(served.directory.path(), files).to_string();
    // Each commit holds these files alone.
    let other = write(&[("plain/web.yaml", WEB), ("chart/Chart.yaml", "appVersion: \"3\"\n")]);
    let second = write(&[("plain/web.yaml", "2"), ("plain/more.yaml", "1"), ("chart/Chart.yaml", "x")]);
    let third = write(&[("plain/web.yaml", "2"), ("plain/more.yaml", "2"), ("chart/Chart.yaml", "x")]);
    let asked = |from: &str, to: &str| json!({"app": application("plain"), "from": from, "to": to});
    let ask = async |body: Value| {
        let (status, answer) = told(served.post("/v1/changes", &body)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    };
    let entry = |revision: &str, files: &[&str]| {
        json!({"revision": revision, "author": "Ada <ada@example.com>", "date": "2023-11-14T22:13:20Z",
            "message": "All of it\n", "files": files, "more": 0})
    };
    let (newest, before) =
        (entry(&third, &["plain/more.yaml"]), entry(&second, &["plain/more.yaml", "plain/web.yaml"]));
    assert_eq!(
        ask(asked(&served.first, "HEAD")).await,
        json!({"from": served.first, "to": third, "files": ["plain/more.yaml", "plain/web.yaml"], "more": 0,
            "commits": [newest, before], "moreCommits": false})
    );
    // Nothing is new in a rollback, nor in a commit that changed others alone.
    let none = ask(asked(&served.first, &other)).await;
    assert_eq!((&none["files"], &none["noneIsNew"]), (&json!([]), &json!(true)));
    assert_eq!(none["commits"][0]["revision"], json!(served.first));
    let mut first_sync = asked("", &third);
    first_sync.as_object_mut().unwrap().remove("from");
    let all = ask(first_sync).await;
    assert_eq!((all.get("from"), all["commits"].as_array().unwrap().len()), (None, 3));
    let gone = "0123456789012345678901234567890123456789";
    let pushed_over = ask(asked(gone, &third)).await;
    assert_eq!((&pushed_over["fromUnknown"], pushed_over.get("from")), (&json!(true), None));

    let post = |body: &Value| served.post("/v1/changes", body);
    refused(post(&json!({"app": {}, "to": "HEAD"})), 400, "app is no Application").await;
    let mut second_source = asked("", "HEAD");
    second_source["source"] = json!(1);
    refused(post(&second_source), 400, "the application has no source at this position").await;
    let mut chart = asked("", "HEAD");
    chart["app"]["spec"]["source"]["chart"] = json!("web");
    let why = "the source is a chart of a Helm repository, which has no commits";
    refused(post(&chart), 400, why).await;
    let mut artifact = asked("", "HEAD");
    artifact["app"]["spec"]["source"]["repoURL"] = json!("oci://git.example.com/team/mono");
    let why = "the source is an artifact of an OCI registry, which has no commits";
    refused(post(&artifact), 400, why).await;
    let unasked = "the body is no question: /openapi.json describes it";
    refused(post(&json!({"app": application("plain")})), 400, unasked).await;
    let why = "no commit is named gone: neither a branch, a tag nor an object of the repository is";
    refused(post(&asked("", "gone")), 404, why).await;
    let url = format!("{}/v1/changes", served.address);
    let bare = served.client.post(url).json(&asked("", "HEAD")).bearer_auth("bad");
    refused(bare, 403, "whoever has this token may not ask here").await;
}

#[tokio::test]
async fn nobody_is_answered_who_may_not_ask() {
    let served = Served::new().await;
    let url = format!("{}/v1/commit?repoURL={URL}", served.address);
    let bare = || served.client.get(&url);
    let no_token = "no token: send it as authorization: Bearer TOKEN";
    refused(bare(), 401, no_token).await;
    refused(bare().header("authorization", "Basic Z29vZA=="), 401, no_token).await;
    refused(bare().bearer_auth("bad"), 403, "whoever has this token may not ask here").await;
    let response = bare().bearer_auth("unsure").send().await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"5".parse().unwrap())
    );
    let why: Value = response.json().await.unwrap();
    assert_eq!(why, json!({"error": "whether this token may ask here could not be found out"}));
    // What describes the API is for everybody.
    let response = served.client.get(format!("{}/openapi.json", served.address)).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap(), crate::openapi::document());
    let counted = TextEncoder::new().encode_to_string(&served.registry.gather()).unwrap();
    assert!(counted.contains("{operation=\"commit\",status=\"refused\"} 3"), "{counted}");
    assert!(counted.contains("{operation=\"commit\",status=\"busy\"} 1"), "{counted}");
}

#[tokio::test]
async fn whoever_may_ask_one_thing_may_ask_nothing_else() {
    let served = Served::new().await;
    let body = application("chart");
    let post = |path: &str| served.client.post(format!("{}{path}", served.address)).json(&body);
    let get =
        |path: &str| served.client.get(format!("{}{path}?repoURL={URL}&from=HEAD&to=HEAD", served.address));
    let (status, version) = told(post("/getAppVersion").bearer_auth("versions")).await;
    assert_eq!((status, &version["appVersion"]), (StatusCode::OK, &json!("2.7.1")));
    let why = |what: &str| {
        format!("whoever asks may not ask for {what}: sourceServer.callers says who may ask for what")
    };
    for (request, what) in [
        (post("/v1/manifests"), "manifests"),
        (get("/v1/manifests"), "manifests"),
        (get("/v1/commit"), "commit"),
        (get("/v1/changes"), "changes"),
        (post("/v1/changes"), "changes"),
    ] {
        refused(request.bearer_auth("versions"), 403, &why(what)).await;
    }
    let counted = TextEncoder::new().encode_to_string(&served.registry.gather()).unwrap();
    assert!(counted.contains("{operation=\"changes\",status=\"refused\"} 2"), "{counted}");
}

#[tokio::test]
async fn every_question_that_cannot_be_answered_is_refused_with_why() {
    let served = Served::new().await;
    let unasked = "the query is no question: /openapi.json describes it";
    refused(served.get("/v1/commit", &[]), 400, unasked).await;
    refused(served.get("/v1/changes", &[("repoURL", URL)]), 400, unasked).await;
    refused(served.get("/v1/manifests", &[("repoURL", URL), ("more", "x")]), 400, unasked).await;
    let helm = served.get("/v1/manifests", &[("repoURL", URL), ("helm", "[]")]);
    refused(helm, 400, "helm is no JSON object, as spec.source.helm is one").await;
    let elsewhere = "no repository is configured for example.com/x: add it to sourceServer.repositories";
    refused(served.get("/v1/commit", &[("repoURL", "https://example.com/x")]), 404, elsewhere).await;
    let gone = "no commit is named gone: neither a branch, a tag nor an object of the repository is";
    refused(served.get("/v1/commit", &[("repoURL", URL), ("revision", "gone")]), 404, gone).await;
    refused(
        served.post("/v1/manifests", &json!({"x": 1})),
        400,
        "the body is no question: /openapi.json describes it",
    )
    .await;
    let large = "the body is larger than sourceServer.maxBody allows";
    refused(
        served.post("/v1/manifests", &json!({"sources": [], "compiled": ["x".repeat(5000)]})),
        413,
        large,
    )
    .await;
    refused(served.post("/getAppVersion", &json!("x".repeat(5000))), 413, large).await;
    let text = served.client.post(format!("{}/v1/manifests", served.address)).bearer_auth("good").body("{}");
    refused(text, 400, "the body is no JSON: send it as content-type: application/json").await;
    commit(served.directory.path(), &[("chart/Chart.yaml", "a: [\n")]);
    let broken = served.post("/getAppVersion", &application("chart"));
    refused(broken, 422, "read the version in chart/Chart.yaml: no YAML at line 1").await;
}
