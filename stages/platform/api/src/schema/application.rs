//! Applications, and what happened to them.

use async_graphql::{ComplexObject, Context, Enum, InputObject, Result, SimpleObject};
use jiff::Timestamp;
use serde::Deserialize;
use stages_client::manifest_sources;
use stages_platform_store as kept;

use super::change::{ChangedFiles, SourceChange};
use super::flat::Rows;
use super::page::{SliceInfo, SlicePaginationArgs, rows};
use super::{caller, named, store, time, told};
use crate::caller::{Refusal, unread};

/// How an application is.
#[derive(Enum, Deserialize, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HealthStatus {
    Degraded,
    Healthy,
    Missing,
    Progressing,
    Suspended,
    Terminated,
    #[default]
    Unknown,
}

/// Whether an application is as Git says.
#[derive(Enum, Deserialize, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncStatus {
    OutOfSync,
    Synced,
    Syncing,
    #[default]
    Unknown,
}

/// What something is called.
#[derive(SimpleObject, Clone)]
#[graphql(complex)]
pub(crate) struct ObjectMeta {
    pub(crate) runtime: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

#[ComplexObject]
impl ObjectMeta {
    async fn account(&self) -> &'static str {
        super::ACCOUNT
    }

    /// Where the object itself is, which is where Argo CD runs.
    async fn cluster(&self) -> &'static str {
        stages_platform_store::OWN_CLUSTER_SERVER
    }
}

/// An application of a runtime.
#[derive(SimpleObject)]
#[graphql(complex)]
pub(crate) struct Application {
    pub(super) metadata: ObjectMeta,
    pub(super) uid: String,
    pub(super) health_status: Option<HealthStatus>,
    pub(super) health_message: Option<String>,
    pub(super) sync_status: Option<SyncStatus>,
    pub(super) revision: Option<String>,
    pub(super) deleted: bool,
    pub(super) last_report_at: String,
    /// Its Argo CD project.
    pub(super) project: String,
    /// Where it runs, as people say it: a label of its, or the namespace that it goes to.
    pub(super) environment: String,
    /// The cluster that it goes to, by name or else by address.
    pub(super) cluster: String,
    /// The namespace that it goes to.
    pub(super) destination_namespace: String,
    /// The repository that it comes from.
    pub(super) repo_url: String,
    /// The path or chart in its repository.
    pub(super) path: String,
    pub(super) labels: Vec<Label>,
    /// Who wrote the commit that it is at.
    pub(super) commit_author: String,
    /// The message of the commit that it is at.
    pub(super) commit_message: String,
    /// How its last operation stands.
    pub(super) operation_phase: Option<String>,
    /// What was said of its last operation.
    pub(super) operation_message: Option<String>,
    /// When it was last deployed with success.
    pub(super) deployed_at: Option<String>,
}

/// A label.
#[derive(SimpleObject)]
pub(super) struct Label {
    pub(super) key: String,
    pub(super) value: String,
}

/// Which applications are listed: all of it holds.
#[derive(InputObject, Default)]
pub(crate) struct ApplicationsFilterArgs {
    namespace: Option<String>,
    name: Option<String>,
    /// How their names begin.
    name_prefix: Option<String>,
    /// Labels that they have, such as `team=shop`.
    labels: Option<Vec<String>>,
    /// As the console is asked for them, such as `store health:degraded deployed:7d`: 1,000 characters and 32 words at
    /// most, and of a list alone.
    pub(super) query: Option<String>,
    /// Whether they are gone; null: both.
    deleted: Option<bool>,
    /// Ignored, as clients of other platforms send it: applications of runtimes that are silent are listed in any case.
    inactive: Option<bool>,
    /// Ignored, as clients of other platforms send it: applications that a runtime is made of are listed in any case.
    include_components: Option<bool>,
}

/// Labels that may be asked for at a time.
const LABELS: usize = 20;
/// The longest name of a namespace or application, and the longest label.
const LONGEST: usize = 600;

impl ApplicationsFilterArgs {
    /// Which they are at this moment, and what of the query is written as a condition and is none.
    pub(crate) fn which(
        self,
        runtime: Option<String>,
        now: i64,
    ) -> Result<(kept::Which, Vec<String>), Refusal> {
        let label = |text: String| match text.split_once('=') {
            Some((key, value)) if !key.is_empty() && text.len() <= LONGEST => {
                Ok((key.to_owned(), value.to_owned()))
            }
            _ => Err(Refusal::Wrong("a label is key=value".to_owned())),
        };
        let labels = self.labels.unwrap_or_default();
        if labels.len() > LABELS {
            return Err(Refusal::Wrong(format!("at most {LABELS} labels may be asked for")));
        }
        let named = [&self.namespace, &self.name, &self.name_prefix];
        if named.into_iter().flatten().any(|text| text.len() > LONGEST) {
            return Err(Refusal::Wrong(format!("a name has at most {LONGEST} bytes")));
        }
        let query = self.query.unwrap_or_default();
        if query.chars().count() > kept::Term::MOST {
            return Err(Refusal::Wrong(format!("a query has at most {} characters", kept::Term::MOST)));
        }
        let terms = kept::Term::read(&query);
        if terms.len() > kept::Term::WORDS {
            return Err(Refusal::Wrong(format!("a query has at most {} words", kept::Term::WORDS)));
        }
        let mistyped = kept::Mistyped::of(&terms).map(|one| one.to_string()).collect();
        let which = kept::Which {
            runtime,
            namespace: self.namespace,
            project: None,
            name: self.name,
            prefix: self.name_prefix,
            labels: labels.into_iter().map(label).collect::<Result<_, _>>()?,
            deleted: self.deleted,
            conditions: terms.iter().map(|term| term.condition(now)).collect(),
        };
        Ok((which, mistyped))
    }
}

/// A page of applications.
#[derive(SimpleObject)]
#[graphql(complex)]
pub(crate) struct ApplicationSlice {
    pub(crate) edges: Rows<ApplicationEdge>,
    pub(crate) page_info: SliceInfo,
    /// What of the query is written as a condition and is none, a sentence each: it was looked for as text.
    pub(crate) mistyped: Vec<String>,
    /// What it is a page of.
    #[graphql(skip)]
    pub(crate) which: kept::Which,
    #[graphql(skip)]
    pub(crate) page: SlicePaginationArgs,
}

/// Where pages end that are told of at a time.
const ENDS: u32 = 40;

/// The place of an application in a list: its runtime, its namespace and its name.
pub(super) fn cursor((runtime, namespace, name): (&str, &str, &str)) -> String {
    format!("{runtime}/{namespace}/{name}")
}

/// The application at a place.
pub(super) fn place(cursor: &str) -> (&str, &str, &str) {
    let mut parts = cursor.splitn(3, '/');
    let mut part = || parts.next().unwrap_or_default();
    (part(), part(), part())
}

#[ComplexObject]
impl ApplicationSlice {
    /// Where this page ends, and those behind it that are as long: so that they can be asked for beside one another. 40 at most. A
    /// page counts if the one before has ended where it begins: what comes and goes meanwhile moves them.
    #[graphql(complexity = 5)]
    async fn ends(&self, context: &Context<'_>) -> Result<Vec<String>> {
        let (view, rows) = (caller(context)?.view(), u32::try_from(self.page.first()).unwrap_or(1));
        let after = place(self.page.after());
        let found = store(context)?.ends(&view, &self.which, after, (rows, ENDS)).await.map_err(unread)?;
        Ok(found.iter().map(|one| cursor((&one.runtime, &one.namespace, &one.name))).collect())
    }
}

/// An application, and its place in the list.
#[derive(SimpleObject)]
pub(crate) struct ApplicationEdge {
    pub(crate) node: Application,
    pub(crate) cursor: String,
}

/// A state that an application or one of its resources was reported in.
#[derive(SimpleObject)]
struct Transition {
    id: i64,
    /// Of this resource; null: of the application itself.
    resource: Option<Resource>,
    at: String,
    last_at: String,
    reports: i64,
    current: bool,
    deleted: bool,
    sync_status: Option<SyncStatus>,
    health_status: Option<HealthStatus>,
    health_message: Option<String>,
    revision: Option<String>,
}

/// A resource of an application.
#[derive(SimpleObject)]
struct Resource {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Resource {
    fn of(name: kept::ResourceName) -> Self {
        let kept::ResourceName { api_version, kind, namespace, name } = name;
        Self { api_version, kind, namespace, name }
    }
}

/// A resource of an application, as it was last reported.
#[derive(SimpleObject)]
struct ResourceState {
    resource: Resource,
    sync_status: Option<SyncStatus>,
    health_status: Option<HealthStatus>,
    health_message: Option<String>,
    /// Since when it is so.
    since: String,
}

/// The manifests of a resource, as they were last reported: secrets were taken out where it runs.
#[derive(SimpleObject)]
struct Manifests {
    /// What runs.
    live: Option<String>,
    /// What it should be.
    desired: Option<String>,
    /// What it should be, as it stands in Git.
    git: Option<String>,
}

/// Which resource of an application.
#[derive(InputObject)]
struct ResourceArgs {
    #[graphql(default)]
    group: String,
    kind: String,
    #[graphql(default)]
    namespace: String,
    name: String,
}

/// Where an application takes its manifests from, as it says itself: the first of several sources.
#[derive(SimpleObject)]
struct SpecSource {
    #[graphql(name = "repoURL")]
    repo_url: String,
    /// The branch, tag or version that it follows; null: its object is not kept, or says none.
    target_revision: Option<String>,
    /// The path, or the chart.
    path: String,
}

/// An operation that deployed.
#[derive(SimpleObject)]
struct Deployment {
    started_at: String,
    phase: String,
    revision: String,
    initiated_by: String,
    commit_author: String,
    ended: bool,
    /// The commits that it brought, by source of the application; empty: that is not known.
    changes: Vec<SourceChange>,
}

/// A time during which an application was out of sync.
#[derive(SimpleObject)]
struct Drift {
    onset: String,
    ended: bool,
    repeats: i64,
}

impl Application {
    pub(crate) fn of(seen: kept::SeenApplication) -> Self {
        let one = seen.state;
        Self {
            metadata: ObjectMeta { runtime: seen.runtime, namespace: one.namespace, name: one.name },
            uid: one.uid,
            health_status: one.health.as_deref().map(named),
            health_message: one.health_message,
            sync_status: one.sync.as_deref().map(named),
            revision: one.revision,
            deleted: one.deleted,
            last_report_at: time(one.at),
            project: seen.project,
            environment: seen.environment,
            cluster: seen.destination.0,
            destination_namespace: seen.destination.1,
            repo_url: seen.source.0,
            path: seen.source.1,
            labels: seen.labels.into_iter().map(|(key, value)| Label { key, value }).collect(),
            commit_author: seen.author,
            commit_message: seen.message,
            operation_phase: told(seen.phase),
            operation_message: told(seen.phase_message),
            deployed_at: seen.deployed_at.map(time),
        }
    }

    /// As it is kept; `None`: whoever asks sees it no more.
    async fn known(&self, context: &Context<'_>) -> Result<Option<kept::KnownApplication>> {
        let view = caller(context)?.view();
        Ok(store(context)?.known(&view, &self.known_as()).await.map_err(unread)?)
    }

    fn known_as(&self) -> kept::ApplicationName {
        let ObjectMeta { runtime, namespace, name } = self.metadata.clone();
        kept::ApplicationName { runtime, namespace, name }
    }

    /// What its history is kept under: the number of its runtime, its namespace and its name.
    async fn numbered(&self, context: &Context<'_>) -> Result<(i64, (&str, &str))> {
        let found = store(context)?.runtime_named(&self.metadata.runtime).await.map_err(unread)?;
        Ok((found.unwrap_or_default(), (&*self.metadata.namespace, &*self.metadata.name)))
    }
}

/// What an Application follows of a repository, by its object.
fn target_revision(object: &str, repository: &str) -> Option<String> {
    let object: serde_json::Value = serde_json::from_str(object).ok()?;
    let spec = object.get("spec")?;
    let several = spec.get("sources").and_then(serde_json::Value::as_array).into_iter().flatten();
    let dry = spec.pointer("/sourceHydrator/drySource").filter(|dry| dry.is_object());
    let all = manifest_sources(several.collect(), dry, spec.get("source"));
    let text = |source: &serde_json::Value, name: &str| {
        source.get(name).and_then(serde_json::Value::as_str).map(str::to_owned)
    };
    let of = all.into_iter().find(|source| text(source, "repoURL").as_deref() == Some(repository))?;
    text(of, "targetRevision").filter(|revision| !revision.is_empty())
}

#[ComplexObject]
impl Application {
    /// What happened to it and its resources, the newest first, from before the number `before`.
    #[graphql(complexity = "200 + rows(first) * child_complexity")]
    async fn timeline(
        &self,
        context: &Context<'_>,
        first: Option<i32>,
        before: Option<i64>,
    ) -> Result<Vec<Transition>> {
        let (runtime, name) = self.numbered(context).await?;
        let (before, limit) = (before.unwrap_or(i64::MAX), u32::try_from(rows(first)).unwrap_or(1));
        let found = store(context)?.timeline(runtime, name, before, limit).await.map_err(unread)?;
        let one = |one: kept::Transition| Transition {
            id: one.id,
            resource: one.resource.map(Resource::of),
            at: time(one.at),
            last_at: time(one.last_at),
            reports: one.reports,
            current: one.current,
            deleted: one.deleted,
            sync_status: one.sync.as_deref().map(named),
            health_status: one.health.as_deref().map(named),
            health_message: one.health_message,
            revision: one.revision,
        };
        Ok(found.into_iter().map(one).collect())
    }

    /// Where it takes its manifests from; null: that was not reported.
    #[graphql(complexity = "200 + child_complexity")]
    async fn spec_source(&self, context: &Context<'_>) -> Result<Option<SpecSource>> {
        if self.repo_url.is_empty() {
            return Ok(None);
        }
        let Some(known) = self.known(context).await? else { return Ok(None) };
        let object =
            store(context)?.object_at(known.id, None).await.map_err(unread)?.and_then(|found| found.object);
        let target_revision = object.as_deref().and_then(|object| target_revision(object, &self.repo_url));
        Ok(Some(SpecSource { repo_url: self.repo_url.clone(), target_revision, path: self.path.clone() }))
    }

    /// What it lists, each as it was last reported.
    #[graphql(complexity = "500 * child_complexity")]
    async fn resources(&self, context: &Context<'_>) -> Result<Vec<ResourceState>> {
        let view = caller(context)?.view();
        let found = store(context)?.resources_of(&view, &self.known_as()).await.map_err(unread)?;
        let one = |one: kept::ResourceAt| ResourceState {
            resource: Resource::of(one.name),
            sync_status: one.sync.as_deref().map(named),
            health_status: one.health.as_deref().map(named),
            health_message: one.health_message,
            since: time(one.at),
        };
        Ok(found.unwrap_or_default().into_iter().map(one).collect())
    }

    /// The manifests of one resource; null: it was never reported.
    #[graphql(complexity = "200 + child_complexity")]
    async fn manifests(&self, context: &Context<'_>, resource: ResourceArgs) -> Result<Option<Manifests>> {
        let Some(known) = self.known(context).await? else { return Ok(None) };
        let which = (&*resource.group, &*resource.kind, &*resource.namespace, &*resource.name);
        let found = store(context)?.manifests_at(known.id, which, i64::MAX).await.map_err(unread)?;
        let one = |one: kept::ManifestsAt| Manifests { live: one.actual, desired: one.desired, git: one.git };
        Ok(found.map(one))
    }

    /// Its last hundred deployments, the newest first.
    #[graphql(complexity = "100 * child_complexity")]
    async fn deployments(&self, context: &Context<'_>) -> Result<Vec<Deployment>> {
        let (runtime, name) = self.numbered(context).await?;
        let found = store(context)?.deployments(runtime, name).await.map_err(unread)?;
        let one = |one: kept::Deployment| Deployment {
            started_at: time(one.started_at),
            phase: one.phase,
            revision: one.revision,
            initiated_by: one.initiated_by,
            commit_author: one.commit_author,
            ended: one.ended,
            changes: one.changes.into_iter().map(SourceChange::of).collect(),
        };
        Ok(found.into_iter().map(one).collect())
    }

    /// What a commit changed in its files, that came with the deployment which started at that moment; both as `deployments`
    /// tells them. Empty: that is not known.
    #[graphql(complexity = "2_000 + 100 * child_complexity")]
    async fn file_diffs(
        &self,
        context: &Context<'_>,
        started_at: String,
        revision: String,
    ) -> Result<Vec<ChangedFiles>> {
        let Ok(began) = started_at.parse::<Timestamp>() else {
            let why = "startedAt is a moment such as 2026-11-26T10:00:00Z, as deployments tells it";
            return Err(Refusal::Wrong(why.to_owned()).into());
        };
        let Some(known) = self.known(context).await? else { return Ok(Vec::new()) };
        let found = store(context)?.changes_at(known.id, began.as_millisecond()).await.map_err(unread)?;
        Ok(ChangedFiles::of(found, &revision))
    }

    /// The last hundred times that it was out of sync, the newest first.
    #[graphql(complexity = "100 * child_complexity")]
    async fn drifts(&self, context: &Context<'_>) -> Result<Vec<Drift>> {
        let (runtime, name) = self.numbered(context).await?;
        let found = store(context)?.drifts(runtime, name).await.map_err(unread)?;
        let one = |one: kept::Drift| Drift { onset: time(one.onset), ended: one.ended, repeats: one.repeats };
        Ok(found.into_iter().map(one).collect())
    }
}
