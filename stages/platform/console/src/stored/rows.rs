//! Rows of the store as the values of pages.

use jiff::{SignedDuration, Timestamp};
use stages_platform_store::{
    FleetCluster, FleetDeployment, FleetRuntime, FoundResource, ListedApplication, ResourceName, SILENT,
    group_of, version,
};

pub(super) use crate::time::moment;
use crate::view::application::{ApplicationRow, Change};
use crate::view::cluster::ClusterRow;
use crate::view::deployment::{Deployment, ImageChange, Outcome};
use crate::view::resource::{Resource, ResourceKey, ResourceRow};
use crate::view::runtime::RuntimeRow;
use crate::view::state::{Health, SyncStatus};

pub(super) fn health(word: &str) -> Health {
    word.parse().unwrap_or(Health::Unknown)
}

pub(super) fn sync(word: &str) -> SyncStatus {
    word.parse().unwrap_or(SyncStatus::Unknown)
}

pub(super) fn application(row: ListedApplication) -> ApplicationRow {
    let change = Change { revision: row.revision, message: row.message, author: row.author };
    ApplicationRow {
        id: row.name,
        health: health(&row.health),
        sync: sync(&row.sync),
        environment: row.environment,
        project: row.project,
        version: Some(row.version).filter(|version| !version.is_empty()),
        change: Some(change).filter(|change| !change.revision.is_empty()),
        deployed: row.deployed_at.map(moment),
        group: row.group,
    }
}

pub(super) fn outcome(phase: &str) -> Outcome {
    match phase {
        "Succeeded" => Outcome::Succeeded,
        "Failed" | "Error" => Outcome::Failed,
        _ => Outcome::Running,
    }
}

/// An image without its version.
fn image(image: &str) -> &str {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    name.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).map_or(name, |(name, _)| name)
}

pub(super) fn deployment(row: FleetDeployment) -> Deployment {
    let list = |text: &str| serde_json::from_str::<Vec<String>>(text).unwrap_or_default();
    let before = row.images_before.as_deref().map(list).unwrap_or_default();
    let moved = |after: String| ImageChange {
        name: image(&after).to_owned(),
        before: before
            .iter()
            .find(|before| image(before) == image(&after))
            .and_then(|one| version(one))
            .map(str::to_owned),
        after: version(&after).unwrap_or_default().to_owned(),
    };
    Deployment {
        application: row.application,
        at: moment(row.started_at),
        finished: row.finished_at.map(moment),
        change: Change { revision: row.revision, message: row.commit_message, author: row.author },
        by: Some(row.initiated_by).filter(|by| !by.is_empty()),
        images: list(&row.images).into_iter().map(moved).collect(),
        outcome: outcome(&row.phase),
        message: row.message,
        brought: Vec::new(),
    }
}

pub(super) fn key(name: &ResourceName) -> ResourceKey {
    ResourceKey {
        group: group_of(&name.api_version).to_owned(),
        kind: name.kind.clone(),
        namespace: name.namespace.clone(),
        name: name.name.clone(),
    }
}

pub(super) fn resource(row: FoundResource) -> ResourceRow {
    let at = moment(row.at);
    ResourceRow {
        application: row.application,
        resource: Resource {
            key: key(&row.name),
            health: row.health.as_deref().and_then(|word| word.parse().ok()),
            sync: sync(row.sync.as_deref().unwrap_or_default()),
            message: row.health_message.unwrap_or_default(),
            pods: None,
            parent: None,
            since: at,
            changed: false,
        },
        gone: row.gone.then_some(at),
    }
}

/// Since when whoever was heard of then is silent.
pub(super) fn silent(seen: Option<i64>, now: Timestamp) -> Option<Timestamp> {
    seen.map(moment).filter(|seen| now.duration_since(*seen) >= SignedDuration::from_millis(SILENT))
}

pub(super) fn runtime(row: FleetRuntime, now: Timestamp) -> RuntimeRow {
    let reporter = row.roles.iter().find(|role| role.role == "reporter").map(|role| role.version.clone());
    RuntimeRow {
        name: row.name,
        version: [Some(row.version), reporter].into_iter().flatten().find(|version| !version.is_empty()),
        applications: row.applications,
        healthy: row.healthy,
        heard: row.heard_at.map(moment),
        last_report: row.reported_at.map(moment),
        lag: row.lag.and_then(|lag| u64::try_from(lag).ok()),
        silent: silent(row.heard_at, now).is_some(),
        refused: row.refused,
        problems: super::problems::read(&row.problems),
        roles: row.roles,
    }
}

pub(super) fn cluster(cluster: FleetCluster, runtimes: &[RuntimeRow]) -> ClusterRow {
    let silent = runtimes.iter().any(|one| one.silent && one.name == cluster.runtime);
    ClusterRow { cluster, silent }
}
