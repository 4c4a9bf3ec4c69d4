//! Changes applications as their owners would, whatever is away: a request that fails is made again.
//!
//! takes: a change - gives: when it has been made; whether it was seen to have its effect
//! calls: the API server, Argo CD and Git as administrator - fails: when a request fails for [`PATIENCE`]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::application::{Files, Subject, application, finalizers};
use super::known::Known;
use crate::Cluster;
use crate::argocd::{ArgoCd, Client, SyncRequest};
use crate::git::{Commit, Repository};
use crate::objects::{Objects, Reference};
use loadtest_sim::{PATIENCE, until};

/// How long one request may take: a connection to what was killed may hang.
const ANSWER: Duration = Duration::from_secs(15);
/// Between two tries, and between two looks.
const AGAIN: Duration = Duration::from_millis(250);
/// How long an effect is waited for; changes need not wait for each other.
const EFFECT: Duration = Duration::from_secs(15);
/// Asks for a comparison.
const REFRESH: &str = "argocd.argoproj.io/refresh";

/// Makes changes, and counts them.
pub(super) struct Driver {
    objects: Objects,
    argocd: Client,
    known: Known,
    made: AtomicU64,
}

impl Driver {
    /// A driver with the rights of an administrator.
    pub(super) fn new(cluster: &Cluster, known: &Known) -> Self {
        Self {
            objects: Objects::new(cluster.control.client()),
            argocd: cluster.argocd.client(),
            known: known.clone(),
            made: AtomicU64::default(),
        }
    }

    /// Changes made so far: commits, syncs, patches, deletions and applications made.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    /// Makes the application.
    pub(super) async fn create(&self, subject: &Subject, repository: &Repository) -> anyhow::Result<()> {
        let object = subject.object(repository.url());
        again("create an application", || self.objects.apply_value(&object, ArgoCd::NAMESPACE)).await?;
        self.count();
        Ok(())
    }

    /// Commits, and has the applications compared that it concerns.
    pub(super) async fn commit(
        &self,
        subject: &Subject,
        repository: &Repository,
        message: String,
        files: Files,
    ) -> anyhow::Result<()> {
        let (author, email) = ("Ada Lovelace".to_owned(), "ada@example.com".to_owned());
        repository.commit(&Commit { author, email, message, files }).await?;
        self.count();
        for name in subject.concerned() {
            self.refresh(&name).await?;
        }
        Ok(())
    }

    /// Has an application compared, if it is there, and waits for it.
    pub(super) async fn refresh(&self, name: &str) -> anyhow::Result<()> {
        let (reference, patch) =
            (application(name), json!({"metadata": {"annotations": {REFRESH: "normal"}}}));
        let asked = async || match self.get(&reference).await? {
            None => Ok(()),
            Some(_) => self.objects.patch(&reference, &patch, None).await.map(drop),
        };
        again("refresh an application", asked).await?;
        let annotations =
            |object: &Value| object.pointer("/metadata/annotations").cloned().unwrap_or_default();
        self.until(name, |object| object.is_none_or(|object| annotations(object).get(REFRESH).is_none()))
            .await;
        Ok(())
    }

    /// Syncs an application, if it is there, and waits for the end.
    pub(super) async fn sync(&self, name: &str) -> anyhow::Result<()> {
        let request = SyncRequest { prune: true, ..SyncRequest::default() };
        let asked = async || match self.get(&application(name)).await? {
            // An answer that got lost leaves an operation that is running.
            Some(object) if !is_running(&object) => self.argocd.sync(name, &request).await.map(drop),
            _ => Ok(()),
        };
        again("sync an application", asked).await?;
        self.count();
        self.until(name, |object| object.is_none_or(|object| !is_running(object))).await;
        Ok(())
    }

    /// Patches an object, if it is there.
    pub(super) async fn drift(&self, object: &Reference, patch: &Value) -> anyhow::Result<()> {
        let patched = async || match self.get(object).await? {
            None => Ok(()),
            Some(_) => self.objects.patch(object, patch, None).await.map(drop),
        };
        again("patch an object", patched).await?;
        self.count();
        Ok(())
    }

    /// Deletes an application, and tells the uid that it had; nobody waits for its end. One whose first report is
    /// not yet old is left alone ([`Known`]), and so is one that is gone: then there is none.
    pub(super) async fn delete(&self, name: &str, cascade: bool) -> anyhow::Result<Option<String>> {
        let reference = application(name);
        let found = again("look at an application", || self.get(&reference)).await?;
        let uid =
            found.as_ref().and_then(|object| object.pointer("/metadata/uid")?.as_str()).map(str::to_owned);
        let Some(uid) = uid.filter(|uid| self.known.is_settled(uid)) else { return Ok(None) };
        let deleted = async || {
            let Some(object) = self.get(&reference).await? else { return Ok(()) };
            if object.pointer("/metadata/uid") != Some(&json!(uid)) {
                return Ok(());
            }
            self.objects.patch(&reference, &finalizers(cascade), None).await?;
            self.objects.delete(&reference).await.map(drop)
        };
        again("delete an application", deleted).await?;
        self.count();
        Ok(Some(uid))
    }

    /// Waits until the life `uid` of an application is over.
    pub(super) async fn gone(&self, name: &str, uid: &str) -> anyhow::Result<()> {
        let reference = application(name);
        let look = async || {
            let found = again("look at an application", || self.get(&reference)).await?;
            Ok(found.is_some_and(|object| object.pointer("/metadata/uid") == Some(&json!(uid))))
        };
        if until(PATIENCE, AGAIN, look, |is_there| !is_there).await? {
            bail!("delete {name}: it is still there after {PATIENCE:?}");
        }
        Ok(())
    }

    /// An object as it is now.
    pub(super) async fn get(&self, reference: &Reference) -> anyhow::Result<Option<Value>> {
        self.objects.get(reference).await
    }

    /// Waits until an application is as it should be, for a while; it need not become so.
    pub(super) async fn until(&self, name: &str, holds: impl Fn(Option<&Value>) -> bool) {
        let (reference, end) = (application(name), Instant::now() + EFFECT);
        while Instant::now() < end {
            let looked = tokio::time::timeout(ANSWER, self.get(&reference)).await;
            if let Ok(Ok(found)) = looked
                && holds(found.as_ref())
            {
                return;
            }
            sleep(AGAIN).await;
        }
    }
}

/// Whether an operation runs or is asked for.
pub(super) fn is_running(object: &Value) -> bool {
    let phase = object.pointer("/status/operationState/phase").and_then(Value::as_str);
    object.get("operation").is_some_and(|operation| !operation.is_null())
        || matches!(phase, Some("Running" | "Terminating"))
}

/// Makes a request until it is granted.
async fn again<T>(what: &str, request: impl AsyncFn() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let ask = async || {
        let answer = tokio::time::timeout(ANSWER, request()).await.context("wait for an answer");
        Ok(answer.and_then(|answer| answer))
    };
    let answer = until(PATIENCE, AGAIN, ask, Result::is_ok).await?;
    answer.with_context(|| format!("{what}: for {PATIENCE:?} in vain"))
}
