//! `gitops-runtime parked`: what the receiver refused for good.

use std::process::ExitCode;

use pipeline_http::admin::wire::{Counted, Parked, ParkedList};
use reqwest::Method;

use super::client::Reporter;
use super::show::{ago, count, property_table, table, word};
use super::{complain, print, say};
use crate::cli::ParkedCommand;
use crate::config::Variables;

/// Lists or shows parked objects, or acts on them.
pub(super) async fn run(command: &ParkedCommand, variables: &Variables) -> anyhow::Result<ExitCode> {
    match command {
        ParkedCommand::List { on } => {
            let answer = Reporter::find_of(&[], on, variables).await?.get(&["parked"]).await?;
            print(&answer, on.place.json, list)?;
        }
        ParkedCommand::Show { app, on } => {
            let reporter = Reporter::find_of(std::slice::from_ref(app), on, variables).await?;
            let key = reporter.key(app).await?;
            let answer = reporter.get_of("parked", &key).await?;
            print(&answer, on.place.json, one)?;
        }
        ParkedCommand::Replay { apps, all, on } => {
            let reporter = Reporter::find_of(apps, on, variables).await?;
            let apps = if *all { all_of(&reporter).await? } else { apps.clone() };
            let act = ParkedAction {
                method: Method::POST,
                last: &["replay"],
                done: "read again",
                json: on.place.json,
            };
            return each(&reporter, &apps, &act).await;
        }
        ParkedCommand::Drop { apps, on, yes: _ } => {
            let reporter = Reporter::find_of(apps, on, variables).await?;
            let act =
                ParkedAction { method: Method::DELETE, last: &[], done: "given up", json: on.place.json };
            return each(&reporter, apps, &act).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is done to each of several parked objects.
struct ParkedAction<'a> {
    method: Method,
    /// The path behind the key of the object.
    last: &'a [&'a str],
    done: &'a str,
    json: bool,
}

async fn all_of(reporter: &Reporter) -> anyhow::Result<Vec<String>> {
    let list: ParkedList = reporter.get(&["parked"]).await?.read()?;
    Ok(list.parked.into_iter().map(|parked| parked.app).collect())
}

/// Acts on each object. A failure is printed, and the others are acted on all the same.
async fn each(reporter: &Reporter, apps: &[String], act: &ParkedAction<'_>) -> anyhow::Result<ExitCode> {
    let mut done = Vec::new();
    let mut failed = false;
    for app in apps {
        let key = reporter.key(app).await?;
        match reporter.act_on_parked(act.method.clone(), &key, act.last).await {
            Ok(()) => done.push(key.to_string()),
            Err(error) => {
                failed = true;
                complain(&format!("{error:#}"));
            }
        }
    }
    match act.json {
        true => say(&format!("{}\n", serde_json::json!({ "done": done })))?,
        false if done.len() == 1 => say(&format!("{} is {}\n", done[0], act.done))?,
        false => {
            let noun = Counted::of(apps.iter().map(String::as_str)).noun();
            say(&format!("{} are {}\n", count(done.len() as u64, noun), act.done))?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn list(list: &ParkedList) -> String {
    if list.parked.is_empty() {
        return "nothing is parked\n".to_owned();
    }
    let rows: Vec<Vec<String>> = list
        .parked
        .iter()
        .map(|parked| {
            vec![
                parked.app.clone(),
                word(&parked.reason),
                format!("{:.3}", parked.at),
                ago(parked.at),
                parked.version.to_string(),
                parked.refused.len().to_string(),
            ]
        })
        .collect();
    let noun = Counted::of(list.parked.iter().map(|parked| parked.app.as_str())).noun().to_uppercase();
    table(4, &[&noun, "REASON", "AT", "", "VERSION", "REPORTS"], &rows)
}

fn one(parked: &Parked) -> String {
    let facts = [
        (Counted::of([parked.app.as_str()]).noun(), parked.app.clone()),
        ("reason", word(&parked.reason)),
        ("at", format!("{:.3} ({})", parked.at, ago(parked.at))),
        ("resourceVersion", parked.version.to_string()),
        ("uid", parked.uid.clone().unwrap_or_else(|| "not known".to_owned())),
    ];
    let mut text = property_table(facts) + "\n";
    if parked.refused.is_empty() {
        return text + " it did not come to a report\n";
    }
    let row = |refused: &pipeline_http::admin::wire::Refused| {
        vec![refused.entity.clone(), word(&refused.reason), refused.digest.clone()]
    };
    let rows: Vec<Vec<String>> = parked.refused.iter().map(row).collect();
    text += &table(3, &["REPORT OF", "REASON", "DIGEST"], &rows);
    text
}
