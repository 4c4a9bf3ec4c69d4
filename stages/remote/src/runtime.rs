//! `gitops-runtime runtime`: runtimes, as the platform knows them.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::ListArgs;
use crate::arguments::runtime::RuntimeCommand;
use crate::download;
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::install;
use crate::platform::{Platform, read, read_all};
use crate::show::{Cell, Column, Output, Screen, age, count, document, facts, moment, plain, table, word};
use crate::watch::Watched;

const FIELDS: &str = "id metadata { name namespace } installationStatus installationType cluster accessMode ingressHost \
                      internalIngressHost runtimeVersion chartVersion managed isExternalArgoCd gitProvider repo createdAt \
                      healthStatus healthMessage lastReportAt lastHeardAt refused { reason number lastAt } errors { level code title message suggestion lastSeen }";

const COLUMNS: &[Column] = &[
    Column::new("NAME").path(),
    Column::new("STATUS"),
    Column::new("LAST REPORT").rank(1),
    Column::new("PROBLEMS").rank(2),
    Column::new("VERSION").rank(3),
    Column::new("NAMESPACE").rank(4),
    Column::new("ID").wide().rank(9),
    Column::new("CLUSTER").long().rank(5),
    Column::new("CHART").wide().rank(6),
    Column::new("ACCESS").wide().rank(7),
    Column::new("INGRESS").wide().long().rank(8),
];

#[derive(Deserialize)]
struct Meta {
    name: String,
    namespace: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Runtime {
    #[serde(default)]
    id: String,
    metadata: Meta,
    installation_status: String,
    cluster: Option<String>,
    access_mode: Option<String>,
    ingress_host: Option<String>,
    runtime_version: Option<String>,
    chart_version: Option<String>,
    git_provider: Option<String>,
    repo: Option<String>,
    created_at: String,
    health_status: Option<String>,
    health_message: Option<String>,
    last_report_at: Option<String>,
    last_heard_at: Option<String>,
    refused: Vec<Refused>,
    errors: Vec<Problem>,
}

impl Runtime {
    /// How far its installation is; and once that is complete, how it is: `UNKNOWN` is what the platform says of one that is silent.
    fn status(&self) -> &str {
        match (&*self.installation_status, self.health_status.as_deref()) {
            ("COMPLETED", Some("UNKNOWN")) => "SILENT",
            ("COMPLETED", Some(health)) => health,
            (installation, _) => installation,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Refused {
    reason: String,
    number: u64,
    last_at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Problem {
    level: String,
    title: String,
    message: String,
    suggestion: Option<String>,
    last_seen: String,
}

pub(crate) async fn run(
    command: &RuntimeCommand,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    match command {
        RuntimeCommand::Install(given) => install::install(given, true, screen, environment).await,
        RuntimeCommand::Upgrade(given) => install::install(given, false, screen, environment).await,
        RuntimeCommand::Uninstall(given) => install::uninstall(given, screen, environment).await,
        RuntimeCommand::Logs { name, output, way } => {
            download::logs(name, output.as_deref(), way, screen, environment).await
        }
        RuntimeCommand::List { listed, place } => {
            show_all(&Platform::find(place, environment).await?, listed, screen).await
        }
        RuntimeCommand::Get { name, watch, shown, place } => {
            show_one(&Platform::find(place, environment).await?, name, (shown.output, *watch), screen).await
        }
    }
}

async fn show_all(platform: &Platform, listed: &ListArgs, screen: &Screen) -> Result<(), RemoteError> {
    let (output, limit) = (listed.shown.output, listed.rows());
    let query = format!(
        "query Runtimes($pagination: SlicePaginationArgs) {{ runtimes(pagination: $pagination) {{ pageInfo {{ endCursor hasNextPage }} edges {{ node {{ {FIELDS} }} }} }} }}"
    );
    let fetch = async || platform.rows("list runtimes", &query, &json!({}), "runtimes", limit).await;
    if listed.watch {
        let show = |rows: &[Value], header: bool| list(rows, output, header, screen);
        return Watched { screen, output, id: name, show: &show }.run(fetch).await;
    }
    let found = fetch().await?;
    if found.nodes.is_empty() && matches!(output, Output::Table | Output::Wide) {
        screen.note("there is no runtime that you see");
        return Ok(());
    }
    screen.say(&list(&found.nodes, output, true, screen)?)?;
    if found.more {
        screen.note(&format!("there are more than {}: --limit shows more", found.nodes.len()));
    }
    Ok(())
}

async fn show_one(
    platform: &Platform,
    wanted: &str,
    (output, is_watched): (Output, bool),
    screen: &Screen,
) -> Result<(), RemoteError> {
    let query = format!("query Runtime($name: String!) {{ runtime(name: $name) {{ {FIELDS} }} }}");
    let fetch = async || {
        let named = json!({"name": wanted});
        let found: Value = platform.get("read a runtime", &query, named, "runtime").await?;
        if found.is_null() {
            return Err(RemoteError::Missing(format!(
                "there is no runtime '{wanted}' that you see: `gitops-runtime runtime list` shows those that there are"
            )));
        }
        Ok(vec![found])
    };
    let show = |rows: &[Value], _| match (rows, output) {
        ([found], Output::Json | Output::Yaml) => document(found, output),
        ([found], Output::Name) => Ok(name(found) + "\n"),
        ([found], _) => Ok(one(&read(found.clone())?, screen)),
        _ => Ok(String::new()),
    };
    if is_watched {
        let watched = Watched { screen, output, id: name, show: &show };
        return watched.run(async || Ok(fetch().await?.into())).await;
    }
    screen.say(&show(&fetch().await?, true)?)
}

fn name(node: &Value) -> String {
    node["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn list(rows: &[Value], output: Output, header: bool, screen: &Screen) -> Result<String, RemoteError> {
    match output {
        Output::Json | Output::Yaml => document(rows, output),
        Output::Name => Ok(rows.iter().map(|row| name(row) + "\n").collect()),
        Output::Table | Output::Wide => {
            let now = Timestamp::now();
            let runtimes: Vec<Runtime> = read_all(rows)?;
            let rows: Vec<_> = runtimes.iter().map(|one| row(one, now)).collect();
            Ok(table(COLUMNS, &rows, output == Output::Wide, header, screen))
        }
    }
}

fn row(one: &Runtime, now: Timestamp) -> Vec<Cell> {
    let text = |text: &Option<String>| Cell::from(text.clone().unwrap_or_default());
    let problems = match one.errors.len() {
        0 => String::new(),
        number => number.to_string(),
    };
    let last = match &one.last_report_at {
        Some(at) => age(Some(at), now),
        None => "never".to_owned(),
    };
    vec![
        (&*one.metadata.name).into(),
        Cell::state(one.status()),
        last.into(),
        problems.into(),
        text(&one.runtime_version),
        text(&one.metadata.namespace),
        (&*one.id).into(),
        text(&one.cluster),
        text(&one.chart_version),
        text(&one.access_mode),
        text(&one.ingress_host),
    ]
}

fn one(one: &Runtime, screen: &Screen) -> String {
    let now = Timestamp::now();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let last = match &one.last_report_at {
        Some(at) => moment(Some(at), now),
        None => "never".to_owned(),
    };
    let status = match &one.health_message {
        Some(message) if one.status() != one.installation_status => {
            format!("{}: {message}", word(one.status()))
        }
        _ => word(one.status()),
    };
    let mut shown = facts(
        &[
            ("Name", one.metadata.name.clone()),
            ("Id", one.id.clone()),
            ("Status", status),
            ("Last report", last),
            ("Heard of", one.last_heard_at.as_ref().map(|at| moment(Some(at), now)).unwrap_or_default()),
            ("Registered", moment(Some(&one.created_at), now)),
            ("Namespace", text(&one.metadata.namespace)),
            ("Cluster", text(&one.cluster)),
            ("Version", text(&one.runtime_version)),
            ("Chart", text(&one.chart_version)),
            ("Access", text(&one.access_mode)),
            ("Ingress", text(&one.ingress_host)),
            ("Git", text(&one.git_provider)),
            ("Repository", text(&one.repo)),
        ],
        screen,
    );
    for Refused { reason, number, last_at } in &one.refused {
        let told = format!("{number} not taken: {reason} (last {} ago)", age(Some(last_at), now));
        shown += &format!("\n{}\n", screen.folded(&plain(&told)));
    }
    if !one.errors.is_empty() {
        shown += &format!("\n{} it says it has:\n", count(one.errors.len(), "problem"));
    }
    for problem in &one.errors {
        let level = word(&problem.level);
        let text = format!("{level}: {}: {}", problem.title, problem.message);
        let told = format!("  {} (seen {} ago)", plain(&text), age(Some(&problem.last_seen), now));
        shown += &(screen.folded(&told) + "\n");
        if let Some(suggestion) = problem.suggestion.as_ref().filter(|text| !text.is_empty()) {
            shown += &(screen.folded(&format!("    {}", plain(suggestion))) + "\n");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime(installation: &str, health: Option<&str>, message: Option<&str>) -> Runtime {
        let node = json!({
            "metadata": {"name": "prod"}, "installationStatus": installation, "healthStatus": health,
            "healthMessage": message, "createdAt": "2026-11-25T12:00:00Z", "errors": [],
            "refused": [{"reason": "malformed", "number": 5, "lastAt": "2026-11-25T12:00:00Z"}],
        });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn once_a_runtime_is_installed_its_status_is_how_it_is() {
        let cases = [
            ("IN_PROGRESS", None, "IN_PROGRESS"),
            ("FAILED", Some("DEGRADED"), "FAILED"),
            ("COMPLETED", None, "COMPLETED"),
            ("COMPLETED", Some("HEALTHY"), "HEALTHY"),
            ("COMPLETED", Some("UNKNOWN"), "SILENT"),
        ];
        for (installation, health, status) in cases {
            assert_eq!(runtime(installation, health, None).status(), status, "{installation} {health:?}");
        }
    }

    #[test]
    fn a_silent_runtime_says_since_when_and_what_of_it_was_not_taken() {
        let screen = Screen { is_terminal: false, width: None, colour: false };
        let silent = "nothing was heard of its reporter since 2026-11-25T12:00:00Z";
        let shown = one(&runtime("COMPLETED", Some("UNKNOWN"), Some(silent)), &screen);
        assert!(shown.contains(&format!("Status:       Silent: {silent}\n")), "{shown}");
        assert!(shown.contains("\n5 not taken: malformed (last "), "{shown}");
    }
}
