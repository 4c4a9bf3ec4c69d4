//! `gitops-runtime top`: the hottest and slowest applications of the reporter, its calls, errors and shards.

mod screen;
mod sheet;
mod state;
mod view;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use pipeline_http::admin::wire::Top;

use self::sheet::{Order, Sheet, TraceLength, View};
use super::client::{Reporter, ResponseBody};
use super::print;
use super::show::{span, table};
use crate::config::{Variables, set};

/// The options of the command.
#[derive(Debug, Clone, Copy)]
pub(super) struct TopOptions {
    /// Print it once as text, also on a terminal.
    pub(super) once: bool,
    /// The most applications of each list.
    pub(super) limit: u32,
    pub(super) json: bool,
}

/// Shows the lists on the terminal until a key ends it, or prints them once where there is no terminal.
pub(super) async fn run(
    reporter: &Reporter,
    wanted: TopOptions,
    variables: &Variables,
) -> anyhow::Result<ExitCode> {
    // The first answer comes before the terminal is taken over, so that a failure is printed as usual.
    let answer = ask(reporter, wanted.limit).await?;
    let is_plain = set(variables, "TERM").is_none_or(|kind| kind == "dumb");
    if wanted.once || wanted.json || is_plain || !std::io::stdout().is_terminal() {
        print(&answer, wanted.json, text)?;
    } else {
        let colours = set(variables, "NO_COLOR").is_none();
        screen::run(reporter, wanted.limit, answer.read()?, colours).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask(reporter: &Reporter, limit: u32) -> anyhow::Result<ResponseBody> {
    reporter.find_out(&["top"], &[("limit", limit.to_string())]).await
}

/// All lists as text.
fn text(top: &Top) -> String {
    let noun = sheet::counted(top).noun();
    let mut sheets = vec![
        (format!("hottest {noun}s"), sheet::of(View::Hottest, Order::First, top, TraceLength::Whole)),
        (
            format!("slowest {noun}s, from the watch to the acknowledgement"),
            sheet::of(View::Slowest, Order::First, top, TraceLength::Whole),
        ),
        (
            format!("{noun}s by calls of Argo CD"),
            sheet::of(View::Calls, Order::First, top, TraceLength::Whole),
        ),
        (
            format!("{noun}s by the time of these calls"),
            sheet::of(View::Calls, Order::Second, top, TraceLength::Whole),
        ),
        (format!("failing {noun}s"), sheet::of(View::Errors, Order::First, top, TraceLength::Whole)),
        ("errors".to_owned(), sheet::errors(top, TraceLength::Whole)),
        (
            "latency, with the last events of each bucket".to_owned(),
            sheet::of(View::Latency, Order::First, top, TraceLength::Whole),
        ),
    ];
    sheets.push(("shards".to_owned(), sheet::shards(top, usize::MAX)));
    let window = span(top.window_seconds);
    let mut text =
        format!("Of the last {window}; gitops-runtime explain NAME tells more of one of these {noun}s.\n");
    for (title, Sheet { header, texts, rows }) in sheets {
        let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.cells).collect();
        text += &format!("\n{title}\n");
        text += &match rows.is_empty() {
            true => " none\n".to_owned(),
            false => table(texts, &header, &rows),
        };
    }
    text
}

#[cfg(test)]
mod tests;
