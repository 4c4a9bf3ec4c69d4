//! The resource reporter, with an account that may do what it prints.

use std::path::Path;

use serde_json::json;

use super::story::Change;
use crate::control::Control;
use crate::role::{Role, said_of, write};
use loadtest_judge::screen::say;
use loadtest_sim::process::Lines;

const ROLE: &str = "resource-reporter";
/// What it says of each kind that it goes on with where the process before ended,
const GOES_ON: &str = "the watch goes on where the process before ended";
/// and of each with which it cannot.
const GAP: &str = "what came and went since the process before this one ended is not known any more";
/// Kinds that it watches, all of which are installed: those of its defaults.
const KINDS: usize = 7;
/// What it may do for when a queue is full, or a list lacks most of what was known: an object is read by its name then.
const RARE: &str = "granted and never used: get ";

/// The process, and what those before it said.
pub(super) struct Reporter {
    role: Role,
    /// Of those that were killed, and of the one that runs.
    logs: Vec<Lines>,
}

impl Reporter {
    pub(super) async fn start(
        program: &Path,
        control: &Control,
        (platform, token): (&str, &str),
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let file = folder.join(ROLE).join("platform-token");
        let settings = json!({
            "platform": {"url": platform, "tokenFile": file},
            "reporter": {"sink": {"kind": "platform"}, "lanes": {"retry": {"min": "250ms", "max": "2s"}}},
            "resources": {"discovery": "1s"},
        });
        let role = Role::prepare((ROLE, ROLE), (program, control, folder), settings).await?;
        write(&file, token).await?;
        let mut reporter = Self { role, logs: Vec::new() };
        reporter.change(Change::Start).await?;
        Ok(reporter)
    }

    pub(super) async fn change(&mut self, change: Change) -> anyhow::Result<()> {
        match change {
            Change::Kill => self.role.kill().await,
            Change::Start => {
                self.role.start().await?;
                self.logs.push(self.role.lines()?);
                Ok(())
            }
        }
    }

    /// Ends it; what is wrong with how it went on after each kill, and with what its account asked for.
    pub(super) async fn end(mut self, control: &Control) -> anyhow::Result<Vec<String>> {
        self.role.stop().await?;
        let verdict = self.role.asked(control).await?;
        say(&format!("rights: {}", verdict.summary()));
        let mut wrong = verdict.wrong(|what| what.starts_with(RARE));
        for what in verdict.failures.iter().filter(|what| what.starts_with(RARE)) {
            say(&format!("rights: {what}: for when a queue is full, or a list lacks most objects"));
        }
        for (at, log) in self.logs.iter().enumerate() {
            wrong.extend(log.panics());
            let said = |what: &str| said_of(log, what);
            if at > 0 {
                wrong.extend(went_on(at, &said(GOES_ON), &said(GAP)));
            }
        }
        say(&format!(
            "{} kills; after each the watches of {KINDS} kinds went on where they were",
            self.logs.len() - 1
        ));
        Ok(wrong)
    }
}

/// What is wrong with how a process went on.
fn went_on(kill: usize, on: &[String], gaps: &[String]) -> Vec<String> {
    let mut wrong: Vec<String> = gaps
        .iter()
        .map(|kind| format!("after kill {kill} there is a gap in what is known of {kind}"))
        .collect();
    if on.len() != KINDS {
        wrong
            .push(format!("after kill {kill} {} of {KINDS} kinds went on where they were: {on:?}", on.len()));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_goes_on_and_a_gap_is_wrong() {
        let kinds: Vec<String> = (0..KINDS).map(|n| format!("kind{n}.argoproj.io")).collect();
        assert_eq!(went_on(1, &kinds, &[]), [] as [String; 0]);
        assert_eq!(
            went_on(2, &kinds[..1], &kinds[..1]),
            [
                "after kill 2 there is a gap in what is known of kind0.argoproj.io",
                "after kill 2 1 of 7 kinds went on where they were: [\"kind0.argoproj.io\"]",
            ]
        );
    }
}
