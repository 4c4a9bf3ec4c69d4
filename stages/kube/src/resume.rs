//! Goes on where a former process ended: a first list leaves what changed since then to the watch, which shows all that it
//! went through, in order.
//!
//! What did not change since is handed over by the list, so that it is compared with what was acknowledged. What the list
//! lacks is gone: its end is shown by the watch, too. Only where the watch has come to the list's version and shown none, as of
//! what is not selected any more, another list hands everything over.

use std::collections::HashMap;
use std::sync::Arc;

use pipeline_core::{Key, Progress, Uid, Version};

use crate::object::Head;

/// What is left to the watch.
pub(crate) struct Resumed {
    /// Nothing that was shown up to here was left undone.
    from: Version,
    /// That of the list: when the watch has come to it, it has shown all.
    until: Version,
    progress: Arc<dyn Progress>,
    /// Of lives that went on since: the states up to here were acknowledged, or followed by one that was.
    acknowledged: HashMap<Key, (Uid, Version)>,
    /// Lives that the list lacks.
    lacking: HashMap<Key, Uid>,
}

impl std::fmt::Debug for Resumed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resumed")
            .field("from", &self.from)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

impl Resumed {
    pub(crate) fn new(from: Version, progress: Arc<dyn Progress>) -> Self {
        let until = Version(u64::MAX);
        Self { from, until, progress, acknowledged: HashMap::new(), lacking: HashMap::new() }
    }

    /// Where the watch begins.
    pub(crate) fn from(&self) -> Version {
        self.from
    }

    /// The same, with the version of the complete list.
    pub(crate) fn until(self, until: Version) -> Self {
        Self { until, ..self }
    }

    /// Whether a list of this version may be of the same store, later.
    pub(crate) fn is_before(&self, list: Version) -> bool {
        list.number() != 0 && self.from.era() == list.era() && self.from <= list
    }

    /// Whether the watch will show a state of this version.
    pub(crate) fn shows(&self, version: Version) -> bool {
        version > self.from
    }

    /// An object changed since; `life` is the one that was known of it, and `newest` its state in the list if it goes on.
    pub(crate) fn changed(&mut self, key: &Key, life: &Uid, newest: Option<Version>) {
        let acknowledged = self.progress.acknowledged(key, life);
        // The newest is looked at in any case: something of it may be in doubt.
        let known = newest.map_or(acknowledged, |newest| acknowledged.min(newest.before()));
        if known > self.from {
            self.acknowledged.insert(key.clone(), (life.clone(), known));
        }
    }

    /// The list lacks a life that was known.
    pub(crate) fn lacks(&mut self, key: &Key, life: &Uid) {
        self.changed(key, life, None);
        self.lacking.insert(key.clone(), life.clone());
    }

    /// The watch shows a state; whether it was done with before.
    pub(crate) fn knows<S>(&mut self, head: &Head<'_, S>, deleted: bool) -> bool {
        if deleted && self.lacking.get(&head.key) == Some(&head.uid) {
            self.lacking.remove(&head.key);
        }
        let known = self.acknowledged.get(&head.key);
        !deleted && known.is_some_and(|(uid, version)| *uid == head.uid && head.version <= *version)
    }

    /// Whether the watch has shown all when it has come to this version.
    pub(crate) fn is_over(&self, version: Version) -> bool {
        version >= self.until
    }

    /// Whether something that the list lacked was not shown to be gone.
    pub(crate) fn lacks_any(&self) -> bool {
        !self.lacking.is_empty()
    }
}
