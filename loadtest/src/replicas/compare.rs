//! `loadtest replicas compare`: what a change costs three replicas on NATS, beside one process that keeps everything in
//! memory.
//!
//! Both are measured in one run, in turns, with the same changes: so many are under way at a time, each of another
//! application, so that no two of them come together. The simulators and this program share the machine's cores with
//! them, so the changes a second are those of this machine; processor time is that of the processes that are measured.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::group::Group;
use crate::faults::load::Load;
use crate::faults::witness::Witness;
use crate::nats::NatsServer;
use crate::process;
use crate::reporter::Usage;
use crate::screen::{bar, judged, say, table};
use crate::sim::generate::{Fleet, Shape};
use crate::sim::{Load as Served, Setup, Simulation};

/// Replicas on NATS.
const REPLICAS: u32 = 3;
/// Resources of an application.
const RESOURCES: u32 = 5;
/// Changes that are under way at a time.
const UNDER_WAY: usize = 64;
/// Rounds: each side is measured so often, in turns.
const ROUNDS: u32 = 2;
/// Processor time of a change on NATS may be this many times that in memory.
const MOST: f64 = 2.0;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);
const SLOW_LOOK: Duration = Duration::from_millis(100);

/// Arguments of `loadtest replicas compare`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// So many applications, of five resources each
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(100..))]
    applications: u32,
    /// So many changes in each of two rounds
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(1..))]
    changes: u32,
    /// Decides what changes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run this program and build nothing
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// What was measured of one side, in all rounds.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    changes: u64,
    reports: u64,
    calls: u64,
    seconds: f64,
    /// Processor seconds of the reporters.
    cpu: f64,
    /// Processor seconds of the NATS server.
    nats: f64,
}

impl Measured {
    fn plus(self, other: Self) -> Self {
        Self {
            changes: self.changes + other.changes,
            reports: self.reports + other.reports,
            calls: self.calls + other.calls,
            seconds: self.seconds + other.seconds,
            cpu: self.cpu + other.cpu,
            nats: self.nats + other.nats,
        }
    }

    /// Changes a second, and what one change came to: reports, calls to Argo CD, milliseconds of the reporters and of the
    /// NATS server.
    fn figures(self) -> [f64; 5] {
        let each = |sum: f64| sum / self.changes.max(1) as f64;
        [
            self.changes as f64 / self.seconds.max(f64::EPSILON),
            each(self.reports as f64),
            each(self.calls as f64),
            each(self.cpu * 1e3),
            each(self.nats * 1e3),
        ]
    }
}

const HEADER: [&str; 6] = [
    "bus",
    "changes a second",
    "reports a change",
    "Argo CD calls a change",
    "CPU ms a change",
    "NATS CPU ms",
];

/// The table, and whether processor time keeps to its bound.
fn text(memory: Measured, jetstream: Measured) -> (String, bool) {
    let (one, other) = (memory.figures(), jetstream.figures());
    let row = |name: &str, figures: &[f64]| {
        let figures = figures.iter().map(|figure| format!("{figure:.2}"));
        [name.to_owned()].into_iter().chain(figures).collect::<Vec<_>>()
    };
    let ratio: Vec<f64> =
        one.iter().zip(other).map(|(one, other)| other / one.max(f64::EPSILON)).take(4).collect();
    let mut last = row("ratio", &ratio);
    last.push("-".to_owned());
    let mut first = row("memory, 1 process", &one);
    if let Some(nats) = first.last_mut() {
        "-".clone_into(nats);
    }
    let rows = [first, row("JetStream, 3 replicas", &other), last];
    let cpu = ratio.get(3).copied().unwrap_or(f64::INFINITY);
    let held = cpu <= MOST;
    let word = if held { "at most" } else { "more than" };
    let line = format!("CPU per change is {word} {MOST} times that in memory: {cpu:.2} times");
    (format!("{}\n{}", table(1, &HEADER, &rows), judged(&line, held)), held)
}

/// Measures, and prints the table; exit code 1 when a change costs too much.
///
/// # Errors
/// When something does not start, or changes are not reported.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let program = process::program(args.program.as_deref()).await?;
    let [mut memory, mut jetstream] = [Measured::default(); 2];
    for round in 0..ROUNDS {
        let work = Work {
            program: program.clone(),
            applications: args.applications,
            changes: args.changes,
            seed: args.seed + u64::from(round),
        };
        say(&format!("== round {} of {ROUNDS}", round + 1));
        memory = memory.plus(measure(&work, None).await?);
        let nats = NatsServer::start().await?;
        jetstream = jetstream.plus(measure(&work, Some(&nats)).await?);
    }
    let (text, held) = text(memory, jetstream);
    say(&text);
    Ok(ExitCode::from(u8::from(!held)))
}

/// What one side has to do in one round.
#[derive(Debug)]
struct Work {
    program: PathBuf,
    applications: u32,
    changes: u32,
    seed: u64,
}

/// One side in one round.
async fn measure(work: &Work, nats: Option<&NatsServer>) -> anyhow::Result<Measured> {
    let Work { program, applications, changes, seed } = work;
    let (applications, changes, seed) = (*applications, *changes, *seed);
    let simulation = Simulation::start(Setup {
        load: Served::Generated(Shape { applications, resources: RESOURCES, seed, ..Shape::default() }),
        argocd_latency: Duration::from_millis(5),
        platform_latency: Duration::from_millis(5),
        history: 200_000,
        ..Setup::default()
    })
    .await?;
    simulation.populate()?;
    let witness = Witness::at(&simulation.platform);
    let mut load = Load::new(&simulation, &witness, seed)?;
    let mut group = Group::new(program, &simulation, nats, &json!({}))?;
    group.add(if nats.is_some() { REPLICAS } else { 1 }).await?;
    group.settled(PATIENCE).await?;
    let all = u64::from(applications) * u64::from(1 + RESOURCES);
    simulation.platform.wait_until(PATIENCE, |totals| totals.taken >= all).await?;
    idle(&group).await?;

    let server = || nats.map_or_else(|| Ok(Usage::default()), NatsServer::usage);
    let (cpu, of_nats, calls) = (group.usage()?.cpu, server()?.cpu, simulation.argocd.calls());
    let taken = simulation.platform.totals().taken;
    let began = Instant::now();
    change(&simulation, &mut load, applications, changes).await?;
    let seconds = began.elapsed().as_secs_f64();
    idle(&group).await?;
    let totals = simulation.platform.totals();
    let measured = Measured {
        changes: u64::from(changes),
        reports: totals.taken - taken,
        calls: simulation.argocd.calls() - calls,
        seconds,
        cpu: group.usage()?.cpu - cpu,
        nats: server()?.cpu - of_nats,
    };
    let wrong = totals.wrong();
    ensure!(
        wrong.is_empty() && totals.duplicates == 0,
        "{} duplicates; {}",
        totals.duplicates,
        wrong.join("; ")
    );
    group.end().await?;
    simulation.stop().await?;
    Ok(measured)
}

/// Makes so many changes, and waits until each of them is reported.
async fn change(
    simulation: &Simulation,
    load: &mut Load,
    applications: u32,
    changes: u32,
) -> anyhow::Result<()> {
    let progress = bar(u64::from(changes), "changes");
    let deadline = Instant::now() + PATIENCE;
    let namespace = Shape::default().namespace;
    let known = |(index, version): &(u32, u64)| {
        let last = simulation.platform.last_of_application(&namespace, &Fleet::name(*index));
        last.is_some_and(|last| last.version >= Some(*version))
    };
    let mut under_way: Vec<(u32, u64)> = Vec::new();
    let mut made = 0;
    while made < changes || !under_way.is_empty() {
        ensure!(Instant::now() < deadline, "{} changes are not reported after {PATIENCE:?}", under_way.len());
        let before = under_way.len();
        under_way.retain(|change| !known(change));
        progress.inc((before - under_way.len()) as u64);
        while made < changes && under_way.len() < UNDER_WAY {
            let index = made % applications;
            under_way.push((index, load.drift(simulation, index)?));
            made += 1;
        }
        sleep(LOOK).await;
    }
    progress.finish_and_clear();
    Ok(())
}

/// Waits until no replica holds anything.
async fn idle(group: &Group) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !group.is_idle().await? {
        ensure!(Instant::now() < deadline, "the replicas are not done after {PATIENCE:?}");
        sleep(SLOW_LOOK).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(cpu: f64, nats: f64) -> Measured {
        Measured { changes: 1_000, reports: 2_000, calls: 1_500, seconds: 4.0, cpu, nats }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_process_is_measured() {
        let program = process::binary().await.unwrap();
        let work = Work { program, applications: 100, changes: 250, seed: 3 };
        let measured = measure(&work, None).await.unwrap();
        // Each change is one of an application and of one of its resources.
        assert_eq!((measured.changes, measured.reports, measured.nats), (250, 500, 0.0));
        assert!(measured.calls >= 250 && measured.cpu > 0.0 && measured.seconds > 0.0, "{measured:?}");
    }

    #[test]
    fn a_change_may_cost_twice_as_much_and_no_more() {
        let (text, held) = super::text(measured(2.0, 0.0), measured(4.0, 1.0));
        assert!(held);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["memory,", "1", "process", "250.00", "2.00", "1.50", "2.00", "-"]);
        assert_eq!(lines[2], ["JetStream,", "3", "replicas", "250.00", "2.00", "1.50", "4.00", "1.00"]);
        assert_eq!(lines[3], ["ratio", "1.00", "1.00", "1.00", "2.00", "-"]);
        assert!(text.ends_with("CPU per change is at most 2 times that in memory: 2.00 times"), "{text}");
        let (text, held) = super::text(measured(2.0, 0.0), measured(4.1, 0.0));
        assert!(!held && text.ends_with("CPU per change is more than 2 times that in memory: 2.05 times"));
    }
}
