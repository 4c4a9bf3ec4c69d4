//! Everything that the short runs leave out: each suite of this program in its long form, one after the other.
//!
//! takes: nothing, or names of suites - gives: a row per suite, and 1 as the exit code unless all passed
//! calls: this program itself, or `cargo test`, a process per suite, so that none of them leaves anything to the next
//! fails: when a suite cannot be started, or a name is none of theirs

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

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
    /// Suites to run instead of all: bench, faults, commits, replicas, node, scenarios, scenarios-on-platform, fault-rounds, restores, monorepo, resources, kinds, acts, chart, install, tunnel, router, entrance, platform
    suites: Vec<String>,
    /// Decides when faults strike
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the suites.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let chosen = chosen(&args.suites)?;
    let program = std::env::current_exe().context("find this program")?;
    let mut rows = Vec::new();
    let mut failed = 0;
    for (name, runs) in &chosen {
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

type Suite = (&'static str, Runs);

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
                "commits",
                "replicas",
                "node",
                "scenarios",
                "scenarios-on-platform",
                "fault-rounds",
                "restores",
                "monorepo",
                "resources",
                "kinds",
                "acts",
                "chart",
                "install",
                "tunnel",
                "router",
                "entrance",
                "platform"
            ]
        );
        assert_eq!(names(&["faults", "bench"]).unwrap(), ["bench", "faults"]);
    }

    #[test]
    fn each_suite_is_run_by_this_program_or_is_a_test_with_a_variable() {
        let told = |name: &str| {
            let (_, runs) = chosen(&[name.to_owned()]).unwrap().remove(0);
            let command = command(runs, Path::new("loadtest"), 7);
            let arguments: Vec<_> = command.get_args().map(|one| one.to_str().unwrap().to_owned()).collect();
            let set: Vec<_> = command.get_envs().map(|(name, _)| name.to_str().unwrap().to_owned()).collect();
            (arguments.join(" "), set.join(" "))
        };
        assert_eq!(told("faults"), ("faults --long --seed 7".to_owned(), String::new()));
        let (arguments, set) = told("commits");
        assert!(arguments.ends_with("--test it killed_commits -- --nocapture"), "{arguments}");
        assert_eq!(set, "KILLS");
    }

    #[test]
    fn an_unknown_suite_is_refused() {
        let refused = |given: &[&str]| names(given).unwrap_err().to_string();
        assert_eq!(
            refused(&["speed"]),
            "there is no suite \"speed\"; there are bench, faults, commits, replicas, node, scenarios, scenarios-on-platform, fault-rounds, restores, monorepo, resources, kinds, acts, chart, install, tunnel, router, entrance, platform"
        );
    }
}
