//! `loadtest replicas`: replicas of the real binary on a real NATS server, what happens to them, and what the platform
//! is told meanwhile.
//!
//! takes: how many applications, a seed - gives: a row for each event, what is wrong, and one last line
//! calls: the binary, which it builds first; `nats-server`; the simulators, in this process - fails: exit code 1 when
//! anything was lost, repeated beyond what was in flight, out of order or accepted from a stale owner, or a shard was owned
//! by nobody for longer than 15 s (two minutes in the short form, which runs beside anything)
//!
//! The seed says what changes and whom an event meets; the scheduling of the processes is their own. An event is an arm of
//! `Event`.

mod event;
mod group;
mod late;
mod owners;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use event::events;
use loadtest_judge::interrupt::until_interrupted;
use loadtest_judge::outcome::{self, Outcome, seconds};
use loadtest_judge::screen::{bar, judged, say};
use loadtest_sim::process;
use world::World;

const EXAMPLES: &str = "\
Examples:
  Every event once, with 1,000 applications:
    loadtest replicas
  As it is meant, with an optimised program: 5,000 applications, rounds of events in an order of their own:
    cargo run --release -p loadtest -- replicas --long";

/// The column of reports that were taken although another owner was newer.
const STALE: &str = "accepted stale";
/// Rounds of the long form.
const ROUNDS: u32 = 3;

/// Arguments of `loadtest replicas`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The long form: 5,000 applications, 24 events
    #[arg(long)]
    long: bool,
    /// Decides what changes and whom an event meets
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// So many applications, of three resources each [default: 1000, with --long 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(50..))]
    applications: Option<u32>,
    /// Run this program and build nothing
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// What a run is told.
#[derive(Debug)]
struct Setting {
    applications: u32,
    seed: u64,
    program: PathBuf,
    /// The long form.
    is_long: bool,
}

/// Runs `loadtest replicas`.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    until_interrupted(Box::pin(carry_out(args)))
}

async fn carry_out(args: &Args) -> anyhow::Result<ExitCode> {
    let program = process::program(args.program.as_deref()).await?;
    let applications = args.applications.unwrap_or(if args.long { 5_000 } else { 1_000 });
    let setting = Setting { applications, seed: args.seed, program, is_long: args.long };
    say(&format!("seed {}", args.seed));
    let mut world = World::new(&setting).await?;
    let events = events(if args.long { ROUNDS } else { 0 }, &mut fastrand::Rng::with_seed(args.seed));
    let progress = bar(events.len() as u64, "replicas");
    let mut outcomes: Vec<Outcome> = Vec::new();
    let done = async {
        let took = world.begin().await?;
        say(&format!("{applications} applications reported by 3 replicas after {}", seconds(took)));
        for event in events {
            progress.set_message(event.about());
            let outcome = world.carry_out(event).await.map_err(|error| error.context(event.about()))?;
            say(&line(&outcome));
            let known = outcome.lost == 0;
            outcomes.push(outcome);
            progress.inc(1);
            // What is lost once stays lost, and would be counted again.
            if !known {
                break;
            }
        }
        anyhow::Ok(())
    };
    let done = done.await;
    progress.finish_and_clear();
    let mut good = done.is_ok() && outcomes.iter().all(Outcome::is_good);
    say(&outcome::text(&outcomes));
    if !good {
        say(&format!("the logs are kept in {}", world.group.keep_logs()?.display()));
    }
    if let Err(error) = &done {
        say(&judged(&format!("WRONG: {error:#}"), false));
    }
    if let Err(error) = world.end().await {
        say(&judged(&format!("WRONG: {error:#}"), false));
        good = false;
    }
    say(&judged(&last_line(&outcomes), good));
    Ok(ExitCode::from(u8::from(!good)))
}

/// What one event came to in one line, as soon as it is known.
fn line(outcome: &Outcome) -> String {
    let drain = outcome.drain.map(seconds).unwrap_or_default();
    let line = format!(
        "{:<6} {}: {}; everything known after {drain}",
        outcome.verdict(),
        outcome.name,
        outcome.broken
    );
    judged(&line, outcome.is_good())
}

/// The last line of a run.
fn last_line(outcomes: &[Outcome]) -> String {
    // What was accepted is a number, or the event was none.
    let stale = |outcome: &Outcome| {
        let (_, count) = outcome.more.iter().find(|(header, _)| *header == STALE)?;
        count.parse::<u64>().ok()
    };
    format!(
        "replicas: {} events, {} lost, {} out of order, {} accepted from stale owners",
        outcomes.len(),
        outcome::sum(outcomes, |outcome| outcome.lost),
        outcome::sum(outcomes, |outcome| outcome.out_of_order),
        outcomes.iter().filter_map(stale).sum::<u64>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_sums_what_must_be_nought() {
        let more = vec![(STALE, "3".to_owned())];
        let one = Outcome { lost: 1, out_of_order: 2, more, ..Outcome::new("kill", "one killed") };
        assert!(line(&one).starts_with("FAILED kill: one killed; "));
        assert_eq!(
            last_line(&[one.clone(), one]),
            "replicas: 2 events, 2 lost, 4 out of order, 6 accepted from stale owners"
        );
    }
}
