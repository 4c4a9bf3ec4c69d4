//! What is known of all applications, as the console asks for it.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use stages_platform_store::{ApplicationName, Position, RefusedReports, StoreError, View};
use tokio::sync::watch;

use crate::filter::Filter;
use crate::view::application::Application;
use crate::view::cluster::ClusterRow;
use crate::view::commit::BroughtCommit;
use crate::view::deployment::Deployment;
use crate::view::home::Home;
use crate::view::listing::Listing;
use crate::view::matrix::Matrix;
use crate::view::resource::{ResourceKey, ResourceRow};
use crate::view::runtime::{Added, RuntimeRow};
use crate::view::shipping::{Shipping, Trend};

/// The store did not answer: said on the page and in the log.
#[derive(Debug, thiserror::Error)]
#[error("the store does not answer")]
pub struct Unavailable(#[source] pub Box<dyn std::error::Error + Send + Sync>);

impl From<StoreError> for Unavailable {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

impl From<Arc<StoreError>> for Unavailable {
    fn from(error: Arc<StoreError>) -> Self {
        Self(error.into())
    }
}

/// A page needs what nobody guesses.
impl From<getrandom::Error> for Unavailable {
    fn from(error: getrandom::Error) -> Self {
        Self(error.into())
    }
}

/// Which of a resource's manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What runs.
    Live,
    /// What Git says that it should be.
    Desired,
    /// What stands in Git, as somebody wrote it.
    Git,
}

impl Side {
    pub(crate) const ALL: [Self; 3] = [Self::Live, Self::Desired, Self::Git];

    /// Its word in an address.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Desired => "desired",
            Self::Git => "git",
        }
    }
}

/// What of an application's life is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Where its life begins to be shown.
    pub begin: Timestamp,
    /// Where it ends.
    pub end: Timestamp,
    /// The earlier moment that is compared; `None`: before the last deployment.
    pub from: Option<Timestamp>,
    /// The later one: resources and states are as of then; `None`: now.
    pub to: Option<Timestamp>,
    /// Whose states are read beside the application's own.
    pub steps: Steps,
    /// What differed in its drifts, and who had changed it: the page of drifts alone shows that.
    pub drifts: bool,
}

/// Whose states are read beside those of an application, which the timeline alone shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// Nobody's.
    None,
    /// Of what goes through phases.
    OfPhases,
    /// Of all its resources.
    OfAll,
}

/// What happened since a place in the sequence.
#[derive(Debug, Clone)]
pub enum Changes {
    /// These applications and runtimes changed, and how far that goes.
    Some(u64, Vec<String>),
    /// Too much, or it is no longer known: all that is shown is to be read again.
    Resync(u64),
}

/// What is known, each time as far as somebody sees it.
pub trait Fleets: Send + Sync + 'static {
    /// As somebody sees it whose role and rules leave them this view.
    fn seen_by(&self, view: View) -> Arc<dyn Fleet>;

    /// Moves with every change that is kept.
    fn sequence(&self) -> watch::Receiver<u64>;
}

/// The read side of the platform, as somebody sees it.
#[async_trait]
pub trait Fleet: Send + Sync + 'static {
    /// A page of the applications that a filter leaves.
    async fn applications(&self, filter: &Filter) -> Result<Listing, Unavailable>;

    /// A page of the names that these have without their environments, with all that have them.
    async fn matrix(&self, filter: &Filter) -> Result<Matrix, Unavailable>;

    /// Where an application stands within a filter.
    async fn neighbours(&self, filter: &Filter, id: &ApplicationName) -> Result<Position, Unavailable>;

    /// Everything about an application, its resources as of the end of the interval.
    async fn application(
        &self,
        id: &ApplicationName,
        window: Window,
    ) -> Result<Option<Application>, Unavailable>;

    /// The newest deployments of an application since a moment, the oldest first, without the commits that they brought; `None`: it
    /// is not known.
    async fn deployed(
        &self,
        id: &ApplicationName,
        since: Timestamp,
    ) -> Result<Option<Vec<Deployment>>, Unavailable>;

    /// A commit that the deployment brought which began then (milliseconds), with what it changed in files; `None`: no such is
    /// known.
    async fn commit(
        &self,
        id: &ApplicationName,
        began: i64,
        revision: &str,
    ) -> Result<Option<BroughtCommit>, Unavailable>;

    /// A resource's manifest as it was at a moment: JSON; `None`: there was none.
    async fn manifest(
        &self,
        id: &ApplicationName,
        resource: &ResourceKey,
        side: Side,
        at: Timestamp,
    ) -> Result<Option<String>, Unavailable>;

    /// What needs somebody now.
    async fn home(&self) -> Result<Home, Unavailable>;

    /// The figures of deployments, of everything that is seen; they may be a minute old.
    async fn trend(&self, days: u32) -> Result<Trend, Unavailable>;

    /// The figures of deployments of the applications that a filter leaves, with the deployments behind them.
    async fn shipping(&self, filter: &Filter, days: u32) -> Result<Shipping, Unavailable>;

    /// The clusters that applications go to, what needs attention first.
    async fn clusters(&self) -> Result<Vec<ClusterRow>, Unavailable>;

    /// Every runtime.
    async fn runtimes(&self) -> Result<Vec<RuntimeRow>, Unavailable>;

    /// What was not taken of which nobody knows whose it was: for admins.
    async fn refused_of_nobody(&self) -> Result<Vec<RefusedReports>, Unavailable>;

    /// Adds a runtime and makes its token, in the name of somebody.
    async fn add_runtime(&self, name: &str, user: &str) -> Result<Added, Unavailable>;

    /// A page of the deployments of the applications that a filter leaves, the newest first, and whether there are older ones.
    async fn deployments(&self, filter: &Filter) -> Result<(Vec<Deployment>, bool), Unavailable>;

    /// Resources whose name, kind or application holds the text, of today and of the past.
    async fn resources(&self, text: &str) -> Result<Vec<ResourceRow>, Unavailable>;

    /// What changed after a place in the sequence: `runtime/namespace/name` of applications, `runtime` of runtimes.
    async fn changes(&self, after: u64) -> Result<Changes, Unavailable>;
}
