//! A platform that fails for one application only: it takes a report and closes, it answers slowly, it answers 500.
//!
//! takes: each of the three in turn, in pairs of a window without the fault and one with it - gives: the ratio of their
//! 99th percentiles, from the change in the API server to its report at the platform - fails: when the median of five
//! pairs is above 1.2 in the long form (the short form, which runs beside anything, plays one pair and judges no speed),
//! or anything is lost

use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use super::Setting;
use super::world::{Scene, World};
use loadtest_judge::median;
use loadtest_judge::outcome::Outcome;
use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::generate::Fleet;
use loadtest_sim::{PATIENCE, until};

const APPLICATIONS: u32 = 120;
/// The one that the platform fails for.
const POOR: u32 = 0;
/// The poor one changes once in so many changes of others.
const POOR_EVERY: u64 = 12;
/// The ratio may be so much in the long form.
const BOUND: f64 = 1.2;
/// Samples of the long form, at least.
const SAMPLES: u64 = 10_000;

/// How much is measured.
#[derive(Clone, Copy)]
struct Form {
    pairs: usize,
    /// Changes of the others in one window, and how many of them a second.
    window: u64,
    rate: u64,
    /// How slow the slow answer is, in milliseconds.
    slow: u64,
}

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let form = setting.either(
        Form { pairs: 1, window: 36, rate: 30, slow: 800 },
        Form { pairs: 5, window: 400, rate: 60, slow: 1_500 },
    );
    let mut outcome = Outcome::new("platform", "fails for one application");
    let scene = Scene { argocd_latency: Duration::from_millis(10), ..Scene::new(APPLICATIONS, 3) };
    let mut world = World::settled(setting, scene).await?;
    // The first changes warm up caches and connections.
    window(&mut world, form).await?;
    let mut samples = 0;
    for (what, fault) in [
        ("takes it and closes", Rule::always(Fault::Close).after_effect()),
        ("answers 200 slowly", Rule::always(Fault::Delay { ms: form.slow })),
        ("answers 500", Rule::always(Fault::Status { status: 500, retry_after: None })),
    ] {
        let mut ratios = Vec::new();
        let mut told = Vec::new();
        for pair in 0..form.pairs {
            let mut p99 = [0.0; 2];
            // The order alternates, so that neither gains from what came before.
            for turn in 0..2 {
                let broken = (turn + pair) % 2;
                let rule = (broken == 1).then(|| {
                    let poor = fault.clone().of(&Fleet::name(POOR));
                    world.simulation.platform.faults().add(poor)
                });
                let latencies = window(&mut world, form).await?;
                if let Some(rule) = rule {
                    world.simulation.platform.faults().remove(rule);
                }
                settle(&world).await?;
                samples += latencies.len();
                p99[broken] = latencies.value_at_quantile(0.99) as f64 / 1_000.0;
            }
            ratios.push(p99[1] / p99[0].max(0.001));
            told.push(format!("{:.0}/{:.0}", p99[1], p99[0]));
        }
        let ratio = median(ratios).unwrap_or(f64::NAN);
        outcome
            .notes
            .push(format!("{what}: p99 {} ms with/without, median ratio {ratio:.2}", told.join(", ")));
        outcome.demand(!setting.long || ratio <= BOUND, || {
            format!("{what}: the others' p99 is {ratio:.2} times as long, more than {BOUND}")
        });
    }
    outcome.notes.push(format!("{samples} samples"));
    outcome.demand(!setting.long || samples >= SAMPLES, || format!("only {samples} samples"));
    world.verdict(&mut outcome, Some(Instant::now()), PATIENCE).await?;
    world.end().await?;
    Ok(outcome)
}

/// Changes in open loop, each of an application of its own; gives their latencies.
async fn window(world: &mut World, form: Form) -> anyhow::Result<Histogram<u64>> {
    drop(world.witness.take_latencies());
    let others = u64::from(APPLICATIONS - 1);
    let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / form.rate));
    for change in 0..form.window {
        ticks.tick().await;
        if change % POOR_EVERY == 0 {
            world.load.drift(&world.simulation, POOR)?;
        }
        let index = POOR + 1 + u32::try_from(change % others)?;
        let at = std::time::Instant::now();
        let version = world.load.drift(&world.simulation, index)?;
        world.witness.time(&Fleet::name(index), version, at);
    }
    let look = async || Ok(world.witness.timed());
    let left = until(PATIENCE, Duration::from_millis(20), look, |left| *left == 0).await?;
    anyhow::ensure!(left == 0, "changes were not reported within {PATIENCE:?}");
    Ok(match world.witness.take_latencies() {
        Some(latencies) => latencies,
        None => Histogram::new(3)?,
    })
}

/// Waits until the poor one has been reported too.
async fn settle(world: &World) -> anyhow::Result<()> {
    let reporter = world.binary.reporter()?;
    reporter.wait(PATIENCE, "the reporter to hold nothing", |status| status.total.idle()).await.map(drop)
}
