//! An application: its row in a list, and everything about it.

use jiff::Timestamp;
use stages_platform_store::ApplicationName;

use super::deployment::Deployment;
use super::home::Said;
use super::resource::{Resource, ResourceKey};
use super::state::{Health, SyncStatus};

/// A commit, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The full revision.
    pub revision: String,
    /// The commit's message.
    pub message: String,
    /// Who wrote it.
    pub author: String,
}

/// An application in a list.
#[derive(Debug, Clone)]
pub struct ApplicationRow {
    /// Which one.
    pub id: ApplicationName,
    /// Its health.
    pub health: Health,
    /// Whether it is what Git says.
    pub sync: SyncStatus,
    /// Where it runs: a label of its, or the namespace it is deployed to.
    pub environment: String,
    /// Its Argo CD project.
    pub project: String,
    /// The version of its first image.
    pub version: Option<String>,
    /// The commit that runs.
    pub change: Option<Change>,
    /// When that was deployed.
    pub deployed: Option<Timestamp>,
    /// The group that it stands in, under the list's grouping.
    pub group: String,
}

/// Why an application is not well: what fails, since when, and the deployment before that.
#[derive(Debug, Clone)]
pub struct Cause {
    /// What fails, as the runtime said it.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
    /// The deployment that came shortly before, and when.
    pub after: Option<(Change, Timestamp)>,
}

/// A stretch of time in one state; `None` is no report.
#[derive(Debug, Clone, Copy)]
pub struct Span<T> {
    /// From.
    pub from: Timestamp,
    /// Until.
    pub to: Timestamp,
    /// What it was.
    pub state: T,
}

/// The life of an application within a window.
#[derive(Debug, Clone)]
pub struct Life {
    /// Where the window begins.
    pub from: Timestamp,
    /// Where it ends.
    pub to: Timestamp,
    /// When the first was reported of what is known of it until then, also that it was gone; `None`: nothing was, or more than is shown.
    pub first: Option<Timestamp>,
    /// Health, in order, without gaps once it was known.
    pub health: Vec<Span<Health>>,
    /// Sync status, alike.
    pub sync: Vec<Span<SyncStatus>>,
    /// When it had drifted.
    pub drift: Vec<Span<()>>,
    /// Deployments, in order.
    pub deployments: Vec<Deployment>,
}

/// A change of state.
#[derive(Debug, Clone)]
pub struct Transition {
    /// When.
    pub at: Timestamp,
    /// Of what that goes through phases, such as a Rollout; `None`: of the application itself.
    pub resource: Option<ResourceKey>,
    /// Health after it, where that changed.
    pub health: Option<(Option<Health>, Health)>,
    /// Sync status after it, where that changed.
    pub sync: Option<(Option<SyncStatus>, SyncStatus)>,
    /// What was said with it.
    pub message: String,
}

/// A time during which what ran was not what Git said.
#[derive(Debug, Clone)]
pub struct Drift {
    /// When it began.
    pub from: Timestamp,
    /// When it ended; `None`: it lasts.
    pub to: Option<Timestamp>,
    /// The resources that differed, each as often as it began to.
    pub resources: Vec<DriftedResource>,
}

/// A resource that was not as Git said, for a time.
#[derive(Debug, Clone)]
pub struct DriftedResource {
    /// Which one.
    pub key: ResourceKey,
    /// When it began to differ.
    pub from: Timestamp,
    /// When that ended; `None`: it lasts.
    pub to: Option<Timestamp>,
    /// What differed then, and who had changed it, as far as that is known.
    pub what: Vec<Said>,
}

/// An error or a warning that was reported.
#[derive(Debug, Clone)]
pub struct Problem {
    /// When it was last seen.
    pub at: Timestamp,
    /// Whether it is an error; else a warning.
    pub error: bool,
    /// What was said.
    pub message: String,
    /// Of which resource, if of one.
    pub resource: Option<String>,
}

/// A folder of a repository that manifests of an application are made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestSource {
    /// The repository's address.
    pub repository: String,
    /// The folder; empty for all of it.
    pub path: String,
    /// The branch, tag or commit; empty for the branch that is the repository's own.
    pub revision: String,
}

/// Everything about an application, as of a moment.
#[derive(Debug, Clone)]
pub struct Application {
    /// What stands in lists.
    pub row: ApplicationRow,
    /// Why it is not well.
    pub cause: Option<Cause>,
    /// Of when the last report is.
    pub as_of: Timestamp,
    /// The moment in the past that it is shown at; `None`: it is shown as it is now.
    pub moment: Option<Timestamp>,
    /// Since when the reporter of its runtime is silent.
    pub silent_since: Option<Timestamp>,
    /// It was deleted, and is history.
    pub deleted: bool,
    /// A sync of it is under way now, however long ago that began.
    pub is_syncing: bool,
    /// Where its manifests come from.
    pub sources: Vec<ManifestSource>,
    /// Where it goes to: cluster and namespace.
    pub destination: String,
    /// Its life.
    pub life: Life,
    /// Its changes of state, the newest first.
    pub transitions: Vec<Transition>,
    /// More happened within its life than is told of it here.
    pub is_cut: bool,
    /// Its resources at the end of the interval.
    pub resources: Vec<Resource>,
    /// Its drifts, the newest first.
    pub drifts: Vec<Drift>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}
