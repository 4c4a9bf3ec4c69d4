//! The files of the ledger are damaged while the process is down: truncated, a bit flipped, the file of send intents cut.
//!
//! takes: a good state, damaged anew each time: 12 times, 150 in the long form - gives: how often the ledger was whole, and how often set aside -
//! fails: when the binary does not start, panics, resends without a word, says so and does not resend, or loses
//! anything

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::time::Instant;

use super::Setting;
use loadtest_sim::PATIENCE;

use super::world::{Scene, World};
use loadtest_judge::outcome::Outcome;
use loadtest_judge::screen::bar;
use loadtest_judge::witness::KEPT;

const APPLICATIONS: u32 = 20;
const RESOURCES: u32 = 2;
/// Of the storage.
const PAGE: u64 = 4_096;
/// What the log says when the ledger is not used: it was set aside, or nothing was left of it.
const NOT_USED: [&str; 2] = ["it was set aside", "the ledger is new: everything is reported"];

/// One damage.
#[derive(Debug, Clone, Copy)]
enum Damage {
    /// The ledger ends here.
    Truncated(u64),
    /// This bit of this byte of the ledger is another.
    Flipped(u64, u8),
    /// The file of send intents ends here.
    Cut(u64),
}

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new("damage", "ledger cut, bits flipped");
    let mut world = World::settled(setting, Scene::new(APPLICATIONS, RESOURCES)).await?;
    world.committed().await?;
    world.kill().await?;
    let state = world.simulation.directory().join("state");
    let good = world.simulation.directory().join("good-state");
    copy(&state, &good).await?;
    let (ledger, flight) = files(&state)?;
    let intents_length =
        tokio::fs::metadata(&flight).await.context("look at the file of send intents")?.len();
    anyhow::ensure!(intents_length > 0, "the file of send intents is empty: there is nothing to cut");
    let length = tokio::fs::metadata(&ledger).await.context("look at the ledger file")?.len();
    let damages = damages(setting, length, intents_length);
    let progress = bar(damages.len() as u64, "damage");
    let (mut whole, mut aside) = (0, 0);
    for damage in &damages {
        copy(&good, &state).await?;
        apply(*damage, &ledger, &flight).await?;
        let mut wrong = Vec::new();
        match survive(&mut world).await {
            Ok(true) => aside += 1,
            Ok(false) => whole += 1,
            Err(error) => wrong.push(format!("{damage:?}: {error:#}")),
        }
        if outcome.wrong.len() < KEPT {
            outcome.wrong.append(&mut wrong);
        }
        if world.binary.reporter().is_ok() {
            world.kill().await?;
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    outcome.notes.push(format!(
        "{} damages to a ledger of {length} bytes and a file of send intents of {intents_length}: {whole} times it was whole, \
         {aside} times it was set aside and everything was reported again",
        damages.len()
    ));
    // Of nothing that is left of a ledger nothing can be used, so that at least one was.
    outcome.demand(aside > 0, || "no damage had the ledger set aside".to_owned());
    // It goes on from whatever the last damage left.
    world.witness.new_era();
    world.start().await?;
    {
        let World { simulation, load, .. } = &mut world;
        load.make(simulation, 40, 60.0).await?;
    }
    world.verdict(&mut outcome, Some(Instant::now()), PATIENCE).await?;
    world.end().await?;
    Ok(outcome)
}

fn damages(setting: &Setting, length: u64, flight: u64) -> Vec<Damage> {
    let mut chance = fastrand::Rng::with_seed(setting.seed ^ 0x6461_6d61);
    let mut all = Vec::new();
    let last_page = length.saturating_sub(PAGE)..length;
    // A part of the last page each; every byte of it is the ledger's own test.
    let cuts = setting.either(4, 64);
    let part = (PAGE / cuts).max(1);
    all.extend(
        last_page
            .step_by(usize::try_from(part).unwrap_or(1))
            .map(|from| Damage::Truncated(chance.u64(from..from + part))),
    );
    all.push(Damage::Truncated(0));
    let flips = setting.either(5, 65);
    all.extend((0..flips).map(|_| Damage::Flipped(chance.u64(0..length), chance.u8(0..8))));
    let cuts = setting.either(2, 20);
    all.extend((0..cuts).map(|_| Damage::Cut(chance.u64(0..flight))));
    all
}

async fn apply(damage: Damage, ledger: &Path, flight: &Path) -> anyhow::Result<()> {
    match damage {
        Damage::Truncated(length) => cut(ledger, length).await,
        Damage::Cut(length) => cut(flight, length).await,
        Damage::Flipped(at, bit) => {
            let mut bytes = tokio::fs::read(ledger).await.context("read the ledger file")?;
            let byte = bytes.get_mut(usize::try_from(at)?).context("the ledger is shorter than it was")?;
            *byte ^= 1 << bit;
            tokio::fs::write(ledger, bytes).await.context("write the ledger file")
        }
    }
}

async fn cut(file: &Path, length: u64) -> anyhow::Result<()> {
    let file = tokio::fs::OpenOptions::new().write(true).open(file).await.context("open a file to cut it")?;
    file.set_len(length).await.context("cut a file")
}

/// Starts the binary on the damaged state; whether the ledger was set aside.
async fn survive(world: &mut World) -> anyhow::Result<bool> {
    world.witness.new_era();
    let before = world.posts();
    world.start().await?;
    world.looked_at().await?;
    let missing = world.known(PATIENCE).await?;
    if let Some(first) = missing.told.first() {
        anyhow::bail!("{} are not known: {first}", missing.count);
    }
    let aside = NOT_USED.iter().any(|text| !world.binary.said(text).is_empty());
    let sent = world.posts() - before;
    let all = u64::from(APPLICATIONS) * u64::from(1 + RESOURCES);
    if aside {
        anyhow::ensure!(sent >= all, "the ledger was set aside, and {sent} of {all} were reported again");
    } else {
        anyhow::ensure!(sent == 0, "{sent} of {all} were reported again without a word");
    }
    Ok(aside)
}

/// The ledger and the file of send intents beside it.
fn files(state: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let mut all: Vec<PathBuf> = Vec::new();
    for entry in state.read_dir().context("read the state directory")? {
        all.push(entry.context("read the state directory")?.path());
    }
    let with = |end: &str| all.iter().find(|path| path.extension().is_some_and(|own| own == end)).cloned();
    Ok((
        with("redb").context("there is no ledger file in the state directory")?,
        with("sending").context("there is no file of send intents in the state directory")?,
    ))
}

/// Makes `to` hold what `from` holds, and nothing else.
async fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if tokio::fs::try_exists(to).await? {
        tokio::fs::remove_dir_all(to).await.context("empty a folder")?;
    }
    tokio::fs::create_dir(to).await.context("make a folder")?;
    let mut entries = tokio::fs::read_dir(from).await.context("read a folder")?;
    while let Some(entry) = entries.next_entry().await? {
        // Sockets and folders are the process's own business.
        if entry.file_type().await?.is_file() {
            tokio::fs::copy(entry.path(), to.join(entry.file_name())).await.context("copy a file")?;
        }
    }
    Ok(())
}
