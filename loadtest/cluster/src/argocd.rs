//! A real Argo CD on loopback: redis, repo server, application controller and API server, in the namespace `argocd`.
//!
//! takes: the programs, a control plane, a folder - gives: the API server's address, tokens and a client; each part
//! can be killed and started again
//! calls: the Kubernetes API as its administrator, the API server's health, session and account - fails: when a part
//! does not become ready; the end of its log stands in the error
//!
//! The account `reporter` may get applications and nothing else: that is all that its calls need.

mod client;
mod install;
mod parts;

use std::path::Path;

use anyhow::{Context as _, bail};

pub(super) use self::client::http;
pub use self::client::{Client, SyncRequest};
pub use self::parts::Part;
use self::parts::{Ports, Settings};
use super::binaries::Binaries;
use super::control::Control;
use super::objects::Objects;
use super::progress::Progress;
use loadtest_sim::PATIENCE;
use loadtest_sim::child::Child;

/// A running Argo CD. It ends when it is dropped.
#[derive(Debug)]
pub struct ArgoCd {
    url: String,
    ports: Ports,
    http: reqwest::Client,
    redis: Child,
    repo_server: Child,
    controller: Child,
    server: Child,
    admin: String,
    reporter: String,
}

impl ArgoCd {
    /// The namespace of its parts and of all applications.
    pub const NAMESPACE: &str = "argocd";
    /// The account whose calls are the reporter's.
    pub const REPORTER: &str = "reporter";
    /// The account that may do everything.
    pub const ADMIN: &str = "admin";
    /// The destination of applications: the cluster that Argo CD itself runs in.
    pub const DESTINATION: &str = "https://kubernetes.default.svc";

    /// Installs and starts all of it, with its files in `directory`, and waits until it is ready.
    pub async fn start(binaries: &Binaries, control: &Control, directory: &Path) -> anyhow::Result<Self> {
        let settings = Settings::prepare(binaries, control, directory).await?;
        let http = http()?;
        let ports = settings.ports;
        let client = control.client();
        let objects = Objects::new(client.clone());
        // These two read nothing of the cluster, so they start while it learns of applications.
        let redis = Child::start(&settings.spec(Part::Redis))?;
        let repo_server = Child::start(&settings.spec(Part::RepoServer))?;
        let share = binaries.share("argocd");
        Progress.step("Argo CD's definitions", install::install(&client, &objects, &share)).await?;
        let controller = Child::start(&settings.spec(Part::Controller))?;
        let server = Child::start(&settings.spec(Part::Server))?;
        let url = ports.url();
        let mut argocd = Self {
            url,
            ports,
            http,
            redis,
            repo_server,
            controller,
            server,
            admin: String::new(),
            reporter: String::new(),
        };
        let ready = futures::future::try_join_all(Part::ALL.map(|part| argocd.ready(part)));
        Progress.step("Argo CD's parts", ready).await?;
        let tokens = install::tokens(&objects, &argocd.http, &argocd.url);
        (argocd.admin, argocd.reporter) = Progress.step("Argo CD's accounts", tokens).await?;
        Ok(argocd)
    }

    /// Where the API server serves: `http://127.0.0.1:PORT`, the same for its whole life.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A bearer token of [`ArgoCd::REPORTER`] (it never expires) or [`ArgoCd::ADMIN`] (for a day).
    pub fn token(&self, account: &str) -> anyhow::Result<String> {
        match account {
            Self::REPORTER => Ok(self.reporter.clone()),
            Self::ADMIN => Ok(self.admin.clone()),
            _ => bail!("find the token of {account}: there is no such account"),
        }
    }

    /// A client with the rights of [`ArgoCd::ADMIN`].
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.http.clone(), &self.url, &self.admin)
    }

    /// A client with the rights of [`ArgoCd::REPORTER`].
    #[must_use]
    pub fn reporter(&self) -> Client {
        Client::new(self.http.clone(), &self.url, &self.reporter)
    }

    /// Kills a part (SIGKILL).
    pub async fn kill(&self, part: Part) -> anyhow::Result<()> {
        self.child(part).kill().await
    }

    /// Starts a part anew on its port and waits until it is ready; it is stopped first when it runs.
    pub async fn revive(&self, part: Part) -> anyhow::Result<()> {
        self.child(part).restart().await?;
        self.ready(part).await
    }

    /// Whether each part runs, by its program's name.
    #[must_use]
    pub fn programs(&self) -> Vec<(String, bool)> {
        Part::ALL.map(|part| (self.child(part).name().to_owned(), self.child(part).is_running())).to_vec()
    }

    /// Ends all parts. They keep nothing that the cluster does not, so they are killed.
    pub async fn stop(&self) -> anyhow::Result<()> {
        futures::future::try_join_all(Part::ALL.map(|part| self.kill(part))).await.map(|_| ())
    }

    async fn ready(&self, part: Part) -> anyhow::Result<()> {
        let child = self.child(part);
        let probe = async || parts::answers(&self.http, part, &self.ports).await;
        child.ready(PATIENCE, probe).await.with_context(|| format!("wait for {}", child.name()))?;
        Ok(())
    }

    fn child(&self, part: Part) -> &Child {
        match part {
            Part::Redis => &self.redis,
            Part::RepoServer => &self.repo_server,
            Part::Controller => &self.controller,
            Part::Server => &self.server,
        }
    }
}
