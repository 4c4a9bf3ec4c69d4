//! `gitops-runtime app tree`: what an application consists of.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::AppConnection;
use super::find::AppName;
use super::resource_name::ResourceName;
use crate::arguments::app::AppNameArgs;
use crate::error::RemoteError;
use crate::platform::{Platform, read};
use crate::resource::Node;
use crate::show::{Cell, Column, Output, Screen, age, document, table};

const COLUMNS: &[Column] = &[
    Column::new("RESOURCE").long(),
    Column::new("HEALTH"),
    Column::new("SYNC").rank(1),
    Column::new("NAMESPACE").rank(2),
    Column::new("SINCE").rank(3),
    Column::new("VERSION").wide().rank(5),
    Column::new("MESSAGE").long().rank(4),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportedResource {
    resource: ResourceName,
    health_status: Option<String>,
    sync_status: Option<String>,
    health_message: Option<String>,
    since: String,
}

pub(super) async fn run(
    platform: &Platform,
    named: &AppNameArgs,
    output: Output,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let fields = "healthStatus syncStatus healthMessage lastReportAt resources { resource { apiVersion kind namespace name } healthStatus syncStatus healthMessage since }";
    let (name, mut found) = platform.application(named, fields).await?;
    let resources = found["resources"].take();
    screen.say(&match output {
        Output::Json | Output::Yaml => document(&resources, output)?,
        Output::Name => {
            let all: Vec<ReportedResource> = read(resources)?;
            let line = |one: &ReportedResource| format!("{}/{}\n", one.resource.kind, one.resource.name);
            crate::show::lines(&all.iter().map(line).collect::<String>())
        }
        Output::Table | Output::Wide => {
            let all: Vec<ReportedResource> = read(resources)?;
            table(COLUMNS, &rows(&name, &found, all), output == Output::Wide, true, screen)
        }
    })
}

/// The application, and what is below it.
fn rows(name: &AppName, application: &Value, all: Vec<ReportedResource>) -> Vec<Vec<Cell>> {
    let now = Timestamp::now();
    let state = |state: Option<&str>| state.map_or_else(|| Cell::from(""), Cell::state);
    let first = |text: Option<&str>| text.and_then(|text| text.lines().next()).unwrap_or_default().to_owned();
    let of = |field: &str| application[field].as_str();
    let mut rows = vec![vec![
        format!("Application/{}", name.name).into(),
        state(of("healthStatus")),
        state(of("syncStatus")),
        (&*name.namespace).into(),
        "".into(),
        "argoproj.io/v1alpha1".into(),
        first(of("healthMessage")).into(),
    ]];
    let last = all.len().saturating_sub(1);
    for (index, one) in all.into_iter().enumerate() {
        let branch = if index == last { "└─" } else { "├─" };
        rows.push(vec![
            format!("{branch} {}/{}", one.resource.kind, one.resource.name).into(),
            state(one.health_status.as_deref()),
            state(one.sync_status.as_deref()),
            one.resource.namespace.into(),
            age(Some(&one.since), now).into(),
            one.resource.api_version.into(),
            first(one.health_message.as_deref()).into(),
        ]);
    }
    rows
}

const LIVE: &[Column] = &[
    Column::new("RESOURCE").long(),
    Column::new("HEALTH"),
    Column::new("NAMESPACE").rank(2),
    Column::new("AGE").rank(3),
    Column::new("VERSION").wide().rank(5),
    Column::new("MESSAGE").long().rank(4),
];

/// A circle of parents ends at this depth.
const DEPTH: usize = 20;

/// What belongs to an application now, as its runtime knows it.
pub(super) async fn run_live(
    connection: &AppConnection,
    output: Output,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { proxy, name, .. } = connection;
    let all = proxy.tree(name).await?;
    screen.say(&match output {
        Output::Json | Output::Yaml => {
            let all = all.iter().map(|node| {
                let mut one = node.variables();
                one["uid"] = node.uid.clone().into();
                one["parents"] = node.parent_refs.iter().filter_map(|parent| parent.uid.clone()).collect();
                one["health"] = node.state().into();
                one["message"] = node.health.as_ref().and_then(|health| health.message.clone()).into();
                one["createdAt"] = node.created_at.clone().into();
                one
            });
            document(&Value::Array(all.collect()), output)?
        }
        Output::Name => all.iter().map(|node| node.title() + "\n").collect(),
        Output::Table | Output::Wide => {
            let mut rows = vec![vec![
                format!("Application/{}", name.name).into(),
                "".into(),
                (&*name.namespace).into(),
                "".into(),
                "argoproj.io/v1alpha1".into(),
                "".into(),
            ]];
            let is_known = |uid: &Option<String>| uid.is_some() && all.iter().any(|one| one.uid == *uid);
            let is_root = |node: &&Node| !node.parent_refs.iter().any(|parent| is_known(&parent.uid));
            let roots: Vec<&Node> = all.iter().filter(is_root).collect();
            below(&roots, &all, "", &mut rows);
            table(LIVE, &rows, output == Output::Wide, true, screen)
        }
    })
}

/// Rows of some nodes and of all below them.
fn below(nodes: &[&Node], all: &[Node], indent: &str, rows: &mut Vec<Vec<Cell>>) {
    let now = Timestamp::now();
    let last = nodes.len().saturating_sub(1);
    for (index, node) in nodes.iter().enumerate() {
        let (branch, deeper) = if index == last { ("└─", "   ") } else { ("├─", "│  ") };
        let message = node.health.as_ref().and_then(|health| health.message.as_deref()).unwrap_or_default();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let group = text(&node.group);
        let version = text(&node.version);
        rows.push(vec![
            format!("{indent}{branch} {}", node.title()).into(),
            Cell::state(node.state()),
            text(&node.namespace).into(),
            age(node.created_at.as_deref(), now).into(),
            (if group.is_empty() { version } else { format!("{group}/{version}") }).into(),
            message.lines().next().unwrap_or_default().into(),
        ]);
        let is_below =
            |one: &&Node| node.uid.is_some() && one.parent_refs.iter().any(|parent| parent.uid == node.uid);
        let children: Vec<&Node> = all.iter().filter(is_below).collect();
        let indent = format!("{indent}{deeper}");
        if indent.chars().count() < DEPTH * 3 {
            below(&children, all, &indent, rows);
        }
    }
}
