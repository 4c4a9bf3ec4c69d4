//! The receiver is away: it refuses connections, then answers 503, then never answers, while applications change.
//!
//! takes: 20 s and 1,000 changes, ten minutes and 5,000 in the long form - gives: the memory curve, how many requests
//! came meanwhile - fails: when anything is lost, an operation's end or a deletion among it, when it takes a minute or
//! more to drain, when requests storm, or memory grows
//!
//! With a kill in the middle, once the journal holds every end and every deletion: all of them must survive it, and those that follow
//! once the process is ready again are told as ever. When all is told and written down, another kill has nothing sent again.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::Setting;
use super::load::{KNOWN_FOR, Load};
use super::memory::Curve;
use loadtest_sim::{PATIENCE, until};

use super::world::{Binary, Scene, World};
use loadtest_judge::outcome::Outcome;
use loadtest_judge::outcome::seconds;
use loadtest_judge::truth;
use loadtest_judge::witness::Witness;
use loadtest_sim::Simulation;
use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::generate::Fleet;

/// How long it may take to report everything once the receiver is back, in the short form and the long one.
const DRAINED: [Duration; 2] = [PATIENCE, Duration::from_secs(60)];
/// Applications of which an operation ends as soon as the receiver is away,
const ENDING: u32 = 3;
/// and those that are deleted then.
const DELETED: u32 = 2;
/// Between two looks at the journal, or at what was received.
const LOOK: Duration = Duration::from_millis(50);
/// Requests that may come in the first moments of each part, before the circuit opens: those that were in flight.
const AT_ONCE: u64 = 60;
/// Requests a second that may come afterwards, on average.
const PROBES: u64 = 1;

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let (away, changes) = setting.either((20, 1_000), (600, 5_000));
    let name = format!("{away} s without a receiver");
    let outcome = Outcome::new("away", name);
    survive(setting, outcome, Duration::from_secs(away), changes, false).await
}

pub(super) async fn with_a_kill(setting: &Setting) -> anyhow::Result<Outcome> {
    let outcome = Outcome::new("away-restart", "15 s without a receiver, killed meanwhile");
    survive(setting, outcome, Duration::from_secs(15), 600, true).await
}

async fn survive(
    setting: &Setting,
    mut outcome: Outcome,
    away: Duration,
    changes: u64,
    kill: bool,
) -> anyhow::Result<Outcome> {
    let settings = match setting.long && !kill {
        true => json!({}),
        false => json!({"reporter": {"lanes": {"retry": {"max": "10s"}}}}),
    };
    let mut world =
        World::settled(setting, Scene { settings, ..Scene::new(if kill { 150 } else { 500 }, 2) }).await?;
    // An application is deleted only when it has been known for a while.
    sleep(KNOWN_FOR).await;
    world.load.spare(ENDING + DELETED);
    let before = world.witness.lock().received;
    let mut curve = Curve::default();
    world.load.bound(true);
    world.simulation.platform.down().await;
    let began = Instant::now();
    {
        let World { simulation, witness, load, binary } = &mut world;
        for index in 0..ENDING {
            load.end_and_hide(simulation, index)?;
        }
        for state in fleet(simulation)?.snapshot().iter().skip(ENDING as usize).take(DELETED as usize) {
            load.delete(simulation, state)?;
        }
        anyhow::ensure!(
            load.ended.len() == DELETED as usize,
            "only {} applications are deleted",
            load.ended.len()
        );
        // The changes are over a little before the outage is.
        let rate = changes as f64 / away.as_secs_f64() * 1.2;
        let outage = outage(simulation, witness, away);
        if kill {
            let killed = async {
                load.make(simulation, changes / 2, rate).await?;
                journaled(binary, load).await?;
                binary.kill(witness).await?;
                binary.start(simulation).await?;
                binary.reporter()?.ready(PATIENCE).await?;
                load.make(simulation, changes / 2, rate).await
            };
            tokio::try_join!(killed, outage)?;
        } else {
            let made = load.make(simulation, changes, rate);
            tokio::select! {
                done = async { tokio::try_join!(made, outage) } => drop(done?),
                followed = curve.follow(binary.reporter()?) => followed?,
            }
        }
    }
    let asked = world.witness.lock().received - before;
    let lasted = began.elapsed().as_secs();
    // A receiver that hung comes back by a restart of its own.
    world.simulation.platform.down().await;
    world.simulation.platform.faults().clear();
    world.simulation.platform.up().await?;
    world.load.bound(false);
    world.load.change_all(&world.simulation)?;
    world.verdict(&mut outcome, Some(Instant::now()), PATIENCE).await?;
    let took = outcome.drain.unwrap_or_default();
    outcome.demand(took < setting.either(DRAINED[0], DRAINED[1]), || {
        format!("it took {} to drain", seconds(took))
    });
    ends(&mut outcome, &world);
    let storm = AT_ONCE * 3 + PROBES * lasted;
    outcome.notes.push(format!("{asked} requests came while it answered 503 or not at all"));
    outcome.demand(asked <= storm, || format!("{asked} requests came while it was away, more than {storm}"));
    outcome.demand(asked > 0, || "nobody tried whether it was back".to_owned());
    if !kill && setting.long {
        curve.judge(&mut outcome);
    }
    if kill {
        world.restart_in_silence(&mut outcome).await?;
    }
    world.end().await?;
    Ok(outcome)
}

/// Refuses connections, answers 503 until somebody has asked at the least once, never answers: a third of the time each.
async fn outage(simulation: &Simulation, witness: &Witness, away: Duration) -> anyhow::Result<()> {
    let received = || witness.lock().received;
    let before = received();
    sleep(away / 3).await;
    let faults = simulation.platform.faults();
    let refuses = faults.add(Rule::always(Fault::Status { status: 503, retry_after: None }));
    simulation.platform.up().await?;
    sleep(away / 3).await;
    until(PATIENCE, LOOK, async || Ok(received()), |now| *now > before).await?;
    faults.add(Rule::always(Fault::Hang));
    faults.remove(refuses);
    sleep(away / 3).await;
    Ok(())
}

fn fleet(simulation: &Simulation) -> anyhow::Result<&Fleet> {
    simulation.fleet.as_deref().context("the simulation generates no applications")
}

/// Waits until the journal holds something of every application of which an operation ended or that was deleted.
async fn journaled(binary: &Binary, load: &Load) -> anyhow::Result<()> {
    let ends = load.ends.iter().map(|end| &end.name);
    let names: BTreeSet<&String> = ends.chain(load.ended.iter().map(|(name, _)| name)).collect();
    let reporter = binary.reporter()?;
    let look = async || {
        let status: Value = serde_json::from_str(&reporter.page("/status").await?).context("read /status")?;
        let journal = status.pointer("/ledger/journal").and_then(Value::as_u64);
        let journal = journal.context("read /status: ledger.journal")?;
        Ok((journal, status.pointer("/ledger/waiting") == Some(&json!(0))))
    };
    let is_written = |(journal, is_committed): &(u64, bool)| *journal >= names.len() as u64 && *is_committed;
    let found = until(PATIENCE, LOOK, look, is_written).await?;
    anyhow::ensure!(is_written(&found), "the journal holds {} of {} applications", found.0, names.len());
    Ok(())
}

/// Counts operation ends that were not told as lost.
fn ends(outcome: &mut Outcome, world: &World) {
    let (all, deleted) = (&world.load.ends, world.load.ended.len());
    let missing = truth::missing_ends(&world.witness, all.iter());
    outcome.notes.push(format!(
        "{} of {} operation ends and {deleted} deletions were told",
        all.len() as u64 - missing.count,
        all.len()
    ));
    outcome.lost += missing.count;
    outcome.wrong.extend(missing.told);
}
