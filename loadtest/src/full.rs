//! Everything that the short runs leave out: each suite of this program in its long form, one after the other.
//!
//! takes: nothing, or names of suites - gives: a row per suite, and 1 as the exit code unless all passed
//! calls: this program itself, a process per suite, so that none of them leaves anything to the next
//! fails: when a suite cannot be started, or a name is none of theirs

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use loadtest_judge::screen::{judged, say, table};

/// The suites by name, each with its command; `{seed}` is filled in.
const SUITES: &[(&str, &[&str])] = &[
    ("bench", &["bench"]),
    ("faults", &["faults", "--long", "--seed", "{seed}"]),
    ("replicas", &["replicas", "--long", "--seed", "{seed}"]),
    ("node", &["cluster", "node"]),
    ("scenarios", &["cluster", "run", "--all"]),
    ("fault-rounds", &["cluster", "faults", "--rounds", "10", "--seed", "{seed}"]),
    ("restores", &["cluster", "restore"]),
    ("chart", &["cluster", "chart", "--random", "300", "--seed", "{seed}"]),
    ("install", &["install"]),
    ("tunnel", &["tunnel"]),
];

/// Arguments of `loadtest full`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadtest full                         everything, some two hours on two cores
  loadtest full bench faults            these two alone
  loadtest full fault-rounds --seed 7   other moments for the faults")]
pub struct Args {
    /// Suites to run instead of all: bench, faults, replicas, node, scenarios, fault-rounds, restores, chart, install, tunnel
    suites: Vec<String>,
    /// Decides when faults strike
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the suites.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let chosen = chosen(&args.suites)?;
    let seed = args.seed.to_string();
    let program = std::env::current_exe().context("find this program")?;
    let mut rows = Vec::new();
    let mut failed = 0;
    for (name, command) in &chosen {
        say(&format!("== {name}"));
        let filled = command.iter().map(|part| if *part == "{seed}" { &seed } else { *part });
        let begun = Instant::now();
        let ended = Command::new(&program)
            .args(filled)
            .stdin(Stdio::null())
            .status()
            .with_context(|| format!("start the suite {name}"))?;
        let verdict = if ended.success() { "passed" } else { "failed" };
        failed += usize::from(!ended.success());
        rows.push(vec![(*name).to_owned(), judged(verdict, ended.success()), minutes(begun.elapsed())]);
    }
    say(&table(2, &["suite", "verdict", "time"], &rows));
    say(&format!("full: {} suites, {} passed, {failed} failed", rows.len(), rows.len() - failed));
    Ok(ExitCode::from(u8::from(failed > 0)))
}

type Suite = (&'static str, &'static [&'static str]);

/// The suites of these names, all when there are none, in the order they are run in.
fn chosen(names: &[String]) -> anyhow::Result<Vec<Suite>> {
    if let Some(unknown) = names.iter().find(|name| !SUITES.iter().any(|(known, _)| known == name)) {
        let known: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
        bail!("there is no suite {unknown:?}; there are {}", known.join(", "));
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|given| given == name);
    Ok(SUITES.iter().copied().filter(|(name, _)| wanted(name)).collect())
}

fn minutes(time: Duration) -> String {
    format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str]) -> anyhow::Result<Vec<&'static str>> {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        Ok(chosen(&given)?.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn suites_are_chosen_by_name_and_run_in_their_own_order() {
        assert_eq!(
            names(&[]).unwrap(),
            [
                "bench",
                "faults",
                "replicas",
                "node",
                "scenarios",
                "fault-rounds",
                "restores",
                "chart",
                "install",
                "tunnel"
            ]
        );
        assert_eq!(names(&["faults", "bench"]).unwrap(), ["bench", "faults"]);
    }

    #[test]
    fn an_unknown_suite_is_refused() {
        let refused = |given: &[&str]| names(given).unwrap_err().to_string();
        assert_eq!(
            refused(&["speed"]),
            "there is no suite \"speed\"; there are bench, faults, replicas, node, scenarios, fault-rounds, restores, chart, install, tunnel"
        );
    }
}
