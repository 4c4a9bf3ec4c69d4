//! What is kept beside the records: what of an object must outlive the process, and how it was parked.

use pipeline_core::{Key, Parked, Pending, Version};

use super::state::JOURNAL;
use super::tables::{Bytes, Table, weight};
use super::{Ledger, stored};

impl Ledger {
    /// Keeps what of `key` must outlive the process beside its record; `None` removes it. In the file with the next
    /// group. All of it may take 16 MiB: what does not fit is refused and counted, and what was kept before stays.
    ///
    /// Returns whether it is kept: what was refused is to be offered again, when there may be room.
    pub fn journal(&self, key: &Key, pending: Option<Pending>) -> bool {
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        if !state.holds(key) {
            // Whoever holds it keeps what is to be kept.
            return true;
        }
        let pending = pending.and_then(|pending| state.unreported(key, pending));
        let bytes = pending.map(|pending| Bytes::from(stored::encode(&pending)));
        if let Some(bytes) = &bytes {
            let held = state.tables.journal.get(key).map_or(0, |held| weight(key, held));
            if state.journal_bytes - held + weight(key, bytes) > JOURNAL {
                state.journal_refused += 1;
                if state.journal_refused == 1 {
                    tracing::warn!(
                        %key,
                        "the journal is full: the facts and deletions it has no room for are lost if the \
                         process ends before they are reported"
                    );
                }
                return false;
            }
        }
        if state.put(Table::Journal, key, bytes) {
            shared.changed(state, [(Table::Journal, key.clone())]);
        }
        true
    }

    /// What is journaled, in order of keys: at the start, what the former process could not report.
    #[must_use]
    pub fn journaled(&self) -> Vec<(Key, Pending)> {
        self.decoded(Table::Journal, |bytes| stored::decode(bytes).ok())
    }

    /// Keeps how `key` was parked; `None` removes it. In the file with the next group.
    pub fn park(&self, key: &Key, parked: Option<Parked>) {
        let bytes = parked.map(|parked| stored::encode(&parked).into());
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        if state.put(Table::Parked, key, bytes) {
            shared.changed(state, [(Table::Parked, key.clone())]);
        }
    }

    /// What is parked, in order of keys: at the start, what the former process parked.
    #[must_use]
    pub fn parked(&self) -> Vec<(Key, Parked)> {
        self.decoded(Table::Parked, |bytes| stored::decode(bytes).ok())
    }

    /// Notes that of all that was shown of a kind up to `version` nothing is undone: in the file not before what was
    /// acknowledged of it until now.
    pub fn done(&self, kind: &str, version: Version) {
        let Some(key) = of_kind(kind) else { return };
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        if state.put(Table::Done, &key, Some(stored::encode(&version).into())) {
            shared.changed(state, [(Table::Done, key)]);
        }
    }

    /// What was noted last of a kind; `None` when nothing was.
    #[must_use]
    pub fn done_before(&self, kind: &str) -> Option<Version> {
        let state = self.inner.shared.lock();
        let bytes = state.tables.done.get(&of_kind(kind)?)?;
        stored::decode(bytes).ok()
    }
}

/// Where it stands what is done of a kind; of objects without one nothing is noted.
fn of_kind(kind: &str) -> Option<Key> {
    if kind.is_empty() { None } else { Key::of_kind(kind, "", kind).ok() }
}
