//! A whole platform, as the program puts it together: a real store, ingest, API and console on one port; with a runtime that
//! answers as an app proxy does.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use jiff::Timestamp;
use pipeline_core::ExposeSecret as _;
use serde_json::{Value, json};
use sha2::Digest as _;
use stages_platform_api::{Api, ForwardConfig};
use stages_platform_console::{Console, Settings, StoredFleet};
use stages_platform_ingest::IngestConfig;
use stages_platform_store::{
    Account, By, Commit, Delivery, EntityName, Listing, Place, Placement, Report, ResourceName, Retention,
    Role, Store, StoreConfig, Text,
};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::browser::Browser;

/// What was asked of the runtime: who by the platform's word, and what.
type Came = Arc<Mutex<Vec<(String, Value)>>>;

pub(crate) struct Platform {
    pub(crate) url: String,
    pub(crate) link: String,
    pub(crate) store: Store,
    came: Came,
    runtime: String,
    _folder: TempDir,
    _end: DropGuard,
}

pub(crate) fn by() -> By {
    By { who: "admin".to_owned(), how: "session" }
}

/// An app proxy that refuses to roll back, and knows whoever the platform says.
async fn app_proxy(State((store, came)): State<(Store, Came)>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let query = body["query"].as_str().unwrap().to_owned();
    let token = headers["authorization"].to_str().unwrap().into();
    let pass =
        store.pass(&token, Timestamp::now().as_millisecond()).await.unwrap().expect("the platform's pass");
    assert_eq!(pass.runtime, "prod");
    came.lock().unwrap().push((pass.access.who, body));
    let data = |data: Value| Json(json!({ "data": data })).into_response();
    if query.contains("applicationDiff") {
        let (live, target) = ("kind: Deployment\nreplicas: 2\n", "kind: Deployment\nreplicas: 3\n");
        let gone = json!({"kind": "Secret", "name": "<b>old", "live": "kind: Secret\n", "target": null});
        return data(
            json!({"applicationDiff": [{"kind": "Deployment", "name": "web", "live": live, "target": target}, gone]}),
        );
    }
    if query.contains("applicationHistory") {
        let entry = |id: i64, revision: &str| json!({"id": id, "revision": revision, "revisions": [], "deployedAt": "2026-11-24T10:00:00Z", "initiatedBy": "ada"});
        return data(
            json!({"applicationHistory": [entry(8, "3f9c1e2aaa"), entry(7, "a0d17beaaa"), entry(6, "77e2c04aaa")]}),
        );
    }
    if query.contains("rollbackApplication") {
        let why = "'admin' may not: rule 4 allows APP_ROLLBACK of gitopsApplications, and not of this one";
        return Json(json!({"data": null, "errors": [{"message": why}]})).into_response();
    }
    if query.contains("applicationLogs") {
        let line = |text: &str| json!({"data": {"applicationLogs": {"data": {"content": text, "podName": "web-1"}, "error": null, "done": null}}});
        let text = format!(
            "event: next\ndata: {}\n\nevent: next\ndata: {}\n\nevent: complete\ndata:\n\n",
            line("one <img src=x>"),
            line("two")
        );
        return ([("content-type", "text/event-stream")], text).into_response();
    }
    data(json!({"any": {"metadata": {"name": "shop"}}}))
}

/// Of the application `shop`, or of a resource of its.
pub(crate) fn report(resource: Option<(&str, &str)>, at: i64) -> Report {
    let names = [("argoproj.io", "Rollout"), ("apps", "Deployment")];
    let listed = names.iter().map(|(group, kind)| Listing::new(group, kind, "shop", "web")).collect();
    let object = |kind: &str| Some(Text::new(format!(r#"{{"kind":"{kind}","metadata":{{"name":"web"}}}}"#)));
    Report {
        entity: EntityName {
            app_namespace: "argocd".to_owned(),
            app_name: "shop".to_owned(),
            resource: resource.map(|(api_version, kind)| ResourceName {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: "shop".to_owned(),
                name: "web".to_owned(),
            }),
        },
        uid: format!("uid-{}", resource.map_or("Application", |(_, kind)| kind)),
        version: Some(1),
        created_at: None,
        at,
        timed: true,
        deleted: false,
        listed: if resource.is_none() { listed } else { Vec::new() },
        sync: Some("OutOfSync".to_owned()),
        health: Some("Healthy".to_owned()),
        health_message: None,
        revision: Some("3f9c1e2aaa".to_owned()),
        operation: None,
        placement: Placement::default(),
        commit: Commit::default(),
        changes: Vec::new(),
        images: "[]".to_owned(),
        has_source: true,
        object: object(resource.map_or("Application", |(_, kind)| kind)),
        object_is_json: true,
        actual: object(resource.map_or("Application", |(_, kind)| kind)),
        desired: None,
        git: None,
        details: None,
    }
}

impl Platform {
    pub(crate) async fn new() -> Self {
        static ONCE: OnceLock<()> = OnceLock::new();
        ONCE.get_or_init(|| drop(rustls::crypto::ring::default_provider().install_default()));
        let folder = tempfile::tempdir().unwrap();
        let forever = Duration::from_secs(365_000 * 86_400);
        let retention = Retention { history: forever, keys: forever, interval: forever };
        let opening = StoreConfig { place: Place::Sqlite(folder.path().join("platform.db")), retention };
        let (store, _) = opening.build(&prometheus::Registry::new()).await.unwrap();
        let came = Came::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let runtime = format!("http://{}", listener.local_addr().unwrap());
        let proxy = Router::new()
            .route("/app-proxy/api/graphql", post(app_proxy))
            .with_state((store.clone(), came.clone()));
        tokio::spawn(async move { axum::serve(listener, proxy).await.unwrap() });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let settings = Settings {
            external: url.clone(),
            store: store.clone(),
            retention,
            clock: Timestamp::now,
            oidc: None,
        };
        let fleet = Arc::new(StoredFleet::new(store.clone(), Timestamp::now));
        let following = (fleet.clone(), stop.clone());
        tokio::spawn(async move { following.0.follow(following.1).await });
        let console = Console::new(fleet, settings, stop.clone());
        let link = console.first_link().await.unwrap().unwrap().expose().to_owned();
        let ingest = IngestConfig {
            max_body: 1 << 20,
            max_unpacked: 1 << 22,
            body_timeout: Duration::from_secs(30),
            runtime_requests: 16,
            runtime_bytes: 1 << 24,
            all_bytes: 1 << 26,
        };
        let ingest = ingest.build(store.clone(), &prometheus::Registry::new()).unwrap();
        let api = Api::new(store.clone(), Timestamp::now, ForwardConfig::new(stop.clone()));
        let routes = ingest.routes().merge(api.routes()).merge(console.router());
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let platform = Self { url, link, store, came, runtime, _folder: folder, _end: stop.drop_guard() };
        platform.at(&platform.runtime).await;
        let id = platform.store.runtime_named("prod").await.unwrap().unwrap();
        let now = Timestamp::now().as_millisecond() - 60_000;
        for (index, of) in
            (0_u8..).zip([None, Some(("argoproj.io/v1alpha1", "Rollout")), Some(("apps/v1", "Deployment"))])
        {
            let delivery =
                Delivery { runtime: id, key: [index; 32], keyed: true, epoch: None, report: report(of, now) };
            platform.store.keep(vec![delivery]).await.unwrap();
        }
        platform
    }

    /// The runtime is registered with this address.
    pub(crate) async fn at(&self, address: &str) {
        let body = json!({ "ingressHost": address }).to_string();
        self.store.register(&by(), "prod", &body, true, 1).await.unwrap().unwrap();
    }

    /// The first account, `admin`, by the link that was printed.
    pub(crate) async fn sign_in(&self, browser: &Browser) {
        crate::journey::sign_in(browser, &self.link).await;
    }

    /// A session of somebody who is made for it.
    pub(crate) async fn session(&self, name: &str, role: Role) -> String {
        let now = Timestamp::now().as_millisecond();
        let account = Account { name: name.to_owned(), password: "none".to_owned(), role };
        assert!(self.store.add_person(&by(), &account, now).await.unwrap());
        let digest = sha2::Sha256::digest(name.as_bytes()).into();
        self.store.keep_session(digest, name, now, now + 86_400_000).await.unwrap();
        format!("session={name}")
    }

    /// A page as somebody has it.
    pub(crate) async fn page(&self, session: &str, path: &str) -> String {
        let asked = reqwest::Client::new().get(format!("{}{path}", self.url)).header("cookie", session);
        let response = asked.send().await.unwrap();
        assert_eq!(response.status(), reqwest::StatusCode::OK, "{path}");
        response.text().await.unwrap()
    }

    /// A token of the runtime's reporters.
    pub(crate) async fn token(&self) -> String {
        let made = self.store.add_token(&by(), "prod", Timestamp::now().as_millisecond()).await.unwrap();
        made.unwrap().expose_secret().to_owned()
    }

    /// Posts a report as reporters do.
    pub(crate) async fn post(&self, token: &str, report: &Value) {
        self.post_to("/2.0/api/events", token, report).await;
    }

    pub(crate) async fn post_to(&self, path: &str, token: &str, report: &Value) {
        let url = format!("{}{path}", self.url);
        let asked = reqwest::Client::new().post(url).header("authorization", token).body(report.to_string());
        let response = asked.send().await.unwrap();
        let (status, said) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, reqwest::StatusCode::OK, "{said}");
    }

    /// Queries that came since the last time, with who sent them.
    pub(crate) fn came(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.came.lock().unwrap())
    }
}
