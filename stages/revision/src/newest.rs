//! Which commit changed an application last: for reports of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_git::application::Application;
use stages_git::remote::Tenant;

use crate::sync::waits_to_begin;
use crate::{Walks, synced};

/// The commits that changed an application last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Newest {
    /// The revision that each source stands at, in the application's order.
    pub revisions: Vec<String>,
    /// The commit that last changed each source up to there.
    pub change_revisions: Vec<String>,
}

/// Why they are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotKnown {
    /// The object is none.
    #[error("it is no Application")]
    NoApplication,
    /// It was never synced, or a sync is asked for and has not begun.
    #[error("it is not at a revision of every source")]
    NotSynced,
    /// The repositories took longer than whoever asked waits.
    #[error("its repositories did not answer in time")]
    TooSlow,
    /// A repository cannot be had, or not be read.
    #[error("{repository}: {why}")]
    Repository {
        /// Its address, as it may be shown.
        repository: String,
        /// In one line.
        why: String,
    },
}

impl NotKnown {
    /// Whether another try may tell more.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::TooSlow | Self::Repository { .. })
    }
}

impl Walks {
    /// The commits that changed an Application last: of its object counts what names it, its `spec`, and of its `status` what it was
    /// synced to.
    ///
    /// # Errors
    /// [`NotKnown`].
    pub async fn newest(&self, object: &Value) -> Result<Newest, NotKnown> {
        let application = Application::read(object).ok_or(NotKnown::NoApplication)?;
        let all = synced(object);
        let is_synced = !all.is_empty() && all.iter().all(|of| of.current.is_some());
        if !is_synced || waits_to_begin(object) {
            return Err(NotKnown::NotSynced);
        }
        let project = object["spec"]["project"].as_str().unwrap_or_default();
        let tenant = Tenant::new(project, object["metadata"]["namespace"].as_str().unwrap_or_default());
        let asked = all.iter().map(|of| self.source(&application, &tenant, (of, of.previous.clone()), false));
        let mut newest = Newest::default();
        // Several sources of one repository are served by one walk.
        for (of, found) in all.iter().zip(futures::future::join_all(asked).await) {
            if let Some(why) = found.error {
                return Err(NotKnown::Repository { repository: shown(&of.repo_url), why });
            }
            newest.revisions.push(of.current.clone().unwrap_or_default());
            newest.change_revisions.push(found.change_revision.unwrap_or_default());
        }
        Ok(newest)
    }
}

/// An address for a log; of one that cannot be read, nothing, for it may hold a password.
fn shown(repo_url: &str) -> String {
    stages_git::RepositoryUrl::read(repo_url)
        .map_or_else(|_| "a repository".to_owned(), |url| url.to_string())
}
