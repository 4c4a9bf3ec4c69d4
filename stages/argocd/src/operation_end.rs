//! The end of an operation, as a fact.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use pipeline_core::{Digest, Fact, Hasher};

/// The end of an operation of an application, which its next operation hides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationEnd {
    /// `status.operationState.phase`.
    pub phase: String,
    /// `status.operationState.startedAt`, as written.
    pub started_at: String,
    /// `status.operationState.finishedAt`, as written; never empty.
    pub finished_at: String,
    /// `status.operationState.syncResult.revision`, possibly empty.
    pub revision: String,
    /// At most 1 kB of `status.operationState.message`, redacted before it was cut, as all texts here are.
    pub message: String,
    /// `status.operationState.syncResult.revisions`: one per source, where there are several.
    #[serde(default)]
    pub revisions: Vec<String>,
    /// `status.operationState.operation`: what earlier programs wrote has none.
    #[serde(default)]
    pub asked: RequestedOperation,
}

/// `status.operationState.operation`: who asked for an operation, and for what. Members that are absent there are empty here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedOperation {
    /// `initiatedBy.username`.
    pub username: String,
    /// `initiatedBy.automated`.
    pub is_automated: bool,
    /// `sync.dryRun`: nothing was changed.
    pub is_dry_run: bool,
    /// `sync.revision`.
    pub revision: String,
    /// `sync.revisions`: one per source, where there are several.
    pub revisions: Vec<String>,
    /// `sync.changeRevision`: the commit that changed the application, where something noted it.
    pub change_revision: String,
    /// `sync.changeRevisions`: the same of each source.
    pub change_revisions: Vec<String>,
}

/// Of start, end and phase: tells one operation's end from another's.
pub(crate) fn digest(started_at: &str, finished_at: &str, phase: &str) -> Digest {
    let mut hasher = Hasher::default();
    [started_at, finished_at, phase].iter().for_each(|part| hasher.write(part.as_bytes()));
    hasher.finish()
}

impl OperationEnd {
    /// Of start, end and phase: tells one operation's end from another's.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest(&self.started_at, &self.finished_at, &self.phase)
    }

    /// The revision that was asked for, and that of each source: else what was synced.
    fn asked_revisions(&self) -> (&String, &Vec<String>) {
        let asked = &self.asked;
        (
            if asked.revision.is_empty() { &self.revision } else { &asked.revision },
            if asked.revisions.is_empty() { &self.revisions } else { &asked.revisions },
        )
    }

    /// `status.operationState.operation` as far as it is kept, with its texts as `text` gives them.
    pub(crate) fn operation(&self, text: impl Fn(&str) -> Value) -> Value {
        let asked = &self.asked;
        let mut by = Map::new();
        if !asked.username.is_empty() {
            by.insert("username".to_owned(), text(&asked.username));
        }
        if asked.is_automated {
            by.insert("automated".to_owned(), true.into());
        }
        let mut sync = Map::new();
        if asked.is_dry_run {
            sync.insert("dryRun".to_owned(), true.into());
        }
        let (one, several) = self.asked_revisions();
        for (name, revision) in [("revision", one), ("changeRevision", &asked.change_revision)] {
            if !revision.is_empty() {
                sync.insert(name.to_owned(), text(revision));
            }
        }
        for (name, revisions) in [("revisions", several), ("changeRevisions", &asked.change_revisions)] {
            if !revisions.is_empty() {
                sync.insert(name.to_owned(), revisions.iter().map(|one| text(one)).collect());
            }
        }
        json!({"initiatedBy": by, "sync": sync})
    }

    /// The fact that it ended.
    #[must_use]
    pub fn fact(&self) -> Fact {
        // Texts alone: nothing of it can fail.
        Fact { id: self.digest(), body: Bytes::from(serde_json::to_vec(self).unwrap_or_default()) }
    }

    /// What a fact says; `None` for one that is no operation's end.
    #[must_use]
    pub fn of(fact: &Fact) -> Option<Self> {
        serde_json::from_slice(&fact.body).ok()
    }
}
