//! A real Kubernetes control plane on loopback: etcd, API server, controllers and scheduler, and kwok, which plays the
//! kubelet of one node, so that pods become ready without a container. Where a real node stands beside that one, it is
//! tainted, and pods run on it that tolerate everything.
//!
//! takes: the programs, a folder - gives: the API server's address, tokens and kubeconfigs; its end and return
//! calls: `etcd` of the system, the API server, etcd's JSON gateway - fails: when a program does not become ready; the
//! end of its log stands in the error

mod etcd;
mod files;
mod flags;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use axum::http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::binaries::Binaries;
use super::network::Network;
use super::objects::{Objects, Reference, condition};
use super::progress::Progress;
use files::Files;
use loadtest_sim::PATIENCE;
use loadtest_sim::child::{Child, Spec};
use loadtest_sim::port;

/// The users whose requests stand in the audit log: those of `gitops-runtime rbac print`.
pub const AUDITED: [&str; 5] = [
    "system:serviceaccount:argocd:event-reporter",
    "system:serviceaccount:argocd:change-revision",
    "system:serviceaccount:argocd:source-server",
    "system:serviceaccount:argocd:resource-reporter",
    "system:serviceaccount:argocd:app-proxy",
];
/// Those of every account of the namespace that the chart is installed in.
pub const AUDITED_GROUP: &str = "system:serviceaccounts:runtime";

/// Of a ServiceAccount's token, in seconds: longer than any run.
const TOKEN_LIFE: u32 = 24 * 60 * 60;

/// A running control plane. It ends when it is dropped.
#[derive(Debug)]
pub struct Control {
    files: Files,
    url: String,
    client: Client,
    etcd: etcd::Etcd,
    api_server: Child,
    others: Vec<Child>,
}

/// kube's client does not print itself.
#[derive(Clone)]
struct Client(kube::Client);

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Control {
    /// Starts all of it in `directory` and waits until it is ready: the node is, and the first ServiceAccount is made. For a
    /// real node beside it, it listens where `network` reaches it, instead of on loopback.
    pub async fn start(
        binaries: &Binaries,
        directory: &Path,
        network: Option<Network>,
    ) -> anyhow::Result<Self> {
        // Whoever was first chose the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let port = port::free()?;
        let url = format!("https://{}:{port}", network.map_or(Ipv4Addr::LOCALHOST, Network::host));
        let files = Files::write(directory, &url, network, &binaries.share("kwok")).await?;

        let etcd = Progress.step("etcd", etcd::Etcd::start(directory)).await?;

        let spec = Spec::new("kube-apiserver", binaries.program("kube-apiserver"), directory)
            .args(flags::api_server(&files, etcd.url(), port, network))
            .with_memory();
        let api_server = Child::start(&spec)?;
        let client = client(files.admin_kubeconfig()).await?;
        Progress.step("kube-apiserver", answers(&api_server, &client)).await?;

        let others = vec![
            Child::start(
                &Spec::new("kube-controller-manager", binaries.program("kube-controller-manager"), directory)
                    .args(flags::controllers(&files, network))
                    .with_memory(),
            )?,
            Child::start(
                &Spec::new("kube-scheduler", binaries.program("kube-scheduler"), directory)
                    .args(flags::scheduler(&files)),
            )?,
            Child::start(&Spec::new("kwok", binaries.program("kwok"), directory).args(flags::kwok(
                &files,
                port::free()?,
                network,
            )))?,
        ];
        let control = Self { files, url, client: Client(client), etcd, api_server, others };
        Progress.step("controllers, scheduler and node", control.works(network)).await?;
        Ok(control)
    }

    /// Where the API server serves: `https://127.0.0.1:PORT` (or the address that a real node reaches), the same for its
    /// whole life.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The certificate of the authority that signed the API server's.
    #[must_use]
    pub fn ca_file(&self) -> &Path {
        self.files.authority()
    }

    /// A token of the group `system:masters`.
    #[must_use]
    pub fn admin_token(&self) -> &str {
        self.files.admin_token()
    }

    /// A kubeconfig with [`Control::admin_token`].
    #[must_use]
    pub fn admin_kubeconfig(&self) -> &Path {
        self.files.admin_kubeconfig()
    }

    /// A kubeconfig of the parts of the cluster itself.
    pub(super) fn parts_kubeconfig(&self) -> PathBuf {
        self.files.parts_kubeconfig()
    }

    /// A client with [`Control::admin_token`].
    #[must_use]
    pub fn client(&self) -> kube::Client {
        self.client.0.clone()
    }

    /// The log of every request of [`AUDITED`] and [`AUDITED_GROUP`]: a JSON object a line, written before the answer is sent.
    #[must_use]
    pub fn audit_log(&self) -> &Path {
        self.files.audit_log()
    }

    /// A token of a ServiceAccount that exists, good for a day.
    pub async fn account(&self, namespace: &str, name: &str) -> anyhow::Result<String> {
        let act = || format!("ask for a token of the ServiceAccount {namespace}/{name}");
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "expirationSeconds": TOKEN_LIFE },
        });
        let request = Request::post(format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"))
            .header("Content-Type", "application/json")
            .body(body.to_string().into_bytes())
            .with_context(act)?;
        let answer: Value = self.client.0.request(request).await.with_context(act)?;
        answer.pointer("/status/token").and_then(Value::as_str).map(str::to_owned).with_context(act)
    }

    /// Writes a kubeconfig for `token`, readable by its owner alone; `name` is the user's and the context's name, and
    /// the context's namespace is `argocd`.
    pub async fn kubeconfig(&self, name: &str, token: &str, to: &Path) -> anyhow::Result<()> {
        self.files.kubeconfig(&self.url, name, token, to).await
    }

    /// Kills the API server (SIGKILL).
    pub async fn kill_api_server(&self) -> anyhow::Result<()> {
        self.api_server.kill().await
    }

    /// Starts the API server on its port and waits until it is ready; it is stopped first when it runs.
    pub async fn start_api_server(&self) -> anyhow::Result<()> {
        self.api_server.restart().await?;
        answers(&self.api_server, &self.client.0).await
    }

    /// Drops the history of etcd up to now, and tells the revision: a list or a watch that goes on from before it is
    /// answered 410, but for what the API server itself still remembers until it is started anew.
    pub async fn compact(&self) -> anyhow::Result<u64> {
        self.etcd.compact().await
    }

    /// Copies what etcd stores into the folder `name` beside it, while both it and the API server are stopped; they are
    /// started again.
    pub async fn copy(&self, name: &str) -> anyhow::Result<PathBuf> {
        self.api_server.kill().await?;
        let copy = self.etcd.copy(name).await?;
        self.start_api_server().await?;
        Ok(copy)
    }

    /// Puts a copy back in the place of what etcd stores, so that its revisions go back; the API server is started anew.
    pub async fn restore(&self, copy: &Path) -> anyhow::Result<()> {
        self.api_server.kill().await?;
        self.etcd.restore(copy).await?;
        self.start_api_server().await
    }

    /// Whether each program runs, by its name.
    #[must_use]
    pub fn programs(&self) -> Vec<(String, bool)> {
        self.children().map(|child| (child.name().to_owned(), child.is_running())).collect()
    }

    /// Ends all programs, those that write before those that keep.
    pub async fn stop(&self) -> anyhow::Result<()> {
        futures::future::try_join_all(self.others.iter().map(Child::stop)).await?;
        // Its graceful end waits for watches to be closed; nothing is lost without it.
        self.api_server.kill().await?;
        self.etcd.child().stop().await
    }

    fn children(&self) -> impl Iterator<Item = &Child> {
        [self.etcd.child(), &self.api_server].into_iter().chain(&self.others)
    }

    /// Waits for the first signs of life of the controllers and of kwok.
    async fn works(&self, network: Option<Network>) -> anyhow::Result<()> {
        let objects = Objects::new(self.client());
        objects.apply_value(&flags::node(network), "default").await.context("make the node")?;
        let node = Reference::new("v1", "Node", None, flags::NODE_NAME);
        let account = Reference::new("v1", "ServiceAccount", Some("default"), "default");
        let waits = self.others.iter().map(async |child| {
            child
                .ready(PATIENCE, async || match child.name() {
                    "kwok" => objects.get(&node).await.ok().flatten().is_some_and(|node| is_ready(&node)),
                    "kube-controller-manager" => {
                        objects.get(&account).await.is_ok_and(|account| account.is_some())
                    }
                    _ => true,
                })
                .await
        });
        futures::future::try_join_all(waits).await.map(|_| ())
    }
}

/// Waits until the API server answers that it is ready.
async fn answers(api_server: &Child, client: &kube::Client) -> anyhow::Result<()> {
    let ready = async || {
        let Ok(request) = Request::get("/readyz").body(Vec::new()) else { return false };
        client.request_text(request).await.is_ok()
    };
    api_server.ready(PATIENCE, ready).await.map(|_| ())
}

/// Whether a node says so.
pub(super) fn is_ready(node: &Value) -> bool {
    condition(node, "Ready") == Some("True")
}

async fn client(kubeconfig: &Path) -> anyhow::Result<kube::Client> {
    let act = "make a client of the API server";
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context(act)?;
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.context(act)?;
    kube::Client::try_from(config).context(act)
}

#[cfg(test)]
mod tests;
