//! What a watch reads of an Application's `status`, without reading the Application.

use crate::{OperationEnd, RequestedOperation};
use pipeline_core::Lenient;
use pipeline_redact::Redactor;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Bytes that are kept of each text of an operation's end.
const TEXT_LIMIT: usize = 1024;
/// Bytes of the longest name or revision that is kept.
const LONGEST_NAME: usize = 256;
/// Sources whose revisions are kept.
const SOURCES: usize = 16;
/// A longer text is left out: to redact it would hold up the watch, and little of it would be kept.
const LONGEST_TEXT: usize = 64 * 1024;
/// What stands for it.
const LEFT_OUT: &str = "(a text of more than 64 kB, left out)";

/// The operation and the sync status. Members of other types than these are taken for absent.
#[derive(Debug, Deserialize)]
pub struct Status {
    #[serde(default, rename = "operationState")]
    operation_state: Lenient<OperationState>,
    #[serde(default)]
    sync: Lenient<Sync>,
}

#[derive(Debug, Deserialize)]
struct Sync {
    status: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct OperationState {
    phase: Option<Box<RawValue>>,
    #[serde(rename = "startedAt")]
    started_at: Option<Box<RawValue>>,
    #[serde(rename = "finishedAt")]
    finished_at: Option<Box<RawValue>>,
    message: Option<Box<RawValue>>,
    #[serde(default, rename = "syncResult")]
    sync_result: Lenient<SyncResult>,
    #[serde(default)]
    operation: Lenient<Operation>,
}

#[derive(Debug, Default, Deserialize)]
struct Operation {
    #[serde(default, rename = "initiatedBy")]
    initiated_by: Lenient<InitiatedBy>,
    #[serde(default)]
    sync: Lenient<OperationSync>,
}

#[derive(Debug, Default, Deserialize)]
struct InitiatedBy {
    username: Option<Box<RawValue>>,
    automated: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
struct OperationSync {
    revision: Option<Box<RawValue>>,
    revisions: Option<Box<RawValue>>,
    #[serde(rename = "dryRun")]
    dry_run: Option<Box<RawValue>>,
    #[serde(rename = "changeRevision")]
    change_revision: Option<Box<RawValue>>,
    #[serde(rename = "changeRevisions")]
    change_revisions: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct SyncResult {
    revision: Option<Box<RawValue>>,
    revisions: Option<Box<RawValue>>,
}

impl Status {
    /// What lives is not what is wanted, and may change without the application's version.
    #[must_use]
    pub fn is_out_of_sync(&self) -> bool {
        self.sync.0.as_ref().is_some_and(|sync| text(sync.status.as_deref()) == "OutOfSync")
    }

    /// The end of the operation that this status shows, if it has ended. Its texts are redacted: they outlive the object,
    /// and are put into one that is redacted already.
    #[must_use]
    pub fn operation_end(&self, redactor: &Redactor) -> Option<OperationEnd> {
        let state = self.operation_state.0.as_ref()?;
        let finished_at = Some(text(state.finished_at.as_deref())).filter(|text| !text.is_empty())?;
        let kept = |raw: &Option<Box<RawValue>>| bounded(&text(raw.as_deref()), redactor);
        let result = state.sync_result.0.as_ref();
        Some(OperationEnd {
            phase: kept(&state.phase),
            started_at: kept(&state.started_at),
            finished_at: bounded(&finished_at, redactor),
            revision: result.map_or_else(String::new, |result| kept(&result.revision)),
            message: kept(&state.message),
            revisions: result.map_or_else(Vec::new, |result| several(result.revisions.as_deref(), redactor)),
            asked: state
                .operation
                .0
                .as_ref()
                .map_or_else(RequestedOperation::default, |asked| asked.read(redactor)),
        })
    }
}

impl Operation {
    fn read(&self, redactor: &Redactor) -> RequestedOperation {
        let (by, sync) = (self.initiated_by.0.as_ref(), self.sync.0.as_ref());
        let of_sync = |member: fn(&OperationSync) -> &Option<Box<RawValue>>| {
            sync.and_then(|sync| member(sync).as_deref())
        };
        RequestedOperation {
            username: named(by.and_then(|by| by.username.as_deref()), redactor),
            is_automated: is_true(by.and_then(|by| by.automated.as_deref())),
            is_dry_run: is_true(of_sync(|sync| &sync.dry_run)),
            revision: named(of_sync(|sync| &sync.revision), redactor),
            revisions: several(of_sync(|sync| &sync.revisions), redactor),
            change_revision: named(of_sync(|sync| &sync.change_revision), redactor),
            change_revisions: several(of_sync(|sync| &sync.change_revisions), redactor),
        }
    }
}

fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

/// A name or a revision; empty where there is none, or where it is longer than any is.
fn named(raw: Option<&RawValue>, redactor: &Redactor) -> String {
    let text = text(raw);
    if text.is_empty() || text.len() > LONGEST_NAME { String::new() } else { bounded(&text, redactor) }
}

/// One revision per source; none of what has more sources than are kept.
fn several(raw: Option<&RawValue>, redactor: &Redactor) -> Vec<String> {
    let all: Vec<Box<RawValue>> =
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    if all.len() > SOURCES { Vec::new() } else { all.iter().map(|one| named(Some(one), redactor)).collect() }
}

/// A text; empty where there is none.
fn text(raw: Option<&RawValue>) -> String {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// Redacted, then cut. The whole text is looked at: what shows that it quotes a Secret may stand behind the
/// Secret's data.
fn bounded(text: &str, redactor: &Redactor) -> String {
    if text.len() > LONGEST_TEXT {
        return LEFT_OUT.to_owned();
    }
    let mut text = redactor.text(text).into_owned();
    text.truncate(text.floor_char_boundary(TEXT_LIMIT));
    text.shrink_to_fit();
    text
}

#[cfg(test)]
mod tests;
