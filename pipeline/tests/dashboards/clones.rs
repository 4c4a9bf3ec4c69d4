//! A source server that fetches while Prometheus looks on: two repositories of which only one has room, and one that is gone.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use git2::{Repository, Signature, Time};
use loadtest::process::{Process, Start};
use loadtest::sim::local_client;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::prometheus::SOON;

/// Bytes of a file that hardly shrinks: two such clones are more than the cache may hold.
const LARGE: usize = 1_000_000;

/// All of it, while it runs.
pub(crate) struct Clones {
    process: Process,
    /// Where it serves its figures.
    pub(crate) target: SocketAddr,
    asking: JoinHandle<()>,
    _folder: TempDir,
}

/// A bare repository with one large file.
fn repository(directory: &Path, seed: u64) {
    let made = Repository::init_bare(directory).unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    let noise: String = (0..LARGE).map(|_| random.alphanumeric()).collect();
    let mut tree = made.treebuilder(None).unwrap();
    tree.insert("a.yaml", made.blob(noise.as_bytes()).unwrap(), 0o100_644).unwrap();
    let tree = made.find_tree(tree.write().unwrap()).unwrap();
    let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 0)).unwrap();
    made.commit(Some("HEAD"), &who, &who, "First\n", &tree, &[]).unwrap();
}

impl Clones {
    /// Starts it, and somebody who asks until it ends.
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        for (seed, name) in ["one", "two"].into_iter().enumerate() {
            repository(&folder.path().join(name), seed as u64);
        }
        let token = folder.path().join("token");
        std::fs::write(&token, "callers-token").unwrap();
        let root = format!("file://{}", folder.path().display());
        let clones =
            format!("sourceServer.git.repositories.directory={}", folder.path().join("clones").display());
        let args = ["source-server", "--listen", "127.0.0.1:0", "--fetch", &root, "--token-file"];
        let set = [
            "log.format=json",
            "sourceServer.git.repositories.files=true",
            "sourceServer.git.repositories.size=1Mi",
            &clones,
        ];
        let args = args.into_iter().chain([token.to_str().unwrap()]);
        let program = env!("CARGO_BIN_EXE_gitops-runtime");
        let mut process = Process::start(&Start::with_settings(program, args, set, folder.path())).unwrap();
        let target = process.address(SOON).await.unwrap();
        Self { process, target, asking: tokio::spawn(ask(target, root)), _folder: folder }
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

/// Asks all the time which commits changed an application of one repository, then of the next.
async fn ask(server: SocketAddr, root: String) {
    let client = local_client().build().unwrap();
    loop {
        for name in ["one", "two", "gone"] {
            let source = json!({"repoURL": format!("{root}/{name}"), "path": "."});
            let app = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"namespace": "argocd", "name": "a"}, "spec": {"source": source},
            });
            let asked = client.post(format!("http://{server}/v1/changes")).bearer_auth("callers-token");
            let _ = asked.json(&json!({"app": app, "to": "HEAD"})).send().await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
