//! Watches Applications as raw bytes, with an administrator's rights, and asks Argo CD about each that changed.
//!
//! Of an application that changes faster than Argo CD answers, only the newest state is asked about; at most four are
//! asked about at once. A watch that ends goes on where it stood; one that is too old begins with a new list, and
//! what is missing in that was deleted.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures::io::AsyncBufReadExt as _;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Asker, Line, now};

/// Applications that are asked about at once.
const AT_ONCE: usize = 4;
/// How soon a watch that broke off is opened again.
const AGAIN: Duration = Duration::from_millis(200);
/// How long one watch lasts, in seconds: shorter than a connection may be silent.
const LASTS: u32 = 240;

/// A watch that never ends.
pub(super) struct Watch {
    client: kube::Client,
    path: String,
    /// Where it stands; nothing before the first list and when that is too old.
    version: Option<String>,
    known: HashMap<String, Known>,
}

/// The newest state of an application.
struct Known {
    version: String,
    object: Box<RawValue>,
}

/// One change.
struct Change {
    application: String,
    kind: String,
    object: Box<RawValue>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Box<RawValue>,
}

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Head {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    resource_version: String,
}

impl Watch {
    pub(super) fn new(client: kube::Client, namespace: &str) -> Self {
        let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications");
        Self { client, path, version: None, known: HashMap::new() }
    }

    /// Lists, and gives what is new since it is known.
    async fn list(&mut self) -> anyhow::Result<Vec<Change>> {
        let request = get(&self.path)?;
        let text = self.client.request_text(request).await.context("list applications")?;
        let list: List = serde_json::from_str(&text).context("read the list of applications")?;
        let mut changes = Vec::new();
        let mut before: BTreeSet<String> = self.known.keys().cloned().collect();
        for object in list.items {
            let head: Head = serde_json::from_str(object.get()).context("read an application")?;
            before.remove(&head.metadata.name);
            let known = self.known.get(&head.metadata.name);
            let kind = match known {
                None => "ADDED",
                Some(known) if known.version != head.metadata.resource_version => "MODIFIED",
                Some(_) => continue,
            };
            changes.extend(self.take(kind, object)?);
        }
        for gone in before {
            if let Some(known) = self.known.get(&gone) {
                let object = known.object.clone();
                changes.extend(self.take("DELETED", object)?);
            }
        }
        self.version = Some(list.metadata.resource_version);
        Ok(changes)
    }

    /// Takes note of an event.
    fn take(&mut self, kind: &str, object: Box<RawValue>) -> anyhow::Result<Option<Change>> {
        let head: Head = serde_json::from_str(object.get()).context("read a watch event")?;
        let Metadata { name, resource_version: version } = head.metadata;
        self.version = Some(version.clone());
        if kind == "BOOKMARK" {
            return Ok(None);
        }
        if kind == "DELETED" {
            self.known.remove(&name);
        } else {
            self.known.insert(name.clone(), Known { version, object: object.clone() });
        }
        Ok(Some(Change { application: name, kind: kind.to_owned(), object }))
    }

    /// Lists; the watch goes on from there.
    pub(super) async fn begin(&mut self, changes: &mut Changes) -> anyhow::Result<()> {
        for change in self.list().await? {
            changes.take(change).await;
        }
        Ok(())
    }

    /// Hands every change to `changes`, until that is told to be over or the connection breaks.
    async fn follow(&mut self, changes: &mut Changes) -> anyhow::Result<()> {
        let Some(version) = self.version.clone() else { return self.begin(changes).await };
        let query =
            format!("watch=true&resourceVersion={version}&timeoutSeconds={LASTS}&allowWatchBookmarks=true");
        let request = get(&format!("{}?{query}", self.path))?;
        let stream = match self.client.request_stream(request).await {
            Ok(stream) => stream,
            Err(kube::Error::Api(status)) if status.code == 410 => {
                self.version = None;
                return Ok(());
            }
            Err(error) => return Err(error).context("watch applications"),
        };
        let mut lines = stream.lines();
        loop {
            let line = tokio::select! {
                line = lines.next() => line,
                () = changes.asked() => continue,
            };
            let Some(line) = line else { return Ok(()) };
            let line = line.context("read the watch of applications")?;
            let event: Event = serde_json::from_str(&line).context("read a watch event")?;
            if event.kind == "ERROR" {
                self.version = None;
                bail!("the watch of applications ended with an error");
            }
            if let Some(change) = self.take(&event.kind, event.object)? {
                changes.take(change).await;
            }
        }
    }
}

/// Notes changes, and asks about their applications.
pub(super) struct Changes {
    asker: Asker,
    seen: watch::Sender<u64>,
    due: BTreeSet<String>,
    /// Of those, the ones that have just come.
    new: BTreeSet<String>,
    busy: BTreeSet<String>,
    asking: FuturesUnordered<futures::future::BoxFuture<'static, String>>,
}

impl Changes {
    pub(super) fn new(asker: Asker, seen: watch::Sender<u64>) -> Self {
        let asking = FuturesUnordered::new();
        Self { asker, seen, due: BTreeSet::new(), new: BTreeSet::new(), busy: BTreeSet::new(), asking }
    }

    async fn take(&mut self, change: Change) {
        let Change { application, kind, object } = change;
        let event = Bytes::from(format!(r#"{{"type":"{kind}","object":{object}}}"#));
        if kind == "DELETED" {
            self.due.remove(&application);
        } else {
            self.due.insert(application.clone());
            if kind == "ADDED" {
                self.new.insert(application.clone());
            }
        }
        // A writer that has failed is told at the end.
        let _ = self.asker.lines.send(Line::Watch { application, t: now(), event }).await;
        self.seen.send_modify(|seen| *seen += 1);
        self.ask();
    }

    /// Starts to ask as far as the bound allows.
    fn ask(&mut self) {
        while self.asking.len() < AT_ONCE {
            let Some(next) = self.due.difference(&self.busy).next().cloned() else { return };
            self.due.remove(&next);
            self.busy.insert(next.clone());
            let asker = self.asker.clone();
            let is_new = self.new.remove(&next);
            self.asking.push(Box::pin(async move {
                if is_new {
                    asker.settings(&next).await;
                }
                asker.look(&next).await;
                next
            }));
        }
    }

    /// Waits until one has been asked about; for ever when none is being.
    async fn asked(&mut self) {
        match self.asking.next().await {
            Some(done) => {
                self.busy.remove(&done);
                self.ask();
            }
            None => std::future::pending().await,
        }
    }
}

/// Observes until it is told to stop; what is being asked then is finished.
pub(super) async fn observe(mut watch: Watch, mut changes: Changes, stop: CancellationToken) {
    loop {
        let followed = tokio::select! {
            () = stop.cancelled() => break,
            followed = watch.follow(&mut changes) => followed,
        };
        // A cluster that is being broken on purpose does not answer for a while.
        if followed.is_err() {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }
    while !changes.asking.is_empty() {
        changes.asked().await;
    }
}

fn get(path: &str) -> anyhow::Result<axum::http::Request<Vec<u8>>> {
    axum::http::Request::get(path).body(Vec::new()).context("ask for applications")
}
