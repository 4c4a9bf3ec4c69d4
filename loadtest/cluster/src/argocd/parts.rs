//! The parts of Argo CD as programs: flags, environments, and how each shows that it is ready.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::ArgoCd;
use crate::binaries::Binaries;
use crate::control::Control;
use loadtest_sim::child::Spec;
use loadtest_sim::port;

/// How long one question whether it is may take.
const ANSWER: Duration = Duration::from_secs(5);

/// A part of Argo CD that can be killed and started by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// The cache of all other parts; without its content everything is compared anew.
    Redis,
    /// What makes manifests of repositories.
    RepoServer,
    /// What compares and syncs.
    Controller,
    /// What answers the API.
    Server,
}

impl Part {
    /// Every part, in the order in which one needs another.
    pub const ALL: [Self; 4] = [Self::Redis, Self::RepoServer, Self::Controller, Self::Server];
}

/// Where the parts listen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    redis: u16,
    repo_server: u16,
    repo_server_metrics: u16,
    controller_metrics: u16,
    server: u16,
    server_metrics: u16,
}

impl Ports {
    /// The address of the API server.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server)
    }
}

/// What the programs are started with.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) ports: Ports,
    directory: PathBuf,
    programs: PathBuf,
    kubeconfig: String,
    path: String,
}

impl Settings {
    /// Chooses ports and makes the folder that the parts work in.
    pub(super) async fn prepare(
        binaries: &Binaries,
        control: &Control,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        for folder in ["tmp", "tls", "ssh"] {
            let folder = directory.join(folder);
            tokio::fs::create_dir_all(&folder)
                .await
                .with_context(|| format!("make the folder {}", folder.display()))?;
        }
        let text = |path: &Path| {
            let text = path.to_str().with_context(|| format!("write the path {} as text", path.display()));
            text.map(str::to_owned)
        };
        let ports = Ports {
            redis: port::free()?,
            repo_server: port::free()?,
            repo_server_metrics: port::free()?,
            controller_metrics: port::free()?,
            server: port::free()?,
            server_metrics: port::free()?,
        };
        let system = std::env::var("PATH").unwrap_or_default();
        Ok(Self {
            ports,
            directory: directory.canonicalize().context("find the folder of Argo CD")?,
            programs: binaries.programs(),
            kubeconfig: text(control.admin_kubeconfig())?,
            path: format!("{}:{system}", text(&binaries.programs())?),
        })
    }

    /// How a part is started.
    pub(super) fn spec(&self, part: Part) -> Spec {
        let ports = &self.ports;
        match part {
            Part::Redis => Spec::new("redis-server", "redis-server", &self.directory).args(words(&format!(
                "--port {} --bind 127.0.0.1 --appendonly no --maxmemory 256mb --save",
                ports.redis
            )))
            // Nothing is saved: its content can be made anew.
            .args([""]),
            Part::RepoServer => self
                .argocd("argocd-repo-server")
                .args(words(&format!(
                    "--address 127.0.0.1 --port {} --metrics-address 127.0.0.1 --metrics-port {} --disable-tls",
                    ports.repo_server, ports.repo_server_metrics
                )))
                // A relative path: that of a socket may have a hundred letters only.
                .env("ARGOCD_ASK_PASS_SOCK", "ask.sock")
                .env("ARGOCD_GPG_ENABLED", "false"),
            // It now and then misses the last change of an object, so that the application's health is an older one
            // until it is compared again by itself: that is sooner here than the two minutes it usually takes. Its
            // metrics cannot be kept to loopback.
            Part::Controller => self
                .argocd("argocd-application-controller")
                .args(words(&format!(
                    "--metrics-port {} --repo-server 127.0.0.1:{} --repo-server-plaintext --app-resync 30 \
                     --app-resync-jitter 0 --repo-error-grace-period-seconds 1 --status-processors 8 \
                     --operation-processors 4",
                    ports.controller_metrics, ports.repo_server
                )))
                .kubernetes(self)
                .env("ARGOCD_CONTROLLER_REPLICAS", "1"),
            Part::Server => self
                .argocd("argocd-server")
                .args(words(&format!(
                    "--address 127.0.0.1 --port {} --metrics-address 127.0.0.1 --metrics-port {} \
                     --repo-server 127.0.0.1:{} --repo-server-plaintext --insecure",
                    ports.server, ports.server_metrics, ports.repo_server
                )))
                .kubernetes(self),
        }
    }

    fn argocd(&self, name: &str) -> Spec {
        let folder = |name: &str| self.directory.join(name).to_string_lossy().into_owned();
        Spec::new(name, self.programs.join(name), &self.directory)
            .args(words(&format!("--redis 127.0.0.1:{} --loglevel info", self.ports.redis)))
            .with_memory()
            .env("PATH", self.path.clone())
            .env("TMPDIR", folder("tmp"))
            .env("ARGOCD_TLS_DATA_PATH", folder("tls"))
            .env("ARGOCD_SSH_DATA_PATH", folder("ssh"))
    }
}

trait Kubernetes {
    /// The part of a program that speaks to the cluster; applications go to the same cluster.
    fn kubernetes(self, settings: &Settings) -> Self;
}

impl Kubernetes for Spec {
    fn kubernetes(self, settings: &Settings) -> Self {
        self.args(["--namespace", ArgoCd::NAMESPACE, "--kubeconfig", &settings.kubeconfig])
            .env("KUBECONFIG", settings.kubeconfig.clone())
            .env("ARGOCD_FAKE_IN_CLUSTER", "true")
            .env("ARGOCD_ENABLE_K8S_EVENT", "none")
            // Its own brake on requests is meant for API servers that others use too.
            .env("ARGOCD_K8S_CLIENT_QPS", "300")
            .env("ARGOCD_K8S_CLIENT_BURST", "600")
    }
}

/// Whether a part answers as it does when it is ready.
pub(super) async fn answers(http: &reqwest::Client, part: Part, ports: &Ports) -> bool {
    let (port, path) = match part {
        Part::Redis => return pong(ports.redis).await,
        Part::RepoServer => (ports.repo_server_metrics, "/healthz?full=true"),
        Part::Controller => (ports.controller_metrics, "/healthz"),
        Part::Server => (ports.server, "/healthz"),
    };
    let answer = http.get(format!("http://127.0.0.1:{port}{path}")).timeout(ANSWER).send().await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

async fn pong(port: u16) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"PING\r\n").await?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await?;
        std::io::Result::Ok(answer == *b"+PONG")
    };
    matches!(tokio::time::timeout(ANSWER, asked).await, Ok(Ok(true)))
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}
