//! A simulated Kubernetes API server: lists in pages, watches, single objects, with the real one's rules for
//! resourceVersions, its `Status` objects, bearer token and TLS.
//!
//! Objects come from recordings, from tests (any text, also a malformed one), or are generated when they are
//! asked for. [`KubeSim`] changes them, and breaks what it is told to break, while it serves. The names of
//! its calls for fault rules are `list`, `watch`, `get` and `patch`.

mod labels;
mod list;
mod patch;
mod request;
mod status;
mod store;
mod watch;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::Router;
use axum::http::HeaderValue;
use bytes::Bytes;
use pipeline_core::Key;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::fault::Faults;
use super::generate::{AppState, Fleet, Workload, Workloads};
use super::server::{Listen, Server};
use super::traffic::Traffic;
pub use store::Collection;
use store::{Object, Store};
use watch::Signal;

/// Settings of a simulated API server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens.
    pub listen: Listen,
    /// The bearer token it wants; `None` lets everyone in.
    pub token: Option<String>,
    /// How many past changes a watch may start from.
    pub history: usize,
    /// How often a watch gets a bookmark.
    pub bookmark_every: Duration,
    /// Renders generated applications.
    pub fleet: Option<Arc<Fleet>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            token: None,
            history: 10_000,
            bookmark_every: Duration::from_secs(60),
            fleet: None,
        }
    }
}

/// How often each call was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages of lists.
    pub lists: u64,
    /// Watches.
    pub watches: u64,
    /// Single objects.
    pub gets: u64,
    /// Requests without the right token.
    pub unauthorized: u64,
    /// Merge patches of single objects.
    pub patches: u64,
}

struct Shared {
    store: Mutex<Store>,
    fleet: Option<Arc<Fleet>>,
    bookmark_every: Duration,
    authorization: Option<HeaderValue>,
    faults: Faults,
    signals: tokio::sync::watch::Sender<Signal>,
    absent: Mutex<BTreeSet<Collection>>,
    forbidden: Mutex<BTreeSet<Collection>>,
    lines: broadcast::Sender<Bytes>,
    counts: Mutex<Counts>,
    traffic: Traffic,
    stop: CancellationToken,
}

impl Shared {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_absent(&self, collection: Collection) -> bool {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner).contains(&collection)
    }

    fn is_forbidden(&self, collection: Collection) -> bool {
        self.forbidden.lock().unwrap_or_else(PoisonError::into_inner).contains(&collection)
    }

    fn fleet(&self) -> Option<&Fleet> {
        self.fleet.as_deref()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a simulated API server stored at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot(Store);

/// A running API server and its controls.
pub struct KubeSim {
    _stop: DropGuard,
    shared: Arc<Shared>,
    server: Server,
}

impl std::fmt::Debug for KubeSim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeSim").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl KubeSim {
    /// Starts it.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        let authorization = config
            .token
            .map(|token| HeaderValue::from_str(&format!("Bearer {token}")))
            .transpose()
            .context("put the token into a header")?;
        let shared = Arc::new(Shared {
            store: Mutex::new(Store::new(config.history)),
            fleet: config.fleet,
            bookmark_every: config.bookmark_every,
            authorization,
            faults: Faults::default(),
            signals: tokio::sync::watch::Sender::new(Signal::default()),
            absent: Mutex::default(),
            forbidden: Mutex::default(),
            lines: broadcast::Sender::new(64),
            counts: Mutex::default(),
            traffic: Traffic::default(),
            stop: CancellationToken::new(),
        });
        let router = Router::new().fallback(request::serve).with_state(shared.clone());
        let server = Server::start(router, config.listen).await.context("start the API server")?;
        let stop = shared.stop.clone().drop_guard();
        Ok(Self { _stop: stop, shared, server })
    }

    /// Its address, as `http://127.0.0.1:1234`.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// How it misbehaves.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// How often it was asked.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.shared.counts()
    }

    /// The last requests, and how many stood open at once.
    #[must_use]
    pub fn traffic(&self) -> &Traffic {
        &self.shared.traffic
    }

    /// Newest resourceVersion.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.store().version()
    }

    /// How many objects of a collection there are.
    #[must_use]
    pub fn len(&self, collection: Collection) -> usize {
        self.shared.store().len(collection)
    }

    /// The text of one object as it is served.
    #[must_use]
    pub fn text(&self, collection: Collection, key: &Key) -> Option<Bytes> {
        let entry = self.shared.store().get(collection, key)?;
        let mut out = Vec::new();
        entry.render(self.shared.fleet(), &mut out);
        Some(out.into())
    }

    /// The resourceVersion of one object's last change.
    #[must_use]
    pub fn version_of(&self, collection: Collection, key: &Key) -> Option<u64> {
        Some(self.shared.store().get(collection, key)?.version)
    }

    /// Creates or replaces an object; sets its `resourceVersion`, and `uid` and `creationTimestamp` where it
    /// has none. Gives the new resourceVersion.
    pub fn apply(&self, collection: Collection, mut object: Value) -> anyhow::Result<u64> {
        let part = |name: &str| object.pointer(name).and_then(Value::as_str).unwrap_or_default();
        let key = Key::new(part("/metadata/namespace"), part("/metadata/name"))?;
        let uid = format!(
            "00000000-0000-4000-8000-{:012x}",
            pipeline_core::Digest::of(key.as_str().as_bytes()).0 >> 16
        );
        Ok(self.apply_text(collection, &key, |version| {
            let metadata = &mut object["metadata"];
            metadata["resourceVersion"] = json!(version.to_string());
            for (name, value) in [("uid", uid.as_str()), ("creationTimestamp", "2026-01-01T00:00:00Z")] {
                if metadata[name].is_null() {
                    metadata[name] = json!(value);
                }
            }
            object.to_string().into()
        }))
    }

    /// Creates or replaces an object by any text, also one that is no object; `text` gets its
    /// resourceVersion.
    pub fn apply_text(&self, collection: Collection, key: &Key, text: impl FnOnce(u64) -> Bytes) -> u64 {
        self.put((collection, key.clone()), |version| Object::Text(text(version)))
    }

    /// Creates or replaces an application by a state that is rendered when it is asked for.
    pub fn apply_generated(&self, key: &Key, state: AppState) -> u64 {
        self.put((Collection::Applications, key.clone()), |_| Object::Generated(state))
    }

    /// Creates or replaces a ReplicaSet or a Workflow by a state that is rendered when it is asked for.
    pub fn apply_workload(&self, workloads: &Arc<Workloads>, workload: Workload) -> anyhow::Result<u64> {
        let place = (workload.kind.into(), workloads.key(workload)?);
        Ok(self.put(place, |_| Object::Workload(workloads.clone(), workload)))
    }

    fn put(&self, place: (Collection, Key), object: impl FnOnce(u64) -> Object) -> u64 {
        let mut store = self.shared.store();
        let version = store.version() + 1;
        store.put(place, version, object(version));
        drop(store);
        self.announce(version);
        version
    }

    /// Replays one recorded watch event of an application with its own resourceVersion.
    pub fn replay(&self, kind: &str, object: &str) -> anyhow::Result<Key> {
        let head: Head<'_> = serde_json::from_str(object).context("read the recorded object")?;
        let key = Key::new(head.metadata.namespace, head.metadata.name)?;
        let version: u64 = head.metadata.resource_version.parse().context("read the resourceVersion")?;
        let place = (Collection::Applications, key.clone());
        let text = Object::Text(Bytes::copy_from_slice(object.as_bytes()));
        let mut store = self.shared.store();
        let newest = store.version();
        if version <= newest {
            bail!("replay {key} at resourceVersion {version}: the cluster is at {newest}");
        }
        if kind == "DELETED" {
            store.delete(place, version, text);
        } else {
            store.put(place, version, text);
        }
        drop(store);
        self.announce(version);
        Ok(key)
    }

    /// Deletes an object; watches get its last state with a new resourceVersion. `false` when it is not there.
    pub fn delete(&self, collection: Collection, key: &Key) -> bool {
        let mut store = self.shared.store();
        let Some(entry) = store.get(collection, key) else { return false };
        let version = store.version() + 1;
        let last = match entry.object {
            Object::Text(text) => Object::Text(with_version(text, version)),
            generated => generated,
        };
        let deleted = store.delete((collection, key.clone()), version, last);
        drop(store);
        self.announce(version);
        deleted
    }

    /// Removes what defines a kind, with all its objects, or installs it.
    pub fn define(&self, collection: Collection, defined: bool) {
        if !defined {
            let keys = self.shared.store().keys(collection);
            for key in keys {
                self.delete(collection, &key);
            }
        }
        set(&self.shared.absent, collection, !defined);
    }

    /// Takes the right to read a kind away, or grants it.
    pub fn forbid(&self, collection: Collection, forbidden: bool) {
        set(&self.shared.forbidden, collection, forbidden);
    }

    /// Breaks every watch without an end, as a lost connection does.
    pub fn drop_watches(&self) {
        self.shared.signals.send_modify(|signal| signal.drops += 1);
    }

    /// Sends every watch that wants them a bookmark, once it has said all changes.
    pub fn bookmark(&self) {
        self.shared.signals.send_modify(|signal| signal.bookmarks += 1);
    }

    /// Lets watches stand without a word (`true`), or go on.
    pub fn stall_watches(&self, stalled: bool) {
        self.shared.signals.send_modify(|signal| signal.stalled = stalled);
    }

    /// Sends every open watch a line as it is, whatever it is; a newline is added.
    pub fn inject(&self, line: &str) {
        // Without a watch nobody hears it.
        let _ = self.shared.lines.send(Bytes::from(format!("{line}\n")));
    }

    /// How many watches are open.
    #[must_use]
    pub fn open_watches(&self) -> usize {
        self.shared.lines.receiver_count()
    }

    /// Forgets all history: continue tokens and watches of older versions meet 410.
    pub fn compact(&self) {
        self.shared.store().compact();
        self.shared.signals.send_modify(|_| {});
    }

    /// What is stored now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.shared.store().clone())
    }

    /// Puts back what was stored, and goes on counting from there, as a restored etcd does; every watch breaks. History is
    /// gone: the API server's cache was filled anew.
    pub fn restore(&self, snapshot: &Snapshot) {
        let mut store = self.shared.store();
        store.clone_from(&snapshot.0);
        store.compact();
        let version = store.version();
        drop(store);
        self.shared.signals.send_modify(|signal| signal.version = version);
        self.drop_watches();
    }

    /// Stops listening and breaks every connection; objects stay.
    pub async fn down(&self) {
        self.server.down().await;
    }

    /// Listens again at the same address.
    pub async fn up(&self) -> anyhow::Result<()> {
        self.server.up().await
    }

    fn announce(&self, version: u64) {
        self.shared.signals.send_modify(|signal| signal.version = signal.version.max(version));
    }
}

fn set(all: &Mutex<BTreeSet<Collection>>, collection: Collection, is_in: bool) {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if is_in {
        all.insert(collection)
    } else {
        all.remove(&collection)
    };
}

#[derive(serde::Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: HeadMetadata<'a>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata<'a> {
    name: &'a str,
    namespace: &'a str,
    resource_version: &'a str,
}

/// The object with another resourceVersion; a text that is no object stays as it is.
fn with_version(text: Bytes, version: u64) -> Bytes {
    match serde_json::from_slice::<Value>(&text) {
        Ok(mut object) if object["metadata"].is_object() => {
            object["metadata"]["resourceVersion"] = json!(version.to_string());
            object.to_string().into()
        }
        _ => text,
    }
}
