//! A restart with nothing changed.
//!
//! takes: 1,000 applications, 10,000 in the long form - gives: the time until it is ready - fails: when anything is
//! reported, when more is asked of the API server than one list, or it is not ready in time

use std::time::Duration;

use tokio::time::Instant;

use super::Setting;
use loadtest_sim::{PATIENCE, until};

use super::world::{Scene, World};
use loadtest_judge::outcome::Outcome;
use loadtest_judge::outcome::seconds;

/// It is ready within, in the long form; how fast is no question of the short one, which runs beside anything.
const LIMIT: [Duration; 2] = [PATIENCE, Duration::from_secs(10)];
/// The default of `kubernetes.pageSize`.
const PAGE: u64 = 100;
/// Between two looks at what is known.
const LOOK: Duration = Duration::from_millis(200);
/// How long the first reports may take.
const FIRST: Duration = Duration::from_secs(600);

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let applications = setting.either(1_000, 10_000);
    let mut outcome = Outcome::new("restart", format!("restart with {applications} unchanged"));
    // What is last reported is not compared in full: that would fill this program's memory with payloads.
    let resources = 1;
    let scene = Scene {
        facts: false,
        argocd_latency: Duration::ZERO,
        platform_latency: Duration::ZERO,
        ..Scene::new(applications, resources)
    };
    let mut world = World::new(setting, scene).await?;
    world.start().await?;
    let all = u64::from(applications) * u64::from(1 + resources);
    let known = until(FIRST, LOOK, async || Ok(entities(&world)), |known| *known >= all).await?;
    anyhow::ensure!(
        known >= all,
        "{known} of {all} applications and resources were reported within {FIRST:?}"
    );
    world
        .binary
        .reporter()?
        .wait(PATIENCE, "the reporter to hold nothing", |status| status.total.idle())
        .await?;
    world.binary.stop().await?;

    let (before, counts) = (world.posts(), world.simulation.kube.counts());
    let began = Instant::now();
    world.start().await?;
    let took = began.elapsed();
    world.looked_at().await?;
    let idle = began.elapsed();
    outcome.drain = Some(idle);
    world.binary.look();
    outcome.peak = world.binary.peak;

    let sent = world.posts() - before;
    let now = world.simulation.kube.counts();
    let (lists, gets) = (now.lists - counts.lists, now.gets - counts.gets);
    let pages = u64::from(applications).div_ceil(PAGE);
    outcome.notes.push(format!(
        "ready {} after the start, every application looked at {} after it; {sent} reports, {lists} pages of lists, {gets} \
         single reads",
        seconds(took),
        seconds(idle)
    ));
    outcome.duplicated = sent;
    outcome.beyond = sent;
    let limit = setting.either(LIMIT[0], LIMIT[1]);
    outcome
        .demand(took < limit, || format!("it took {} to be ready, not less than {limit:?}", seconds(took)));
    outcome.demand(lists == pages, || format!("{lists} pages of lists were read, one list has {pages}"));
    outcome.demand(gets == 0, || format!("{gets} applications were read one by one"));
    let known = world.simulation.platform.totals();
    outcome.lost = all - entities(&world).min(all);
    outcome.out_of_order = known.out_of_order + known.resources_out_of_order;
    world.end().await?;
    Ok(outcome)
}

/// How many applications and resources the platform was told of.
fn entities(world: &World) -> u64 {
    world.simulation.platform.last().len() as u64
}
