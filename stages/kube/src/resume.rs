//! Goes on where a former process ended: a first list leaves what changed since then to the watch, which shows all that it
//! went through, in order.
//!
//! Of several routes each may have ended somewhere else: the watch goes on from the oldest of these versions, and marks what a
//! route may have been told of before ([`Event::again`](pipeline_core::Event::again)), so that each passes over what it knows.
//! Where the API server knows no more of what happened since, the next one is tried.
//!
//! What did not change since is handed over by the list, so that it is compared with what was acknowledged. What the list
//! lacks is gone: its end is shown by the watch, too. Only where the watch has come to the list's version and shown none, as of
//! what is not selected any more, another list hands everything over.

use std::collections::HashMap;

use pipeline_core::{Key, Uid, Version};
use tracing::{info, warn};

use crate::kind::Kind;
use crate::object::Head;

/// What is left to the watch.
#[derive(Debug)]
pub(crate) struct Resumed {
    /// Nothing that was shown up to such a version was left undone, of each route.
    done: Vec<Version>,
    /// Of what happened since this version, or an older one, the API server knows no more.
    forgotten: Version,
    /// Where the watch begins.
    from: Version,
    /// That of the list: when the watch has come to it, it has shown all.
    until: Version,
    /// Lives that go on, and their states in the list.
    newest: HashMap<Key, (Uid, Version)>,
    /// Lives that the list lacks.
    lacking: HashMap<Key, Uid>,
}

impl Resumed {
    pub(crate) fn new(done: Vec<Version>, forgotten: Version) -> Self {
        let (from, until) = (Version(0), Version(u64::MAX));
        Self { done, forgotten, from, until, newest: HashMap::new(), lacking: HashMap::new() }
    }

    /// Where the watch begins.
    pub(crate) fn from(&self) -> Version {
        self.from
    }

    /// The same, with the version of the complete list.
    pub(crate) fn until(self, until: Version) -> Self {
        Self { until, ..self }
    }

    /// Begins at the oldest version that can be gone on from, if there is one: of the same store as a list of this version,
    /// and not later than that.
    pub(crate) fn begins(&mut self, list: Version) -> bool {
        let all_before = list.number() != 0 && self.done.iter().all(|done| *done <= list);
        let oldest = self.after(self.forgotten).filter(|_| all_before);
        self.from = oldest.unwrap_or_default();
        oldest.is_some_and(|from| from.era() == list.era())
    }

    /// The oldest version after `this` one that is of the newest era.
    fn after(&self, this: Version) -> Option<Version> {
        let era = self.done.iter().map(|done| done.era()).max();
        self.done.iter().copied().filter(|done| *done > this && Some(done.era()) == era).min()
    }

    /// Says that the API server does not know what happened since the watch began.
    pub(crate) fn ends(&self, kind: Kind) {
        let from = self.from.number();
        match self.after(self.from) {
            Some(later) => info!(
                resource = %kind,
                from,
                later = later.number(),
                "what came and went since a route fell behind is not known any more: the watch goes on where another one ended"
            ),
            None => warn!(
                resource = %kind,
                from,
                "what came and went since the process before this one ended is not known any more: objects are reported as they \
                 are now"
            ),
        }
    }

    /// Whether the watch will show a state of this version.
    pub(crate) fn shows(&self, version: Version) -> bool {
        version > self.from
    }

    /// An object changed since, and this is its state in the list.
    pub(crate) fn changed(&mut self, key: &Key, life: &Uid, newest: Version) {
        self.newest.insert(key.clone(), (life.clone(), newest));
    }

    /// The list lacks a life that was known.
    pub(crate) fn lacks(&mut self, key: &Key, life: &Uid) {
        self.lacking.insert(key.clone(), life.clone());
    }

    /// The watch shows a state; whether it shows what followed it as well. The newest state is looked at in any case: something
    /// of it may be in doubt.
    pub(crate) fn takes<S>(&mut self, head: &Head<'_, S>, deleted: bool) -> bool {
        if deleted && self.lacking.get(&head.key) == Some(&head.uid) {
            self.lacking.remove(&head.key);
        }
        let listed = self.newest.get(&head.key);
        let newest = listed.is_some_and(|(uid, version)| *uid == head.uid && head.version >= *version);
        head.version <= self.until && (deleted || !newest)
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
