//! Keys that were refused for good.

use pipeline_core::{Cause, Event, Key, Parked, Reason, Refused, Timestamp};

use super::Lane;

impl Lane {
    /// Keys that were refused for good, in order of their names.
    pub fn parked(&self) -> impl Iterator<Item = (&Key, &Parked)> {
        self.parked.iter()
    }

    /// How one key was refused for good, if it was.
    #[must_use]
    pub fn how_parked(&self, key: &Key) -> Option<&Parked> {
        self.parked.get(key)
    }

    /// Counts a refusal and remembers it while there is room.
    pub(super) fn park(
        &mut self,
        key: &Key,
        event: Option<&Event>,
        (reason, at): (Reason, Timestamp),
        refused: Refused,
    ) {
        self.counts.parked += 1;
        let version = event.map(|event| event.version).unwrap_or_default();
        let uid = event.map(|event| event.uid.clone());
        self.remember(key.clone(), Parked { reason, at, version, uid, refused });
    }

    /// Remembers a refusal while there is room.
    pub(super) fn remember(&mut self, key: Key, parked: Parked) {
        if self.parked.len() >= self.config.parked && !self.parked.contains_key(&key) {
            self.counts.parked_dropped += 1;
        } else {
            self.parked.insert(key, parked);
        }
    }

    /// Whether the watch only shows again what was refused for good: each restart lists everything, and
    /// would otherwise send all of it once more.
    pub(super) fn is_parked(&self, event: &Event) -> bool {
        event.cause == Cause::Watch
            && event.version.0 != 0
            && !event.is_deleted()
            && self.parked.get(&event.key).is_some_and(|parked| {
                parked.uid.as_ref() == Some(&event.uid) && event.version <= parked.version
            })
    }

    /// Whether it tells a fact of a state before the one that was refused for good: a watch that goes on shows it, where a read may
    /// have shown the refused one first, or the bus brings it along, as it did not take it in its time.
    pub(super) fn led_to_parked(&self, event: &Event) -> bool {
        let before = |parked: &Parked| event.version < parked.version;
        let shows = event.again && event.fact.is_some();
        !event.coalesced.is_empty() || shows && self.parked.get(&event.key).is_some_and(before)
    }
}
