//! What is told as it comes.

use std::time::Duration;

use async_graphql::{Context, Result, Subscription};
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use stages_client::Opened;

use super::inputs::{
    ApplicationId, ApplicationLogsOptionsInput, ComponentLogsOptionsInput, ResourceId,
    WorkflowLogsOptionsInput,
};
use super::log::{ApplicationLogsResponse, ComponentLogResponse, WorkflowLogsResponse};
use super::{Services, caller, services};
use crate::component_logs::WantedLogs;
use crate::dispatcher::{Caller, Invocation};
use crate::error::ActError;
use crate::gate::Subject;
use crate::kubernetes_name::check_name;
use crate::logs::{LogSource, LogStream};
use crate::operation::Operation;
use crate::shown::shown;
use crate::stream_grant::StreamGrant;

/// What is told as it comes.
pub(crate) struct Subscription;

/// Lines, unless others are asked for, and the most.
const LINES: i64 = 1_000;
const MOST: i64 = 100_000;

type Query = Vec<(&'static str, String)>;

fn moment(text: &str) -> std::result::Result<Timestamp, ActError> {
    text.parse().map_err(|_| ActError::Wrong("a time is to be written as 2026-01-31T12:00:00Z".to_owned()))
}

/// How many seconds ago lines begin: what Argo CD and Argo Workflows both take.
fn since(seconds: Option<i64>, time: Option<&str>) -> std::result::Result<Option<i64>, ActError> {
    let since = match (seconds, time) {
        (Some(seconds), _) => Some(seconds),
        (None, Some(time)) => Some(Timestamp::now().as_second() - moment(time)?.as_second()),
        (None, None) => None,
    };
    Ok(since.map(|seconds| seconds.max(1)))
}

/// As the server of Argo Workflows is asked.
fn query_of_workflow(
    (pod, container): (Option<String>, Option<String>),
    options: WorkflowLogsOptionsInput,
) -> std::result::Result<Query, ActError> {
    let mut query = vec![("logOptions.container", container.unwrap_or_else(|| "main".to_owned()))];
    if let Some(pod) = pod {
        check_name("a pod", &pod)?;
        query.push(("podName", pod));
    }
    query.push(("logOptions.follow", options.follow.unwrap_or(false).to_string()));
    query.push(("logOptions.tailLines", options.tail_lines.unwrap_or(LINES).clamp(1, MOST).to_string()));
    query.push(("logOptions.timestamps", true.to_string()));
    query.extend(options.grep.filter(|text| !text.is_empty()).map(|text| ("grep", text)));
    let since = since(options.since_seconds, options.since_time.as_deref())?;
    query.extend(since.map(|seconds| ("logOptions.sinceSeconds", seconds.to_string())));
    Ok(query)
}

/// Begins a log for whoever may: `open` is asked for it, for so long at most.
async fn follow<Opening>(
    services: &Services,
    caller: &Caller,
    invocation: Invocation,
    source: LogSource,
    open: impl FnOnce(Duration) -> Opening,
) -> std::result::Result<LogStream, ActError>
where
    Opening: Future<Output = std::result::Result<Opened, ActError>>,
{
    let grant =
        StreamGrant::begin(&services.dispatcher, services.streams.place()?, caller, invocation).await?;
    let opened = open(grant.longest()).await?;
    Ok(LogStream { source, opened, grant })
}

/// A pod, as the audit log tells it.
fn pod_told(pod: &str) -> String {
    format!("Pod {}", shown(pod, 253))
}

/// As Argo CD is asked: of the pods that the application has it takes those that are all of what is said.
fn query(
    (pod, container, resource): (Option<String>, Option<String>, Option<ResourceId>),
    options: ApplicationLogsOptionsInput,
) -> std::result::Result<Query, ActError> {
    let mut query = match (&pod, resource) {
        (_, None) => Vec::new(),
        (Some(_), Some(of)) => vec![("namespace", of.namespace)],
        (None, Some(of)) => of.query(),
    };
    if let Some(pod) = pod {
        check_name("a pod", &pod)?;
        query.push(("podName", pod));
    }
    let container = container.map(|container| ("container", container));
    query.extend(container);
    query.push(("follow", options.follow.unwrap_or(false).to_string()));
    query.push(("tailLines", options.tail_lines.unwrap_or(LINES).clamp(1, MOST).to_string()));
    query.extend(options.filter.filter(|text| !text.is_empty()).map(|text| ("filter", text)));
    if let Some(until) = options.until_time {
        moment(&until)?;
        query.push(("untilTime", until));
    }
    let since = since(options.since_seconds, options.since_time.as_deref())?;
    query.extend(since.map(|seconds| ("sinceSeconds", seconds.to_string())));
    Ok(query)
}

#[Subscription]
impl Subscription {
    /// Lines of the log of a pod, of all pods of a resource, or of all pods of the application: over a WebSocket, or a POST that
    /// accepts `text/event-stream`. The last item is `done`.
    async fn application_logs(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        pod_name: Option<String>,
        container: Option<String>,
        resource: Option<ResourceId>,
        options: Option<ApplicationLogsOptionsInput>,
    ) -> Result<impl Stream<Item = ApplicationLogsResponse>> {
        let (services, caller) = (services(context)?, caller(context)?);
        let detail = match (&pod_name, &resource) {
            (Some(pod), _) => pod_told(pod),
            (None, Some(of)) => of.place(),
            (None, None) => String::new(),
        };
        let invocation = Invocation::new(Operation::APPLICATION_LOGS, application.subject()).of(detail);
        let open = async |within| {
            let query = query((pod_name, container, resource), options.unwrap_or_default())?;
            services.argocd.logs(&application.name(), query, within).await
        };
        let begun = follow(services, caller, invocation, LogSource::ArgoCd, open).await;
        Ok(begun.map_err(|error| error.graphql())?.items().map(ApplicationLogsResponse::from))
    }

    /// Lines of the logs of a workflow's pods, or of one of them: over a WebSocket, or a POST that accepts `text/event-stream`. It
    /// takes the server of Argo Workflows. The last item is `done`.
    async fn workflow_logs(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
        pod_name: Option<String>,
        #[graphql(desc = "`main` without it.")] container: Option<String>,
        options: Option<WorkflowLogsOptionsInput>,
    ) -> Result<impl Stream<Item = WorkflowLogsResponse>> {
        let (services, caller) = (services(context)?, caller(context)?);
        let subject = Subject { namespace, name: Some(workflow_name), ..Subject::default() };
        let detail = pod_name.as_deref().map(pod_told).unwrap_or_default();
        let invocation = Invocation::new(Operation::WORKFLOW_LOGS, subject.clone()).of(detail);
        let open = async |within| {
            let query = query_of_workflow((pod_name, container), options.unwrap_or_default())?;
            let name = subject.name.as_deref().unwrap_or_default();
            services.workflows.logs(&subject.namespace, name, &query, within).await
        };
        let begun = follow(services, caller, invocation, LogSource::Workflows, open).await;
        Ok(begun.map_err(|error| error.graphql())?.items().map(WorkflowLogsResponse::from))
    }

    /// Lines of the logs of the runtime's own pods, or of those of one component, for admins: over a WebSocket, or a POST that
    /// accepts `text/event-stream`. The last item is `done`.
    async fn component_logs(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Such as `reporter`; none: all.")] component_name: Option<String>,
        options: Option<ComponentLogsOptionsInput>,
    ) -> Result<impl Stream<Item = ComponentLogResponse>> {
        let (services, caller) = (services(context)?, caller(context)?);
        let invocation = Invocation::new(Operation::COMPONENT_LOGS, Subject::default());
        let invocation = match &component_name {
            Some(name) => invocation.of(format!("component {name}")),
            None => invocation,
        };
        let begun = async {
            let grant =
                StreamGrant::begin(&services.dispatcher, services.streams.place()?, caller, invocation)
                    .await?;
            let options = options.unwrap_or_default();
            let wanted = WantedLogs {
                component: component_name,
                follow: options.follow.unwrap_or(false),
                tail_lines: options.tail_lines.unwrap_or(LINES).clamp(1, MOST),
                since_seconds: since(options.since_seconds, options.since_time.as_deref())?,
            };
            services.components.clone().begin(wanted, grant).await
        };
        let begun = begun.await.map_err(|error: ActError| error.graphql())?;
        Ok(begun.map(ComponentLogResponse::from))
    }
}
