//! The objects of the simulated cluster and the history of their changes.
//!
//! As etcd does, every write takes the next resourceVersion of one counter for all kinds; a window of past
//! changes serves watches and pages of older lists, and what is older is compacted.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use pipeline_core::Key;

use crate::generate::{AppState, Fleet, Workload, WorkloadKind, Workloads};

/// A kind of objects that the simulated API server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collection {
    /// `argoproj.io/v1alpha1` `Application`.
    Applications,
    /// `v1` `ConfigMap`.
    ConfigMaps,
    /// `v1` `Secret`.
    Secrets,
    /// `argoproj.io/v1alpha1` `Rollout`.
    Rollouts,
    /// `apps/v1` `ReplicaSet`.
    ReplicaSets,
    /// `argoproj.io/v1alpha1` `Workflow`.
    Workflows,
}

impl Collection {
    pub(crate) const ALL: [Self; 6] = [
        Self::Applications,
        Self::ConfigMaps,
        Self::Secrets,
        Self::Rollouts,
        Self::ReplicaSets,
        Self::Workflows,
    ];

    /// The path of its API group and version.
    pub(crate) const fn base(self) -> &'static str {
        match self {
            Self::Applications | Self::Rollouts | Self::Workflows => "/apis/argoproj.io/v1alpha1",
            Self::ReplicaSets => "/apis/apps/v1",
            Self::ConfigMaps | Self::Secrets => "/api/v1",
        }
    }

    pub(crate) const fn api_version(self) -> &'static str {
        match self {
            Self::Applications | Self::Rollouts | Self::Workflows => "argoproj.io/v1alpha1",
            Self::ReplicaSets => "apps/v1",
            Self::ConfigMaps | Self::Secrets => "v1",
        }
    }

    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Applications => "Application",
            Self::ConfigMaps => "ConfigMap",
            Self::Secrets => "Secret",
            Self::Rollouts => "Rollout",
            Self::ReplicaSets => "ReplicaSet",
            Self::Workflows => "Workflow",
        }
    }

    pub(crate) const fn plural(self) -> &'static str {
        match self {
            Self::Applications => "applications",
            Self::ConfigMaps => "configmaps",
            Self::Secrets => "secrets",
            Self::Rollouts => "rollouts",
            Self::ReplicaSets => "replicasets",
            Self::Workflows => "workflows",
        }
    }

    /// How its resource is called in messages of the API server.
    pub(crate) const fn resource(self) -> &'static str {
        match self {
            Self::Applications => "applications.argoproj.io",
            Self::ConfigMaps => "configmaps",
            Self::Secrets => "secrets",
            Self::Rollouts => "rollouts.argoproj.io",
            Self::ReplicaSets => "replicasets.apps",
            Self::Workflows => "workflows.argoproj.io",
        }
    }
}

impl From<WorkloadKind> for Collection {
    fn from(kind: WorkloadKind) -> Self {
        match kind {
            WorkloadKind::ReplicaSet => Self::ReplicaSets,
            WorkloadKind::Workflow => Self::Workflows,
        }
    }
}

/// One object: its text, or the state it is made from when it is asked for.
#[derive(Debug, Clone)]
pub(crate) enum Object {
    Text(Bytes),
    Generated(AppState),
    /// With whoever writes it out.
    Workload(Arc<Workloads>, Workload),
}

/// What a change did; the `type` of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Did {
    Added,
    Modified,
    Deleted,
}

impl Did {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// An object and the resourceVersion of its last change.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) version: u64,
    pub(crate) object: Object,
}

impl Entry {
    /// The same content with another resourceVersion.
    pub(crate) fn at(&self, version: u64) -> Self {
        let object = match &self.object {
            Object::Text(text) => {
                let mut object: serde_json::Value = serde_json::from_slice(text).unwrap_or_default();
                object["metadata"]["resourceVersion"] = version.to_string().into();
                Object::Text(object.to_string().into())
            }
            generated => generated.clone(),
        };
        Self { version, object }
    }

    /// Appends the object's JSON.
    pub(crate) fn render(&self, fleet: Option<&Fleet>, out: &mut Vec<u8>) {
        match (&self.object, fleet) {
            (Object::Text(text), _) => out.extend_from_slice(text),
            (Object::Generated(state), Some(fleet)) => fleet.application(state, self.version, out),
            (Object::Generated(_), None) => out.extend_from_slice(b"{}"),
            (Object::Workload(workloads, workload), _) => workloads.render(workload, self.version, out),
        }
    }
}

/// One change in the history.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) did: Did,
    pub(crate) collection: Collection,
    pub(crate) key: Key,
    pub(crate) now: Entry,
    pub(crate) before: Option<Entry>,
}

/// A resourceVersion that is not there (any more, or yet).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAt {
    Compacted { oldest: u64 },
    Future { newest: u64 },
}

type Place = (Collection, Key);

#[derive(Debug, Clone)]
pub(crate) struct Store {
    version: u64,
    compacted: u64,
    window: usize,
    entries: BTreeMap<Place, Entry>,
    past: VecDeque<Past>,
}

impl Store {
    /// Keeps `window` past changes.
    pub(crate) fn new(window: usize) -> Self {
        Self { version: 1, compacted: 1, window, entries: BTreeMap::new(), past: VecDeque::new() }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn len(&self, collection: Collection) -> usize {
        self.entries.keys().filter(|(own, _)| *own == collection).count()
    }

    pub(crate) fn keys(&self, collection: Collection) -> Vec<Key> {
        let all = self.entries.keys().filter(|(own, _)| *own == collection);
        all.map(|(_, key)| key.clone()).collect()
    }

    pub(crate) fn get(&self, collection: Collection, key: &Key) -> Option<Entry> {
        self.entries.get(&(collection, key.clone())).cloned()
    }

    /// Writes an object at `version`, which must be newer than every other.
    pub(crate) fn put(&mut self, place: Place, version: u64, object: Object) {
        let now = Entry { version, object };
        let before = self.entries.insert(place.clone(), now.clone());
        let did = if before.is_some() { Did::Modified } else { Did::Added };
        self.remember(did, place, now, before);
    }

    /// Deletes an object; `last` is the text of its last state with the version of the deletion.
    pub(crate) fn delete(&mut self, place: Place, version: u64, last: Object) -> bool {
        let Some(before) = self.entries.remove(&place) else { return false };
        self.remember(Did::Deleted, place, Entry { version, object: last }, Some(before));
        true
    }

    fn remember(&mut self, did: Did, (collection, key): Place, now: Entry, before: Option<Entry>) {
        self.version = now.version;
        self.past.push_back(Past { did, collection, key, now, before });
        while self.past.len() > self.window {
            if let Some(gone) = self.past.pop_front() {
                self.compacted = gone.now.version;
            }
        }
    }

    /// Forgets the whole history.
    pub(crate) fn compact(&mut self) {
        self.past.clear();
        self.compacted = self.version;
    }

    /// Up to `most` changes after `version`, oldest first.
    pub(crate) fn after(&self, version: u64, most: usize) -> Result<Vec<Past>, NotAt> {
        if version < self.compacted {
            return Err(NotAt::Compacted { oldest: self.compacted });
        }
        let from = self.past.partition_point(|past| past.now.version <= version);
        Ok(self.past.range(from..).take(most).cloned().collect())
    }

    /// The objects of a collection as they stood at `version`, after `start`, at most `most`; and whether
    /// more follow.
    pub(crate) fn list(
        &self,
        collection: Collection,
        wanted: impl Fn(&Key, &Entry) -> bool,
        version: u64,
        start: Option<&str>,
        most: usize,
    ) -> Result<Page, NotAt> {
        if version > self.version {
            return Err(NotAt::Future { newest: self.version });
        }
        if version < self.compacted {
            return Err(NotAt::Compacted { oldest: self.compacted });
        }
        let after =
            |key: &Key, entry: &Entry| wanted(key, entry) && start.is_none_or(|start| key.as_str() > start);
        let mut older: HashMap<&Key, Option<&Entry>> = HashMap::new();
        for past in self.past.iter().rev().take_while(|past| past.now.version > version) {
            if past.collection == collection {
                older.insert(&past.key, past.before.as_ref());
            }
        }
        let from = match start.and_then(|start| Key::parse(start).ok()) {
            Some(key) => Bound::Excluded((collection, key)),
            None => Bound::Unbounded,
        };
        let mut now = self
            .entries
            .range((from, Bound::Unbounded))
            .filter(|((own, key), entry)| *own == collection && after(key, entry) && !older.contains_key(key))
            .map(|((_, key), entry)| (key, entry));
        if older.is_empty() {
            let items = now.by_ref().take(most).map(|(key, entry)| (key.clone(), entry.clone())).collect();
            return Ok(Page { version, items, remaining: now.count() });
        }
        let mut there: Vec<(&Key, &Entry)> = now.collect();
        let was = older.iter().filter_map(|(key, entry)| entry.map(|entry| (*key, entry)));
        there.extend(was.filter(|(key, entry)| after(key, entry)));
        there.sort_by(|left, right| left.0.cmp(right.0));
        let remaining = there.len().saturating_sub(most);
        let items: Vec<_> =
            there.into_iter().take(most).map(|(key, entry)| (key.clone(), entry.clone())).collect();
        Ok(Page { version, items, remaining })
    }
}

/// Part of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) version: u64,
    pub(crate) items: Vec<(Key, Entry)>,
    pub(crate) remaining: usize,
}
