//! The commands that ask a running reporter: `distribution`, `explain`, `parked`, `replay`, `status`,
//! `tail`, `top` and `verify`.
//!
//! takes: the command line, and the settings the reporter was started with - gives: text for people, or the
//! reporter's own JSON
//! calls: the admin socket or address of the reporter - fails: when nothing answers there, or what is asked for is not
//! known: each says what to do next

mod client;
mod distribution;
mod explain;
mod parked;
mod replay;
mod sentence;
pub(crate) mod show;
mod status;
mod tail;
mod top;
mod verify;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use pipeline_engine::verify::VerifyOptions;
use serde::de::DeserializeOwned;

use self::client::{Reporter, ResponseBody};
pub(crate) use self::sentence::filtered as why;
use crate::cli::{ReporterArgs, ReporterCommand, RouteArgs, block_on};
use crate::config::Variables;

/// Asks, and prints the answer.
///
/// # Errors
/// Whatever kept it from an answer, with what to do next.
pub(crate) fn run(ask: &ReporterCommand, variables: &Variables) -> anyhow::Result<ExitCode> {
    block_on(answer(ask, variables))
}

async fn answer(ask: &ReporterCommand, variables: &Variables) -> anyhow::Result<ExitCode> {
    match ask {
        ReporterCommand::Distribution(asked) => distribution::run(asked, variables).await,
        ReporterCommand::Explain { app, on } => {
            let named = std::slice::from_ref(app);
            explain::run(&Reporter::find_of(named, on, variables).await?, app, on.place.json).await
        }
        ReporterCommand::Parked(command) => parked::run(command, variables).await,
        ReporterCommand::Replay { which, whole, on } => {
            let reporter = Reporter::find_of(&which.app, on, variables).await?;
            replay::run(&reporter, which, *whole, on.place.json).await
        }
        ReporterCommand::Status { watch, place } => {
            status::run(&Reporter::find(place, variables).await?, *watch, place.json).await
        }
        ReporterCommand::Tail { app, shard, step, on } => {
            let wanted = tail::TailFilter { apps: app, shards: shard, steps: step };
            tail::run(&Reporter::find_of(app, on, variables).await?, &wanted, on.place.json).await
        }
        ReporterCommand::Top { once, limit, on } => {
            let wanted = top::TopOptions { once: *once, limit: *limit, json: on.place.json };
            top::run(&Reporter::find_of(&[], on, variables).await?, wanted, variables).await
        }
        ReporterCommand::Verify { dry_run, within, on } => {
            let options =
                VerifyOptions { dry: *dry_run, seconds: within.as_secs(), ..VerifyOptions::default() };
            verify::run(&Reporter::find_of(&[], on, variables).await?, options, on.place.json).await
        }
    }
}

/// Writes an answer to standard output: as it came, or as text for people.
fn print<T: DeserializeOwned>(
    answer: &ResponseBody,
    json: bool,
    text: impl FnOnce(&T) -> String,
) -> anyhow::Result<()> {
    if json { say(&answer.text()) } else { say(&text(&answer.read()?)) }
}

/// Writes to standard output, at once.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write to standard output")
}

/// Writes a line to standard error.
pub(crate) fn complain(text: &str) {
    // Nobody is left to be told that standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "gitops-runtime: {text}");
}
