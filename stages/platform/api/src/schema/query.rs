//! What may be read.

use async_graphql::{Context, Lookahead, Object, Result};
use stages_platform_store::{self as kept, SeenApplication, Which};

use super::account::{AbacRule, Account, ApiKey, AuditEntry, Limits, LimitsStatus, Me, User};
use super::application::{
    self, Application, ApplicationEdge, ApplicationSlice, ApplicationsFilterArgs, place,
};
use super::cluster::{self, ClusterEdge, ClusterSlice, KnownCluster, Managed};
use super::component::ComponentSlice;
use super::flat::Rows;
use super::git_source::{self, GitSourceEdge, GitSourceSlice};
use super::page::{self, SlicePaginationArgs, rows};
use super::promotion::{
    ApplicationMetadata, Metadata, ProductComponent, ProductComponentFilterArgs, PromotionTemplate,
};
use super::runtime::{Runtime, RuntimeEdge, RuntimeSlice};
use super::workflow::{
    self, Found, Pipeline, PipelineSlice, PipelinesFilterArgs, Workflow, WorkflowSlice, WorkflowsFilterArgs,
};
use super::{caller, now, store};
use crate::caller::{Caller, Refusal, unread};

/// What a look through all clusters counts, however few of them are asked for.
const CLUSTERS: usize = 500;
/// What a look through all applications counts, and where their pages end, however few of them are asked for.
const APPLICATIONS: usize = 200;
/// What a look for Git sources through all applications counts.
const GIT_SOURCES: usize = 100;

/// What may be read.
pub(crate) struct Query;

fn cursor(one: &SeenApplication) -> String {
    application::cursor((&one.runtime, &one.state.namespace, &one.state.name))
}

/// Of one more row than asked for, so that it is known whether there are more.
async fn applications(
    context: &Context<'_>,
    which: &Which,
    after: &str,
    rows: usize,
) -> Result<Vec<SeenApplication>> {
    let (view, limit) = (caller(context)?.view(), u32::try_from(rows).unwrap_or(u32::MAX).saturating_add(1));
    Ok(store(context)?.visible(&view, which, place(after), limit).await.map_err(unread)?)
}

/// Whether something is asked of a runtime that follows from its clusters.
fn asks_for_clusters(asked: &Lookahead<'_>) -> bool {
    ["managedClustersNum", "isRemoteClusterConnected"].iter().any(|name| asked.field(name).exists())
}

/// The clusters of runtimes that whoever asks sees, where they are asked for.
async fn managed(context: &Context<'_>, runtime: Option<&str>, is_asked: bool) -> Result<Managed> {
    if !is_asked {
        return Ok(Managed::default());
    }
    Ok(Managed::of(cluster::known(context, runtime).await?))
}

#[Object]
impl Query {
    /// Whoever asks.
    async fn me(&self, context: &Context<'_>) -> Result<Me> {
        let (id, name, is_admin, runtime_name) = match caller(context)? {
            Caller::Person(person) => {
                let who = person.access.who.clone();
                (who.clone(), who, person.access.is_admin(), None)
            }
            Caller::Runtime(kept::Runtime { name, .. }) => {
                (kept::runtime_id(name).into_owned(), name.clone(), false, Some(name.clone()))
            }
        };
        let account = Account::only(store(context)?.shared_configuration().await.map_err(unread)?);
        let accounts = vec![account.clone()];
        Ok(Me { id, name, email: None, is_admin, runtime_name, accounts, active_account: account })
    }

    /// How much there is of what plans of other platforms limit: here nothing is limited.
    #[graphql(complexity = "100 + child_complexity")]
    async fn limits_status(&self, context: &Context<'_>) -> Result<LimitsStatus> {
        let (store, view) = (store(context)?, caller(context)?.view());
        let (_, clusters) = store.clusters(&view, 1).await.map_err(unread)?;
        let runtimes = store.runtimes(&view).await.map_err(unread)?;
        let applications = runtimes.iter().map(|one| one.applications).sum();
        let usage = Limits { clusters: Some(clusters), applications: Some(applications) };
        Ok(LimitsStatus { usage, limits: Limits::default(), status: true })
    }

    /// The runtime of a name or an id; null: there is none that whoever asks sees.
    #[graphql(complexity = "CLUSTERS + child_complexity")]
    async fn runtime(&self, context: &Context<'_>, name: String) -> Result<Option<Runtime>> {
        let called = caller(context)?.runtime(store(context)?, &name).await?;
        let Some(name) = called else { return Ok(None) };
        let found = store(context)?.registrations(Some(&name)).await.map_err(unread)?;
        let is_asked = asks_for_clusters(&context.look_ahead());
        let (clusters, now) = (managed(context, Some(&name), is_asked).await?, now(context)?);
        Ok(found.into_iter().next().map(|one| Runtime::of(one, &clusters, now)))
    }

    /// Runtimes, by name.
    #[graphql(complexity = "CLUSTERS + page::of(pagination.as_ref()) * child_complexity")]
    async fn runtimes(
        &self,
        context: &Context<'_>,
        pagination: Option<SlicePaginationArgs>,
    ) -> Result<RuntimeSlice> {
        let page = pagination.unwrap_or_default();
        let found = caller(context)?.runtimes(store(context)?).await?;
        let seen = found.into_iter().filter(|one| &*one.name > page.after());
        let is_asked = asks_for_clusters(&context.look_ahead().field("edges").field("node"));
        let (clusters, now) = (managed(context, None, is_asked).await?, now(context)?);
        let runtimes = seen.take(page.first() + 1).map(|one| Runtime::of(one, &clusters, now));
        let mut all: Vec<Runtime> = runtimes.collect();
        let page_info = page.info(&mut all, |one| one.name().to_owned());
        let edge = |node: Runtime| RuntimeEdge { cursor: node.name().to_owned(), node };
        Ok(RuntimeSlice { edges: all.into_iter().map(edge).collect(), page_info })
    }

    /// Applications by runtime, namespace and name, of one runtime or of all: those that whoever asks sees.
    #[graphql(complexity = "APPLICATIONS + page::of(pagination.as_ref()) * child_complexity")]
    async fn applications(
        &self,
        context: &Context<'_>,
        pagination: Option<SlicePaginationArgs>,
        runtime: Option<String>,
        filters: Option<ApplicationsFilterArgs>,
    ) -> Result<ApplicationSlice> {
        let page = pagination.unwrap_or_default();
        let (which, mistyped) = filters.unwrap_or_default().which(runtime, now(context)?)?;
        let mut all = applications(context, &which, page.after(), page.first()).await?;
        let page_info = page.info(&mut all, cursor);
        let edge = |one: SeenApplication| {
            let cursor = cursor(&one);
            ApplicationEdge { node: Application::of(one), cursor }
        };
        let edges = Rows(all.into_iter().map(edge).collect());
        Ok(ApplicationSlice { edges, page_info, mistyped, which, page })
    }

    /// Git sources by runtime, namespace and name, of one runtime and one project or of all: the applications with the label
    /// `codefresh.io/entity=git-source` that whoever asks sees.
    #[graphql(complexity = "GIT_SOURCES + page::of(pagination.as_ref()) * child_complexity")]
    async fn git_sources(
        &self,
        context: &Context<'_>,
        pagination: Option<SlicePaginationArgs>,
        project: Option<String>,
        runtime: Option<String>,
    ) -> Result<GitSourceSlice> {
        let page = pagination.unwrap_or_default();
        let (key, value) = git_source::LABEL;
        let labels = vec![(key.to_owned(), value.to_owned())];
        let which = Which { runtime, project, labels, deleted: Some(false), ..Which::default() };
        let mut all = applications(context, &which, page.after(), page.first()).await?;
        let page_info = page.info(&mut all, cursor);
        let edge = |one: SeenApplication| GitSourceEdge { cursor: cursor(&one), node: one.into() };
        Ok(GitSourceSlice { edges: all.into_iter().map(edge).collect(), page_info })
    }

    /// Clusters that the applications which whoever asks sees are deployed to, by runtime and name, of one runtime or of all, with
    /// what the runtime told of them; and those that no application goes to, of a runtime of which they see everything.
    #[graphql(complexity = "CLUSTERS + page::of(pagination.as_ref()) * child_complexity")]
    async fn clusters(
        &self,
        context: &Context<'_>,
        runtime: Option<String>,
        pagination: Option<SlicePaginationArgs>,
    ) -> Result<ClusterSlice> {
        let page = pagination.unwrap_or_default();
        let mut all = cluster::known(context, runtime.as_deref()).await?;
        let after = page.after().split_once('/').unwrap_or_default();
        all.retain(|one| one.place() > after);
        all.truncate(page.first() + 1);
        let page_info = page.info(&mut all, cluster::cursor);
        let edge = |one: KnownCluster| ClusterEdge { cursor: cluster::cursor(&one), node: one.into() };
        Ok(ClusterSlice { edges: all.into_iter().map(edge).collect(), page_info })
    }

    /// One application, of a runtime by its name or its id; null: there is none that whoever asks sees.
    async fn application(
        &self,
        context: &Context<'_>,
        runtime: String,
        namespace: String,
        name: String,
    ) -> Result<Option<Application>> {
        let (view, store) = (caller(context)?.view(), store(context)?);
        let Some(runtime) = store.runtime_called(&runtime).await.map_err(unread)? else { return Ok(None) };
        let found = store.visible_one(&view, (&runtime, &namespace, &name)).await.map_err(unread)?;
        Ok(found.map(Application::of))
    }

    /// Where the version of an application stands, as it was set for it or for its runtime; null: nothing was set, and whoever
    /// asks takes `Chart.yaml` and `$.appVersion`. A runtime asks about itself, a person says about which: null as well, if they see
    /// no such application.
    async fn promotion_template_by_runtime(
        &self,
        context: &Context<'_>,
        application_metadata: Metadata,
        runtime: Option<String>,
    ) -> Result<Option<PromotionTemplate>> {
        let (caller, store) = (caller(context)?, store(context)?);
        let own = match caller {
            Caller::Runtime(own) => Some(own.name.clone()),
            Caller::Person(_) => None,
        };
        let runtime = runtime.or(own).ok_or_else(|| Refusal::Wrong("say of which runtime".to_owned()))?;
        let Some(runtime) = caller.runtime(store, &runtime).await? else { return Ok(None) };
        let ApplicationMetadata { namespace, name } = &application_metadata.0;
        if !caller.sees_all_of(&runtime) {
            let seen = store.visible_one(&caller.view(), (&runtime, namespace, name)).await;
            if seen.map_err(unread)?.is_none() {
                return Ok(None);
            }
        }
        let found = store.version_source(&runtime, (namespace, name)).await.map_err(unread)?;
        Ok(found.map(|one| PromotionTemplate::from(Some(one))))
    }

    /// How an application is promoted, as far as that was set; null: there is none that whoever asks sees.
    async fn promotion_template(
        &self,
        context: &Context<'_>,
        runtime: String,
        namespace: String,
        name: String,
    ) -> Result<Option<PromotionTemplate>> {
        let (view, store) = (caller(context)?.view(), store(context)?);
        let Some(runtime) = store.runtime_called(&runtime).await.map_err(unread)? else { return Ok(None) };
        if store.visible_one(&view, (&runtime, &namespace, &name)).await.map_err(unread)?.is_none() {
            return Ok(None);
        }
        let found = store.version_source(&runtime, (&namespace, &name)).await.map_err(unread)?;
        Ok(Some(PromotionTemplate::from(found)))
    }

    /// Whether a runtime is the one that has what holds of all, unless it is said which: the one that was added first of those
    /// that there are. A runtime asks it of itself; a person is refused.
    async fn should_be_implicit_configuration_runtime(&self, context: &Context<'_>) -> Result<bool> {
        let Caller::Runtime(own) = caller(context)? else { return Err(Refusal::NotARuntime.into()) };
        let first = store(context)?.first_runtime().await.map_err(unread)?;
        Ok(first.as_deref() == Some(&*own.name))
    }

    /// The newest version of the command line that this platform knows: its own.
    async fn latest_cli_release(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// The roles of a runtime that were heard of, by name; none of one that whoever asks does not see.
    #[graphql(complexity = "20 * child_complexity")]
    async fn components(&self, context: &Context<'_>, runtime: String) -> Result<ComponentSlice> {
        let (caller, store, now) = (caller(context)?, store(context)?, now(context)?);
        let Some(name) = caller.runtime(store, &runtime).await? else {
            return Ok(ComponentSlice::of(&runtime, Vec::new(), now));
        };
        let roles = store.roles(&name).await.map_err(unread)?;
        Ok(ComponentSlice::of(&name, roles, now))
    }

    /// Parts of products that wait for something: there are no products here.
    async fn product_components_list(
        &self,
        #[graphql(name = "filters")] _filters: Option<ProductComponentFilterArgs>,
    ) -> Vec<ProductComponent> {
        Vec::new()
    }

    /// Workflows that are there, by runtime, namespace and name, as they were last told: those of applications that whoever asks
    /// sees, and those that a rule about workflows shows. What began them is not known: whoever filters by that is told of none. Where
    /// filters leave few of 10,000, a page has fewer than it may, and what is left stands behind its `endCursor`.
    #[graphql(
        complexity = "workflow::complexity(filters.as_ref(), page::of(pagination.as_ref()), child_complexity)"
    )]
    async fn workflows(
        &self,
        context: &Context<'_>,
        filters: Option<WorkflowsFilterArgs>,
        pagination: Option<SlicePaginationArgs>,
    ) -> Result<WorkflowSlice> {
        let page = pagination.unwrap_or_default();
        let Found { mut all, upto } = workflow::listed(context, &filters.unwrap_or_default(), &page).await?;
        let page_info = page.info(&mut all, Workflow::cursor).or_behind(upto);
        Ok(WorkflowSlice::of(all, page_info))
    }

    /// The workflow of a uid; null: there is none that whoever asks sees.
    #[graphql(complexity = "100 + child_complexity")]
    async fn workflow(&self, context: &Context<'_>, uid: String) -> Result<Option<Workflow>> {
        workflow::of_uid(context, uid).await
    }

    /// None: this platform keeps no pipelines.
    async fn pipelines(
        &self,
        #[graphql(name = "filters")] _filters: Option<PipelinesFilterArgs>,
        #[graphql(name = "pagination")] _pagination: Option<SlicePaginationArgs>,
    ) -> PipelineSlice {
        PipelineSlice::none()
    }

    /// Null: this platform keeps no pipelines.
    async fn pipeline(
        &self,
        #[graphql(name = "name")] _name: String,
        #[graphql(name = "namespace")] _namespace: Option<String>,
        #[graphql(name = "runtime")] _runtime: String,
    ) -> Option<Pipeline> {
        None
    }

    /// A sealing key of the runtime that asks, as base64 of PEM.
    async fn get_sealing_key(&self, context: &Context<'_>, id: String) -> Result<String> {
        let Caller::Runtime(own) = caller(context)? else { return Err(Refusal::NotARuntime.into()) };
        let found = store(context)?.sealing_key(own, &id).await.map_err(unread)?;
        let key =
            found.ok_or_else(|| Refusal::Wrong("this runtime has no sealing key of that id".to_owned()))?;
        Ok(key.expose().to_owned())
    }

    /// Everybody who may sign in.
    #[graphql(complexity = "100 * child_complexity")]
    async fn users(&self, context: &Context<'_>) -> Result<Vec<User>> {
        caller(context)?.manages()?;
        Ok(store(context)?.people().await.map_err(unread)?.into_iter().map(User::from).collect())
    }

    /// Every rule.
    #[graphql(complexity = "100 * child_complexity")]
    async fn abac_rules(&self, context: &Context<'_>) -> Result<Vec<AbacRule>> {
        caller(context)?.manages()?;
        Ok(store(context)?.rules().await.map_err(unread)?.into_iter().map(AbacRule::from).collect())
    }

    /// The keys of whoever asks; an admin sees everybody's.
    #[graphql(complexity = "100 * child_complexity")]
    async fn api_keys(&self, context: &Context<'_>) -> Result<Vec<ApiKey>> {
        let caller = caller(context)?;
        let owner = match (caller, caller.manages()) {
            (_, Ok(_)) => None,
            (Caller::Person(person), _) => Some(&*person.access.who),
            (Caller::Runtime(_), Err(refusal)) => return Err(refusal.into()),
        };
        Ok(store(context)?.keys(owner).await.map_err(unread)?.into_iter().map(ApiKey::from).collect())
    }

    /// What was done, the newest first, from before the number `before`.
    #[graphql(complexity = "rows(first) * child_complexity")]
    async fn audit_log(
        &self,
        context: &Context<'_>,
        first: Option<i32>,
        before: Option<i64>,
    ) -> Result<Vec<AuditEntry>> {
        caller(context)?.manages()?;
        let limit = u32::try_from(rows(first)).unwrap_or(1);
        let found = store(context)?.audit(before.unwrap_or(i64::MAX), limit).await.map_err(unread)?;
        Ok(found.into_iter().map(AuditEntry::from).collect())
    }
}
