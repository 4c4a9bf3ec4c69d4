//! An app proxy that is asked all the time while Prometheus looks on: by one who may and one who may not, and by one who follows a
//! log that does not end; the audit log takes what it is told every other time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use loadtest::port;
use loadtest::process::{Process, Start};
use loadtest::sim::local_client;
use loadtest::sim::server::serve;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::prometheus::SOON;

const LINE: &[u8] = b"{\"result\":{\"content\":\"a line\"}}\n";

/// All of it, while it runs.
pub(crate) struct Acts {
    process: Process,
    /// Where it serves its figures.
    pub(crate) target: SocketAddr,
    asking: JoinHandle<()>,
    _folder: TempDir,
}

/// What the platform and Argo CD answer; of the cluster nothing is there.
async fn answer(State(audited): State<Arc<AtomicUsize>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = match head.uri.path() {
        "/2.0/api/authorize" if body["token"] == "of-ada" => {
            json!({"allowed": true, "who": "ada", "why": null, "lasts": false})
        }
        "/2.0/api/authorize" => {
            json!({"allowed": false, "who": "lin", "why": "no rule", "refusal": "no_rule", "lasts": false})
        }
        "/2.0/api/audit" if audited.fetch_add(1, Ordering::SeqCst) % 2 == 0 => {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        "/2.0/api/graphql" => json!({"data": {"me": {"runtimeName": "prod"}}}),
        "/api/v1/session/userinfo" => json!({"loggedIn": true}),
        "/api/v1/applications/shop/logs" => {
            let first = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(LINE))]);
            return Body::from_stream(first.chain(futures::stream::pending())).into_response();
        }
        path if path.starts_with("/2.0/api/") || path.starts_with("/api/v1/applications/shop") => json!({}),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    answer.to_string().into_response()
}

impl Acts {
    /// Starts it, and those who ask until it ends.
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let routes = Router::new().fallback(answer).with_state(Arc::default());
        let peers = serve(routes).await.unwrap();
        std::fs::write(folder.path().join("token"), "any").unwrap();
        let (port, pages) = (port::free().unwrap(), port::free().unwrap());
        let sets = [
            "log.format=json".to_owned(),
            format!("serve.address=127.0.0.1:{pages}"),
            format!("platform.url={peers}"),
            "platform.tokenFile=token".to_owned(),
            format!("argocd.url={peers}"),
            "argocd.tokenFile=token".to_owned(),
            format!("kubernetes.server={peers}"),
            "kubernetes.tokenFile=token".to_owned(),
            "kubernetes.namespace=argocd".to_owned(),
            format!("appProxy.listen=127.0.0.1:{port}"),
            "appProxy.logStreams=1".to_owned(),
            "appProxy.repositories.directory=clones".to_owned(),
        ];
        let program = env!("CARGO_BIN_EXE_gitops-runtime");
        let start = Start::with_settings(program, ["app-proxy"], sets, folder.path());
        let mut process = Process::start(&start).unwrap();
        // Where requests are taken is told first.
        process.address(SOON).await.unwrap();
        let target = SocketAddr::from(([127, 0, 0, 1], pages));
        Self { process, target, asking: tokio::spawn(ask(port)), _folder: folder }
    }

    /// What it exposes.
    pub(crate) async fn page(&self) -> String {
        reqwest::get(format!("http://{}/metrics", self.target)).await.unwrap().text().await.unwrap()
    }

    pub(crate) async fn end(self) {
        self.asking.abort();
        self.process.kill().await.unwrap();
    }
}

/// Asks all the time, and holds one log open.
async fn ask(port: u16) {
    let client = local_client().build().unwrap();
    let of = r#"application: {namespace: "argocd", name: "shop"}"#;
    let tree = format!("{{ resourceTree({of}) {{ nodes {{ name }} }} }}");
    let sync = format!("mutation {{ syncApplication({of}) {{ metadata {{ name }} }} }}");
    let logs = format!(
        r#"subscription {{ applicationLogs({of}, podName: "web-1", resource: {{kind: "Pod", namespace: "default", name: "web-1"}}) {{ done }} }}"#
    );
    let ask = |token: &str, query: &str| {
        let asked =
            client.post(format!("http://127.0.0.1:{port}/api/graphql")).header("authorization", token);
        asked.json(&json!({"query": query}))
    };
    let mut held = None;
    loop {
        let log = ask("of-ada", &logs).header("accept", "text/event-stream").send().await;
        held = held.or(log.ok());
        for (token, query) in [("of-ada", &tree), ("of-ada", &sync), ("of-lin", &sync)] {
            let _ = ask(token, query).send().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
