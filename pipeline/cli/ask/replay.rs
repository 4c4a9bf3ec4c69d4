//! `gitops-runtime replay`: applications or other objects are read again, and reported.

use std::process::ExitCode;
use std::time::Duration;

use pipeline_http::admin::wire::{Replay, Replayed};

use super::client::{Reporter, said};
use super::show::count;
use super::{complain, say};
use crate::cli::ReplayArgs;

/// How long an answer may take: many applications take longer than other answers do.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// Asks for the replay, and prints how many objects it is; the exit code is 1 if a name is unknown.
pub(super) async fn run(
    reporter: &Reporter,
    which: &ReplayArgs,
    whole: bool,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let mut app = Vec::new();
    for name in &which.app {
        app.push(reporter.key(name).await?.to_string());
    }
    let replay = Replay { app, since: which.since, whole };
    let answer = reporter.post(&["replay"], &replay, TIMEOUT).await?;
    let replayed: Replayed = answer.read()?;
    if json {
        say(&answer.text())?;
    } else {
        let noun = reporter.counts().await?.noun();
        for app in &replayed.older {
            say(&format!("{app} was not reported since, and is left as it is\n"))?;
        }
        if replayed.unwatched > 0 {
            let unwatched = count(replayed.unwatched, noun);
            say(&format!("{unwatched} in namespaces that are not watched: left as they are\n"))?;
        }
        let are = if replayed.marked == 1 { "is" } else { "are" };
        say(&format!("{} {are} read again\n", count(replayed.marked, noun)))?;
    }
    for unknown in &replayed.unknown {
        complain(&said(unknown));
    }
    Ok(if replayed.unknown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
