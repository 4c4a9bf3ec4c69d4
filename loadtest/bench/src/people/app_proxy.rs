//! The app proxy as a process, before the simulated Argo CD and a cluster that has nothing.

use std::path::Path;

use anyhow::Context as _;
use loadtest_sim::PATIENCE;
use loadtest_sim::kube::{self, KubeSim};
use loadtest_sim::port;
use loadtest_sim::process::{Process, Start};

use crate::platform::Platform;

pub(super) struct AppProxy {
    process: Process,
    url: String,
    _cluster: KubeSim,
    _folder: tempfile::TempDir,
}

impl AppProxy {
    /// Starts it, and waits until it takes requests.
    pub(super) async fn start(program: &Path, platform: &Platform, argocd: &str) -> anyhow::Result<Self> {
        let folder = tempfile::TempDir::new().context("make a folder")?;
        let cluster = KubeSim::start(kube::Config::default()).await?;
        for (name, token) in [("platform-token", platform.token()), ("token", "simulated")] {
            std::fs::write(folder.path().join(name), token).context("write a token")?;
        }
        let listen = format!("127.0.0.1:{}", port::free()?);
        let sets = [
            "serve.address=127.0.0.1:0".to_owned(),
            "platform.tokenFile=platform-token".to_owned(),
            format!("platform.url={}", platform.url()),
            format!("argocd.url={argocd}"),
            "argocd.tokenFile=token".to_owned(),
            format!("kubernetes.server={}", cluster.url()),
            "kubernetes.tokenFile=token".to_owned(),
            "kubernetes.namespace=argocd".to_owned(),
            format!("appProxy.listen={listen}"),
            "appProxy.repositories.directory=clones".to_owned(),
        ];
        let mut process = Process::start(&Start::with_settings(program, ["app-proxy"], sets, folder.path()))?;
        // It listens for people before it serves its own pages.
        process.address(PATIENCE).await?;
        Ok(Self { process, url: format!("http://{listen}"), _cluster: cluster, _folder: folder })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The memory that it has now, in bytes.
    pub(super) fn resident(&self) -> anyhow::Result<u64> {
        self.process.resident().context("the app proxy has ended")
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.process.stop_cleanly("the app proxy").await
    }
}
