//! etcd: the memory of the API server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::process::Command;

use loadtest_sim::child::{Child, Spec};
use loadtest_sim::port;
use loadtest_sim::{PATIENCE, local_client};

/// How long one answer may take; a compaction copies nothing, but a busy machine is slow.
const ANSWER: Duration = Duration::from_secs(30);

/// The key `mark`, as JSON holds it.
const MARK: &str = "bWFyaw==";

/// A running etcd.
#[derive(Debug)]
pub(super) struct Etcd {
    gateway: Gateway,
    child: Child,
    data: PathBuf,
}

/// The part of etcd that speaks JSON over HTTP.
#[derive(Debug)]
pub(super) struct Gateway {
    url: String,
    http: reqwest::Client,
}

impl Etcd {
    /// Starts one in `directory` and waits until it answers.
    pub(super) async fn start(directory: &Path) -> anyhow::Result<Self> {
        let url = format!("http://127.0.0.1:{}", port::free()?);
        let peers = format!("http://127.0.0.1:{}", port::free()?);
        let spec = Spec::new("etcd", "etcd", directory).args(flags(&url, &peers, &directory.join("etcd")));
        let gateway = Gateway::new(url)?;
        let child = Child::start(&spec)?;
        child.ready(PATIENCE, async || gateway.revision().await.is_ok()).await?;
        Ok(Self { gateway, child, data: directory.join("etcd") })
    }

    /// Copies its data into the folder `name` beside them, while it is stopped.
    pub(super) async fn copy(&self, name: &str) -> anyhow::Result<PathBuf> {
        let copy = self.data.with_file_name(name);
        self.child.stop().await?;
        duplicate(&self.data, &copy).await?;
        self.go_on().await?;
        Ok(copy)
    }

    /// Puts a copy of its data back.
    pub(super) async fn restore(&self, copy: &Path) -> anyhow::Result<()> {
        self.child.stop().await?;
        tokio::fs::remove_dir_all(&self.data).await.context("remove the data of etcd")?;
        duplicate(copy, &self.data).await?;
        self.go_on().await
    }

    async fn go_on(&self) -> anyhow::Result<()> {
        self.child.restart().await?;
        self.child.ready(PATIENCE, async || self.gateway.revision().await.is_ok()).await.map(drop)
    }

    pub(super) fn url(&self) -> &str {
        &self.gateway.url
    }

    pub(super) fn child(&self) -> &Child {
        &self.child
    }

    /// Makes two new revisions and drops what is older than the last one, so that no watch can go on from before; tells it.
    pub(super) async fn compact(&self) -> anyhow::Result<u64> {
        self.gateway.compact().await
    }
}

impl Gateway {
    pub(super) fn new(url: String) -> anyhow::Result<Self> {
        let http = local_client().build().context("make a client of etcd")?;
        Ok(Self { url, http })
    }

    pub(super) async fn compact(&self) -> anyhow::Result<u64> {
        // What somebody has read last must not be the newest: from there a watch could go on.
        self.mark().await?;
        let revision = self.mark().await?;
        // Numbers of 64 bits are strings in etcd's JSON.
        let body = json!({ "revision": revision.to_string(), "physical": true });
        let dropped = self.ask("kv/compaction", &body).await;
        dropped.with_context(|| format!("compact etcd at revision {revision}"))?;
        Ok(revision)
    }

    /// Writes what no API server reads, and gives the revision that made it.
    async fn mark(&self) -> anyhow::Result<u64> {
        let act = "write a mark into etcd";
        revision_of(&self.ask("kv/put", &json!({ "key": MARK, "value": "" })).await.context(act)?)
            .context(act)
    }

    /// The newest revision.
    async fn revision(&self) -> anyhow::Result<u64> {
        let act = "ask etcd for its revision";
        // Any key does: the answer's header holds the revision of the whole store.
        revision_of(&self.ask("kv/range", &json!({ "key": "AA==" })).await.context(act)?).context(act)
    }

    async fn ask(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        let answer =
            self.http.post(format!("{}/v3/{path}", self.url)).timeout(ANSWER).json(body).send().await?;
        let status = answer.status();
        let answer: Value = answer.json().await?;
        if !status.is_success() {
            let message = answer["error"].as_str().unwrap_or_default().to_owned();
            return Err(Refusal::Answer { status, message });
        }
        Ok(answer)
    }
}

/// Copies a folder with all that is in it.
async fn duplicate(from: &Path, to: &Path) -> anyhow::Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().await.context("run cp")?;
    anyhow::ensure!(status.success(), "copy {} to {}: cp ended with {status}", from.display(), to.display());
    Ok(())
}

/// The revision of the store when it answered.
fn revision_of(answer: &Value) -> Option<u64> {
    answer.pointer("/header/revision")?.as_str()?.parse().ok()
}

/// Why etcd gave nothing.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("etcd answers {status}: {message}")]
    Answer { status: reqwest::StatusCode, message: String },
    #[error("speak to etcd")]
    Line(#[from] reqwest::Error),
}

pub(super) fn flags(url: &str, peers: &str, data: &Path) -> Vec<String> {
    vec![
        "--name=one".to_owned(),
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=one={peers}"),
        // A cluster that ends with its parent needs no data that outlives a power cut.
        "--unsafe-no-fsync".to_owned(),
        "--logger=zap".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}
