//! Runtimes: what one says of itself when it is installed, and what is known of it.

use async_graphql::{Enum, InputObject, Json, SimpleObject};
use serde::{Deserialize, Serialize};
use stages_platform_store::{self as kept, Millis, Registration, SILENT};

use super::application::{HealthStatus, SyncStatus};
use super::cluster::Managed;
use super::page::SliceInfo;
use super::{time, told};

/// The most that is told of what is wrong with a runtime.
const MESSAGE: usize = 1_024;

/// What a runtime says of itself when it is installed.
#[derive(InputObject, Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RuntimeInstallationArgs {
    pub(crate) runtime_name: String,
    runtime_namespace: Option<String>,
    cluster: Option<String>,
    installation_type: Option<String>,
    managed: Option<bool>,
    git_provider: Option<String>,
    runtime_version: Option<String>,
    chart_version: Option<String>,
    component_names: Option<Vec<String>>,
    ingress_host: Option<String>,
    internal_ingress_host: Option<String>,
    ingress_class: Option<String>,
    ingress_controller: Option<String>,
    gateway_name: Option<String>,
    gateway_namespace: Option<String>,
    repo: Option<String>,
    /// Registers a name anew that is registered already.
    pub(crate) recover: Option<bool>,
    /// A secret of this registration, 64 random hexadecimal digits: whoever asks with the same again is given the same token.
    #[serde(skip)]
    pub(crate) installation_id: Option<String>,
    access_mode: Option<String>,
    is_external_argo_cd: Option<bool>,
}

/// How far an installation is.
#[derive(Enum, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallationStatus {
    /// It has reported.
    Completed,
    /// It has not reported yet.
    InProgress,
    /// It says that its installation failed.
    Failed,
}

/// What a runtime is called.
#[derive(SimpleObject)]
struct RuntimeMeta {
    account: String,
    group: String,
    version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
}

/// How a runtime is.
#[derive(SimpleObject, Clone, Default)]
struct RuntimeCondition {
    sync_status: Option<SyncStatus>,
    health_status: Option<HealthStatus>,
    health_message: Option<String>,
}

/// A runtime.
#[derive(SimpleObject)]
pub(crate) struct Runtime {
    /// What it is told by where its name may not stand, as in the host of its tunnel: its name, where that has lower-case letters and
    /// digits alone.
    id: String,
    metadata: RuntimeMeta,
    /// The same as stands beside, as clients of other platforms ask for it.
    #[graphql(name = "self")]
    own: RuntimeCondition,
    /// Null: nobody reports whether it is as it was installed.
    sync_status: Option<SyncStatus>,
    /// By what it says is wrong with it, unless its reporter is silent for 20 minutes; null: it was never heard of.
    health_status: Option<HealthStatus>,
    health_message: Option<String>,
    /// Whether Argo CD reaches a cluster beside its own; null: the runtime told nothing of its clusters.
    is_remote_cluster_connected: Option<bool>,
    /// The clusters that it told of, and those that its applications go to; null: it told nothing, and has no application.
    managed_clusters_num: Option<usize>,
    installation_status: InstallationStatus,
    installation_type: Option<String>,
    cluster: Option<String>,
    managed: bool,
    repo: Option<String>,
    git_provider: Option<String>,
    access_mode: Option<String>,
    ingress_host: Option<String>,
    internal_ingress_host: Option<String>,
    ingress_class: Option<String>,
    ingress_controller: Option<String>,
    /// The version that it runs, as it said last.
    runtime_version: Option<String>,
    chart_version: Option<String>,
    is_external_argo_cd: Option<bool>,
    created_at: String,
    last_report_at: Option<String>,
    /// When it was last heard of, if only that it lives.
    last_heard_at: Option<String>,
    /// What of its requests was not taken, the most often first.
    refused: Vec<RefusedReports>,
    /// What it last said is wrong with it.
    errors: Vec<HealthError>,
}

/// Requests, and reports of batches, that were not taken.
#[derive(SimpleObject)]
pub(crate) struct RefusedReports {
    /// Why, such as `malformed`.
    reason: String,
    /// How many.
    number: u64,
    /// When the last was.
    last_at: String,
}

/// A page of runtimes.
#[derive(SimpleObject)]
pub(crate) struct RuntimeSlice {
    pub(crate) edges: Vec<RuntimeEdge>,
    pub(crate) page_info: SliceInfo,
}

/// A runtime, and its place in the list.
#[derive(SimpleObject)]
pub(crate) struct RuntimeEdge {
    pub(crate) node: Runtime,
    pub(crate) cursor: String,
}

/// What was made for a runtime.
#[derive(SimpleObject)]
pub(crate) struct RuntimeCreationResponse {
    pub(crate) name: String,
    /// What it is told by where its name may not stand.
    pub(crate) id: String,
    /// The runtime's token, shown this once.
    pub(crate) new_access_token: String,
}

/// What is wrong with a runtime.
#[derive(InputObject, SimpleObject, Serialize, Deserialize)]
#[graphql(input_name = "HealthErrorInput")]
#[serde(rename_all = "camelCase")]
pub(crate) struct HealthError {
    level: ErrorLevels,
    title: String,
    message: String,
    suggestion: Option<String>,
    /// What it is about, as the runtime has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<Json<serde_json::Value>>,
    code: HealthErrorCodes,
    last_seen: String,
}

/// The same as it is kept: with when it was told first, of all the times on end that it was told.
#[derive(Serialize, Deserialize)]
struct KeptError {
    #[serde(flatten)]
    error: HealthError,
    #[serde(default)]
    since: String,
}

/// What is wrong with a runtime: all of it, instead of what was told before.
#[derive(InputObject)]
pub(crate) struct ReportRuntimeErrorsArgs {
    pub(crate) runtime: String,
    pub(crate) errors: Vec<HealthError>,
}

/// The version that a runtime runs.
#[derive(InputObject)]
pub(crate) struct ReportRuntimeVersionArgs {
    pub(crate) runtime: String,
    pub(crate) runtime_version: String,
}

/// How bad it is.
#[derive(Enum, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum ErrorLevels {
    Error,
    Warning,
}

/// What it is.
#[derive(Enum, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum HealthErrorCodes {
    BrokenReference,
    InactiveRuntime,
    InsufficientResources,
    RuntimeInstallationError,
    TransitiveError,
    Unknown,
}

/// What a runtime says is wrong with it, as it is kept instead of what was kept before: what it says once more began when it was
/// said first.
pub(crate) fn problems_json(
    errors: Vec<HealthError>,
    before: &str,
    now: Millis,
) -> serde_json::Result<String> {
    let before: Vec<KeptError> = serde_json::from_str(before).unwrap_or_default();
    let one = |error: HealthError| {
        let is_same = |one: &&KeptError| one.error.code == error.code && one.error.title == error.title;
        let known = before.iter().find(is_same).filter(|one| !one.since.is_empty());
        let since = known.map_or_else(|| time(now), |one| one.since.clone());
        KeptError { error, since }
    };
    serde_json::to_string(&errors.into_iter().map(one).collect::<Vec<_>>())
}

impl HealthError {
    /// Whether it keeps the runtime from being installed.
    fn is_of_installation(&self) -> bool {
        self.level == ErrorLevels::Error && self.code == HealthErrorCodes::RuntimeInstallationError
    }
}

impl RuntimeInstallationArgs {
    /// Whether any of it is longer than it can be.
    pub(crate) fn is_long(&self) -> bool {
        serde_json::to_string(self).map_or(true, |text| text.len() > 16 * 1_024)
    }
}

impl From<kept::RefusedReports> for RefusedReports {
    fn from(one: kept::RefusedReports) -> Self {
        Self { reason: one.reason, number: one.number, last_at: time(one.at) }
    }
}

impl RuntimeCondition {
    fn of(errors: &[HealthError], one: &Registration, now: Millis) -> Self {
        // One without a reporter may well have a proxy that lives.
        let of_reporter = one.reporter_at.map(|at| ("its reporter", at));
        let Some((who, heard_at)) = of_reporter.or(one.heard_at.or(one.last_report).map(|at| ("it", at)))
        else {
            return Self::default();
        };
        let error = errors.iter().find(|error| error.level == ErrorLevels::Error);
        let (health, message) = match error {
            _ if now - heard_at >= SILENT => {
                let said = format!("nothing was heard of {who} since {}", time(heard_at));
                (HealthStatus::Unknown, Some(said))
            }
            Some(error) => {
                let said = format!("{}: {}", error.title, error.message);
                (HealthStatus::Degraded, Some(said.chars().take(MESSAGE).collect()))
            }
            None => (HealthStatus::Healthy, None),
        };
        Self { sync_status: None, health_status: Some(health), health_message: message }
    }
}

/// What a runtime said of itself when it was registered; one whose token was made by hand said nothing.
fn said(one: &Registration) -> RuntimeInstallationArgs {
    serde_json::from_str(&one.body).unwrap_or_default()
}

/// Whether a runtime is run by somebody else than whoever registered it.
pub(crate) fn is_managed(one: &Registration) -> bool {
    said(one).managed == Some(true)
}

impl Runtime {
    /// With the clusters that it manages, where they are asked for.
    pub(crate) fn of(one: Registration, clusters: &Managed, now: Millis) -> Self {
        let said = said(&one);
        let reported = one.last_report.is_some();
        let errors: Vec<HealthError> = serde_json::from_str(&one.problems).unwrap_or_default();
        let condition = RuntimeCondition::of(&errors, &one, now);
        let RuntimeCondition { sync_status, health_status, health_message } = condition.clone();
        Self {
            own: condition,
            sync_status,
            health_status,
            health_message,
            is_remote_cluster_connected: clusters.is_remote_connected(&one.name),
            managed_clusters_num: clusters.number(&one.name),
            id: kept::runtime_id(&one.name).into_owned(),
            metadata: RuntimeMeta {
                account: super::account::ACCOUNT.to_owned(),
                group: "codefresh.io".to_owned(),
                version: "v1alpha1".to_owned(),
                kind: "Runtime".to_owned(),
                namespace: said.runtime_namespace,
                name: one.name,
            },
            installation_status: match (errors.iter().any(HealthError::is_of_installation), reported) {
                (true, _) => InstallationStatus::Failed,
                (false, true) => InstallationStatus::Completed,
                (false, false) => InstallationStatus::InProgress,
            },
            installation_type: said.installation_type,
            cluster: said.cluster,
            managed: said.managed.unwrap_or(false),
            repo: said.repo,
            git_provider: said.git_provider,
            access_mode: said.access_mode,
            ingress_host: said.ingress_host,
            internal_ingress_host: said.internal_ingress_host,
            ingress_class: said.ingress_class,
            ingress_controller: said.ingress_controller,
            runtime_version: told(one.version),
            chart_version: said.chart_version,
            is_external_argo_cd: said.is_external_argo_cd,
            created_at: time(one.created_at),
            last_report_at: one.last_report.map(time),
            last_heard_at: one.heard_at.map(time),
            refused: one.refused.into_iter().map(RefusedReports::from).collect(),
            errors,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }
}
