//! The receiver is away: it refuses connections, then answers 503, then never answers, while applications change.
//!
//! takes: 20 s and 1,000 changes, ten minutes and 5,000 in the long form - gives: the memory curve, how many requests
//! came meanwhile - fails: when anything is lost, an operation's end or a deletion among it, when it takes a minute or
//! more to drain, when requests storm, or memory grows
//!
//! With a kill in the middle: ends and deletions of more than [`JOURNALED`] before it must have survived it.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::Setting;
use super::load::KNOWN_FOR;
use super::memory::Curve;
use loadtest_sim::PATIENCE;

use super::world::{Scene, World};
use loadtest_judge::outcome::Outcome;
use loadtest_judge::outcome::seconds;
use loadtest_judge::truth::{self, End};
use loadtest_sim::Simulation;
use loadtest_sim::fault::{Fault, Rule};

/// How long it may take to report everything once the receiver is back, in the short form and the long one.
const DRAINED: [Duration; 2] = [PATIENCE, Duration::from_secs(60)];
/// So long after it happened an operation's end is in the journal.
const JOURNALED: Duration = Duration::from_secs(3);
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
    let before = world.witness.lock().received;
    let mut curve = Curve::default();
    let mut killed = None;
    world.load.bound(true);
    world.simulation.platform.down().await;
    {
        let World { simulation, witness, load, binary } = &mut world;
        // The changes are over a little before the outage is.
        let made = load.make(simulation, changes, changes as f64 / away.as_secs_f64() * 1.2);
        let outage = outage(simulation, away);
        let watched = async {
            if kill {
                sleep(away / 2).await;
                let from = std::time::Instant::now();
                binary.kill(witness).await?;
                binary.start(simulation).await?;
                binary.reporter()?.ready(PATIENCE).await?;
                killed = Some((from, std::time::Instant::now()));
            }
            curve.follow(binary.reporter()?).await
        };
        tokio::select! {
            done = async { tokio::try_join!(made, outage) } => drop(done?),
            followed = watched => followed?,
        }
    }
    let asked = world.witness.lock().received - before;
    // A receiver that hung comes back by a restart of its own.
    world.simulation.platform.down().await;
    world.simulation.platform.faults().clear();
    world.simulation.platform.up().await?;
    world.load.bound(false);
    world.verdict(&mut outcome, Some(Instant::now()), PATIENCE).await?;
    let took = outcome.drain.unwrap_or_default();
    outcome.demand(took < setting.either(DRAINED[0], DRAINED[1]), || {
        format!("it took {} to drain", seconds(took))
    });
    ends(&mut outcome, &world, killed);
    let storm = AT_ONCE * 3 + PROBES * away.as_secs();
    outcome.notes.push(format!("{asked} requests came while it answered 503 or not at all"));
    outcome.demand(asked <= storm, || format!("{asked} requests came while it was away, more than {storm}"));
    outcome.demand(asked > 0, || "nobody tried whether it was back".to_owned());
    if !kill && setting.long {
        curve.judge(&mut outcome);
    }
    world.end().await?;
    Ok(outcome)
}

/// Refuses connections, answers 503, never answers: a third of the time each.
async fn outage(simulation: &Simulation, away: Duration) -> anyhow::Result<()> {
    sleep(away / 3).await;
    let faults = simulation.platform.faults();
    let refuses = faults.add(Rule::always(Fault::Status { status: 503, retry_after: None }));
    simulation.platform.up().await?;
    sleep(away / 3).await;
    faults.add(Rule::always(Fault::Hang));
    faults.remove(refuses);
    sleep(away / 3).await;
    Ok(())
}

/// Counts operation ends that had to be told and were not as lost.
fn ends(outcome: &mut Outcome, world: &World, killed: Option<(std::time::Instant, std::time::Instant)>) {
    let all = &world.load.ends;
    let kept = |end: &&End| {
        killed.is_none_or(|(from, until)| end.at + JOURNALED <= from || end.at >= until + JOURNALED)
    };
    let judged = all.iter().filter(kept).count();
    let missing = truth::missing_ends(&world.witness, all.iter().filter(kept));
    let deleted = world.load.ended.len();
    outcome.notes.push(format!(
        "{} of {judged} operation ends and {deleted} deletions were told, of {} ends in all",
        judged as u64 - missing.count,
        all.len()
    ));
    outcome.lost += missing.count;
    outcome.wrong.extend(missing.told);
}
