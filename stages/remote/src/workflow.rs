//! `gitops-runtime workflow`: workflows of a namespace of a runtime.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::act::{Act, Progress, wait};
use crate::arguments::act::{AppProxyArgs, WaitArgs};
use crate::arguments::workflow::{Logs as Given, NamespaceArgs, Submit, WorkflowChangeArgs, WorkflowCommand};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::logs::Logs;
use crate::platform::{Platform, Rows, read, read_all};
use crate::proxy::Proxy;
use crate::show::{Cell, Column, Output, Screen, age, document, facts, moment, plain, table};
use crate::watch::Watched;

/// Workflows that are asked for at a time: more than a runtime tells.
const MOST: usize = 1_000;
const FIELDS: &str = "metadata { name namespace } uid phase message progress workflowTemplate suspended createdAt startedAt finishedAt";

/// What is done to one that failed.
const RETRY: &str = "retry a workflow";

const COLUMNS: &[Column] = &[
    Column::new("NAME").path(),
    Column::new("PHASE"),
    Column::new("PROGRESS").rank(3),
    Column::new("AGE").rank(1),
    Column::new("TOOK").rank(4),
    Column::new("TEMPLATE").long().rank(5),
    Column::new("MESSAGE").long().rank(2),
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Workflow {
    metadata: Meta,
    phase: Option<String>,
    message: Option<String>,
    progress: Option<String>,
    workflow_template: Option<String>,
    suspended: bool,
    created_at: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Meta {
    name: String,
}

impl Workflow {
    fn phase(&self) -> &str {
        match self.phase.as_deref().filter(|phase| !phase.is_empty()) {
            Some("Running") if self.suspended => "Suspended",
            Some(phase) => phase,
            None => "Pending",
        }
    }

    fn has_ended(&self) -> bool {
        matches!(self.phase.as_deref(), Some("Succeeded" | "Failed" | "Error"))
    }

    /// How far it is, and whether something could be done: to one that is to be retried where something of it failed, and else to
    /// one that is not over.
    fn standing(&self, is_retried: bool) -> String {
        let can = match is_retried {
            true => matches!(self.phase.as_deref(), Some("Failed" | "Error")),
            false => !self.has_ended(),
        };
        let progress = self.progress.as_deref().map(|text| format!(", {text} done")).unwrap_or_default();
        let nothing = if can { "" } else { ": nothing could be done" };
        plain(&format!("it is {}{progress}{nothing}", self.phase())) + "\n"
    }

    fn said(&self) -> String {
        let first = self.message.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
        if first.is_empty() { String::new() } else { format!(": {}", plain(first)) }
    }

    fn took(&self) -> String {
        let ended = self.finished_at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
        ended.map(|ended| age(self.started_at.as_deref(), ended)).unwrap_or_default()
    }
}

/// A namespace of a runtime, and who is asked about it.
struct RuntimeNamespace {
    proxy: Proxy,
    namespace: String,
}

impl RuntimeNamespace {
    async fn find(within: &NamespaceArgs, environment: &Environment) -> Result<Self, RemoteError> {
        let runtime = match (&within.runtime, &within.namespace) {
            (Some(runtime), Some(namespace)) => (runtime.clone(), namespace.clone()),
            _ => Self::known(within, environment).await?,
        };
        Ok(Self { proxy: Proxy::find(&within.way, &runtime.0, environment).await?, namespace: runtime.1 })
    }

    /// What is not said, as far as there is no choice.
    async fn known(
        within: &NamespaceArgs,
        environment: &Environment,
    ) -> Result<(String, String), RemoteError> {
        let platform = Platform::find(&within.way.place, environment).await?;
        let query = "query Runtimes($pagination: SlicePaginationArgs) { runtimes(pagination: $pagination) { pageInfo { endCursor hasNextPage } edges { node { metadata { name namespace } } } } }";
        let mut all = platform.rows("list runtimes", query, &json!({}), "runtimes", 1_000).await?.nodes;
        let text = |one: &Value, part: &str| one["metadata"][part].as_str().map(str::to_owned);
        if let Some(wanted) = &within.runtime {
            all.retain(|one| text(one, "name").as_ref() == Some(wanted));
        }
        let one = match (&all[..], &within.runtime) {
            ([one], _) => one,
            ([], Some(runtime)) => {
                return Err(RemoteError::Missing(format!(
                    "there is no runtime '{runtime}' that you see: `gitops-runtime runtime list` shows those that there are"
                )));
            }
            ([], None) => return Err(RemoteError::Missing("there is no runtime that you see".to_owned())),
            (many, _) => {
                let names: Vec<String> = many.iter().filter_map(|one| text(one, "name")).take(10).collect();
                let said =
                    format!("there are several runtimes: name one with --runtime, of {}", names.join(", "));
                return Err(RemoteError::Usage(said));
            }
        };
        let name = text(one, "name").unwrap_or_default();
        match within.namespace.clone().or_else(|| text(one, "namespace")) {
            Some(namespace) => Ok((name, namespace)),
            None => Err(RemoteError::Usage(format!(
                "the runtime {name} never said which namespace it is in: name one with --namespace"
            ))),
        }
    }

    fn variables(&self, name: &str) -> Value {
        json!({"namespace": self.namespace, "workflowName": name})
    }

    /// So many of the newest, of those that have these labels.
    async fn newest(&self, most: usize, labels: &[String]) -> Result<Vec<Value>, RemoteError> {
        let mut variables = json!({"namespace": self.namespace, "first": most.min(MOST)});
        // A runtime of a former version knows of no labels.
        let (given, by) = match labels.is_empty() {
            true => ("", ""),
            false => (", $labels: [String!]", ", labels: $labels"),
        };
        if !labels.is_empty() {
            variables["labels"] = json!(labels);
        }
        let query = format!(
            "query Workflows($namespace: String!, $first: Int{given}) {{ workflows(namespace: $namespace, first: $first{by}) {{ {FIELDS} }} }}"
        );
        self.proxy.get("list workflows", &query, variables, "workflows").await
    }

    async fn one(&self, name: &str) -> Result<Value, RemoteError> {
        let query = format!(
            "query Workflow($namespace: String!, $workflowName: String!) {{ workflow(namespace: $namespace, workflowName: $workflowName) {{ {FIELDS} }} }}"
        );
        self.proxy.get("read a workflow", &query, self.variables(name), "workflow").await
    }

    /// Waits until a workflow is as it should be: `is_so` says so of one that has not ended, which is told how it did.
    async fn waited(
        &self,
        name: &str,
        waiting: &WaitArgs,
        screen: &Screen,
        is_so: &dyn Fn(&Workflow) -> Option<bool>,
    ) -> Result<(), RemoteError> {
        let title = plain(&format!("{}/{name}", self.namespace));
        let look = async || {
            let now: Workflow = read(self.one(name).await?)?;
            let told = format!("{title} is {}{}", plain(now.phase()), now.said());
            Ok(match is_so(&now) {
                Some(true) => Progress::Done(told),
                Some(false) => Progress::Failed(told),
                None => {
                    let progress = now.progress.as_deref().map(|text| format!(", {} done", plain(text)));
                    Progress::Pending(format!("{}{}", plain(now.phase()), progress.unwrap_or_default()))
                }
            })
        };
        wait(waiting, screen, look).await
    }
}

/// The app proxy of a runtime that may be left out where there is no choice.
pub(crate) async fn proxy(
    runtime: Option<&str>,
    way: &AppProxyArgs,
    environment: &Environment,
) -> Result<Proxy, RemoteError> {
    // No namespace is asked about, so that it need not be known.
    let namespace = Some(String::new());
    let within = NamespaceArgs { runtime: runtime.map(str::to_owned), namespace, way: way.clone() };
    Ok(RuntimeNamespace::find(&within, environment).await?.proxy)
}

/// It succeeded, or ended otherwise.
fn succeeded(now: &Workflow) -> Option<bool> {
    now.has_ended().then(|| now.phase.as_deref() == Some("Succeeded"))
}

fn ended(now: &Workflow) -> Option<bool> {
    now.has_ended().then_some(true)
}

fn suspended(now: &Workflow) -> Option<bool> {
    (now.suspended || now.has_ended()).then_some(now.suspended)
}

fn resumed(now: &Workflow) -> Option<bool> {
    (!now.suspended || now.has_ended()).then_some(true)
}

pub(crate) async fn run(
    command: &WorkflowCommand,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    match command {
        WorkflowCommand::List { limit, labels, watch, shown, within } => {
            let within = RuntimeNamespace::find(within, environment).await?;
            let most = usize::try_from(limit.get()).unwrap_or(usize::MAX);
            list(&within, (most, labels), (shown.output, *watch), screen).await
        }
        WorkflowCommand::Get { name, watch, shown, within } => {
            let within = RuntimeNamespace::find(within, environment).await?;
            let show = |rows: &[Value], _| match (rows, shown.output) {
                ([found], Output::Json | Output::Yaml) => document(found, shown.output),
                (_, Output::Name) => Ok(plain(name) + "\n"),
                ([found], _) => Ok(one(&read(found.clone())?, screen)),
                _ => Ok(String::new()),
            };
            if *watch {
                let watched = Watched { screen, output: shown.output, id, show: &show };
                return watched.run(async || Ok(vec![within.one(name).await?].into())).await;
            }
            screen.say(&show(&[within.one(name).await?], true)?)
        }
        WorkflowCommand::Logs(given) => logs(given, screen, environment).await,
        WorkflowCommand::Submit(given) => submit(given, screen, environment).await,
        WorkflowCommand::Retry(done) => {
            let query = "mutation Retry($namespace: String!, $workflowName: String!) { retryWorkflow(namespace: $namespace, workflowName: $workflowName) { metadata { name } } }";
            let what = (RETRY, "do once more what failed of", "is tried again", false);
            act(done, what, query, &succeeded, screen, environment).await
        }
        WorkflowCommand::Resubmit(done) => resubmit(done, screen, environment).await,
        WorkflowCommand::Terminate(done) => {
            let query = "mutation Terminate($namespace: String!, $workflowName: String!) { terminateWorkflow(namespace: $namespace, workflowName: $workflowName) { metadata { name } } }";
            let what = ("end a workflow", "end at once, without exit handlers,", "is being ended", true);
            act(done, what, query, &ended, screen, environment).await
        }
        WorkflowCommand::Stop(done) => {
            let query = "mutation Stop($namespace: String!, $workflowName: String!) { stopWorkflow(namespace: $namespace, workflowName: $workflowName) { metadata { name } } }";
            let what = ("stop a workflow", "stop", "is being stopped", true);
            act(done, what, query, &ended, screen, environment).await
        }
        WorkflowCommand::Suspend(done) => {
            let query = "mutation Suspend($namespace: String!, $workflowName: String!) { suspendWorkflow(namespace: $namespace, workflowName: $workflowName) { metadata { name } } }";
            let what = ("suspend a workflow", "suspend", "is suspended", false);
            act(done, what, query, &suspended, screen, environment).await
        }
        WorkflowCommand::Resume(done) => {
            let query = "mutation Resume($namespace: String!, $workflowName: String!) { resumeWorkflow(namespace: $namespace, workflowName: $workflowName) { metadata { name } } }";
            let what = ("resume a workflow", "resume", "is resumed", false);
            act(done, what, query, &resumed, screen, environment).await
        }
    }
}

async fn act(
    done: &WorkflowChangeArgs,
    (act, does, is, destroys): (&'static str, &str, &str, bool),
    query: &str,
    is_so: &dyn Fn(&Workflow) -> Option<bool>,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    let within = RuntimeNamespace::find(&done.within, environment).await?;
    let title = plain(&format!("{}/{}", within.namespace, done.name));
    let act = Act {
        act,
        does: format!("{does} the workflow {title}"),
        done: format!("the workflow {title} {is}"),
        destroys,
        query,
        variables: within.variables(&done.name),
    };
    match act.carry_out(&within.proxy, &done.careful, screen).await? {
        Some(_) if done.waiting.wait => within.waited(&done.name, &done.waiting, screen, is_so).await,
        Some(_) => Ok(()),
        None => {
            let now: Workflow = read(within.one(&done.name).await?)?;
            screen.say(&now.standing(act.act == RETRY))
        }
    }
}

/// Says which workflow was made, and waits for it.
async fn made(
    within: &RuntimeNamespace,
    act: &Act<'_>,
    careful: &crate::arguments::act::ConfirmArgs,
    (field, waiting): (&str, &WaitArgs),
    screen: &Screen,
) -> Result<(), RemoteError> {
    let Some(mut data) = act.carry_out(&within.proxy, careful, screen).await? else { return Ok(()) };
    let made = data.remove(field).unwrap_or_default();
    let name = made["newWorkflowName"].as_str().unwrap_or_default();
    screen.tell(&format!("the workflow {} was begun", plain(&format!("{}/{name}", within.namespace))))?;
    if waiting.wait { within.waited(name, waiting, screen, &succeeded).await } else { Ok(()) }
}

async fn submit(given: &Submit, screen: &Screen, environment: &Environment) -> Result<(), RemoteError> {
    let within = RuntimeNamespace::find(&given.within, environment).await?;
    let parameter = |(name, value): &(String, String)| json!({"name": name, "value": value});
    let with = given.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    let with: Vec<String> = with.collect();
    let with = if with.is_empty() { String::new() } else { format!(" with {}", with.join(", ")) };
    let act = Act {
        act: "begin a workflow",
        does: plain(&format!(
            "begin a workflow of the template {} in {}{with}",
            given.template, within.namespace
        )),
        done: String::new(),
        destroys: false,
        query: "mutation Submit($args: CreateWorkflowFromTemplateArgs!) { createWorkflowFromTemplate(args: $args) { newWorkflowName } }",
        variables: json!({"args": {
            "namespace": within.namespace,
            "workflowTemplateName": given.template,
            "clusterScope": given.cluster_scope,
            "entrypoint": given.entrypoint,
            "generateName": given.generate_name,
            "parameters": given.parameters.iter().map(parameter).collect::<Vec<_>>(),
        }}),
    };
    made(&within, &act, &given.careful, ("createWorkflowFromTemplate", &given.waiting), screen).await
}

async fn logs(given: &Given, screen: &Screen, environment: &Environment) -> Result<(), RemoteError> {
    let within = RuntimeNamespace::find(&given.within, environment).await?;
    let mut variables = within.variables(&given.name);
    variables["podName"] = json!(given.pod);
    variables["container"] = json!(given.container);
    variables["options"] = json!({
        "follow": given.lines.follow,
        "grep": given.grep,
        "sinceSeconds": given.lines.since.map(|since| since.as_secs()),
        "tailLines": given.lines.tail,
    });
    let of = plain(&format!("{}/{}", within.namespace, given.name));
    let logs = Logs {
        query: "subscription Logs($namespace: String!, $workflowName: String!, $podName: String, $container: String, $options: WorkflowLogsOptionsInput) { workflowLogs(namespace: $namespace, workflowName: $workflowName, podName: $podName, container: $container, options: $options) { data { content podName timestamp } error done } }",
        field: "workflowLogs",
        variables,
        of: &of,
        timestamps: given.lines.timestamps,
        pods: given.pod.is_none(),
    };
    logs.show(&within.proxy, screen).await
}

async fn resubmit(
    done: &WorkflowChangeArgs,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    let within = RuntimeNamespace::find(&done.within, environment).await?;
    let act = Act {
        act: "begin a workflow again",
        does: plain(&format!("begin a workflow like {}/{}", within.namespace, done.name)),
        done: String::new(),
        destroys: false,
        query: "mutation Resubmit($namespace: String!, $workflowName: String!) { resubmitWorkflow(namespace: $namespace, workflowName: $workflowName) { newWorkflowName } }",
        variables: within.variables(&done.name),
    };
    made(&within, &act, &done.careful, ("resubmitWorkflow", &done.waiting), screen).await
}

/// What shells offer of a workflow.
#[derive(Debug)]
pub(crate) struct WorkflowSummary {
    pub(crate) name: String,
    pub(crate) phase: String,
    /// What it was made of.
    pub(crate) template: Option<String>,
}

/// The newest workflows.
pub(crate) async fn newest(
    within: &NamespaceArgs,
    most: usize,
    environment: &Environment,
) -> Result<Vec<WorkflowSummary>, RemoteError> {
    let all: Vec<Workflow> =
        read_all(&RuntimeNamespace::find(within, environment).await?.newest(most, &[]).await?)?;
    let one = |one: Workflow| {
        let phase = one.phase().to_owned();
        WorkflowSummary { name: one.metadata.name, phase, template: one.workflow_template }
    };
    Ok(all.into_iter().map(one).collect())
}

fn id(found: &Value) -> String {
    found["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

async fn list(
    within: &RuntimeNamespace,
    (most, labels): (usize, &[String]),
    (output, watch): (Output, bool),
    screen: &Screen,
) -> Result<(), RemoteError> {
    let show = |rows: &[Value], header: bool| shown(rows, output, header, screen);
    if watch {
        let watched = Watched { screen, output, id, show: &show };
        let fetch = async || {
            let mut nodes = within.newest(most.saturating_add(1), labels).await?;
            let more = nodes.len() > most;
            nodes.truncate(most);
            Ok(Rows { more, ..nodes.into() })
        };
        return watched.run(fetch).await;
    }
    // One more is asked for, to know whether there is.
    let mut found = within.newest(most.saturating_add(1), labels).await?;
    let more = found.len() > most;
    found.truncate(most);
    if found.is_empty() && matches!(output, Output::Table | Output::Wide) {
        let which = if labels.is_empty() { "workflow" } else { "such workflow" };
        screen.note(&format!("there is no {which} in {} of {}", within.namespace, within.proxy.runtime));
        return Ok(());
    }
    screen.say(&show(&found, true)?)?;
    if more {
        screen.note(&format!("there are more than {most}: --limit shows more"));
    }
    Ok(())
}

fn shown(rows: &[Value], output: Output, header: bool, screen: &Screen) -> Result<String, RemoteError> {
    match output {
        Output::Json | Output::Yaml => return document(rows, output),
        Output::Name => return Ok(rows.iter().map(|one| plain(&id(one)) + "\n").collect()),
        Output::Table | Output::Wide => {}
    }
    let (all, now): (Vec<Workflow>, _) = (read_all(rows)?, Timestamp::now());
    let row = |one: &Workflow| -> Vec<Cell> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        vec![
            (&*one.metadata.name).into(),
            Cell::state(one.phase()),
            text(&one.progress).into(),
            age(one.created_at.as_deref(), now).into(),
            one.took().into(),
            text(&one.workflow_template).into(),
            text(&one.message).lines().next().unwrap_or_default().into(),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    Ok(table(COLUMNS, &rows, output == Output::Wide, header, screen))
}

fn one(one: &Workflow, screen: &Screen) -> String {
    let now = Timestamp::now();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    facts(
        &[
            ("Name", one.metadata.name.clone()),
            ("Phase", one.phase().to_owned()),
            ("Message", text(&one.message)),
            ("Progress", text(&one.progress)),
            ("Template", text(&one.workflow_template)),
            ("Created", moment(one.created_at.as_deref(), now)),
            ("Started", moment(one.started_at.as_deref(), now)),
            ("Finished", moment(one.finished_at.as_deref(), now)),
            ("Took", one.took()),
        ],
        screen,
    )
}
