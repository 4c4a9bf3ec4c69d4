//! The platform refuses the token (401) until the token file is replaced.
//!
//! takes: changes meanwhile - gives: how many requests were refused, how soon it went on - fails: when that is not
//! said once, when requests storm, or it does not go on soon after the file has changed

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Setting;
use loadtest_sim::PATIENCE;

use super::world::{Scene, World};
use loadtest_judge::outcome::Outcome;
use loadtest_judge::outcome::seconds;

/// How long the token is refused.
const REFUSED: [u64; 2] = [6, 60];
/// Requests that may be refused at once, before the circuit opens.
const AT_ONCE: u64 = 40;
/// After the file has changed the next report is taken within, in the short form on a machine that may be busy. Without
/// the change the next try would come after five minutes.
const GOES_ON: [Duration; 2] = [Duration::from_secs(240), Duration::from_secs(8)];
/// What the log says of a refused token.
const SAID: &str = "the sink refuses everything: check its address and token";
const NEW: &str = "another-platform-token";

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let away = Duration::from_secs(setting.either(REFUSED[0], REFUSED[1]));
    let mut outcome = Outcome::new("token", "401 until the token changes");
    let mut world = World::settled(setting, Scene::new(100, 3)).await?;
    world.committed().await?;
    world.simulation.platform.set_token(NEW)?;
    {
        let World { simulation, load, .. } = &mut world;
        let changes = load.make(simulation, 150, 30.0);
        tokio::try_join!(changes, async {
            sleep(away).await;
            Ok(())
        })?;
    }
    let refused = world.simulation.platform.totals().unauthorized;
    let taken = world.simulation.platform.totals().taken;
    replace(&world, NEW).await?;
    let changed = Instant::now();
    world.simulation.platform.wait_until(PATIENCE, |totals| totals.taken > taken).await?;
    let went_on = changed.elapsed();
    world.verdict(&mut outcome, Some(changed), PATIENCE).await?;
    let said = world.binary.said(SAID).len();
    outcome.notes.push(format!(
        "{refused} requests were refused in {}, said {said} times, went on {} after the token changed",
        seconds(away),
        seconds(went_on)
    ));
    let most = AT_ONCE + away.as_secs();
    outcome.demand(refused > 0, || "no request was refused".to_owned());
    outcome.demand(refused <= most, || format!("{refused} requests were refused, more than {most}"));
    outcome.demand(said == 1, || format!("a refused token was said {said} times, not once"));
    let limit = setting.either(GOES_ON[0], GOES_ON[1]);
    outcome.demand(went_on <= limit, || format!("it went on {} after the token changed", seconds(went_on)));
    world.end().await?;
    Ok(outcome)
}

/// Puts another file in the place of the token's, as whoever rotates tokens does.
async fn replace(world: &World, token: &str) -> anyhow::Result<()> {
    let file = world.simulation.directory().join("platform-token");
    let new = file.with_extension("new");
    tokio::fs::write(&new, token).await?;
    tokio::fs::rename(&new, &file).await?;
    Ok(())
}
