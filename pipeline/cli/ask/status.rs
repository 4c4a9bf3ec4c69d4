//! `gitops-runtime status`: the state of the reporter, its ledger, circuit and shards.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;

use super::client::Reporter;
use super::say;
use super::show::{count, property_table, size, span, table, word};
use crate::cli::until_interrupted;

/// How often the status is asked again.
const INTERVAL: Duration = Duration::from_secs(1);
/// Clears a terminal, and begins at its top.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

#[derive(Debug, Deserialize)]
struct Status {
    ready: bool,
    health: String,
    ledger: Ledger,
    uptime_seconds: f64,
    circuit: Circuit,
    total: Figures,
    shards: Vec<Figures>,
}

#[derive(Debug, Deserialize)]
struct Ledger {
    storage: String,
    records: u64,
    bytes: u64,
    waiting: u64,
    failing: bool,
    last_commit_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Circuit {
    state: String,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Figures {
    shard: Option<u32>,
    observed: u64,
    acked: u64,
    filtered: u64,
    queued: u64,
    waiting: u64,
    in_flight: u64,
    dirty: u64,
    reading: u64,
    incomplete: u64,
    parked_keys: u64,
    oldest_unreported_seconds: f64,
}

/// Prints the status, once or again and again until Ctrl-C.
pub(super) async fn run(reporter: &Reporter, watch: bool, json: bool) -> anyhow::Result<ExitCode> {
    if !watch {
        show(reporter, json, "").await?;
        return Ok(ExitCode::SUCCESS);
    }
    let before = if std::io::stdout().is_terminal() && !json { CLEAR } else { "" };
    until_interrupted(async {
        loop {
            show(reporter, json, before).await?;
            tokio::time::sleep(INTERVAL).await;
        }
    })
    .await
}

async fn show(reporter: &Reporter, json: bool, before: &str) -> anyhow::Result<()> {
    let answer = reporter.get(&["status"]).await?;
    if json { say(&answer.text()) } else { say(&format!("{before}{}", text(&answer.read()?))) }
}

fn text(status: &Status) -> String {
    let ready = if status.ready { "ready" } else { "not ready" };
    let circuit = match &status.circuit.reason {
        Some(reason) => format!("{}: {}", status.circuit.state, word(reason)),
        None => status.circuit.state.clone(),
    };
    let facts = [
        ("reporter", format!("{ready}, {}, up {}", status.health, span(status.uptime_seconds))),
        ("circuit", circuit),
        ("ledger", ledger(&status.ledger)),
        ("unreported", format!("for {} at most", span(status.total.oldest_unreported_seconds))),
    ];
    let header = [
        "SHARD",
        "QUEUED",
        "WAITING",
        "IN FLIGHT",
        "DIRTY",
        "READING",
        "INCOMPLETE",
        "PARKED",
        "OBSERVED",
        "ACKED",
        "FILTERED",
        "OLDEST",
    ];
    let mut rows: Vec<Vec<String>> = status.shards.iter().map(figures).collect();
    if rows.len() > 1 {
        rows.push(figures(&status.total));
    }
    property_table(facts) + "\n" + &table(1, &header, &rows)
}

fn ledger(ledger: &Ledger) -> String {
    let mut text = format!("{}, {}, {}", ledger.storage, count(ledger.records, "record"), size(ledger.bytes));
    if ledger.storage != "memory" {
        text += &format!(", {} to be written", ledger.waiting);
    }
    if let Some(seconds) = ledger.last_commit_seconds {
        text += &format!(", written {} ago", span(seconds));
    }
    if ledger.failing {
        text += ", cannot be written: see the log";
    }
    text
}

fn figures(figures: &Figures) -> Vec<String> {
    let shard = figures.shard.map_or_else(|| "all".to_owned(), |shard| shard.to_string());
    let numbers = [
        figures.queued,
        figures.waiting,
        figures.in_flight,
        figures.dirty,
        figures.reading,
        figures.incomplete,
        figures.parked_keys,
        figures.observed,
        figures.acked,
        figures.filtered,
    ];
    let oldest = match figures.oldest_unreported_seconds {
        seconds if seconds > 0.0 => span(seconds),
        _ => "-".to_owned(),
    };
    [shard].into_iter().chain(numbers.map(|number| number.to_string())).chain([oldest]).collect()
}
