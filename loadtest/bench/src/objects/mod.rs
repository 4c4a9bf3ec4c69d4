//! `loadtest bench objects`: the resource reporter beside very many ReplicaSets, nine of ten of which are idle, and Workflows.
//!
//! takes: objects that are written out as their controllers write them, and change: calmly, calmly beside one that changes 1,000
//! times a second, and 2,000 times a second in all - gives: how long it takes from the start of the process until each has its first
//! report, how long a change takes from when it was due to its report, memory, processor time of a change beside parsing its event
//! and compressing its report, and how many were filtered - calls: the role `resource-reporter` as a process; the simulators in
//! this process, which share the machine's cores with it - fails: when an object or a change is not reported, or is twice, or in
//! the wrong order, or an idle ReplicaSet is, or an event is not accounted for, or in the long form when a figure misses its bound

mod heard;
mod load;

use std::convert::Infallible;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use self::load::{Changes, Objects, Window};
use crate::limit;
use crate::look::Looks;
use crate::measure::{Measure, Measures};
use crate::times::millis;
use loadtest_judge::median;
use loadtest_judge::screen::say;
use loadtest_sim::generate::{Shape, WorkloadShape};
use loadtest_sim::reporter::Reporter;
use loadtest_sim::{Load, Setup, Simulation};

/// What does not move for so long is given up.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is looked whether every event is accounted for.
const LOOK: Duration = Duration::from_millis(500);
/// The platform answers so late.
const LATENCY: Duration = Duration::from_millis(5);
/// Applications that Rollouts belong to, each of several.
const APPLICATIONS: u32 = 250;
/// ReplicaSets of a Rollout: as many as are kept by default.
const OF_ROLLOUT: u32 = 10;
/// Different objects whose bytes are parsed and compressed.
const COMPARED: usize = 500;

/// Events without a report, by why.
const FILTERED: &str = "gitops_runtime_filtered_total";

/// What must be reached in the long form: memory at its most,
const RESIDENT: u64 = 96 << 20;
/// the first reports of all,
const FIRST: Duration = Duration::from_secs(10);
/// p99 of the others beside a hot object, over that without it,
const BESIDE_HOT: f64 = 1.2;
/// and so many of the changes of a second within it.
const KEPT_UP: f64 = 0.98;

/// How much there is, and happens.
#[derive(Debug, Clone, Copy)]
struct Form {
    replica_sets: u32,
    workflows: u32,
    /// So many changes a second,
    calm: f64,
    /// of one object beside them,
    hot: f64,
    /// in so many windows without it and with it, alternating,
    pairs: usize,
    /// and as many as can be expected.
    many: f64,
    /// Seconds of a window.
    seconds: f64,
    is_judged: bool,
}

const SHORT: Form = Form {
    replica_sets: 400,
    workflows: 40,
    calm: 20.0,
    hot: 200.0,
    pairs: 1,
    many: 60.0,
    seconds: 0.5,
    is_judged: false,
};
const LONG: Form = Form {
    replica_sets: 20_000,
    workflows: 5_000,
    calm: 100.0,
    hot: 1_000.0,
    pairs: 5,
    many: 2_000.0,
    seconds: 8.0,
    is_judged: true,
};

/// Everything that was seen.
struct Played {
    first: Duration,
    /// Processor seconds until all was listed, reported or filtered.
    listing: f64,
    idle: u64,
    filtered: u64,
    calm: Vec<Window>,
    hot: Vec<Window>,
    many: Window,
    /// Processor seconds of parsing a change's event and compressing its report.
    alone: f64,
}

/// Runs it; whether all was as it must be.
pub(crate) async fn run(program: &Path, is_short: bool) -> anyhow::Result<bool> {
    let form = if is_short { SHORT } else { LONG };
    let shape = WorkloadShape {
        replica_sets: form.replica_sets,
        of_rollout: OF_ROLLOUT,
        workflows: form.workflows,
        applications: APPLICATIONS,
    };
    say(&format!("== objects: {} ReplicaSets, {} Workflows", form.replica_sets, form.workflows));
    let applications = Shape { applications: APPLICATIONS, resources: 1, ..Shape::default() };
    let simulation = Simulation::start(Setup {
        load: Load::Generated(applications),
        platform_latency: LATENCY,
        history: 50_000,
        ..Setup::default()
    })
    .await?;
    simulation.populate()?;
    let mut objects = Objects::new(&simulation, shape)?;
    let began = Instant::now();
    let reporter = Reporter::start_of_resources(program, &simulation, &json!({})).await?;
    let mut seen = Looks::default();
    let played = tokio::select! {
        played = Box::pin(play(&mut objects, &reporter, form, began)) => played?,
        ended = Box::pin(look_on(&reporter, &mut seen)) => match ended? {},
    };
    let peak = reporter.usage()?.peak;
    let counts = objects.heard().counts;
    let wrong = objects.heard().wrong();
    let totals = simulation.platform.totals();
    reporter.stop().await?;
    simulation.stop().await?;

    let windows = || played.calm.iter().chain(&played.hot).chain([&played.many]);
    let lost = windows().map(|window| window.lost).sum();
    let mut measures = Measures::new("objects", !form.is_judged);
    measures.add(speeds(&played, peak, form));
    measures.add([
        Measure::exactly("objects with a report", counts.first, counts.followed),
        Measure::exactly("idle ReplicaSets filtered", played.filtered, played.idle),
        Measure::exactly("reports of idle ReplicaSets and of others", counts.needless, 0),
        Measure::exactly("changes that were lost", lost, 0),
        Measure::exactly("reports of the same twice", totals.duplicates + counts.repeated, 0),
        Measure::exactly("reports out of order", totals.out_of_order + totals.resources_out_of_order, 0),
        Measure::exactly("objects that are known otherwise than they are", wrong, 0),
        Measure::exactly(
            "looks at which every event is accounted for",
            seen.looks - seen.unaccounted,
            seen.looks.max(1),
        ),
        Measure::exactly("requests that were no reports", totals.malformed, 0),
    ]);
    let good = measures.judge();
    seen.violations.iter().for_each(|violation| say(violation));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    say(&format!(
        "objects: {} ReplicaSets, of which {} are idle, and {} Workflows; {cores} cores, shared with the simulators; the platform \
         answers after {LATENCY:?}; windows of {} s; \"alone\": its event parsed and its report compressed, in this process; the \
         program {}",
        form.replica_sets,
        played.idle,
        form.workflows,
        form.seconds,
        program.display()
    ));
    Ok(good)
}

/// Waits for the first reports, then has objects change.
async fn play(
    objects: &mut Objects<'_>,
    reporter: &Reporter,
    form: Form,
    began: Instant,
) -> anyhow::Result<Played> {
    objects.first_reports(reporter).await?;
    let last = objects.heard().last_first;
    let first = last.map_or(PATIENCE, |last| last.duration_since(began));
    reporter.ready(PATIENCE).await?;
    reporter.wait(PATIENCE, "the reporter to be at rest", |status| status.total.idle()).await?;
    let listing = reporter.usage()?.cpu;
    let filtered = reporter.metrics().await?.sum(FILTERED, &[("reason", "idle")]);
    let length = Duration::from_secs_f64(form.seconds);
    let (mut calm, mut hot) = (Vec::new(), Vec::new());
    for _ in 0..form.pairs {
        let changes = Changes { rate: form.calm, hot: None, length };
        calm.push(objects.change(reporter, changes).await?);
        hot.push(objects.change(reporter, Changes { hot: Some(form.hot), ..changes }).await?);
    }
    let many = objects.change(reporter, Changes { rate: form.many, hot: None, length }).await?;
    let alone = limit::of_objects(objects.texts(COMPARED)).await?;
    Ok(Played { first, listing, idle: objects.idle, filtered: filtered as u64, calm, hot, many, alone })
}

/// Looks until it is dropped.
async fn look_on(reporter: &Reporter, seen: &mut Looks) -> anyhow::Result<Infallible> {
    loop {
        seen.take(&reporter.status().await?.shards);
        sleep(LOOK).await;
    }
}

/// What a busy machine or an unoptimised build moves: it is judged in the long form alone.
fn speeds(played: &Played, peak: u64, form: Form) -> Vec<Measure> {
    let p99 = |window: &Window| window.latencies.quantile(0.99);
    let ratio = |(calm, hot): (&Window, &Window)| p99(hot).as_secs_f64() / p99(calm).as_secs_f64().max(1e-6);
    let ratio = median(played.calm.iter().zip(&played.hot).map(ratio).collect()).unwrap_or_default();
    let many = &played.many;
    let each = |seconds: f64| seconds / many.known.max(1) as f64;
    let a_second = |count: u64| count as f64 / many.length.as_secs_f64();
    let milliseconds = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
    let cpu = each(many.cpu);
    let objects = f64::from(form.replica_sets + form.workflows);
    let beside = Measure::beside;
    vec![
        Measure::time("from the start to the last first report", played.first, FIRST),
        beside("CPU an object of the first list", milliseconds(played.listing / objects)),
        Measure::memory("resident memory, most", peak, RESIDENT),
        beside("p50 of calm changes", millis(quantile(&played.calm, 0.5))),
        beside("p99 of calm changes", millis(quantile(&played.calm, 0.99))),
        beside("p99 of the others beside a hot object", millis(quantile(&played.hot, 0.99))),
        Measure::ratio("the same over that without it", ratio, BESIDE_HOT),
        beside("changes made a second", format!("{:.0}", a_second(many.made))),
        Measure::at_least("of those, known within it", a_second(many.known), form.many * KEPT_UP),
        beside("p99 of them", millis(p99(many))),
        beside("known only through a newer state, of 1,000", per_thousand(many.coalesced, many.known)),
        beside("API server reads for 1,000 changes", per_thousand(many.reads, many.known)),
        beside("CPU a change", milliseconds(cpu)),
        beside("alone", milliseconds(played.alone)),
        beside("times as much", format!("{:.1} x", cpu / played.alone.max(1e-9))),
        beside("CPU a change of simulators and driver", milliseconds(each(many.own_cpu))),
    ]
}

fn per_thousand(count: u64, of: u64) -> String {
    format!("{:.1}", count as f64 * 1_000.0 / of.max(1) as f64)
}

/// Of windows alike, the middle one's.
fn quantile(windows: &[Window], quantile: f64) -> Duration {
    let all = windows.iter().map(|window| window.latencies.quantile(quantile).as_secs_f64()).collect();
    Duration::from_secs_f64(median(all).unwrap_or_default())
}
