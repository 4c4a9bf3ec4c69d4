//! `loadtest overload`: more applications at once than the queues hold.
//!
//! takes: a number of applications, shards and the length of their queues - gives: what was reported and lost, and
//! whether every event was accounted for at every moment
//! calls: the binary and the simulators - fails: exit code 1 when an application is lost, or at any sample of any
//! shard `observed = acked + coalesced + filtered + parked + queued + waiting + in flight` does not hold

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{duration, until_interrupted};
use crate::process;
use crate::reporter::{Figures, Reporter, Usage};
use crate::screen::{bar, judged, say, table};
use crate::sim::generate::{Line, Shape};
use crate::sim::{Load, Setup, Simulation};

const EXAMPLES: &str = "\
Examples:
  2,500 applications at once into one queue of 1,000, of which the incumbent drops 1,499:
    loadtest overload
  50,000 into five shards:
    loadtest overload --apps 50000 --shards 5 --resources 2";

/// Given up when nothing was reported for this long.
const STANDSTILL: Duration = Duration::from_secs(30);
/// Between two looks at the figures.
const LOOK: Duration = Duration::from_millis(15);
/// What the incumbent takes of a start with more applications than its queue of 1,000 holds.
const INCUMBENT: u32 = 1_001;

/// Arguments of `loadtest overload`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Applications at once
    #[arg(long, default_value_t = 2_500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub apps: u32,
    /// Resources of each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub resources: u32,
    /// Shards that share them
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub shards: u32,
    /// Events that the queue of one shard holds
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub queue: u32,
    /// How late Argo CD answers
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = duration)]
    pub argocd_latency: Duration,
    /// How late the platform answers
    #[arg(long, value_name = "TIME", default_value = "5ms", value_parser = duration)]
    pub platform_latency: Duration,
    /// Which Argo CD answers
    #[arg(long, value_enum, default_value = "v3")]
    pub line: Line,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
    /// Run this program and build nothing
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

/// What an overload came to.
#[derive(Debug, Clone, Default)]
pub struct Overloaded {
    /// Applications that were there.
    pub applications: u32,
    /// Of those, the ones that were reported in their last state, with every resource.
    pub reported: u32,
    /// Looks at each shard's figures.
    pub samples: u64,
    /// Of those, the ones with an event missing or counted twice.
    pub violations: Vec<String>,
    /// The most events that waited in one shard's queue.
    pub queued: u64,
    /// The most applications of one shard that waited to be read again.
    pub dirty: u64,
    /// All shards' figures at the end.
    pub total: Figures,
    /// Single objects that the API server was asked for.
    pub reads: u64,
    /// Reports of an older state after a newer one.
    pub out_of_order: u64,
    /// Reports that came twice.
    pub duplicated: u64,
    /// How long it took.
    pub took: Duration,
    /// Of the reporter.
    pub usage: Usage,
}

/// Runs `loadtest overload`.
///
/// # Errors
/// When the binary cannot be built or started, or ends.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    until_interrupted(async {
        let found = overload(args).await?;
        say(&if args.json { format!("{:#}", found.json()) } else { found.text(args) });
        Ok(if found.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Overloads the reporter and gives what came of it.
///
/// # Errors
/// As [`run`].
pub async fn overload(args: &Args) -> anyhow::Result<Overloaded> {
    let program = process::program(args.program.as_deref()).await?;
    let simulation = Simulation::start(Setup {
        load: Load::Generated(Shape {
            applications: args.apps,
            resources: args.resources,
            line: args.line,
            ..Shape::default()
        }),
        argocd_latency: args.argocd_latency,
        platform_latency: args.platform_latency,
        // As many changes as applications come at once: a watch must find them all.
        history: 200_000,
        ..Setup::default()
    })
    .await?;
    let settings = json!({"reporter": {
        "sharding": {"shards": args.shards}, "queue": {"events": args.queue},
    }});
    let reporter = Reporter::start(&program, &simulation, &settings).await?;
    reporter.ready(STANDSTILL).await?;
    simulation.populate()?;
    let mut found = watch(args, &simulation, &reporter).await?;
    found.reported = reported(args, &simulation)?;
    reporter.stop().await?;
    simulation.stop().await?;
    Ok(found)
}

/// Looks at the figures until every application was reported, or nothing moves any more.
async fn watch(args: &Args, simulation: &Simulation, reporter: &Reporter) -> anyhow::Result<Overloaded> {
    let began = Instant::now();
    let progress = bar(u64::from(args.apps), "overload");
    let wanted = u64::from(args.apps) * u64::from(args.resources);
    let mut found = Overloaded { applications: args.apps, ..Overloaded::default() };
    let mut last = (0, began);
    loop {
        let status = reporter.status().await?;
        for shard in &status.shards {
            found.look(shard);
        }
        found.total = status.total;
        let totals = simulation.platform.totals();
        progress.set_position(totals.applications.min(u64::from(args.apps)));
        progress.set_message(format!("{} dirty", status.total.dirty));
        if totals.taken != last.0 {
            last = (totals.taken, Instant::now());
        }
        let all = totals.applications >= u64::from(args.apps) && totals.resources >= wanted;
        if (all && status.total.idle()) || last.1.elapsed() > STANDSTILL {
            break;
        }
        sleep(LOOK).await;
    }
    progress.finish_and_clear();
    let totals = simulation.platform.totals();
    found.took = last.1 - began;
    found.reads = simulation.kube.counts().gets;
    found.out_of_order = totals.out_of_order + totals.resources_out_of_order;
    found.duplicated = totals.duplicates;
    found.usage = reporter.usage()?;
    Ok(found)
}

/// How many applications the platform knows in their last state, with every resource.
fn reported(args: &Args, simulation: &Simulation) -> anyhow::Result<u32> {
    let driver = super::drive::Driver::new(simulation, 1)?;
    let wrong = u32::try_from(driver.applications_wrong()).unwrap_or(u32::MAX);
    Ok(args.apps.saturating_sub(wrong))
}

impl Overloaded {
    /// Takes one shard's figures of one moment.
    fn look(&mut self, shard: &Figures) {
        self.samples += 1;
        self.queued = self.queued.max(shard.queued);
        self.dirty = self.dirty.max(shard.dirty);
        let balance = shard.balance();
        if balance != 0 {
            self.violations.push(format!("shard {}: {balance} of {shard:?}", shard.shard));
        }
    }

    /// Whether nothing was lost and every sample held.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.reported == self.applications
            && self.violations.is_empty()
            && self.samples > 0
            && self.out_of_order + self.duplicated + self.total.parked == 0
    }

    /// All figures.
    #[must_use]
    pub fn json(&self) -> Value {
        let lost = self.applications - self.reported;
        json!({
            "applications": self.applications, "reported": self.reported, "lost": lost,
            "samples": self.samples, "violations": self.violations.len(),
            "out_of_order": self.out_of_order, "duplicated": self.duplicated,
            "most_queued": self.queued, "most_dirty": self.dirty, "overflowed": self.total.overflowed,
            "observed": self.total.observed, "acked": self.total.acked, "coalesced": self.total.coalesced,
            "filtered": self.total.filtered, "parked": self.total.parked, "reads": self.reads,
            "seconds": self.took.as_secs_f64(), "rss_bytes": self.usage.peak,
        })
    }

    fn text(&self, args: &Args) -> String {
        let lost = self.applications - self.reported;
        let dropped = args.apps.saturating_sub(INCUMBENT);
        let known = args.shards == 1 && args.queue == 1_000 && dropped > 0;
        let theirs = |value: u32| if known { value.to_string() } else { "-".to_owned() };
        let row = |what: &str, theirs: String, ours: u64| vec![what.to_owned(), theirs, ours.to_string()];
        let none = || "-".to_owned();
        let rows = [
            row("applications at once", theirs(args.apps), u64::from(self.applications)),
            row("reported", theirs(INCUMBENT), u64::from(self.reported)),
            row("lost", theirs(dropped), u64::from(lost)),
            row("most in one queue", none(), self.queued),
            row("did not fit, marked to be read again", none(), self.total.overflowed),
            row("most so marked at once, in one shard", none(), self.dirty),
            row("read again at the API server", none(), self.reads),
            row("out of order", none(), self.out_of_order),
            row("duplicated", none(), self.duplicated),
        ];
        let mut text = format!("{}\n", table(1, &["", "incumbent", "this"], &rows));
        for violation in self.violations.iter().take(10) {
            text.push_str(&format!("\nnot accounted for: {violation}"));
        }
        let line = format!(
            "overload: {} applications, {} reported, {lost} lost; every event accounted for in {} of {} samples",
            self.applications,
            self.reported,
            self.samples - self.violations.len() as u64,
            self.samples
        );
        text.push_str(&format!(
            "\n{:.1} s, {:.1} MB resident at most\n{}",
            self.took.as_secs_f64(),
            self.usage.peak as f64 / 1e6,
            judged(&line, self.is_good())
        ));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_that_is_not_accounted_for_fails_it() {
        let mut found = Overloaded { applications: 2, reported: 2, ..Overloaded::default() };
        assert!(!found.is_good(), "nothing was looked at");
        let figures = Figures { observed: 5, acked: 2, queued: 3, shard: 4, ..Figures::default() };
        found.look(&figures);
        assert!(found.is_good());
        assert_eq!((found.samples, found.queued), (1, 3));
        found.look(&Figures { observed: 6, ..figures });
        assert!(!found.is_good());
        assert!(found.violations[0].starts_with("shard 4: 1 of "), "{:?}", found.violations);
    }

    #[test]
    fn a_lost_application_fails_it() {
        let mut found = Overloaded { applications: 2, reported: 1, ..Overloaded::default() };
        found.look(&Figures::default());
        assert!(!found.is_good());
        assert_eq!(found.json()["lost"], 1);
    }
}
