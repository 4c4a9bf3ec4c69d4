//! What a server of objects of one kind answers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use pipeline_core::Key;
use tokio::sync::broadcast;

/// One object.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) uid: String,
    pub(super) version: u64,
    pub(super) data: String,
}

/// A change that a watch shows; `true` is a deletion.
type Shown = (Key, Object, bool);

/// Objects, and what is told of their changes.
pub(super) struct Api {
    state: Mutex<(u64, BTreeMap<Key, Object>)>,
    changes: broadcast::Sender<Shown>,
}

impl Api {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), changes: broadcast::channel(100_000).0 }
    }

    /// Another state of an object.
    pub(super) fn put(&self, name: &str, data: &str) {
        let key = key(name);
        let mut state = self.state.lock().unwrap();
        let (version, objects) = &mut *state;
        *version += 1;
        let uid = objects.get(&key).map_or_else(|| format!("{name}-{version}"), |object| object.uid.clone());
        let object = Object { uid, version: *version, data: data.to_owned() };
        objects.insert(key.clone(), object.clone());
        let _ = self.changes.send((key, object, false));
    }

    /// It goes.
    pub(super) fn delete(&self, name: &str) {
        let key = key(name);
        let mut state = self.state.lock().unwrap();
        let (version, objects) = &mut *state;
        *version += 1;
        let object = Object { version: *version, ..objects.remove(&key).unwrap() };
        let _ = self.changes.send((key, object, true));
    }

    pub(super) fn list(&self) -> Vec<(Key, Object)> {
        self.state.lock().unwrap().1.clone().into_iter().collect()
    }

    pub(super) fn get(&self, key: &Key) -> Option<Object> {
        self.state.lock().unwrap().1.get(key).cloned()
    }

    pub(super) fn watch(&self) -> broadcast::Receiver<Shown> {
        self.changes.subscribe()
    }
}

/// `namespace/name`, or a name in `default`.
pub(super) fn key(name: &str) -> Key {
    Key::parse(name).unwrap_or_else(|_| Key::new("default", name).unwrap())
}
