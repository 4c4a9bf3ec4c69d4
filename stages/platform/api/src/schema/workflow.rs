//! Workflows and pipelines, as clients of other platforms ask for them. Of workflows it is told what their objects say; pipelines are
//! not kept: there is none, in the form that is asked for.

use async_graphql::{Context, Enum, InputObject, Result, SimpleObject};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use stages_platform_store::{SeenWorkflow, WhichWorkflows};

use super::application::{HealthStatus, SyncStatus, cursor, place};
use super::page::{SliceInfo, SlicePaginationArgs};
use super::{caller, named, store};
use crate::caller::unread;

/// Workflows whose objects are read at a time, each of up to a megabyte.
const PART: usize = 50;
/// Workflows that are looked through for a page, by what their objects say: what filters leave out is read as well.
const LOOKED_THROUGH: u32 = 10_000;

/// What a workflow or a pipeline is called.
#[derive(SimpleObject)]
struct WorkflowMeta {
    account: String,
    runtime: String,
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
}

/// A run of steps.
#[derive(SimpleObject)]
pub(crate) struct Workflow {
    metadata: WorkflowMeta,
    #[graphql(skip)]
    id: i64,
    /// Its application; empty: it belongs to none.
    #[graphql(skip)]
    application: String,
    #[graphql(skip)]
    is_of_cluster_template: bool,
    #[graphql(skip)]
    started_at: Option<Timestamp>,
    projects: Option<Vec<String>>,
    spec: WorkflowSpec,
    status: WorkflowStatus,
    /// Null: what began it is not known.
    pipeline: Option<Pipeline>,
}

/// What a workflow does.
#[derive(SimpleObject)]
struct WorkflowSpec {
    entrypoint: Option<String>,
    templates: Option<Vec<WorkflowSpecTemplate>>,
    workflow_template_ref: Option<WorkflowTemplateRef>,
}

/// A step of a workflow.
#[derive(SimpleObject)]
struct WorkflowSpecTemplate {
    name: String,
}

/// What a workflow was made from.
#[derive(SimpleObject)]
struct WorkflowTemplateRef {
    name: Option<String>,
    namespace: Option<String>,
}

/// How far a workflow is.
#[derive(SimpleObject)]
struct WorkflowStatus {
    phase: WorkflowPhases,
    progress: Option<String>,
    nodes: Option<Vec<NodeStatus>>,
}

/// How far a node of a workflow is.
#[derive(SimpleObject)]
struct NodeStatus {
    r#type: String,
    name: String,
}

/// How a workflow stands, as Argo Workflows says it.
#[derive(Enum, Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[graphql(rename_items = "PascalCase")]
enum WorkflowPhases {
    Error,
    Failed,
    Pending,
    Running,
    Succeeded,
    #[default]
    Unknown,
}

/// A page of workflows.
#[derive(SimpleObject)]
pub(crate) struct WorkflowSlice {
    edges: Vec<WorkflowEdge>,
    page_info: SliceInfo,
}

/// A workflow, and its place in the list.
#[derive(SimpleObject)]
struct WorkflowEdge {
    node: Workflow,
    cursor: String,
}

/// What begins workflows.
#[derive(SimpleObject)]
pub(crate) struct Pipeline {
    metadata: WorkflowMeta,
    #[graphql(name = "self")]
    own: Option<PipelineEntity>,
    projects: Option<Vec<String>>,
    spec: PipelineSpec,
}

/// How a pipeline is.
#[derive(SimpleObject)]
struct PipelineEntity {
    sync_status: Option<SyncStatus>,
    health_status: Option<HealthStatus>,
    version: Option<i32>,
}

/// What a pipeline does.
#[derive(SimpleObject)]
struct PipelineSpec {
    trigger: String,
}

/// A page of pipelines.
#[derive(SimpleObject)]
pub(crate) struct PipelineSlice {
    edges: Vec<PipelineEdge>,
    page_info: SliceInfo,
}

/// A pipeline, and its place in the list.
#[derive(SimpleObject)]
struct PipelineEdge {
    node: Pipeline,
    cursor: String,
}

/// Which workflows are listed.
#[derive(InputObject, Default)]
pub(crate) struct WorkflowsFilterArgs {
    project: Option<String>,
    runtime: Option<String>,
    namespace: Option<String>,
    groups: Option<Vec<String>>,
    versions: Option<Vec<String>>,
    cluster: Option<String>,
    pipelines: Option<NamespacedFindManyArgs>,
    repositories: Option<Vec<String>>,
    branches: Option<Vec<String>>,
    event_types: Option<Vec<String>>,
    initiators: Option<Vec<String>>,
    statuses: Option<Vec<WorkflowPhases>>,
    start_date_from: Option<String>,
    start_date_to: Option<String>,
    workflow_template: Option<String>,
    originated_from: Option<Vec<String>>,
    workflow_template_cluster_scope: Option<bool>,
    app_names: Option<Vec<Option<String>>>,
    products: Option<Vec<Option<String>>>,
    environments: Option<Vec<Option<String>>>,
}

/// Objects of these names.
#[derive(InputObject)]
struct NamespacedFindManyArgs {
    runtime: String,
    names: Vec<String>,
    namespace: String,
    kind: Option<String>,
    group: Option<String>,
    version: Option<String>,
}

/// Which pipelines are listed.
#[derive(InputObject)]
pub(crate) struct PipelinesFilterArgs {
    project: Option<String>,
    runtime: Option<String>,
    namespace: Option<String>,
    cluster: Option<String>,
    name: Option<String>,
    groups: Option<Vec<Option<String>>>,
    versions: Option<Vec<Option<String>>>,
    workflow_template: Option<String>,
}

/// What was found for a page.
#[derive(Default)]
pub(crate) struct Found {
    /// Those of the page, and one more if there is one.
    pub(crate) all: Vec<Workflow>,
    /// Up to which place was looked, where there may be more behind it.
    pub(crate) upto: Option<String>,
}

/// What a page of so many rows counts in the complexity of a query: each with its object, or all that are looked through for it.
pub(crate) fn complexity(filters: Option<&WorkflowsFilterArgs>, rows: usize, row: usize) -> usize {
    match filters.is_some_and(WorkflowsFilterArgs::ask_of_objects) {
        true => LOOKED_THROUGH as usize + rows * row,
        false => rows * (100 + row),
    }
}

/// Those of a page that whoever asks sees.
pub(crate) async fn listed(
    context: &Context<'_>,
    filters: &WorkflowsFilterArgs,
    page: &SlicePaginationArgs,
) -> Result<Found> {
    let mut found = Found::default();
    if filters.ask_for_what_is_not_known() {
        return Ok(found);
    }
    let one_more = u32::try_from(page.first()).unwrap_or(LOOKED_THROUGH).saturating_add(1);
    let limit = if filters.ask_of_objects() { LOOKED_THROUGH } else { one_more };
    let seen = seen(context, &filters.which(), page.after(), limit).await?;
    let may_be_more = seen.len() == limit as usize;
    let mut parts = seen.chunks(PART).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none() && !may_be_more;
        let part = read(context, part).await?;
        if found.take(part, is_last, page.first(), |one| filters.fit(one)) {
            break;
        }
    }
    Ok(found)
}

impl Found {
    /// Takes in what fits of the next part, and whether the page is full: behind the part there may be more unless it is the last.
    fn take(
        &mut self,
        part: Vec<Workflow>,
        is_last: bool,
        first: usize,
        fits: impl Fn(&Workflow) -> bool,
    ) -> bool {
        let last = part.last().filter(|_| !is_last).map(Workflow::cursor);
        self.all.extend(part.into_iter().filter(fits));
        let is_full = self.all.len() > first;
        self.upto = last.filter(|_| !is_full);
        is_full
    }
}

/// The one of a uid that whoever asks sees.
pub(crate) async fn of_uid(context: &Context<'_>, uid: String) -> Result<Option<Workflow>> {
    let which = WhichWorkflows { uid: Some(uid), ..WhichWorkflows::default() };
    Ok(read(context, &seen(context, &which, "", 1).await?).await?.into_iter().next())
}

async fn seen(
    context: &Context<'_>,
    which: &WhichWorkflows,
    after: &str,
    rows: u32,
) -> Result<Vec<SeenWorkflow>> {
    let caller = caller(context)?;
    let views = (&caller.view(), &caller.view_of_workflows());
    let (runtime, namespace, last) = place(after);
    let (name, id) = last.rsplit_once('/').unwrap_or((last, ""));
    // A place that says no number is behind all that are called so.
    let after = (runtime, namespace, name, id.parse().unwrap_or(i64::MAX));
    Ok(store(context)?.workflows(views, which, after, rows).await.map_err(unread)?)
}

async fn read(context: &Context<'_>, seen: &[SeenWorkflow]) -> Result<Vec<Workflow>> {
    let objects = store(context)?.workflow_objects(seen).await.map_err(unread)?;
    Ok(seen.iter().zip(objects).map(|(seen, object)| Workflow::of(seen, &object)).collect())
}

/// Whether something is asked for: an empty list asks for nothing.
fn is_given<T>(list: Option<&Vec<T>>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

/// Whether a value is one of those that are asked for, if any are.
fn is_one(list: Option<&Vec<String>>, value: &str) -> bool {
    !is_given(list) || list.into_iter().flatten().any(|one| one == value)
}

impl WorkflowsFilterArgs {
    /// Whether what objects say is asked for: all of them may have to be read for a page.
    fn ask_of_objects(&self) -> bool {
        is_given(self.app_names.as_ref())
            || is_given(self.statuses.as_ref())
            || self.workflow_template.is_some()
            || self.workflow_template_cluster_scope.is_some()
            || self.start_date_from.is_some()
            || self.start_date_to.is_some()
    }

    /// Workflows elsewhere are told by what began them and by what they are for, of which nothing is known here; and here all are of
    /// one group and version.
    fn ask_for_what_is_not_known(&self) -> bool {
        let named =
            [&self.repositories, &self.branches, &self.event_types, &self.initiators, &self.originated_from];
        let of_products = [&self.products, &self.environments];
        self.project.is_some()
            || self.cluster.is_some()
            || self.pipelines.is_some()
            || !is_one(self.groups.as_ref(), "argoproj.io")
            || !is_one(self.versions.as_ref(), "v1alpha1")
            || named.into_iter().any(|list| is_given(list.as_ref()))
            || of_products.into_iter().any(|list| is_given(list.as_ref()))
    }

    fn which(&self) -> WhichWorkflows {
        let (runtime, namespace) = (self.runtime.clone(), self.namespace.clone());
        WhichWorkflows { runtime, namespace, uid: None }
    }

    fn fit(&self, one: &Workflow) -> bool {
        let applications = self.app_names.as_ref();
        let of_application =
            || applications.into_iter().flatten().any(|name| name.as_ref() == Some(&one.application));
        let template = one.spec.workflow_template_ref.as_ref().and_then(|template| template.name.as_ref());
        let moment = |text: &Option<String>| text.as_deref().map(str::parse::<Timestamp>);
        // What is no moment is before and behind none.
        let began = |text: &Option<String>, is_well: fn(Timestamp, Timestamp) -> bool| match moment(text) {
            None => true,
            Some(asked) => asked.is_ok_and(|asked| one.started_at.is_some_and(|at| is_well(at, asked))),
        };
        (!is_given(applications) || of_application())
            && (!is_given(self.statuses.as_ref())
                || self.statuses.iter().flatten().any(|phase| *phase == one.status.phase))
            && (self.workflow_template.is_none() || self.workflow_template.as_ref() == template)
            && self.workflow_template_cluster_scope.is_none_or(|is| is == one.is_of_cluster_template)
            && began(&self.start_date_from, |at, from| at >= from)
            && began(&self.start_date_to, |at, to| at <= to)
    }
}

impl Workflow {
    /// What cannot be read of its object says nothing.
    fn of(seen: &SeenWorkflow, object: &str) -> Self {
        let object: Value = serde_json::from_str(object).unwrap_or_default();
        let text = |of: &Value, name: &str| of[name].as_str().map(str::to_owned);
        let (spec, status) = (&object["spec"], &object["status"]);
        let template = Some(&spec["workflowTemplateRef"]).filter(|template| template.is_object());
        let name = |of: &Value| text(of, "name").map(|name| WorkflowSpecTemplate { name });
        let node = |of: &Value| Some(NodeStatus { r#type: text(of, "type")?, name: text(of, "name")? });
        Self {
            metadata: WorkflowMeta {
                account: super::ACCOUNT.to_owned(),
                runtime: seen.runtime.clone(),
                namespace: Some(seen.namespace.clone()),
                name: seen.name.clone(),
                uid: Some(seen.uid.clone()),
            },
            id: seen.id,
            application: seen.application.clone(),
            is_of_cluster_template: template.is_some_and(|template| template["clusterScope"] == true),
            started_at: status["startedAt"].as_str().and_then(|at| at.parse().ok()),
            projects: None,
            spec: WorkflowSpec {
                entrypoint: text(spec, "entrypoint"),
                templates: spec["templates"].as_array().map(|all| all.iter().filter_map(name).collect()),
                workflow_template_ref: template.map(|template| WorkflowTemplateRef {
                    name: text(template, "name"),
                    namespace: text(template, "namespace"),
                }),
            },
            status: WorkflowStatus {
                phase: named(status["phase"].as_str().unwrap_or_default()),
                progress: text(status, "progress"),
                nodes: status["nodes"].as_object().map(|all| all.values().filter_map(node).collect()),
            },
            pipeline: None,
        }
    }

    /// Its place in the list: several of a runtime may be called alike, of several clusters of its.
    pub(crate) fn cursor(&self) -> String {
        let WorkflowMeta { runtime, namespace, name, .. } = &self.metadata;
        let named = cursor((runtime, namespace.as_deref().unwrap_or_default(), name));
        format!("{named}/{}", self.id)
    }
}

impl WorkflowSlice {
    pub(crate) fn of(all: Vec<Workflow>, page_info: SliceInfo) -> Self {
        let edge = |node: Workflow| WorkflowEdge { cursor: node.cursor(), node };
        Self { edges: all.into_iter().map(edge).collect(), page_info }
    }
}

impl PipelineSlice {
    pub(crate) fn none() -> Self {
        Self { edges: Vec::new(), page_info: SliceInfo::whole(None, None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_goes_on_behind_a_part_of_which_too_few_fit() {
        let one = |id: i64| {
            let (account, runtime, namespace) = (String::new(), "prod".to_owned(), Some("builds".to_owned()));
            let metadata = WorkflowMeta { account, runtime, namespace, name: format!("run{id}"), uid: None };
            Workflow { metadata, id, ..Workflow::of(&SeenWorkflow::default(), "") }
        };
        let mut found = Found::default();
        for (fitting, expected, upto) in
            [(vec![], vec![], true), (vec![1, 50], vec![1, 50], true), (vec![2], vec![1, 50, 2], false)]
        {
            let is_full = found.take((1..=50).map(one).collect(), false, 2, |one| fitting.contains(&one.id));
            let all: Vec<_> = found.all.iter().map(|one| one.id).collect();
            let place = upto.then(|| "prod/builds/run50/50".to_owned());
            assert_eq!((all, found.upto.clone(), is_full), (expected, place, !upto));
        }
        for number in [0, 49] {
            let mut found = Found::default();
            assert!(!found.take((1..=number).map(one).collect(), true, 2, |_| false));
            assert_eq!((found.all.len(), found.upto), (0, None), "nothing is behind the last part");
        }
    }
}
