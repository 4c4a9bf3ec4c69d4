//! `gitops-runtime app history`: what was deployed.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::AppConnection;
use super::find::AppName;
use crate::arguments::app::AppNameArgs;
use crate::error::RemoteError;
use crate::platform::{Platform, read};
use crate::proxy::Proxy;
use crate::show::{Cell, Column, Output, Screen, age, document, plain, revision, table};

const COLUMNS: &[Column] = &[
    Column::new("STARTED").rank(3),
    Column::new("AGE"),
    Column::new("PHASE"),
    Column::new("REVISION"),
    Column::new("BY").long().rank(1),
    Column::new("AUTHOR").long().rank(2),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deployment {
    started_at: String,
    phase: String,
    revision: String,
    initiated_by: String,
    commit_author: String,
}

const LIVE: &[Column] = &[
    Column::new("ID").right(),
    Column::new("DEPLOYED").rank(3),
    Column::new("AGE"),
    Column::new("REVISION").long(),
    Column::new("BY").long().rank(1),
];

/// An entry of Argo CD's history of an application, as its runtime tells it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryEntry {
    /// The number that a rollback takes.
    pub(crate) id: i64,
    revision: Option<String>,
    #[serde(default)]
    revisions: Vec<String>,
    deployed_at: Option<String>,
    initiated_by: Option<String>,
    automated: bool,
}

const HISTORY: &str = "query History($application: ApplicationId!) { applicationHistory(application: $application) { id revision revisions deployStartedAt deployedAt initiatedBy automated } }";
const READS: &str = "read what was deployed";

impl HistoryEntry {
    /// Its revisions, one for each source.
    pub(crate) fn all_revisions(&self) -> Vec<&str> {
        let own = self.revision.iter().filter(|text| !text.is_empty());
        own.chain(&self.revisions).map(String::as_str).collect()
    }

    /// The same, each as short as people write it.
    pub(crate) fn short_revisions(&self) -> String {
        self.all_revisions().into_iter().map(revision).collect::<Vec<_>>().join(" ")
    }
}

/// Argo CD's history of an application, as its runtime tells it: the newest first.
pub(crate) async fn history_of(proxy: &Proxy, name: &AppName) -> Result<Vec<HistoryEntry>, RemoteError> {
    proxy.get(READS, HISTORY, json!({"application": name.variables()}), "applicationHistory").await
}

pub(super) async fn run_live(
    connection: &AppConnection,
    limit: u32,
    output: Output,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let AppConnection { proxy, name, .. } = connection;
    let variables = json!({"application": name.variables()});
    let mut all: Value = proxy.get(READS, HISTORY, variables, "applicationHistory").await?;
    if let Some(all) = all.as_array_mut() {
        all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    if matches!(output, Output::Json | Output::Yaml) {
        return screen.say(&document(&all, output)?);
    }
    let all: Vec<HistoryEntry> = read(all)?;
    if output == Output::Name {
        return screen.say(&all.iter().map(|one| format!("{}\n", one.id)).collect::<String>());
    }
    let now = Timestamp::now();
    let row = |one: &HistoryEntry| -> Vec<Cell> {
        let by = match (&one.initiated_by, one.automated) {
            (Some(by), _) if !by.is_empty() => by,
            (_, true) => "Argo CD",
            _ => "",
        };
        vec![
            one.id.to_string().into(),
            one.deployed_at.as_deref().map(time).unwrap_or_default().into(),
            age(one.deployed_at.as_deref(), now).into(),
            one.short_revisions().into(),
            by.into(),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    screen.say(&table(LIVE, &rows, output == Output::Wide, true, screen))
}

pub(super) async fn run(
    platform: &Platform,
    named: &AppNameArgs,
    limit: u32,
    output: Output,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let fields = "deployments { startedAt phase revision initiatedBy commitAuthor ended }";
    let (name, mut found) = platform.application(named, fields).await?;
    let mut all = found["deployments"].take();
    if let Some(all) = all.as_array_mut() {
        all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    if matches!(output, Output::Json | Output::Yaml) {
        return screen.say(&document(&all, output)?);
    }
    let all: Vec<Deployment> = read(all)?;
    if output == Output::Name {
        return screen.say(&all.iter().map(|one| plain(&one.revision) + "\n").collect::<String>());
    }
    if all.is_empty() {
        screen.note(&format!("nothing of {name} was deployed that the platform knows of"));
        return Ok(());
    }
    let (now, wide) = (Timestamp::now(), output == Output::Wide);
    let row = |one: &Deployment| -> Vec<Cell> {
        let by = if one.initiated_by.is_empty() { "Argo CD" } else { &one.initiated_by };
        vec![
            time(&one.started_at).into(),
            age(Some(&one.started_at), now).into(),
            Cell::state(&one.phase),
            (if wide { plain(&one.revision) } else { revision(&one.revision) }).into(),
            by.into(),
            (&*one.commit_author).into(),
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    screen.say(&table(COLUMNS, &rows, wide, true, screen))
}

/// A time to the second, in UTC.
pub(super) fn time(at: &str) -> String {
    at.parse::<Timestamp>().map_or_else(|_| plain(at), |at| at.strftime("%F %TZ").to_string())
}
