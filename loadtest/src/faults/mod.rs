//! `loadtest faults`: breaks the real binary and its peers in every way that is promised to be survived, and judges
//! what the platform was told.
//!
//! takes: names of faults, or none for all; a seed - gives: a row for each fault, what is wrong, and one last line
//! calls: the binary, which it builds first; the simulators, in this process - fails: exit code 1 when anything was
//! lost, repeated beyond what was in flight or out of order, or a fault's own demand is not met
//!
//! The seed says what changes and when faults strike; the scheduling of the processes is their own. A fault is a
//! file, and a line of `FAULTS`.

mod away;
mod clones;
mod damage;
mod disk;
mod kill;
pub(crate) mod load;
mod memory;
mod platform;
mod poison;
mod restart;
mod token;
mod world;

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::builder::PossibleValuesParser;
use futures::future::LocalBoxFuture;

use loadtest_judge::interrupt::until_interrupted;
use loadtest_judge::outcome::{self, Outcome};
use loadtest_judge::screen::{judged, say};
use loadtest_sim::process;

const EXAMPLES: &str = "\
Examples:
  Every fault, in a few minutes:
    loadtest faults
  Two of them, at other moments:
    loadtest faults kill away --seed 7
  As long and as hard as it is meant, with an optimised program:
    cargo run --release -p loadtest -- faults --long";

/// Where there is no commit to take a seed from.
const SEED: u64 = 1;

/// Arguments of `loadtest faults`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Faults to try instead of all
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(FAULTS.iter().map(|fault| fault.name)))]
    pub names: Vec<String>,
    /// The long form: 200 kills, ten minutes without a receiver, 10,000 applications, 50 kills of fetches
    #[arg(long)]
    pub long: bool,
    /// Decides what changes and when faults strike; without it, taken from the current commit
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run this program and build nothing
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

/// What every fault is told.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    /// The long form.
    long: bool,
    /// Decides what looks random.
    seed: u64,
    /// The real binary.
    program: PathBuf,
}

impl Setting {
    /// One of two, by the form of the run.
    fn either<T>(&self, short: T, long: T) -> T {
        if self.long { long } else { short }
    }
}

type Run = for<'a> fn(&'a Setting) -> LocalBoxFuture<'a, anyhow::Result<Outcome>>;

/// One way to break things.
struct Fault {
    name: &'static str,
    about: &'static str,
    /// It waits most of its time: all that do are tried at once in the short form.
    waits: bool,
    run: Run,
}

/// One that is tried by itself.
const fn alone(name: &'static str, about: &'static str, run: Run) -> Fault {
    Fault { name, about, waits: false, run }
}

/// One that waits most of its time.
const fn waiting(name: &'static str, about: &'static str, run: Run) -> Fault {
    Fault { name, about, waits: true, run }
}

/// All of them, in the order they are tried in.
const FAULTS: &[Fault] = &[
    alone("kill", "killed under load, again and again", |setting| Box::pin(kill::run(setting))),
    waiting("away", "the receiver is away", |setting| Box::pin(away::run(setting))),
    waiting("away-restart", "the receiver is away, and the process is killed meanwhile", |setting| {
        Box::pin(away::with_a_kill(setting))
    }),
    alone("restart", "restarted with nothing changed", |setting| Box::pin(restart::run(setting))),
    alone("platform", "the platform fails for one application only", |setting| {
        Box::pin(platform::run(setting))
    }),
    waiting("disk", "no room, and no right to write", |setting| Box::pin(disk::run(setting))),
    alone("damage", "the ledger is damaged", |setting| Box::pin(damage::run(setting))),
    waiting("token", "the token is refused until its file is replaced", |setting| {
        Box::pin(token::run(setting))
    }),
    waiting("poison", "one application's reports are refused for good", |setting| {
        Box::pin(poison::run(setting))
    }),
    alone("clones", "fetches of repositories are killed", |setting| Box::pin(clones::run(setting))),
];

/// Runs `loadtest faults`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let is_chosen =
        |fault: &&Fault| args.names.is_empty() || args.names.iter().any(|name| name == fault.name);
    let chosen: Vec<&Fault> = FAULTS.iter().filter(is_chosen).collect();
    until_interrupted(async {
        let seed = args.seed.unwrap_or_else(seed_of_commit);
        let program = process::program(args.program.as_deref()).await?;
        let setting = Setting { long: args.long, seed, program };
        say(&format!("seed {seed}"));
        let outcomes = carry_out_all(&chosen, &setting).await;
        let good = outcomes.iter().all(Outcome::is_good);
        say(&outcome::text(&outcomes));
        say(&judged(&last_line(&outcomes), good));
        Ok(ExitCode::from(u8::from(!good)))
    })
}

/// The last line of a run.
fn last_line(outcomes: &[Outcome]) -> String {
    format!(
        "faults: {} faults, {} lost, {} duplicated beyond what was in flight, {} out of order",
        outcomes.len(),
        outcome::sum(outcomes, |outcome| outcome.lost),
        outcome::sum(outcomes, |outcome| outcome.beyond),
        outcome::sum(outcomes, |outcome| outcome.out_of_order)
    )
}

/// Those that wait at once, then the others one after the other; outcomes in the order of the faults. In the long form, which judges
/// speed and memory, one after the other all of them.
async fn carry_out_all(chosen: &[&Fault], setting: &Setting) -> Vec<Outcome> {
    let tell = |what: &str, fault: &Fault| say(&format!("{what} {}: {}", fault.name, fault.about));
    let one = async |fault: &Fault| {
        tell("==", fault);
        let outcome = carry_out(fault, setting).await;
        tell(if outcome.is_good() { "held  " } else { "FAILED" }, fault);
        outcome
    };
    let at_once = |fault: &Fault| fault.waits && !setting.long;
    let waiting = chosen.iter().filter(|fault| at_once(fault)).map(|fault| one(fault));
    let mut waited = futures::future::join_all(waiting).await.into_iter();
    let mut outcomes = Vec::new();
    for fault in chosen {
        let outcome = if at_once(fault) { waited.next() } else { Some(one(fault).await) };
        outcomes.extend(outcome);
    }
    outcomes
}

/// A fault that could not be carried out to its end has not held.
async fn carry_out(fault: &Fault, setting: &Setting) -> Outcome {
    match (fault.run)(setting).await {
        Ok(outcome) => outcome,
        Err(error) => Outcome { wrong: vec![format!("{error:#}")], ..Outcome::new(fault.name, fault.about) },
    }
}

/// A number that stands for the current commit, so that every commit is tried at moments of its own.
fn seed_of_commit() -> u64 {
    let mut git = Command::new("git");
    let asked =
        git.args(["rev-parse", "--verify", "HEAD"]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    asked.ok().and_then(|answer| seed_of(&String::from_utf8_lossy(&answer.stdout))).unwrap_or(SEED)
}

/// The first digits of a commit, as a number.
fn seed_of(commit: &str) -> Option<u64> {
    u64::from_str_radix(commit.get(..8)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_gives_a_seed() {
        assert_eq!(seed_of("0000001fdeadbeef\n"), Some(31));
        assert_eq!(seed_of(""), None);
        assert_eq!(seed_of("not a commit"), None);
    }

    #[test]
    fn the_last_line_sums_what_must_be_nought() {
        let one = Outcome { lost: 1, beyond: 2, out_of_order: 3, duplicated: 9, ..Outcome::default() };
        assert_eq!(
            last_line(&[one.clone(), one]),
            "faults: 2 faults, 2 lost, 4 duplicated beyond what was in flight, 6 out of order"
        );
    }
}
