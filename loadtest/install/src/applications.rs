//! Applications of the cluster's own Argo CD that follow a repository: what is committed, and whether the platform holds
//! what came of it.
//!
//! takes: a cluster, a platform - gives: commits, a load of them, and what the platform does not hold in time
//! calls: Argo CD to look at the repository at once, the API server - fails: when one of them does

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context as _, ensure};
use loadtest_cluster::argocd::{ArgoCd, Client};
use loadtest_cluster::git::{BRANCH, Commit, Repository};
use loadtest_cluster::objects::{Objects, Reference};
use loadtest_judge::report::Report;
use loadtest_sim::PATIENCE;
use loadtest_sim::platform::{EntityName, PlatformSim, ResourceKey};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::{LOOK, until};

/// Their names; each has a namespace of this name, and a folder in the repository.
pub(crate) const NAMES: [&str; 3] = ["shop-one", "shop-two", "shop-three"];

/// The applications, and what was committed so far.
#[derive(Clone)]
pub(crate) struct Applications {
    repository: Repository,
    argocd: Client,
    objects: Objects,
    platform: Arc<PlatformSim>,
    commits: Arc<AtomicU64>,
}

/// What becomes of an application: revision, sync, health, and the end of its last operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State {
    revision: String,
    sync: String,
    health: String,
    ended: String,
}

/// Commits that follow one another until they are stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    commits: Arc<AtomicU64>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Applications {
    /// Makes them.
    pub(crate) async fn start(
        repository: Repository,
        argocd: Client,
        objects: Objects,
        platform: Arc<PlatformSim>,
    ) -> anyhow::Result<Self> {
        let made = Self { repository, argocd, objects, platform, commits: Arc::default() };
        made.commit().await?;
        for name in NAMES {
            made.objects.apply_value(&application(name, made.url()), ArgoCd::NAMESPACE).await?;
        }
        Ok(made)
    }

    /// The same applications, as another platform should hold them.
    pub(crate) fn told_to(&self, platform: Arc<PlatformSim>) -> Self {
        Self { platform, ..self.clone() }
    }

    /// Commits a change of every application and has Argo CD look at it; gives its number and its revision.
    pub(crate) async fn commit(&self) -> anyhow::Result<(u64, String)> {
        let number = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        let files = NAMES.map(|name| config_map(name, number));
        let commit = Commit::of_ada(message(number), BTreeMap::from(files));
        let revision = self.repository.commit(&commit).await?;
        if number > 1 {
            self.refresh().await?;
        }
        Ok((number, revision))
    }

    /// Commits a file that is none of theirs.
    pub(crate) async fn file(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let files = BTreeMap::from([(path.to_owned(), Some(text.to_owned()))]);
        self.repository.commit(&Commit::of_ada(format!("Make {path}"), files)).await.map(drop)
    }

    /// Where Argo CD reads the repository.
    pub(crate) fn url(&self) -> &str {
        self.repository.url()
    }

    /// Commits again and again, each when Argo CD has seen the one before.
    pub(crate) fn load(&self) -> Load {
        let (stop, commits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (own, is_over, count) = (self.clone(), stop.clone(), commits.clone());
        let task = tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let (_, revision) = own.commit().await?;
                own.synced(&revision).await?;
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        Load { stop, commits, task }
    }

    /// Commits, and says what the platform does not hold of it in time; where it holds all, what it was told stands in the
    /// second list.
    pub(crate) async fn follow(&self) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let (number, revision) = self.commit().await?;
        self.synced(&revision).await?;
        let wrong = self.lacking().await?;
        let mut told = Vec::new();
        for name in NAMES {
            let State { revision, sync, health, .. } = self.told(name)?.unwrap_or_default();
            let short = revision.get(..7).unwrap_or(&revision);
            told.push(format!("{name}: {sync}, {health} at {short} ({:?})", message(number)));
        }
        Ok((wrong, told))
    }

    /// What the platform does not hold in time of the state that every application has now, a line each.
    pub(crate) async fn lacking(&self) -> anyhow::Result<Vec<String>> {
        let look = async || {
            let mut wrong = Vec::new();
            for name in NAMES {
                let real = self.real(name).await?;
                let told = self.told(name)?;
                if told.as_ref() != Some(&real) {
                    wrong.push(format!("of {name} the platform holds {told:?}, and not {real:?}"));
                }
                let number = self.number(name).await?;
                if !self.holds_manifest(name, &number)? {
                    wrong.push(format!(
                        "of the ConfigMap of {name} the platform does not hold number {number}"
                    ));
                }
            }
            Ok(wrong)
        };
        let mut wrong = until(look, Vec::is_empty).await?;
        wrong.extend(self.platform.totals().wrong());
        Ok(wrong)
    }

    /// Waits until Argo CD has synced every application to a revision.
    pub(crate) async fn synced(&self, revision: &str) -> anyhow::Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let mut behind = Vec::new();
            for name in NAMES {
                let state = self.real(name).await?;
                if !state.is_synced(revision) {
                    behind.push(format!("{name} is {state:?}"));
                }
            }
            if behind.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < end, "Argo CD did not sync {revision}: {}", behind.join(", "));
            sleep(LOOK).await;
        }
    }

    async fn refresh(&self) -> anyhow::Result<()> {
        for name in NAMES {
            self.argocd.refreshed(name, "normal").await?;
        }
        Ok(())
    }

    async fn real(&self, name: &str) -> anyhow::Result<State> {
        let reference = Reference::new("argoproj.io/v1alpha1", "Application", Some(ArgoCd::NAMESPACE), name);
        let object = self.objects.get(&reference).await?.with_context(|| format!("find {reference}"))?;
        Ok(State::of(&object))
    }

    fn told(&self, name: &str) -> anyhow::Result<Option<State>> {
        told(&self.platform, ArgoCd::NAMESPACE, name)
    }

    /// The number that the application's ConfigMap has in the cluster.
    async fn number(&self, name: &str) -> anyhow::Result<String> {
        let reference = Reference::new("v1", "ConfigMap", Some(name), "shop");
        let object = self.objects.get(&reference).await?.with_context(|| format!("find {reference}"))?;
        Ok(object["data"]["number"].as_str().unwrap_or_default().to_owned())
    }

    fn holds_manifest(&self, name: &str, number: &str) -> anyhow::Result<bool> {
        holds_number(&self.platform, (ArgoCd::NAMESPACE, name), name, number)
    }
}

/// The ConfigMap `shop` of an application with a number, as a file of its folder.
pub(crate) fn config_map(application: &str, number: u64) -> (String, Option<String>) {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shop}}\ndata: {{number: \"{number}\"}}\n"
    );
    (format!("{application}/config.yaml"), Some(text))
}

/// An application that follows the folder of its name in a repository, and goes to the namespace of its name.
pub(crate) fn application(name: &str, url: &str) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "path": name, "targetRevision": BRANCH},
            "destination": {"server": ArgoCd::DESTINATION, "namespace": name},
            "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"]},
        },
    })
}

/// What a platform holds of an application.
pub(crate) fn told(platform: &PlatformSim, namespace: &str, name: &str) -> anyhow::Result<Option<State>> {
    let last = platform.last_of_application(namespace, name);
    let Some(payload) = last.and_then(|last| last.payload) else { return Ok(None) };
    Ok(Some(State::of(&Report::open(&payload).context("read a report")?.object)))
}

/// Whether a platform holds the ConfigMap `shop` of an application, by its namespace and name, with a number.
pub(crate) fn holds_number(
    platform: &PlatformSim,
    application: (&str, &str),
    namespace: &str,
    number: &str,
) -> anyhow::Result<bool> {
    let last = platform.last_of(&EntityName {
        app_namespace: application.0.to_owned(),
        app_name: application.1.to_owned(),
        resource: Some(ResourceKey {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: namespace.to_owned(),
            name: "shop".to_owned(),
        }),
    });
    let Some(payload) = last.and_then(|last| last.payload) else { return Ok(false) };
    let report = Report::open(&payload).context("read a report")?;
    Ok(report.source("actualManifest").contains(&format!("\"number\":\"{number}\"")))
}

impl Load {
    /// Waits until so many more commits were synced, or it has failed.
    pub(crate) async fn go_on(&self, more: u64) {
        let enough = self.commits.load(Ordering::Relaxed) + more;
        while self.commits.load(Ordering::Relaxed) < enough && !self.task.is_finished() {
            sleep(LOOK).await;
        }
    }

    /// Ends it when so many more commits were synced; gives how many were in all.
    pub(crate) async fn stop(self, more: u64) -> anyhow::Result<u64> {
        self.go_on(more).await;
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.context("wait for the end of the load")??;
        Ok(self.commits.load(Ordering::Relaxed))
    }
}

impl Default for State {
    fn default() -> Self {
        Self::of(&Value::Null)
    }
}

impl State {
    /// Whether a sync to a revision has ended, and nothing differs from it.
    pub(crate) fn is_synced(&self, revision: &str) -> bool {
        self.revision == revision && self.sync == "Synced" && !self.ended.is_empty()
    }

    /// What Argo CD says in its object.
    pub(crate) fn of(object: &Value) -> Self {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            revision: text("/status/sync/revision"),
            sync: text("/status/sync/status"),
            health: text("/status/health/status"),
            ended: text("/status/operationState/finishedAt"),
        }
    }
}

fn message(number: u64) -> String {
    format!("Number {number}")
}
