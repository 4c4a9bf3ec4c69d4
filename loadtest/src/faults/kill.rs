//! The binary is killed (SIGKILL) at random moments under load, and started again on the same state.
//!
//! takes: 30 kills, 200 in the long form - gives: how many met reports in flight, how many fell between an answer and
//! the ledger's commit - fails: when anything is lost or repeated beyond that, and when too few kills met anything
//!
//! The moments are counted in what the platform sees: some random milliseconds after the k-th request was received, or
//! the k-th answer was sent. Every third kill waits instead until the ledger holds everything, of changes that one process saw
//! from their first to their last: then every operation's end was told, and nothing at all may be sent again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Setting;
use super::world::{Binary, Scene, World};
use loadtest_judge::outcome::Outcome;
use loadtest_judge::screen::bar;
use loadtest_judge::truth;
use loadtest_judge::witness::{RECENT, Witness};
use loadtest_sim::Simulation;
use loadtest_sim::{PATIENCE, until};

/// Changes a second.
const RATE: f64 = 60.0;
/// The k-th request or answer is at most this one.
const LATEST: u64 = 40;
/// So many milliseconds after it, at most.
const LATER: u64 = 40;
/// Changes before a kill that waits until everything is told.
const AT_REST: u64 = 20;
/// Between two looks at what the platform saw.
const LOOK: Duration = Duration::from_millis(1);

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let (kills, applications) = setting.either((30, 150), (200, 300));
    let scene = Scene { platform_latency: Duration::from_millis(15), ..Scene::new(applications, 3) };
    let mut world = World::settled(setting, scene).await?;
    let mut outcome = Outcome::new("kill", format!("{kills} kills under load"));
    let mut chance = fastrand::Rng::with_seed(setting.seed ^ 0x6b69_6c6c);
    let progress = bar(kills, "kill");
    let (mut under_load, mut told) = (0, 0);
    for number in 1..=kills {
        if number.is_multiple_of(3) {
            told += at_rest(&mut world, &mut outcome).await?;
        } else {
            let World { simulation, witness, load, binary } = &mut world;
            let striking = strike(simulation, witness, binary, &mut chance);
            tokio::select! {
                struck = striking => struck?,
                loaded = load.run(simulation, RATE) => loaded?,
            }
            under_load += 1;
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    outcome
        .notes
        .push(format!("{told} operation ends had to be told before {} kills at rest", kills - under_load));
    world.verdict(&mut outcome, Some(Instant::now()), PATIENCE).await?;
    judge(&mut outcome, &world, under_load as usize, setting.long);
    world.end().await?;
    Ok(outcome)
}

/// Kills and starts again in the middle of changes.
async fn strike(
    simulation: &Simulation,
    witness: &Witness,
    binary: &mut Binary,
    chance: &mut fastrand::Rng,
) -> anyhow::Result<()> {
    let by_answers = chance.bool();
    let heard = || {
        let seen = witness.lock();
        if by_answers { seen.answered } else { seen.received }
    };
    let wanted = heard() + chance.u64(1..=LATEST);
    let enough = until(PATIENCE, LOOK, async || Ok(heard()), |heard| *heard >= wanted).await? >= wanted;
    anyhow::ensure!(enough, "the platform heard too little of a process within {PATIENCE:?}");
    sleep(Duration::from_millis(chance.u64(0..=LATER))).await;
    binary.kill(witness).await?;
    binary.start(simulation).await
}

/// Kills and starts again when everything is told and written down; gives how many operation ends that was.
async fn at_rest(world: &mut World, outcome: &mut Outcome) -> anyhow::Result<usize> {
    // Whatever ends from now on its watch tells.
    world.binary.reporter()?.ready(PATIENCE).await?;
    let before = world.load.ends.len();
    {
        let World { simulation, load, .. } = world;
        load.end_and_hide(simulation, load.first_living()?)?;
        load.make(simulation, AT_REST, RATE).await?;
        load.change_all(simulation)?;
    }
    let mut missing = world.known(PATIENCE).await?;
    let ends = world.load.ends.get(before..).unwrap_or_default();
    let unknown = truth::missing_ends(&world.witness, ends.iter());
    missing.told.extend(unknown.told);
    outcome.lost += missing.count + unknown.count;
    outcome.wrong.append(&mut missing.told);
    let told = ends.len();
    world.restart_in_silence(outcome).await?;
    Ok(told)
}

/// What kills met is chance: the long form has enough of them to demand a share.
fn judge(outcome: &mut Outcome, world: &World, all: usize, long: bool) {
    let seen = world.witness.lock();
    let met = seen.kills.iter().filter(|kill| kill.met_reports()).count();
    let between = seen.kills.iter().filter(|kill| kill.again > 0).count();
    let open: u64 = seen.kills.iter().map(|kill| kill.open).sum();
    let longest = seen.longest.as_millis();
    let recent: u64 = seen.kills.iter().map(|kill| kill.recent).sum();
    let (duplicates, same, returns) = (seen.duplicates, seen.same_key, seen.returns);
    drop(seen);
    let share = |part: usize| format!("{:.0} %", 100.0 * part as f64 / all.max(1) as f64);
    outcome.notes.push(format!(
        "{met} of {all} kills ({}) had reports in flight ({open} unanswered, {recent} answered within {} ms before), \
         {between} ({}) fell between an answer and the ledger's commit (at most {longest} ms after the answer)",
        share(met),
        RECENT.as_millis(),
        share(between)
    ));
    outcome.notes.push(format!(
        "{duplicates} duplicates, {same} of them under the same key; {returns} reports of a return to the content before, \
         while another had been on its way"
    ));
    outcome.demand(duplicates == same, || {
        format!("{} duplicates came under another key than before", duplicates - same)
    });
    let ends = truth::missing_ends(&world.witness, world.load.ends.iter());
    outcome.notes.push(format!(
        "{} of {} operation ends were told; the others were followed by another operation before they were journaled",
        world.load.ends.len() as u64 - ends.count,
        world.load.ends.len()
    ));
    outcome
        .demand(!long || met * 4 >= all * 3, || format!("only {met} of {all} kills had reports in flight"));
    outcome.demand(!long || between * 10 >= all, || {
        format!("only {between} of {all} kills fell between an answer and the ledger's commit")
    });
}
