//! `gitops-runtime verify`: compares cluster, ledger and receiver, and reports again what differs.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use pipeline_engine::verify::{Found, Verified, VerifyOptions};
use pipeline_http::admin::wire::Counted;
use serde::Deserialize;

use super::client::Reporter;
use super::print;
use super::show::{count, span, table};

/// How often the progress is asked for.
const INTERVAL: Duration = Duration::from_secs(1);
/// The most names that are shown of each finding; `--json` has more.
const MAX_NAMES: usize = 5;

#[derive(Deserialize)]
struct Progress {
    step: String,
    done: usize,
    total: usize,
}

/// Asks for a verification, and prints the findings; the exit code is 1 if something still differs, or was not compared.
pub(super) async fn run(reporter: &Reporter, options: VerifyOptions, json: bool) -> anyhow::Result<ExitCode> {
    let asked = reporter.post(&["verify"], &options, Duration::from_secs(options.seconds));
    let answer = if std::io::stderr().is_terminal() {
        tokio::select! {
            answer = asked => {
                progress("");
                answer?
            }
            never = tell(reporter) => match never {},
        }
    } else {
        asked.await?
    };
    let verified: Verified = answer.read()?;
    let counts = reporter.counts().await?;
    print(&answer, json, |verified| text(verified, counts))?;
    Ok(if verified.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows the progress until it is dropped.
async fn tell(reporter: &Reporter) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Ok(answer) = reporter.get(&["verify"]).await else { continue };
        let Ok(Some(Progress { step, done, total })) = answer.read::<Option<Progress>>() else { continue };
        match total {
            0 => progress(&step),
            total => progress(&format!("{step}: {done} of {total}")),
        }
    }
}

fn progress(text: &str) {
    // A progress line that cannot be written is no failure.
    let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K{text}");
}

fn text(verified: &Verified, counts: Counted) -> String {
    let differs = verified.receiver_differs.clone().unwrap_or_default();
    let others = verified.receiver_others.clone().unwrap_or_default();
    let findings = [
        ("missing", "in the cluster, and never reported", &verified.missing),
        ("recreated", "in the cluster in another life than the reported one", &verified.recreated),
        ("gone", "reported, and not in the cluster any more", &verified.gone),
        ("newer", "in the cluster in a newer state, or not reported for certain", &verified.newer),
        ("drifted", "not in sync, and changed without a newer state", &verified.drifted),
        ("differs", "the receiver holds something else", &differs),
        ("ended", "the receiver holds it, and it is not in the cluster any more", &others),
        ("parked", "refused for good: see gitops-runtime parked list", &verified.parked),
        ("unread", "not to be read, or not in time: nothing is known of it", &verified.unread),
        ("unfinished", "still being reported when the time was over", &verified.unfinished),
        ("different", "still different in the end", &verified.still_different),
    ];
    let found: Vec<Vec<String>> = findings
        .into_iter()
        .filter(|(_, _, found)| found.total > 0)
        .map(|(name, what, found)| {
            vec![name.to_owned(), what.to_owned(), names(found), found.total.to_string()]
        })
        .collect();
    let mut text = format!(
        "{} in the cluster, {} acknowledged, compared in {}\n",
        count(verified.objects as u64, counts.noun()),
        verified.acknowledged,
        span(verified.seconds)
    );
    text += &match (&verified.receiver_failed, &verified.receiver_differs) {
        (Some(why), _) => format!("the receiver could not be asked: {why}\n"),
        (None, None) => "the receiver does not compare: only cluster and ledger were\n".to_owned(),
        (None, Some(_)) => String::new(),
    };
    let is_asked = verified.receiver_differs.is_some() && verified.receiver_failed.is_none();
    if is_asked
        && verified.receiver_others.is_none()
        && !verified.others_unknown
        && verified.unlisted.is_empty()
    {
        text += "what the receiver holds beside these is not known\n";
    }
    if verified.others_unknown {
        text += "the bus was away: what the shards of other replicas remember was not compared with\n";
    }
    if !verified.unlisted.is_empty() {
        let kinds: Vec<&str> = verified.unlisted.iter().map(String::as_str).collect();
        text += &format!("could not be listed, and was not compared: {}\n", kinds.join(", "));
    }
    if !found.is_empty() {
        text += &format!("\n{}\n", table(3, &["FOUND", "WHAT", "WHICH", "N"], &found));
    }
    let repaired = format!(
        "{} reported again, {} acknowledged",
        count(verified.repaired as u64, counts.noun()),
        count(verified.reports, "report")
    );
    text + &match (verified.is_clean(), verified.dry) {
        (true, _) if found.is_empty() => "nothing differs\n".to_owned(),
        (true, true) => "nothing differs but what is read again anyway\n".to_owned(),
        (true, false) => format!("{repaired}; nothing differs any more\n"),
        (false, true) => "this was a dry run: without --dry-run it is reported again\n".to_owned(),
        (false, false) => format!("{repaired}; something still differs\n"),
    }
}

fn names(found: &Found) -> String {
    let mut names: Vec<&str> = found.keys.iter().take(MAX_NAMES).map(String::as_str).collect();
    if found.total > names.len() {
        names.push("...");
    }
    names.join(" ")
}
