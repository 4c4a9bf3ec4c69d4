//! All applications, for the preview of how they are distributed over shards.

use pipeline_core::Key;
use serde::{Deserialize, Serialize};

use pipeline_ledger::Ledger;

/// The answer to `GET /v1/applications`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applications {
    /// All applications that are known, whoever owns their shard, in the order of their names.
    pub applications: Vec<Application>,
}

/// An application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    /// Its key: `namespace/name`.
    pub app: String,
    /// How many resources of it were acknowledged; `None` where nothing was, or by another process.
    pub resources: Option<u64>,
}

impl Applications {
    /// The applications of these keys, with what a ledger knows of them.
    #[must_use]
    pub fn new(mut keys: Vec<Key>, ledger: &Ledger) -> Self {
        keys.sort_unstable();
        let application =
            |key: &Key| Application { app: key.as_str().to_owned(), resources: resources(ledger, key) };
        Self { applications: keys.iter().map(application).collect() }
    }
}

/// How many resources of an application were acknowledged, and are still there; `None` where nothing of it was.
#[must_use]
pub(crate) fn resources(ledger: &Ledger, key: &Key) -> Option<u64> {
    let record = ledger.get(key)?;
    Some(record.listed().count() as u64)
}
