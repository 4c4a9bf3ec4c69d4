//! `gitops-runtime app list`.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::find::AppName;
use crate::arguments::ListArgs;
use crate::arguments::app::FilterArgs;
use crate::error::RemoteError;
use crate::platform::{Platform, read_all};
use crate::show::{Cell, Column, Output, Screen, age, document, revision, table};
use crate::watch::Watched;

/// What programs get of an application, in lists and alone.
pub(super) const FIELDS: &str = "uid healthStatus healthMessage syncStatus revision deleted lastReportAt project environment \
                                 cluster destinationNamespace repoUrl path labels { key value } commitAuthor commitMessage \
                                 operationPhase operationMessage deployedAt";

/// What a table shows of one.
const SHOWN: &str =
    "healthStatus healthMessage syncStatus revision deleted lastReportAt environment deployedAt";
/// What a wide table shows of one.
const SHOWN_WIDE: &str = "healthStatus healthMessage syncStatus revision deleted lastReportAt environment deployedAt project \
                          cluster commitAuthor commitMessage";

const COLUMNS: &[Column] = &[
    Column::new("APPLICATION").path(),
    Column::new("HEALTH"),
    Column::new("SYNC"),
    Column::new("REVISION").rank(3),
    Column::new("DEPLOYED").rank(2),
    Column::new("REPORTED").rank(6),
    Column::new("ENVIRONMENT").rank(5),
    Column::new("PROJECT").wide().rank(7),
    Column::new("CLUSTER").wide().long().rank(8),
    Column::new("AUTHOR").wide().long().rank(9),
    Column::new("COMMIT").wide().long().rank(10),
    Column::new("MESSAGE").long().rank(4),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Application {
    metadata: AppName,
    health_status: Option<String>,
    health_message: Option<String>,
    sync_status: Option<String>,
    revision: Option<String>,
    deleted: bool,
    last_report_at: String,
    environment: String,
    deployed_at: Option<String>,
    // Of a wide table alone.
    #[serde(default)]
    project: String,
    #[serde(default)]
    cluster: String,
    #[serde(default)]
    commit_author: String,
    #[serde(default)]
    commit_message: String,
}

/// What is asked for of each: of thousands, only what is shown.
const fn fields(output: Output) -> &'static str {
    match output {
        Output::Json | Output::Yaml => FIELDS,
        Output::Table => SHOWN,
        Output::Wide => SHOWN_WIDE,
        Output::Name => "",
    }
}

pub(super) async fn run(
    platform: &Platform,
    chosen: &FilterArgs,
    listed: &ListArgs,
    screen: &Screen,
) -> Result<(), RemoteError> {
    let (output, limit) = (listed.shown.output, listed.rows());
    // Whoever watches is told of whatever changes.
    let fields = if listed.watch { FIELDS } else { fields(output) };
    // An older platform knows of no words, and is not asked about any unless somebody gives some.
    let mistyped = if chosen.words.is_empty() { "" } else { "mistyped" };
    let query = format!(
        "query Applications($pagination: SlicePaginationArgs, $runtime: String, $filters: ApplicationsFilterArgs, $ends: Boolean!) {{ applications(pagination: $pagination, runtime: $runtime, filters: $filters) {{ {mistyped} ends @include(if: $ends) pageInfo {{ endCursor hasNextPage }} edges {{ node {{ metadata {{ runtime namespace name }} {fields} }} }} }} }}"
    );
    let mut filters = json!({
        "namespace": chosen.namespace,
        "labels": chosen.labels,
        "deleted": if chosen.deleted { Value::Null } else { false.into() },
    });
    if !chosen.words.is_empty() {
        filters["query"] = joined(&chosen.words).into();
    }
    let variables = json!({"runtime": chosen.runtime, "filters": filters});
    let fetch = async || platform.rows("list applications", &query, &variables, "applications", limit).await;
    if listed.watch {
        let id = |node: &Value| AppName::of(node).to_string();
        let show = |rows: &[Value], header: bool| shown(rows, output, header, screen);
        let watched = Watched { screen, output, id, show: &show };
        return watched.run(fetch).await;
    }
    let found = fetch().await?;
    found.mistyped.iter().for_each(|one| screen.note(one));
    if found.nodes.is_empty() && matches!(output, Output::Table | Output::Wide) {
        screen.note("there is no such application that you see");
        return Ok(());
    }
    screen.say(&shown(&found.nodes, output, true, screen)?)?;
    if found.more {
        screen.note(&format!("there are more than {}: --limit shows more", found.nodes.len()));
    }
    Ok(())
}

/// Words as one query: quotes keep the blanks that a shell gave within one.
fn joined(words: &[String]) -> String {
    let quoted = |word: &String| match word.matches('"').count() {
        0 if word.contains(char::is_whitespace) => format!("\"{word}\""),
        // One that nothing closes would take the words behind it with it.
        count if count % 2 == 1 => word.replace('"', ""),
        _ => word.clone(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn shown(rows: &[Value], output: Output, header: bool, screen: &Screen) -> Result<String, RemoteError> {
    match output {
        Output::Json | Output::Yaml => document(rows, output),
        Output::Name => Ok(rows.iter().map(|row| format!("{}\n", AppName::of(row))).collect()),
        Output::Table | Output::Wide => {
            let now = Timestamp::now();
            let all: Vec<Application> = read_all(rows)?;
            let rows: Vec<_> = all.into_iter().map(|one| row(one, now)).collect();
            Ok(table(COLUMNS, &rows, output == Output::Wide, header, screen))
        }
    }
}

fn row(one: Application, now: Timestamp) -> Vec<Cell> {
    let state = |state: Option<String>| Cell::state(state.as_deref().unwrap_or("UNKNOWN"));
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    vec![
        one.metadata.to_string().into(),
        if one.deleted { Cell::from("Gone") } else { state(one.health_status) },
        if one.deleted { Cell::from("") } else { state(one.sync_status) },
        revision(&one.revision.unwrap_or_default()).into(),
        age(one.deployed_at.as_deref(), now).into(),
        age(Some(&one.last_report_at), now).into(),
        one.environment.into(),
        one.project.into(),
        one.cluster.into(),
        one.commit_author.into(),
        first(&one.commit_message).into(),
        first(&one.health_message.unwrap_or_default()).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_takes_none_of_the_words_behind_it_with_it() {
        let one = |words: &[&str]| joined(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(one(&["store", "by:Ada Lovelace"]), "store \"by:Ada Lovelace\"");
        assert_eq!(one(&["say\"hi", "health:degraded"]), "sayhi health:degraded");
        assert_eq!(one(&["by:\"Ada Lovelace\"", "shop"]), "by:\"Ada Lovelace\" shop");
    }
}
