//! A platform that is reported to all the time while Prometheus looks on: what is new, what it has, what it keeps nothing of, and
//! what a token of nobody sends.

use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadtest::port;
use loadtest::process::{Process, Start};
use loadtest::sim::local_client;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::prometheus::SOON;

/// All of it, while it runs.
pub(crate) struct Platform {
    process: Process,
    /// Where it serves its figures.
    pub(crate) target: SocketAddr,
    reporting: JoinHandle<()>,
    _folder: TempDir,
}

impl Platform {
    /// Starts it, and those who report until it ends.
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let state = folder.path().to_str().unwrap().to_owned();
        let program = env!("CARGO_BIN_EXE_gitops-runtime");
        let mut made = Command::new(program);
        let made = made.args(["platform", "token", "create", "--runtime", "prod", "--state", &state]);
        let made = made.output().await.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let target = SocketAddr::from(([127, 0, 0, 1], port::free().unwrap()));
        let sets = ["log.format=json".to_owned(), format!("serve.metricsAddress={target}")];
        let args = ["platform", "--listen", "127.0.0.1:0", "--state", &state];
        let mut process = Process::start(&Start::with_settings(program, args, sets, folder.path())).unwrap();
        let address = process.address(SOON).await.unwrap();
        Self { process, target, reporting: tokio::spawn(report(address, token)), _folder: folder }
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
async fn report(address: SocketAddr, token: String) {
    let client = local_client().build().unwrap();
    let post = |path: &str, token: &str, key: &str, body: String| {
        let asked = client.post(format!("http://{address}/2.0/api/events{path}"));
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
