//! `loadtest entrance`: for how long visitors are not led when something on their way is killed, and whether any is lost when it is
//! replaced in order.
//!
//! takes: nothing - gives: of each event the requests that failed, which of them were under way, and for how long new ones failed
//! calls: two servers of tunnels on a real NATS server, two clients, two routers, as processes on loopback, and visitors who come at
//! a steady rate whatever became of those before them - fails: when new requests fail for longer than 3 s after a kill, for longer
//! than 30 s after a network between client and server lost its connections without a word, or any request at all after an orderly
//! end

mod backends;
mod visits;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use tokio::time::{Instant, sleep};

use loadtest_judge::interrupt;
use loadtest_judge::screen::{judged, say, table};
use loadtest_sim::process;

use self::visits::{Visit, Visits};
use self::world::{Part, World};

const EXAMPLES: &str = "\
Examples:
  Kill and replace each of them once under 200 requests a second, some three minutes:
    loadtest entrance
  Three times each, and more visitors:
    loadtest entrance --rounds 3 --rate 400";

/// Arguments of `loadtest entrance`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Requests a second
    #[arg(long, value_name = "REQUESTS", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// How often each event is made to happen
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    rounds: u32,
    /// The program; else it is built
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// For so long new requests may fail after a kill; one that takes longer than this has failed as well.
const LONGEST: Duration = Duration::from_secs(3);
/// For so long they may fail after a network has lost its connections and told nobody.
const NOTICED: Duration = Duration::from_secs(30);
/// Visitors come for so long before an event, so that it meets them under way, and after it.
const BEFORE: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_secs(8);

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// Nothing: what is lost then is lost by the harness.
    Nothing,
    /// One of them is killed, and is started again.
    Kill(Part),
    /// One of them is told to end, as when its pod is replaced: another one was started before.
    Replace(Part),
    /// The network between clients and servers carries nothing more of what is connected, and says so to nobody.
    Silence,
}

const EVENTS: [Event; 9] = [
    Event::Nothing,
    Event::Kill(Part::Server),
    Event::Kill(Part::Client),
    Event::Kill(Part::Router),
    Event::Kill(Part::Bus),
    Event::Replace(Part::Server),
    Event::Replace(Part::Client),
    Event::Replace(Part::Router),
    Event::Silence,
];

impl Event {
    fn name(self) -> String {
        match self {
            Self::Nothing => "nothing happens".to_owned(),
            Self::Kill(part) => format!("{} killed", part.name()),
            Self::Replace(part) => format!("{} replaced", part.name()),
            Self::Silence => "network silent".to_owned(),
        }
    }

    /// For how long new requests may fail; `None`: not at all.
    fn longest(self) -> Option<Duration> {
        match self {
            Self::Nothing | Self::Replace(_) => None,
            Self::Kill(_) => Some(LONGEST),
            Self::Silence => Some(NOTICED),
        }
    }

    /// What misses the bound.
    fn missed(self, outcome: &Outcome) -> Option<String> {
        let (name, failed) = (self.name(), outcome.under_way + outcome.new);
        match self.longest() {
            Some(longest) if outcome.gap > longest => Some(format!(
                "{name}: new requests failed for {:.1} s, of at most {} s",
                outcome.gap.as_secs_f64(),
                longest.as_secs()
            )),
            None if failed > 0 => Some(format!("{name}: {failed} requests failed, of none")),
            _ => None,
        }
    }
}

/// What became of the requests around an event.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    asked: usize,
    /// Failed, and had begun before the event.
    under_way: usize,
    /// Failed, and began after it.
    new: usize,
    /// From the event until the last of these began.
    gap: Duration,
    /// Of those that were answered.
    longest: Duration,
}

impl Outcome {
    fn of(visits: &[Visit], event: Instant) -> Self {
        let failed = || visits.iter().filter(|visit| !visit.is_answered);
        let gap = failed().filter_map(|visit| visit.begun.checked_duration_since(event)).max();
        let new = failed().filter(|visit| visit.begun >= event).count();
        Self {
            asked: visits.len(),
            under_way: failed().count() - new,
            new,
            gap: gap.unwrap_or_default(),
            longest: visits
                .iter()
                .filter(|visit| visit.is_answered)
                .map(|visit| visit.took)
                .max()
                .unwrap_or_default(),
        }
    }
}

/// Kills, replaces and judges.
///
/// # Errors
/// When the program cannot be built, or the way does not stand.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    interrupt::exit_of(all(args))
}

async fn all(args: &Args) -> anyhow::Result<bool> {
    let program = process::program(args.program.as_deref()).await?;
    let mut world = Box::pin(World::start(program)).await?;
    let (mut rows, mut missed) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        for event in EVENTS {
            let outcome = Box::pin(around(&mut world, event, args.rate)).await?;
            missed.extend(event.missed(&outcome));
            rows.push(vec![
                event.name(),
                outcome.asked.to_string(),
                outcome.under_way.to_string(),
                outcome.new.to_string(),
                format!("{:.2} s", outcome.gap.as_secs_f64()),
                format!("{:.0} ms", outcome.longest.as_secs_f64() * 1e3),
            ]);
        }
    }
    world.end().await?;
    let header = ["event", "requests", "failed under way", "failed after it", "for", "longest answered"];
    say(&table(1, &header, &rows));
    say(&format!(
        "{} requests a second, each on a connection of its own; one that takes {} s has failed",
        args.rate,
        LONGEST.as_secs()
    ));
    for why in &missed {
        say(&judged(&format!("  {why}"), false));
    }
    let good = missed.is_empty();
    say(&judged(if good { "entrance: held" } else { "entrance: missed" }, good));
    Ok(good)
}

/// Visitors come, the event happens, and they go on coming.
async fn around(world: &mut World, event: Event, rate: u32) -> anyhow::Result<Outcome> {
    say(&format!("== {}", event.name()));
    world.is_led(rate).await?;
    let visits = Visits::begin(world.entrance(), rate, LONGEST)?;
    sleep(BEFORE).await;
    let happened = Instant::now();
    match event {
        Event::Nothing => {}
        Event::Kill(part) => world.kill(part).await?,
        Event::Replace(part) => Box::pin(world.replace(part)).await?,
        Event::Silence => world.silence(),
    }
    let after = AFTER + event.longest().unwrap_or_default();
    sleep(after).await;
    let visits = visits.end().await;
    let outcome = Outcome::of(&visits, happened);
    let expected =
        usize::try_from(rate).unwrap_or(usize::MAX).saturating_mul((BEFORE + after).as_secs() as usize);
    ensure!(
        outcome.asked >= expected / 10 * 9,
        "{} visitors came of {expected}: the machine is too busy",
        outcome.asked
    );
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_fail_are_counted_by_whether_they_had_begun_and_the_last_new_one_ends_the_gap() {
        let event = Instant::now() + Duration::from_secs(10);
        let visit = |after: i64, is_answered: bool| Visit {
            begun: if after < 0 {
                event - Duration::from_millis(after.unsigned_abs())
            } else {
                event + Duration::from_millis(after.unsigned_abs())
            },
            took: Duration::from_millis(7),
            is_answered,
        };
        let outcome = Outcome::of(
            &[visit(-5, false), visit(-4, true), visit(0, false), visit(400, false), visit(500, true)],
            event,
        );
        let expected = Outcome {
            asked: 5,
            under_way: 1,
            new: 2,
            gap: Duration::from_millis(400),
            longest: Duration::from_millis(7),
        };
        assert_eq!(outcome, expected);
        assert_eq!(Event::Kill(Part::Bus).missed(&outcome), None);
        let longer = Outcome { gap: Duration::from_millis(3_100), ..outcome };
        assert_eq!(
            Event::Kill(Part::Bus).missed(&longer).as_deref(),
            Some("bus killed: new requests failed for 3.1 s, of at most 3 s")
        );
        assert_eq!(Event::Silence.missed(&longer), None);
        let unnoticed = Outcome { gap: Duration::from_millis(30_100), ..longer };
        assert_eq!(
            Event::Silence.missed(&unnoticed).as_deref(),
            Some("network silent: new requests failed for 30.1 s, of at most 30 s")
        );
        assert_eq!(
            Event::Replace(Part::Router).missed(&longer).as_deref(),
            Some("router replaced: 3 requests failed, of none")
        );
    }
}
