//! One application's reports are refused for good (422).
//!
//! takes: changes of that one and of others; a kill - gives: what is parked before and after - fails: when others do
//! not go on, when it is not parked, when it or anything else is sent again after the restart, or not reported once it is taken
//! again

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::Setting;
use loadtest_sim::{PATIENCE, until};

use super::world::{Scene, World};
use loadtest_judge::outcome::Outcome;
use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::generate::Fleet;

/// The one that is refused.
const POOR: u32 = 0;
/// So long nothing may be sent after the restart.
const QUIET: Duration = Duration::from_secs(3);

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new("poison", "422 for one application");
    let mut world = World::settled(setting, Scene::new(50, 3)).await?;
    world.committed().await?;
    let refuse = Rule::always(Fault::Status { status: 422, retry_after: None }).of(&Fleet::name(POOR));
    world.simulation.platform.faults().add(refuse);
    world.load.drift(&world.simulation, POOR)?;
    world.load.spare(POOR + 1);
    let spoilt = || world.simulation.platform.totals().spoilt;
    let came = until(PATIENCE, Duration::from_millis(20), async || Ok(spoilt()), |came| *came > 0).await?;
    anyhow::ensure!(came > 0, "the report that is to be refused did not come");
    {
        let World { simulation, load, .. } = &mut world;
        load.make(simulation, 150, 60.0).await?;
        load.change_all(simulation)?;
    }
    let others = world.known_but(&Fleet::name(POOR), PATIENCE).await?;
    outcome.lost += others.count;
    outcome.wrong.extend(others.told);
    let before = parked(&world).await?;
    outcome.demand(before == 1, || format!("{before} applications are parked, not one"));
    let refused = world.simulation.platform.totals().spoilt;
    world.restart_in_silence(&mut outcome).await?;
    sleep(QUIET).await;
    let again = world.simulation.platform.totals().spoilt - refused;
    let after = parked(&world).await?;
    outcome.notes.push(format!(
        "{refused} requests were refused; {before} parked before the kill, {after} after the restart, {again} sent again"
    ));
    outcome.demand(after == before, || {
        format!("{after} applications are parked after the restart, not {before}")
    });
    outcome.demand(again == 0, || format!("{again} parked reports were sent again after the restart"));
    // Once it is taken, a change brings it all.
    world.simulation.platform.faults().clear();
    world.load.drift(&world.simulation, POOR)?;
    world.verdict(&mut outcome, Some(Instant::now()), PATIENCE).await?;
    world.end().await?;
    Ok(outcome)
}

/// How many applications are parked, by `/status`.
async fn parked(world: &World) -> anyhow::Result<u64> {
    let page = world.binary.reporter()?.page("/status").await?;
    let status: Value = serde_json::from_str(&page).context("read /status")?;
    status.pointer("/total/parked_keys").and_then(Value::as_u64).context("read /status: total.parked_keys")
}
