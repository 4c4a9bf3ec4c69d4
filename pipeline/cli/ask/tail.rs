//! `gitops-runtime tail`: the steps of events, as they happen.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use pipeline_http::admin::wire::Line;

use super::client::Reporter;
use super::say;
use super::sentence::sentence;
use super::show::count;
use crate::cli::until_interrupted;

/// The most bytes of a line, far above what a line has.
const MAX_LINE: usize = 1 << 20;

/// Which steps are shown; an empty list shows all.
pub(super) struct TailFilter<'a> {
    pub(super) apps: &'a [String],
    pub(super) shards: &'a [u32],
    pub(super) steps: &'a [String],
}

/// Follows until Ctrl-C.
///
/// # Errors
/// If the reporter ends before.
pub(super) async fn run(
    reporter: &Reporter,
    wanted: &TailFilter<'_>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    until_interrupted(follow(reporter, wanted, json)).await
}

async fn follow(reporter: &Reporter, wanted: &TailFilter<'_>, json: bool) -> anyhow::Result<ExitCode> {
    let shards: Vec<String> = wanted.shards.iter().map(ToString::to_string).collect();
    let lists =
        [("app", wanted.apps.join(",")), ("shard", shards.join(",")), ("step", wanted.steps.join(","))];
    let asked: Vec<(&str, String)> = lists.into_iter().filter(|(_, list)| !list.is_empty()).collect();
    let mut response = reporter.follow(&["tail"], &asked).await?;
    let mut held: Vec<u8> = Vec::new();
    while let Some(chunk) = response.chunk().await.context("the reporter broke off")? {
        held.extend_from_slice(&chunk);
        let Some(end) = held.iter().rposition(|byte| *byte == b'\n') else {
            if held.len() > MAX_LINE {
                bail!("the reporter sends a line without end: is it one?");
            }
            continue;
        };
        let rest = held.split_off(end + 1);
        let whole = std::mem::replace(&mut held, rest);
        let mut text = String::new();
        for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            text += &shown(line, json)?;
        }
        if !text.is_empty() {
            say(&text)?;
        }
    }
    bail!("the reporter has ended")
}

fn shown(line: &[u8], json: bool) -> anyhow::Result<String> {
    let read: Line = serde_json::from_slice(line)
        .context("read the reporter's answer: is it of the same version as this command?")?;
    if json {
        return Ok(format!("{}\n", String::from_utf8_lossy(line)));
    }
    Ok(match read {
        Line::Happened(moment) => {
            let what = sentence(&moment);
            format!("{:.3}  {:>3}  {}  {what}\n", moment.at, moment.shard, moment.app)
        }
        Line::Lost { lost } => format!("({} lost: too many for this listener)\n", count(lost, "step")),
    })
}
