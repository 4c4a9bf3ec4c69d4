//! No room on the disk of the state directory, and no right to write into it.
//!
//! takes: a limit of the size of files (`prlimit` of util-linux), at the start and in the middle of load, lifted later;
//! a state directory that may not be written to - gives: what was said - fails: when a start without room ends by a
//! signal or without a clear message, a start without the right does not end with exit code 1, or a disk that fills
//! up in the middle stops reports, is not said once and in the health, or leaves anything uncommitted once there is
//! room again

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::Setting;
use loadtest_sim::{PATIENCE, until};

use super::world::{Scene, World};
use loadtest_judge::outcome::Outcome;
use loadtest_sim::Simulation;
use loadtest_sim::process::{Process, Start, is_root};
use loadtest_sim::reporter::Reporter;

/// No file may grow beyond so many bytes: less than any ledger has.
const ROOM: u64 = 4_096;
/// How long the disk is full.
const FULL: [u64; 2] = [5, 60];
/// What it says of a state directory, or a file in it, that it may not write to.
const NO_RIGHT: [&str; 2] =
    ["to a directory that can be written to", "no right to read and write the ledger file"];
/// What the log says of a ledger that cannot be written, and of one that can be again.
const SAID: [&str; 2] = ["cannot write the ledger:", "the ledger is written again"];

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new("disk", "full, then not; not writable");
    no_right(setting, &mut outcome).await?;
    no_room(setting, &mut outcome).await?;
    full_in_the_middle(setting, &mut outcome).await?;
    Ok(outcome)
}

/// A state directory that may not be written to.
async fn no_right(setting: &Setting, outcome: &mut Outcome) -> anyhow::Result<()> {
    let world = World::new(setting, Scene::new(5, 1)).await?;
    let state = world.simulation.directory().join("state");
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o500)).context("protect a folder")?;
    // An administrator may write everywhere unless that power is laid down.
    let mut args: Vec<OsString> = Vec::new();
    if is_root()? {
        args.extend(["setpriv", "--inh-caps=-all", "--bounding-set=-all", "--"].map(OsString::from));
    }
    let (status, log) = ends(world.binary.program(), &world.simulation, args).await?;
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700))
        .context("open a folder again")?;
    outcome.notes.push(format!("not writable: {status}: {}", last(&log)));
    outcome.demand(status.code() == Some(1), || {
        format!("not writable: it ended with {status}, not with exit code 1")
    });
    let told = log.iter().any(|line| NO_RIGHT.iter().any(|text| line.contains(text)));
    outcome.demand(told, || "not writable: it did not say that it has no right to".to_owned());
    world.simulation.stop().await
}

/// A full disk from the start on.
async fn no_room(setting: &Setting, outcome: &mut Outcome) -> anyhow::Result<()> {
    let world = World::new(setting, Scene::new(5, 1)).await?;
    let limit = ["prlimit".to_owned(), format!("--fsize={ROOM}:unlimited"), "--".to_owned()];
    let (status, log) =
        ends(world.binary.program(), &world.simulation, limit.map(OsString::from).to_vec()).await?;
    outcome.notes.push(format!("full at the start: {status}: {}", last(&log)));
    outcome.demand(status.signal().is_none(), || {
        format!("full at the start: it ended by signal {}", status.signal().unwrap_or_default())
    });
    outcome.demand(status.code() == Some(1), || {
        format!("full at the start: it ended with {status}, not with exit code 1")
    });
    let told = log.iter().any(|line| line.contains("ledger"));
    outcome.demand(told, || "full at the start: it did not name the ledger".to_owned());
    world.simulation.stop().await
}

/// A disk that fills up under load, gets room again, and then a kill.
async fn full_in_the_middle(setting: &Setting, outcome: &mut Outcome) -> anyhow::Result<()> {
    let full = Duration::from_secs(setting.either(FULL[0], FULL[1]));
    let mut world = World::settled(setting, Scene::new(100, 3)).await?;
    world.committed().await?;
    let id = world.binary.reporter()?.process().id().context("the binary does not run")?;
    let before = world.simulation.platform.totals().taken;
    limit(id, &ROOM.to_string()).await?;
    let health = {
        let World { simulation, load, binary, .. } = &mut world;
        let reporter = binary.reporter()?;
        let loaded = load.run(simulation, 40.0);
        let watched = async {
            sleep(full).await;
            let look = async || -> anyhow::Result<Value> {
                serde_json::from_str(&reporter.page("/status").await?).context("read /status")
            };
            let is_told =
                |status: &Value| simulation.platform.totals().taken > before && tells_of_ledger(status);
            until(PATIENCE, Duration::from_millis(100), look, is_told).await
        };
        tokio::select! {
            watched = watched => watched,
            loaded = loaded => loaded.map(|()| Value::Null),
        }
    };
    let health = match health {
        Ok(health) => health,
        Err(error) => {
            outcome.demand(false, || format!("full in the middle: {error:#}"));
            return Ok(());
        }
    };
    let meanwhile = world.simulation.platform.totals().taken - before;
    limit(id, "unlimited").await?;
    let since = Instant::now();
    world.load.change_all(&world.simulation)?;
    world.verdict(outcome, None, PATIENCE).await?;
    let committed = world.committed().await.is_ok();
    outcome.drain = Some(since.elapsed());
    let [failed, again] = SAID.map(|text| world.binary.said(text).len());
    let is_told = tells_of_ledger(&health);
    let health = health.get("health").and_then(Value::as_str).unwrap_or_default();
    outcome.notes.push(format!(
        "full for {full:?}: {meanwhile} reports were taken meanwhile, health {health:?}, said {failed} times that the \
         ledger is not written and {again} times that it is again"
    ));
    outcome.demand(meanwhile > 0, || "full in the middle: nothing was reported meanwhile".to_owned());
    outcome.demand(is_told, || "full in the middle: the health says nothing of it".to_owned());
    outcome.demand(failed == 1, || format!("full in the middle: it was said {failed} times, not once"));
    outcome.demand(again == 1, || format!("full in the middle: the end was said {again} times, not once"));
    outcome.demand(committed, || {
        "full in the middle: not everything was committed once there was room".to_owned()
    });
    world.restart_in_silence(outcome).await?;
    world.end().await
}

/// Whether `/status` says that something is wrong with the ledger.
fn tells_of_ledger(status: &Value) -> bool {
    status["health"].as_str().is_some_and(|health| health.contains("ledger: cannot be written"))
}

/// Runs the binary behind another program until it ends; how, and what it logged.
async fn ends(
    program: &Path,
    simulation: &Simulation,
    behind: Vec<OsString>,
) -> anyhow::Result<(ExitStatus, Vec<String>)> {
    let program = program.canonicalize().context("find the program")?;
    let mut all = behind;
    all.extend([program.into_os_string(), "reporter".into()]);
    let first = PathBuf::from(all.remove(0));
    let mut process = Process::start(&Start {
        program: first,
        args: all,
        env: simulation.environment(&Reporter::settings())?,
        directory: simulation.directory().to_path_buf(),
    })?;
    let status = process.wait(PATIENCE).await?;
    Ok((status, process.lines().all()))
}

/// Limits the size of files that a process may write.
async fn limit(id: u32, bytes: &str) -> anyhow::Result<()> {
    let mut prlimit = Command::new("prlimit");
    prlimit.args(["--pid", &id.to_string(), &format!("--fsize={bytes}:unlimited")]);
    let done = prlimit.status().await.context("run prlimit of util-linux")?;
    anyhow::ensure!(done.success(), "prlimit ended with {done}");
    Ok(())
}

fn last(log: &[String]) -> String {
    log.last().cloned().unwrap_or_else(|| "nothing was said".to_owned())
}
