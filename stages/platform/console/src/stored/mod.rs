//! What the console shows, of the platform's store: its rows become the values of pages here, and nowhere else.

mod application;
mod as_of;
mod commit;
mod drifted;
mod drifts;
mod errors;
mod home;
mod object;
mod problems;
mod remembered;
mod rows;
mod shipping;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use pipeline_core::ExposeSecret as _;
use stages_platform_store::{
    ApplicationName, By, ChangedNames, MATRIX_CELLS, Position, RefusedReports, Sequence, Store, StoreError,
    View,
};
use tokio::sync::watch;

use self::drifted::Comparisons;
use self::remembered::Remembered;
use crate::filter::Filter;
use crate::fleet::{Changes, Fleet, Fleets, Side, Unavailable, Window};
use crate::page::link::application_key;
use crate::view::application::Application;
use crate::view::cluster::ClusterRow;
use crate::view::commit::BroughtCommit;
use crate::view::deployment::Deployment;
use crate::view::home::{Activity, Home};
use crate::view::listing::{Group, Listing};
use crate::view::matrix::Matrix;
use crate::view::resource::{ResourceKey, ResourceRow};
use crate::view::runtime::{Added, RuntimeRow};
use crate::view::shipping::{Shipping, Trend};

/// Rows of the pages that have no further ones.
const ROWS: u32 = 200;

/// The fleet as the store has it.
#[derive(Debug)]
pub struct StoredFleet {
    store: Store,
    sequence: Sequence,
    trends: Remembered<Trend>,
    activities: Remembered<Activity>,
    comparisons: Comparisons,
    clock: fn() -> Timestamp,
}

/// As somebody sees it.
struct SeenFleet {
    store: Store,
    view: View,
    trends: Remembered<Trend>,
    activities: Remembered<Activity>,
    comparisons: Comparisons,
    clock: fn() -> Timestamp,
}

fn sequence(place: i64) -> u64 {
    u64::try_from(place).unwrap_or_default()
}

impl StoredFleet {
    /// Of a store, of which `sequence` says when anything is kept; `clock` says what time it is.
    #[must_use]
    pub fn new(store: Store, sequence: Sequence, clock: fn() -> Timestamp) -> Self {
        let (trends, activities) = (Remembered::default(), Remembered::default());
        Self { store, sequence, trends, activities, comparisons: Comparisons::default(), clock }
    }
}

impl Fleets for StoredFleet {
    fn seen_by(&self, view: View) -> Arc<dyn Fleet> {
        let (trends, activities) = (self.trends.clone(), self.activities.clone());
        let (store, comparisons) = (self.store.clone(), self.comparisons.clone());
        Arc::new(SeenFleet { store, view, trends, activities, comparisons, clock: self.clock })
    }

    fn sequence(&self) -> watch::Receiver<u64> {
        self.sequence.newest()
    }
}

impl SeenFleet {
    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

#[async_trait]
impl Fleet for SeenFleet {
    async fn applications(&self, filter: &Filter) -> Result<Listing, Unavailable> {
        let selection = filter.selection(self.now());
        let limit = u32::try_from(Filter::PAGE).unwrap_or(u32::MAX);
        let skip = filter.page.saturating_mul(Filter::PAGE);
        let mut page = self.store.list(&self.view, &selection, skip, limit).await?;
        if page.rows.is_empty() && skip > 0 {
            // What stood on that page has left the filter meanwhile.
            page = self.store.list(&self.view, &selection, 0, limit).await?;
        }
        Ok(Listing {
            groups: page.groups.into_iter().map(|(name, count)| Group { name, count }).collect(),
            rows: page.rows.into_iter().map(rows::application).collect(),
            matching: page.matching,
            total: page.total,
            runtimes: page.runtimes,
        })
    }

    async fn matrix(&self, filter: &Filter) -> Result<Matrix, Unavailable> {
        let selection = filter.selection(self.now());
        let limit = u32::try_from(Filter::NAMES).unwrap_or(u32::MAX);
        let skip = filter.page.saturating_mul(Filter::NAMES);
        let mut page = self.store.matrix(&self.view, &selection, skip, limit).await?;
        if page.rows.is_empty() && skip > 0 {
            page = self.store.matrix(&self.view, &selection, 0, limit).await?;
        }
        let is_cut = page.rows.len() >= MATRIX_CELLS as usize;
        Ok(Matrix {
            names: page.names,
            matching: page.matching,
            total: page.total,
            runtimes: page.runtimes,
            is_cut,
            ..Matrix::of(page.rows.into_iter().map(rows::application).collect())
        })
    }

    async fn neighbours(&self, filter: &Filter, id: &ApplicationName) -> Result<Position, Unavailable> {
        let selection = filter.selection(self.now());
        Ok(self.store.position(&self.view, &selection, id).await?)
    }

    async fn application(
        &self,
        id: &ApplicationName,
        window: Window,
    ) -> Result<Option<Application>, Unavailable> {
        Ok(application::read(&self.store, &self.view, id, (window, self.now()), &self.comparisons).await?)
    }

    async fn deployed(
        &self,
        id: &ApplicationName,
        since: Timestamp,
    ) -> Result<Option<Vec<Deployment>>, Unavailable> {
        Ok(application::deployed(&self.store, &self.view, id, since).await?)
    }

    async fn commit(
        &self,
        id: &ApplicationName,
        began: i64,
        revision: &str,
    ) -> Result<Option<BroughtCommit>, Unavailable> {
        Ok(commit::read(&self.store, &self.view, id, (began, revision)).await?)
    }

    async fn manifest(
        &self,
        id: &ApplicationName,
        resource: &ResourceKey,
        side: Side,
        at: Timestamp,
    ) -> Result<Option<String>, Unavailable> {
        let Some(known) = self.store.known(&self.view, id).await? else {
            return Ok(None);
        };
        let ResourceKey { group, kind, namespace, name } = resource;
        let found =
            self.store.manifests_at(known.id, (group, kind, namespace, name), at.as_millisecond()).await;
        Ok(found?.and_then(|found| match side {
            Side::Live => found.actual,
            Side::Desired => found.desired.or(found.git),
            Side::Git => found.git,
        }))
    }

    async fn home(&self) -> Result<Home, Unavailable> {
        Ok(home::read(&self.store, &self.view, self.now(), &self.activities, &self.comparisons).await?)
    }

    async fn trend(&self, days: u32) -> Result<Trend, Unavailable> {
        Ok(shipping::trend(&self.store, &self.view, days, self.now(), &self.trends).await?)
    }

    async fn shipping(&self, filter: &Filter, days: u32) -> Result<Shipping, Unavailable> {
        let selection = filter.selection(self.now());
        Ok(shipping::read(&self.store, &self.view, &selection, days, self.now()).await?)
    }

    async fn clusters(&self) -> Result<Vec<ClusterRow>, Unavailable> {
        let runtimes = self.runtimes().await?;
        let (found, _) = self.store.clusters(&self.view, ROWS).await?;
        Ok(found.into_iter().map(|one| rows::cluster(one, &runtimes)).collect())
    }

    async fn runtimes(&self) -> Result<Vec<RuntimeRow>, Unavailable> {
        let all = self.store.runtimes(&self.view).await?;
        Ok(all.into_iter().map(|one| rows::runtime(one, self.now())).collect())
    }

    async fn refused_of_nobody(&self) -> Result<Vec<RefusedReports>, Unavailable> {
        Ok(self.store.refused_of_nobody().await?)
    }

    async fn add_runtime(&self, name: &str, user: &str) -> Result<Added, Unavailable> {
        let by = By { who: user.to_owned(), how: "session" };
        match self.store.register(&by, name, "{}", false, self.now().as_millisecond()).await {
            Ok(Some(token)) => Ok(Added::Token(token.expose_secret().to_owned())),
            Ok(None) => {
                Ok(Added::Refused(format!("There is a runtime named {name} already: choose another name.")))
            }
            Err(error) => match &*error {
                StoreError::AdoptedName(_) => Ok(Added::Refused(
                    "A name has letters, digits, '-', '_' and '.', begins and ends with one of the first two, and has at most 63."
                        .to_owned(),
                )),
                StoreError::SameId { of, .. } => {
                    Ok(Added::Refused(format!("The runtime {of} has an id like it: choose another name.")))
                }
                _ => Err(error.into()),
            },
        }
    }

    async fn deployments(&self, filter: &Filter) -> Result<(Vec<Deployment>, bool), Unavailable> {
        let selection = filter.selection(self.now());
        let skip = filter.page.saturating_mul(ROWS.into());
        // One more says whether there are more.
        let found = self.store.deployments_of(&self.view, &selection, skip, ROWS + 1).await?;
        let is_more = found.len() > ROWS as usize;
        Ok((found.into_iter().take(ROWS as usize).map(rows::deployment).collect(), is_more))
    }

    async fn resources(&self, text: &str) -> Result<Vec<ResourceRow>, Unavailable> {
        let found = self.store.find_resources(&self.view, text, ROWS).await?;
        Ok(found.into_iter().map(rows::resource).collect())
    }

    async fn changes(&self, after: u64) -> Result<Changes, Unavailable> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let changed = self.store.changed(&self.view, after).await?;
        let upto = sequence(changed.upto);
        Ok(match changed.names {
            ChangedNames::TooMany => Changes::Resync(upto),
            ChangedNames::These(names) => Changes::Some(upto, names.iter().map(application_key).collect()),
        })
    }
}
