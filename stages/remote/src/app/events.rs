//! `gitops-runtime app events`: the states that an application and its resources were reported in.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::AppConnection;
use super::history::time;
use crate::arguments::app::AppNameArgs;
use crate::error::RemoteError;
use crate::platform::{Platform, read};
use crate::show::{Cell, Column, Output, Screen, age, document, plain, revision, table};

/// States that are asked for at a time.
const PAGE: u32 = 200;

const COLUMNS: &[Column] = &[
    Column::new("AT").rank(5),
    Column::new("AGE"),
    Column::new("OF").path(),
    Column::new("HEALTH"),
    Column::new("SYNC").rank(2),
    Column::new("REVISION").rank(3),
    Column::new("REPORTS").right().wide().rank(4),
    Column::new("MESSAGE").long().rank(1),
];

/// The place of what it is of.
const OF: usize = 2;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transition {
    resource: Option<Resource>,
    at: String,
    reports: i64,
    deleted: bool,
    health_status: Option<String>,
    sync_status: Option<String>,
    health_message: Option<String>,
    revision: Option<String>,
}

#[derive(Deserialize)]
struct Resource {
    kind: String,
    name: String,
}

pub(super) async fn run(
    platform: &Platform,
    named: &AppNameArgs,
    limit: u32,
    output: Output,
    screen: &Screen,
) -> Result<(), RemoteError> {
    const FIELDS: &str = "timeline(first: $first, before: $before) { id resource { apiVersion kind namespace name } at lastAt reports current deleted healthStatus syncStatus healthMessage revision }";
    let (name, _) = platform.application(named, "uid").await?;
    let query = format!(
        "query Timeline($runtime: String!, $namespace: String!, $name: String!, $first: Int, $before: Int) {{ application(runtime: $runtime, namespace: $namespace, name: $name) {{ {FIELDS} }} }}"
    );
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut all: Vec<Value> = Vec::new();
    let mut before = Value::Null;
    while all.len() < limit {
        let first = PAGE.min(u32::try_from(limit - all.len()).unwrap_or(PAGE));
        let mut variables = name.variables();
        variables["first"] = json!(first);
        variables["before"] = before;
        let mut page: Value =
            platform.get("read what happened to an application", &query, variables, "application").await?;
        let page = page["timeline"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let Some(last) = page.last() else { break };
        before = last["id"].clone();
        let is_last = page.len() < usize::try_from(first).unwrap_or(0);
        all.extend(page);
        if is_last {
            break;
        }
    }
    if matches!(output, Output::Json | Output::Yaml) {
        return screen.say(&document(&Value::Array(all), output)?);
    }
    let all: Vec<Transition> = all.into_iter().map(read).collect::<Result<_, _>>()?;
    let now = Timestamp::now();
    let rows: Vec<_> = all.into_iter().map(|one| row(one, now)).collect();
    screen.say(&match output {
        Output::Name => {
            let bare = rows.iter().map(|row| vec![row[OF].clone()]).collect::<Vec<_>>();
            table(&COLUMNS[OF..=OF], &bare, false, false, &Screen { width: None, ..screen.clone() })
        }
        _ => table(COLUMNS, &rows, output == Output::Wide, true, screen),
    })
}

fn row(one: Transition, now: Timestamp) -> Vec<Cell> {
    let state = |state: Option<String>| state.as_deref().map_or_else(|| Cell::from(""), Cell::state);
    let of = match &one.resource {
        Some(resource) => format!("{}/{}", resource.kind, resource.name),
        None => "the application".to_owned(),
    };
    let message = one.health_message.unwrap_or_default();
    vec![
        time(&one.at).into(),
        age(Some(&one.at), now).into(),
        of.into(),
        if one.deleted { "Gone".into() } else { state(one.health_status) },
        state(one.sync_status),
        revision(&one.revision.unwrap_or_default()).into(),
        one.reports.to_string().into(),
        message.lines().next().unwrap_or_default().into(),
    ]
}

/// An event of the cluster.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    r#type: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    count: Option<i64>,
    last_timestamp: Option<String>,
    involved_object: Option<InvolvedObject>,
}

#[derive(Deserialize)]
struct InvolvedObject {
    kind: Option<String>,
    name: Option<String>,
}

impl Event {
    /// What it is of.
    fn of(&self) -> String {
        let part = |part: fn(&InvolvedObject) -> &Option<String>| {
            self.involved_object.as_ref().and_then(|of| part(of).as_deref()).unwrap_or_default()
        };
        match (part(|of| &of.kind), part(|of| &of.name)) {
            ("", "") => String::new(),
            (kind, name) => format!("{kind}/{name}"),
        }
    }
}

const LIVE: &[Column] = &[
    Column::new("LAST"),
    Column::new("TYPE").rank(3),
    Column::new("REASON").long(),
    Column::new("OF").path().rank(2),
    Column::new("COUNT").right().rank(4),
    Column::new("MESSAGE").long().rank(1),
];

/// The cluster's own events of an application, or of a resource of it.
pub(super) async fn run_live(
    connection: &AppConnection,
    resource: Option<&str>,
    limit: usize,
    output: Output,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { proxy, name, .. } = connection;
    let query = "query Events($application: ApplicationId!, $resource: ResourceId) { applicationEvents(application: $application, resource: $resource) { type reason message count firstTimestamp lastTimestamp involvedObject { kind namespace name } source } }";
    let resource = match resource {
        Some(text) => proxy.resource(name, text).await?.variables(),
        None => Value::Null,
    };
    let variables = json!({"application": name.variables(), "resource": resource});
    let found: Value = proxy.get("read events", query, variables, "applicationEvents").await?;
    let mut all = match found {
        Value::Array(all) => newest_first(all),
        _ => Vec::new(),
    };
    all.truncate(limit);
    if matches!(output, Output::Json | Output::Yaml) {
        return screen.say(&document(&Value::Array(all), output)?);
    }
    if all.is_empty() {
        screen.note(&format!("the cluster remembers no event of {name}"));
        return Ok(());
    }
    let all: Vec<Event> = all.into_iter().map(read).collect::<Result<_, _>>()?;
    if output == Output::Name {
        let line = |one: &Event| plain(&one.of()) + "\n";
        return screen.say(&all.iter().map(line).collect::<String>());
    }
    let now = Timestamp::now();
    let row = |one: Event| -> Vec<Cell> {
        let of = one.of();
        let message = one.message.unwrap_or_default();
        vec![
            age(one.last_timestamp.as_deref(), now).into(),
            Cell::state(&one.r#type.unwrap_or_default()),
            one.reason.unwrap_or_default().into(),
            of.into(),
            one.count.map(|count| count.to_string()).unwrap_or_default().into(),
            message.lines().next().unwrap_or_default().into(),
        ]
    };
    let rows: Vec<_> = all.into_iter().map(row).collect();
    screen.say(&table(LIVE, &rows, output == Output::Wide, true, screen))
}

/// By when they were last seen, whatever form that is written in; those that do not say it come last.
fn newest_first(mut events: Vec<Value>) -> Vec<Value> {
    let at = |one: &Value| one["lastTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    events.sort_by_key(|one| std::cmp::Reverse(at(one)));
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_the_order_of_their_times_in_whatever_form_these_are_written() {
        let newest = [
            json!("2026-11-24T10:00:00.500000Z"),
            json!("2026-11-24T10:00:00Z"),
            json!("2026-11-24T11:59:59+02:00"),
            json!("2026-11-24T09:00:00Z"),
            Value::Null,
        ];
        let event = |at: &Value| json!({"lastTimestamp": at});
        let expected: Vec<Value> = newest.iter().map(event).collect();
        assert_eq!(newest_first(newest.iter().rev().map(event).collect()), expected);
    }
}
