//! Everything that the short runs leave out: each suite of this program in its long form, one after the other.
//!
//! takes: nothing, or names of suites - gives: a row per suite, and 1 as the exit code unless all passed
//! calls: this program itself, or `cargo test`, a process per suite, so that none of them leaves anything to the next
//! fails: when a suite cannot be started

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;

use loadtest_judge::screen::{judged, say, table};

/// What runs a suite.
#[derive(Debug, Clone, Copy)]
enum Runs {
    /// This program, with these arguments; `{seed}` is filled in.
    Own(&'static [&'static str]),
    /// A test of the target `it` that does more when a variable says how much.
    Test(&'static str, (&'static str, &'static str)),
}

/// The suites by name.
const SUITES: &[(&str, Runs)] = &[
    ("bench", Runs::Own(&["bench"])),
    ("faults", Runs::Own(&["faults", "--long", "--seed", "{seed}"])),
    ("commits", Runs::Test("killed_commits", ("KILLS", "50"))),
    ("replicas", Runs::Own(&["replicas", "--long", "--seed", "{seed}"])),
    ("node", Runs::Own(&["cluster", "node"])),
    ("scenarios", Runs::Own(&["cluster", "run", "--all"])),
    ("scenarios-on-platform", Runs::Own(&["cluster", "run", "--all", "--platform"])),
    ("fault-rounds", Runs::Own(&["cluster", "faults", "--rounds", "10", "--seed", "{seed}"])),
    ("restores", Runs::Own(&["cluster", "restore"])),
    ("monorepo", Runs::Own(&["cluster", "monorepo"])),
    ("resources", Runs::Own(&["cluster", "resources"])),
    ("kinds", Runs::Own(&["cluster", "kinds"])),
    ("acts", Runs::Own(&["cluster", "acts"])),
    ("chart", Runs::Own(&["cluster", "chart", "--random", "300", "--seed", "{seed}"])),
    ("install", Runs::Own(&["install"])),
    ("tunnel", Runs::Own(&["tunnel"])),
    ("router", Runs::Own(&["router"])),
    ("entrance", Runs::Own(&["entrance", "--rounds", "3"])),
    ("platform", Runs::Test("what_was_acknowledged_is_there_once", ("LOADTEST_PLATFORM_KILLS", "50"))),
];

/// The workspace whose tests are run.
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");

/// Arguments of `loadtest full`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loadtest full                         everything, some two hours on two cores
  loadtest full bench faults            these two alone
  loadtest full fault-rounds --seed 7   other moments for the faults")]
pub struct Args {
    /// Suites to run instead of all
    #[arg(value_parser = PossibleValuesParser::new(SUITES.iter().map(|(name, _)| *name)))]
    suites: Vec<String>,
    /// Decides when faults strike
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the suites.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let is_chosen = |name: &str| args.suites.is_empty() || args.suites.iter().any(|given| given == name);
    let program = std::env::current_exe().context("find this program")?;
    let mut rows = Vec::new();
    let mut failed = 0;
    for (name, runs) in SUITES.iter().filter(|(name, _)| is_chosen(name)) {
        say(&format!("== {name}"));
        let begun = Instant::now();
        let ended = command(*runs, &program, args.seed)
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

fn command(runs: Runs, program: &Path, seed: u64) -> Command {
    match runs {
        Runs::Own(arguments) => {
            let seed = seed.to_string();
            let mut command = Command::new(program);
            command.args(arguments.iter().map(|part| if *part == "{seed}" { &*seed } else { *part }));
            command
        }
        Runs::Test(test, (name, value)) => {
            let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            command.args([
                "test",
                "--locked",
                "--workspace",
                "--manifest-path",
                MANIFEST,
                "--test",
                "it",
                test,
            ]);
            command.args(["--", "--nocapture"]).env(name, value);
            command
        }
    }
}

fn minutes(time: Duration) -> String {
    format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suite_is_run_by_this_program_or_is_a_test_with_a_variable() {
        let told = |name: &str| {
            let (_, runs) = SUITES.iter().find(|(known, _)| *known == name).unwrap();
            let command = command(*runs, Path::new("loadtest"), 7);
            let arguments: Vec<_> = command.get_args().map(|one| one.to_str().unwrap().to_owned()).collect();
            let set: Vec<_> = command.get_envs().map(|(name, _)| name.to_str().unwrap().to_owned()).collect();
            (arguments.join(" "), set.join(" "))
        };
        assert_eq!(told("faults"), ("faults --long --seed 7".to_owned(), String::new()));
        let (arguments, set) = told("commits");
        assert!(arguments.ends_with("--test it killed_commits -- --nocapture"), "{arguments}");
        assert_eq!(set, "KILLS");
    }
}
