//! The end of an operation, as a fact.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

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
}

impl OperationEnd {
    /// Of start, end and phase: tells one operation's end from another's.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        for part in [&self.started_at, &self.finished_at, &self.phase] {
            hasher.write(part.as_bytes());
        }
        hasher.finish()
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
