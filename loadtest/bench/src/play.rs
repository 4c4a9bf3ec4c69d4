//! One reporter in one scenario.

use std::convert::Infallible;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::cold::{self, Cold};
use super::drive::Driver;
use super::limit::{self, Limit};
use super::look::{self, Looks};
use super::measured::Correct;
use super::scenario::{Arrive, Measure, Scenario};
use super::subject;
use super::windows::{self, Field, Window};
use loadtest_sim::generate::Shape;
use loadtest_sim::reporter::Usage;
use loadtest_sim::{Load, Setup, Simulation, until};

/// Between two looks at what the reporter tells of itself.
const LOOK: Duration = Duration::from_millis(50);

/// Everything that was seen of it.
#[derive(Debug)]
pub(super) struct Played {
    /// When it began.
    pub(super) when: Timestamp,
    /// The arrival of the applications.
    pub(super) cold: Cold,
    /// The windows of changes, in their order.
    pub(super) windows: Vec<Window>,
    /// Events that bring nothing new and that the reporter tells nothing of, where there are no others.
    pub(super) unseen: Option<u64>,
    /// What onlookers saw.
    pub(super) seen: Looks,
    /// Whether what was reported was right.
    pub(super) correct: Correct,
    /// Memory and processor time at the end.
    pub(super) usage: Usage,
    /// Samples at `/metrics`.
    pub(super) series: usize,
    /// What reading and writing the bytes alone costs, where a figure stands beside it.
    pub(super) limit: Option<Limit>,
}

/// Plays a scenario.
pub(super) async fn play(scenario: &Scenario, program: &Path) -> anyhow::Result<Played> {
    let when = Timestamp::now();
    let simulation = simulate(scenario).await?;
    let mut driver = Driver::new(&simulation, scenario)?;
    if scenario.arrive == Arrive::Listed {
        driver.populate()?;
    }
    let running = subject::start(program, &simulation, scenario).await?;
    let began = Instant::now();
    let field = Field { simulation: &simulation, running: &running, patience: scenario.patience() };
    let mut seen = Looks::default();
    let mut part = {
        let looks = look::on(&running, scenario.look.0, &mut seen);
        tokio::select! {
            part = Box::pin(measure(&field, &mut driver, scenario, began)) => part?,
            ended = Box::pin(looks) => {
                let never: Infallible = ended?;
                match never {}
            }
        }
    };
    part.last(&field).await?;
    seen.take(&running.told().await?.shards);
    let limit = match scenario.only_refreshes() {
        true => Some(limit::of_an_event(&simulation).await?),
        false if scenario.is_asked_for(Measure::CpuPerChangeRatio) => {
            Some(limit::of_a_change(&simulation).await?)
        }
        false => None,
    };
    let usage = running.usage()?;
    let series = running.series().await?;
    let totals = simulation.platform.totals();
    let counts = driver.heard().counts();
    let untold = u64::from(scenario.applications).saturating_sub(counts.whole);
    let correct = Correct {
        lost: untold + part.windows.iter().map(|window| window.lost).sum::<u64>(),
        duplicated: totals.duplicates + counts.repeated,
        out_of_order: totals.out_of_order + totals.resources_out_of_order,
        wrong: driver.wrong(),
    };
    running.stop().await?;
    simulation.stop().await?;
    Ok(Played {
        when,
        cold: part.cold,
        windows: part.windows,
        unseen: part.unseen,
        seen,
        correct,
        usage,
        series,
        limit,
    })
}

struct Part {
    cold: Cold,
    windows: Vec<Window>,
    unseen: Option<u64>,
}

impl Part {
    /// Waits for what still comes after the last window.
    async fn last(&mut self, field: &Field<'_>) -> anyhow::Result<()> {
        field.running.settle(field.patience).await
    }
}

async fn measure(
    field: &Field<'_>,
    driver: &mut Driver<'_>,
    scenario: &Scenario,
    began: Instant,
) -> anyhow::Result<Part> {
    let mut began = began;
    if scenario.arrive == Arrive::Watched {
        field.running.ready(field.simulation, scenario.patience()).await?;
        began = Instant::now();
        driver.populate()?;
    }
    let cold = cold::arrival(field, driver, scenario.applications, began).await?;
    field.running.settle(scenario.patience()).await?;
    let before = field.running.exits().await?;
    let mut windows = Vec::new();
    // Whoever has reported nothing at all will not report changes either.
    for changes in scenario.changes.iter().filter(|_| cold.reported > 0) {
        windows.extend(windows::play(field, driver, changes, &windows).await?);
    }
    let made: u64 = windows.iter().map(|window: &Window| window.work.empty).sum();
    let unseen = if scenario.only_refreshes() {
        let look = async || Ok(field.running.exits().await?.saturating_sub(before));
        let seen = until(scenario.patience(), LOOK, look, |seen| *seen >= made).await?;
        Some(made.saturating_sub(seen))
    } else {
        None
    };
    Ok(Part { cold, windows, unseen })
}

async fn simulate(scenario: &Scenario) -> anyhow::Result<Simulation> {
    let shape = Shape {
        applications: scenario.applications,
        resources: scenario.resources,
        line: scenario.line,
        seed: scenario.seed,
        ..Shape::default()
    };
    Simulation::start(Setup {
        load: Load::Generated(shape),
        argocd_latency: scenario.peers.argocd.latency.0,
        platform_latency: scenario.peers.platform.latency.0,
        // Applications may come all at once: a watch must find them all.
        history: 10_000.max(scenario.applications as usize * 2),
        ..Setup::default()
    })
    .await
}
