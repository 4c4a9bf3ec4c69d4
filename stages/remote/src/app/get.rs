//! `gitops-runtime app get`.

use jiff::Timestamp;
use serde_json::Value;

use super::find::AppName;
use super::list::FIELDS;
use crate::arguments::app::AppNameArgs;
use crate::error::RemoteError;
use crate::platform::Platform;
use crate::show::{Output, Screen, count, document, facts, moment, word};
use crate::watch::Watched;

/// Resources that are named.
const NAMED: usize = 10;

pub(super) async fn run(
    platform: &Platform,
    named: &AppNameArgs,
    (output, watch): (Output, bool),
    screen: &Screen,
) -> Result<(), RemoteError> {
    const RESOURCES: &str = "resources { resource { kind name } healthStatus syncStatus healthMessage }";
    let fields = match output {
        Output::Table | Output::Wide => format!("{FIELDS} {RESOURCES}"),
        _ => FIELDS.to_owned(),
    };
    let show = |rows: &[Value], _| match (rows, output) {
        ([found], Output::Json | Output::Yaml) => document(found, output),
        ([found], Output::Name) => Ok(format!("{}\n", AppName::of(found))),
        ([found], _) => Ok(one(found, screen)),
        _ => Ok(String::new()),
    };
    let fetch = async || platform.application(named, &fields).await.map(|(_, found)| vec![found]);
    if watch {
        let id = |found: &Value| AppName::of(found).to_string();
        return Watched { screen, output, id, show: &show }.run(async || Ok(fetch().await?.into())).await;
    }
    screen.say(&show(&fetch().await?, true)?)
}

fn one(found: &Value, screen: &Screen) -> String {
    let now = Timestamp::now();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    let meta = |field: &str| found["metadata"][field].as_str().unwrap_or_default().to_owned();
    let state = |field: &str| word(found[field].as_str().unwrap_or("UNKNOWN"));
    let with = |state: String, said: String| match said.is_empty() {
        true => state,
        false => format!("{state}: {said}"),
    };
    let labels = found["labels"].as_array().into_iter().flatten();
    let label = |label: &Value| {
        let part = |name: &str| label[name].as_str().unwrap_or_default().to_owned();
        format!("{}={}", part("key"), part("value"))
    };
    let labels: Vec<String> = labels.map(label).collect();
    let joined = |a: &str, b: &str| format!("{} {}", text(a), text(b)).trim().to_owned();
    let health = if found["deleted"] == Value::Bool(true) {
        "Gone".to_owned()
    } else {
        with(state("healthStatus"), text("healthMessage"))
    };
    let commit = text("commitMessage").lines().next().unwrap_or_default().to_owned();
    let mut shown = facts(
        &[
            ("Name", meta("name")),
            ("Namespace", meta("namespace")),
            ("Runtime", meta("runtime")),
            ("Project", text("project")),
            ("Environment", text("environment")),
            ("Labels", labels.join("\n")),
            ("Source", joined("repoUrl", "path")),
            ("Destination", joined("cluster", "destinationNamespace")),
            ("Health", health),
            ("Sync", state("syncStatus")),
            ("Revision", text("revision")),
            ("Commit", commit),
            ("Author", text("commitAuthor")),
            ("Operation", with(text("operationPhase"), text("operationMessage"))),
            ("Deployed", moment(found["deployedAt"].as_str(), now)),
            ("Reported", moment(found["lastReportAt"].as_str(), now)),
            ("Resources", resources(found["resources"].as_array().map_or(&[][..], Vec::as_slice))),
        ],
        screen,
    );
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    shown
}

/// How many there are, and those that are not well.
fn resources(all: &[Value]) -> String {
    let is_well = |one: &&Value| {
        let is = |field: &str, good: &[&str]| one[field].as_str().is_none_or(|state| good.contains(&state));
        is("healthStatus", &["HEALTHY", "UNKNOWN"]) && is("syncStatus", &["SYNCED", "UNKNOWN"])
    };
    let unwell: Vec<&Value> = all.iter().filter(|one| !is_well(one)).collect();
    let mut text = match unwell.len() {
        0 => count(all.len(), "resource"),
        number => format!("{}, {number} not well:", count(all.len(), "resource")),
    };
    for one in unwell.iter().take(NAMED) {
        let part = |name: &str| one["resource"][name].as_str().unwrap_or_default();
        let states = ["healthStatus", "syncStatus"].map(|field| one[field].as_str().map(word));
        let states: Vec<String> = states.into_iter().flatten().collect();
        let said = one["healthMessage"].as_str().and_then(|said| said.lines().next()).unwrap_or_default();
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        text += &format!("\n{}/{} is {}{said}", part("kind"), part("name"), states.join(" and "));
    }
    if unwell.len() > NAMED {
        text += &format!("\nand {} more: `gitops-runtime app tree` shows them", unwell.len() - NAMED);
    }
    text
}
