//! Reports that are about to be sent: noted where a killed process leaves the note behind.

use std::sync::Arc;

use pipeline_core::{Key, Report, Sent, Stub};
use tokio::sync::oneshot;

use super::Ledger;
use super::intent_file::IntentFile;
use super::intents::Intent;
use super::tables::Table;

/// How it is told that a note was made.
enum Written {
    /// There is nothing to wait for; whether the report may go.
    Now(bool),
    /// In the file of send intents, when it is awaited.
    File(Arc<IntentFile>, Intent),
    /// In the bucket. False and an error mean that the shard is not held any more.
    Bucket(oneshot::Receiver<bool>),
}

impl Ledger {
    /// Intents that a report is about to be sent, so that a killed process knows at its next start of whose state it
    /// is not sure, and so does whoever owns the shard next. Returns when the note would outlive the process: in a file
    /// also when it could not be made, which is said once, in a bucket not before.
    ///
    /// Returns whether the report may go: it may not when the ledger does not hold the application's shard (any more).
    pub async fn sending(&self, key: &Key, report: &Report, stub: Option<&Stub>) -> bool {
        match self.note(key, report, stub) {
            Written::Now(may_go) => may_go,
            Written::File(file, intent) => {
                file.write(intent);
                true
            }
            Written::Bucket(written) => written.await.unwrap_or(false),
        }
    }

    fn note(&self, key: &Key, report: &Report, stub: Option<&Stub>) -> Written {
        let shared = &self.inner.shared;
        let mut state = shared.lock();
        if !state.holds(key) {
            return Written::Now(false);
        }
        let Some(sent) = Sent::new(state.tables.record(key).as_ref(), report, stub) else {
            return Written::Now(true);
        };
        let (moved, note) = state.note(key, sent);
        // Queued under the lock: a commit that covers it comes later.
        let written = note.map_or(Written::Now(true), |note| self.write(&state, note));
        if moved {
            shared.changed(state, [(Table::Records, key.clone())]);
        }
        written
    }

    fn write(&self, state: &super::State, note: Intent) -> Written {
        #[cfg(any(test, feature = "simulated"))]
        if let Some(disk) = &self.inner.disk {
            disk.write(&note);
            return Written::Now(true);
        }
        match (&self.inner.flight, &self.inner.bucket, &state.shards) {
            (Some(flight), ..) => Written::File(flight.clone(), note),
            (None, Some(held), Some(shards)) => Written::Bucket(held.note(shards.place(&note.key), note)),
            _ => Written::Now(true),
        }
    }
}
