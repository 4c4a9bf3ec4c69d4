//! An application's life: its states, deployments and drifts between two moments.

use crate::columns::from_columns;
use crate::connection::{Arg, Row};
use crate::error::StoreError;
use crate::fleet::drifting::DriftManifests;
use crate::fleet::listing::{ApplicationName, COLUMNS, ListedApplication};
use crate::fleet::search::{DEPLOYMENT, FleetDeployment};
use crate::fleet::selection::Query;
use crate::heard::REPORTER_AT;
use crate::report::{Millis, ResourceName};
use crate::rule::View;
use crate::store::Store;

/// States and deployments of one life that are read at most, the newest.
pub const MOST_OF_LIFE: u32 = 2_000;
/// States of what goes through phases, alike: they are listed.
pub const MOST_STEPS: u32 = 500;
/// Drifts of one application itself, and as many of its resources, alike: they are listed.
pub const MOST_DRIFTS: u32 = 200;

/// An application, as it is known now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownApplication {
    /// Its number, for what else is asked of it.
    pub id: i64,
    /// What stands in lists.
    pub listed: ListedApplication,
    /// What is said of its health.
    pub health_message: String,
    /// Since when its health is so.
    pub health_since: Millis,
    /// How its last operation stands.
    pub phase: String,
    /// What was said of its last operation.
    pub phase_message: String,
    /// The cluster and the namespace that it goes to.
    pub destination: (String, String),
    /// The repository and the path that it comes from.
    pub source: (String, String),
    /// Of when its last report is.
    pub reported_at: Millis,
    /// Whether it is gone.
    pub deleted: bool,
    /// When the reporter of its runtime was last heard of; of one that sends no digests, when any role of it was.
    pub heard_at: Option<Millis>,
}

/// A state of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateOf {
    /// Since when.
    pub at: Millis,
    /// Its health, if it was told.
    pub health: Option<String>,
    /// What was said of its health.
    pub health_message: Option<String>,
    /// The status of its sync.
    pub sync: Option<String>,
    /// Whether it is its end.
    pub deleted: bool,
}

/// A state of a resource of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOf {
    /// What it is.
    pub name: ResourceName,
    /// Since when.
    pub at: Millis,
    /// Its health, if it was told.
    pub health: Option<String>,
    /// How far it has come, in words, or what is said of its health.
    pub step: Option<String>,
    /// The status of its sync, if it was told.
    pub sync: Option<String>,
    /// Whether it is its end.
    pub deleted: bool,
}

/// A time during which an application or a resource of its was out of sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftOf {
    /// The resource; `None`: the application itself.
    pub resource: Option<ResourceName>,
    /// When it began.
    pub onset: Millis,
    /// When it ended; `None`: it lasts.
    pub ended: Option<Millis>,
    /// Of a resource: what tells its manifests when it began from any others.
    pub manifests: DriftManifests,
}

from_columns! {
    KnownApplication {
        listed, id, health_message, health_since, phase, phase_message, destination, source, reported_at, deleted, heard_at
    }
}
from_columns! { StateOf { at, health, health_message, sync, deleted } }
from_columns! { StepOf { name, at, health, step, deleted, sync } }
from_columns! { DriftOf { onset, ended, resource, manifests } }

impl Store {
    /// An application that somebody sees, by its names, also one that is gone: what else is told of it is asked by its number.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn known(
        &self,
        view: &View,
        name: &ApplicationName,
    ) -> Result<Option<KnownApplication>, StoreError> {
        let mut query = Query::default();
        let [runtime, namespace, own] =
            [&name.runtime, &name.namespace, &name.name].map(|text| query.text(text));
        let seen = query.seen(view);
        query.sql = format!(
            "SELECT {COLUMNS}, a.id, a.health_message, a.health_since, a.phase, a.phase_message, a.cluster, a.destination, \
             a.repository, a.path, a.reported_at, a.deleted, COALESCE({REPORTER_AT}, r.seen_at) FROM applications a \
             JOIN runtimes r ON r.id = a.runtime_id WHERE r.name = {runtime} AND a.namespace = {namespace} AND a.name = {own} \
             AND a.name <> '' AND {seen}"
        );
        query.rows(&mut self.read().await?).await?.first().map(Row::read).transpose()
    }

    /// The states of an application between two moments, the oldest first, and the one before them.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn states(
        &self,
        application: i64,
        (begin, end): (Millis, Millis),
    ) -> Result<Vec<StateOf>, StoreError> {
        let within = "SELECT t.at, t.health, t.health_message, t.sync, t.deleted FROM entities e \
                      JOIN transitions t ON t.entity_id = e.id WHERE e.application_id = $1 AND e.kind = '' \
                      AND t.at > $2 AND t.at <= $3 ORDER BY t.at DESC, t.id DESC LIMIT $4";
        let before = "SELECT t.at, t.health, t.health_message, t.sync, t.deleted FROM entities e \
                      JOIN transitions t ON t.entity_id = e.id WHERE e.application_id = $1 AND e.kind = '' \
                      AND t.at <= $2 ORDER BY t.at DESC, t.id DESC LIMIT 1";
        let mut connection = self.read().await?;
        let (id, begin) = (Arg::Int(application), Arg::Int(begin));
        let mut rows =
            connection.rows(within, &[id, begin, Arg::Int(end), Arg::Int(MOST_OF_LIFE.into())]).await?;
        rows.extend(connection.rows(before, &[id, begin]).await?);
        rows.iter().rev().map(Row::read).collect()
    }

    /// The states of an application's Rollouts, AnalysisRuns and Workflows between two moments, or of all its resources, the oldest
    /// first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn steps_between(
        &self,
        application: i64,
        (begin, end): (Millis, Millis),
        of_all: bool,
    ) -> Result<Vec<StepOf>, StoreError> {
        let sql = "SELECT e.api_version, e.kind, e.namespace, e.name, t.at, t.health, t.health_message, t.deleted, t.sync \
                   FROM entities e JOIN transitions t ON t.entity_id = e.id WHERE e.application_id = $1 AND e.kind <> '' \
                   AND ($5 = 1 OR (e.kind IN ('Rollout', 'AnalysisRun', 'Workflow') AND e.api_version LIKE 'argoproj.io/%')) \
                   AND t.at > $2 AND t.at <= $3 ORDER BY t.at DESC, t.id DESC LIMIT $4";
        let arguments = [
            Arg::Int(application),
            Arg::Int(begin),
            Arg::Int(end),
            Arg::Int(MOST_STEPS.into()),
            Arg::Int(of_all.into()),
        ];
        let rows = self.read().await?.rows(sql, &arguments).await?;
        rows.iter().rev().map(Row::read).collect()
    }

    /// The deployments of an application between two moments, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn deployments_between(
        &self,
        application: i64,
        (begin, end): (Millis, Millis),
    ) -> Result<Vec<FleetDeployment>, StoreError> {
        let sql = format!(
            "{DEPLOYMENT} WHERE d.application_id = $1 AND d.started_at >= $2 AND d.started_at <= $3 \
             ORDER BY d.started_at DESC LIMIT $4"
        );
        let arguments =
            [Arg::Int(application), Arg::Int(begin), Arg::Int(end), Arg::Int(MOST_OF_LIFE.into())];
        let rows = self.read().await?.rows_of(sql, &arguments).await?;
        rows.iter().rev().map(Row::read).collect()
    }

    /// The drifts of an application, and then those of its resources, that touch the time between two moments, each the newest
    /// first: however many resources drift at a time, what is told of the application itself is whole.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn drifts_between(
        &self,
        application: i64,
        (begin, end): (Millis, Millis),
    ) -> Result<Vec<DriftOf>, StoreError> {
        let own = "SELECT d.onset, d.ended FROM entities e JOIN drifts d ON d.entity_id = e.id \
                   WHERE e.application_id = $1 AND e.kind = '' AND d.onset <= $3 AND (d.ended IS NULL OR d.ended >= $2) \
                   ORDER BY d.onset DESC, d.id DESC LIMIT $4";
        // Which manifests there were is looked up of those alone that come back. Of several that began within one moment the one that
        // outlasts it began after all that ended in it.
        let of_resources = "SELECT d.onset, d.ended, d.api_version, d.kind, d.namespace, d.name, \
                            COALESCE(t.actual, t.object), t.desired FROM (SELECT d.id AS drift, d.onset, d.ended, e.id AS entity, \
                            e.api_version, e.kind, e.namespace, e.name FROM entities e JOIN drifts d ON d.entity_id = e.id \
                            WHERE e.application_id = $1 AND e.kind <> '' AND d.onset <= $3 \
                            AND (d.ended IS NULL OR d.ended >= $2) ORDER BY d.onset DESC, e.id, d.id DESC LIMIT $4) AS d \
                            LEFT JOIN transitions t ON t.id = (SELECT min(x.id) FROM transitions x WHERE x.entity_id = d.entity \
                            AND x.at = d.onset AND x.sync = 'OutOfSync' AND x.id > COALESCE((SELECT max(y.id) \
                            FROM transitions y WHERE y.entity_id = d.entity AND y.at = d.onset \
                            AND (y.sync = 'Synced' OR y.deleted = 1) AND (d.ended IS NULL OR d.ended > d.onset)), 0)) \
                            ORDER BY d.onset DESC, d.entity, d.drift DESC";
        let arguments = [Arg::Int(application), Arg::Int(begin), Arg::Int(end), Arg::Int(MOST_DRIFTS.into())];
        let mut connection = self.read().await?;
        let of_itself = |row: &Row| -> Result<DriftOf, StoreError> {
            let manifests = DriftManifests::default();
            Ok(DriftOf { resource: None, onset: row.int(0)?, ended: row.int_or_null(1)?, manifests })
        };
        let rows = connection.rows(own, &arguments).await?;
        let resources = connection.rows(of_resources, &arguments).await?;
        rows.iter().map(of_itself).chain(resources.iter().map(Row::read)).collect()
    }
}
