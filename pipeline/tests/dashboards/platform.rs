//! A platform that is reported to all the time while Prometheus looks on: what is new, what it has, what it keeps nothing of, and
//! what a token of nobody sends.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest::port;
use loadtest::sim::local_client;
use loadtest::sim::platform_process::PlatformProcess;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// All of it, while it runs.
pub(crate) struct Platform {
    process: PlatformProcess,
    /// Where it serves its figures.
    pub(crate) target: SocketAddr,
    reporting: JoinHandle<()>,
    _folder: TempDir,
}

impl Platform {
    /// Starts it, and those who report until it ends.
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let target = SocketAddr::from(([127, 0, 0, 1], port::free().unwrap()));
        let program = Path::new(env!("CARGO_BIN_EXE_gitops-runtime"));
        let settings = vec![format!("serve.metricsAddress={target}")];
        let process = PlatformProcess::with(program, folder.path(), settings).await.unwrap();
        let (url, token) = (process.url().to_owned(), process.token("prod").await.unwrap());
        Self { process, target, reporting: tokio::spawn(report(url, token)), _folder: folder }
    }

    /// What it exposes.
    pub(crate) async fn page(&self) -> String {
        reqwest::get(format!("http://{}/metrics", self.target)).await.unwrap().text().await.unwrap()
    }

    pub(crate) async fn end(self) {
        self.reporting.abort();
        self.process.kill().await.unwrap();
    }
}

/// Reports all the time.
async fn report(url: String, token: String) {
    let client = local_client().build().unwrap();
    let post = |path: &str, token: &str, key: &str, body: String| {
        let asked = client.post(format!("{url}/2.0/api/events{path}"));
        asked.header("authorization", token).header("idempotency-key", key).body(body).send()
    };
    for version in 1_u64.. {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd", "uid": "1", "resourceVersion": version.to_string()},
            "status": {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}},
        });
        let body = json!({"data": {"object": STANDARD.encode(object.to_string()), "source": {}}}).to_string();
        let key = version.to_string();
        for (path, token) in [("", &*token), ("", &*token), ("", "of nobody"), ("/event-payload", &*token)] {
            let _ = post(path, token, &key, body.clone()).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
