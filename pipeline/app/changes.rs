//! Whom the reporter asks which commits changed an application, where nothing notes them with the application itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use pipeline_bus::jetstream::JetStream;
use pipeline_core::{Requests, Shutdown, async_trait};
use pipeline_redact::Redactor;
use stages_argocd::changes::{Changes, Newest};
use stages_git::GitSeries;
use stages_kube::Right;
use stages_revision::{NotKnown, Walks, over_bus};

use super::{Following, nothing_to_follow, repositories};
use crate::config::{ChangesFrom, Config, Places};

/// What asking in this process needs to be allowed.
pub(super) fn rights(config: &Config) -> Vec<Right> {
    match config.reporter.change_revisions.from {
        ChangesFrom::Here => repositories::rights(config, &config.change_revision.repositories),
        ChangesFrom::ArgoCd | ChangesFrom::Bus => Vec::new(),
    }
}

/// Whom the reporter asks, if it asks anybody, and what follows the credentials that this needs.
pub(super) async fn of(
    config: &Config,
    places: &Places,
    redactor: Redactor,
    (series, bus): (GitSeries, Option<JetStream>),
    stop: &Shutdown,
) -> anyhow::Result<(Option<Arc<dyn Changes>>, Following)> {
    let settings = &config.reporter.change_revisions;
    let within = *settings.timeout;
    match settings.from {
        ChangesFrom::ArgoCd => Ok((None, nothing_to_follow())),
        ChangesFrom::Bus => {
            let bus = bus.context("reporter.changeRevisions.from says bus, and bus.url is not set")?;
            Ok((Some(Arc::new(OnBus { bus: Arc::new(bus), within })), nothing_to_follow()))
        }
        ChangesFrom::Here => {
            let of = &config.change_revision.repositories;
            // Beside those of the role change-revision, which has clones of its own.
            let beside =
                super::change_revision::beside(config, places).await?.with_file_name("reporter-repositories");
            let (checkouts, following) = repositories::open(config, of, beside, series, stop)
                .await
                .context("have repositories (settings under `changeRevision.repositories`)")?;
            // Which commit is the newest is asked alone, and not what it changed.
            let walks = Walks::new(checkouts, 1, 0, redactor);
            Ok((Some(Arc::new(Here { walks, within })), following))
        }
    }
}

fn known(newest: stages_revision::Newest) -> Newest {
    let stages_revision::Newest { revisions, change_revisions } = newest;
    Newest { revisions, change_revisions }
}

/// What comes of not knowing: nothing that will ever be known, or something to be asked for again.
fn unknown(error: &(dyn std::error::Error + 'static), may_pass: bool) -> Option<Newest> {
    if !may_pass {
        tracing::debug!(error, "which commits changed an application is not known");
        return Some(Newest::default());
    }
    tracing::warn!(
        error,
        "it is not known which commits changed an application; they are missing in a report, and asked for again"
    );
    None
}

/// In this process.
struct Here {
    walks: Walks,
    within: Duration,
}

impl std::fmt::Debug for Here {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Here").field("within", &self.within).finish_non_exhaustive()
    }
}

#[async_trait]
impl Changes for Here {
    async fn newest(&self, application: &str) -> Option<Newest> {
        // It was written as JSON.
        let application = serde_json::from_str(application).ok()?;
        let newest = tokio::time::timeout(self.within, self.walks.newest(&application)).await;
        match newest.unwrap_or(Err(NotKnown::TooSlow)) {
            Ok(newest) => Some(known(newest)),
            Err(why) => unknown(&why, why.may_pass()),
        }
    }
}

/// Of the role `change-revision`, over the bus.
#[derive(Debug)]
struct OnBus {
    bus: Arc<dyn Requests>,
    within: Duration,
}

#[async_trait]
impl Changes for OnBus {
    async fn newest(&self, application: &str) -> Option<Newest> {
        match over_bus::ask(&*self.bus, application, self.within).await {
            Ok(newest) => Some(known(newest)),
            Err(why) => unknown(&why, why.may_pass()),
        }
    }
}
