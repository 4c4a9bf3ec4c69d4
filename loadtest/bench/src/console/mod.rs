//! `loadtest bench console`: what people see of a large fleet with a history, and how fast.
//!
//! takes: a fleet that is made up, of many runtimes, reported to a platform as reporters do - gives: how long lists, searches,
//! histories and differences take over HTTP, for somebody who sees everything and for one who sees little; in a real browser how
//! fast pages are painted, keys answered and reports shown, and what a page costs that is open while nothing changes; the size of
//! the store and the memory of the platform - calls: the platform as a process, and Chromium, and shares the machine's cores with
//! both - fails: when a page does not show what was reported, a script of it fails, or a figure misses its bar; times are judged
//! in the long form alone

mod fleet;
mod page;
mod reads;
mod reporters;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use loadtest_sim::people::{Admin, FIRST};
use loadtest_sim::postgres::PostgresServer;
use serde_json::json;

use self::fleet::{Fleet, Shape, team};
use self::page::{Screen, Work};
use self::reads::{Reader, Readers, histories, lists};
use self::reporters::Reporters;
use crate::measure::{Measure, Measures};
use crate::platform::Platform;
use crate::times::mib;
use loadtest_judge::screen::{bar, say};

/// The platform takes so much memory at most.
const RESIDENT: u64 = 256 << 20;
/// The team of whoever sees little.
const TEAM: &str = "narrow";

/// How much there is, and how much is done.
#[derive(Debug, Clone, Copy)]
struct Form {
    shape: Shape,
    /// So often each page is asked for.
    runs: usize,
    work: Work,
    is_short: bool,
}

const SHORT: Form = Form {
    shape: Shape { runtimes: 3, applications: 24, resources: 3, lived: 4, days: 3 },
    runs: 2,
    work: Work { loads: 1, words: 1, reports: 2, idle: Duration::from_secs(2) },
    is_short: true,
};
const LONG: Form = Form {
    shape: Shape { runtimes: 50, applications: 10_000, resources: 10, lived: 1_000, days: 30 },
    runs: 60,
    work: Work { loads: 5, words: 12, reports: 100, idle: Duration::from_secs(180) },
    is_short: false,
};

/// What is chosen of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chosen {
    pub(crate) is_short: bool,
    /// How long a page is left open.
    pub(crate) minutes: Option<u32>,
    /// Where it is kept.
    pub(crate) on_postgres: bool,
}

/// Runs it; whether all was as it must be.
pub(crate) async fn run(program: &Path, chosen: Chosen) -> anyhow::Result<bool> {
    let mut form = if chosen.is_short { SHORT } else { LONG };
    if let Some(minutes) = chosen.minutes {
        form.work.idle = Duration::from_secs(60 * u64::from(minutes));
    }
    let Shape { runtimes, applications, resources, lived, days } = form.shape;
    let entities = applications * resources;
    say(&format!(
        "== console: {runtimes} runtimes, {applications} applications, {entities} resources, {days} days of {lived} applications"
    ));
    let server = if chosen.on_postgres { Some(PostgresServer::start().await?) } else { None };
    let platform = Platform::start(program, server.as_ref().map(PostgresServer::url).as_deref()).await?;
    let admin = Admin::first(platform.client(), platform.url(), &platform.says(FIRST).await?).await?;
    let reporters = Reporters::register(&admin, runtimes).await?;
    let (mut fleet, began) = (Fleet::new(form.shape), Instant::now());
    let sent;
    (fleet, sent) = fill(&platform, &reporters, fleet).await?;
    let took = began.elapsed().as_secs_f64();
    say(&format!("{sent} reports taken, made meanwhile: {:.0} a second", sent as f64 / took));
    let (filled, resident) = (size(&platform, server.as_ref()).await?, platform.resident()?);

    let own = team(0);
    let attributes = [json!({"name": "LABEL", "key": "team", "value": own})];
    let rule = json!({"entityType": "gitopsApplications", "teams": [TEAM], "actions": ["VIEW"], "attributes": attributes});
    admin.allow(&rule).await?;
    let narrow = admin.invite("lin", TEAM).await?;
    let (all, narrow) = (Reader::new(platform.url(), &admin.0)?, Reader::new(platform.url(), &narrow)?);
    let readers = Readers { all: &all, narrow: &narrow, team: &own };
    let mut measures = Measures::new("console", form.is_short);
    measures.add([
        Measure::beside(format!("the store, with {sent} reports"), mib(filled)),
        Measure::beside("memory of the platform once it was filled", mib(resident)),
    ]);
    measures.add(lists(&readers, &fleet, form.shape, form.runs).await?);
    measures.add(histories(&all, &fleet, form.shape, form.runs).await?);

    let screen = Screen::open(platform.senders().address, &admin.0).await?;
    let measured = screen.measure((&mut fleet, &reporters, &platform), form.work, &mut measures).await;
    // The browser ends whatever came of it.
    let closed = screen.close().await;
    let failed = measured.and(closed);
    let highest = platform.highest_resident()?;
    measures.add([Measure::number(
        "memory of the platform, the most of all",
        highest >> 20,
        RESIDENT >> 20,
        "MiB",
    )]);
    platform.stop().await?;

    // What was measured before it failed is told all the same.
    let is_held = measures.judge();
    failed.map(|()| is_held)
}

/// Has all of it reported, in its order; what is sent next is made meanwhile.
async fn fill(
    platform: &Platform,
    reporters: &Reporters,
    mut fleet: Fleet,
) -> anyhow::Result<(Fleet, usize)> {
    let reports = fleet.reports();
    let bar = bar(reports as u64, "fill");
    let mut made = fleet.batch()?;
    let mut sent = 0;
    while !made.is_empty() {
        let requests = reporters.requests(platform, &made)?;
        let making = tokio::task::spawn_blocking(move || {
            let next = fleet.batch();
            (fleet, next)
        });
        let making = async { making.await.context("make reports") };
        let (_, (back, next)) = tokio::try_join!(requests.at_once(), making)?;
        sent += made.len();
        bar.inc(made.len() as u64);
        (fleet, made) = (back, next?);
    }
    bar.finish_and_clear();
    let [kept, repeated] = platform.counted(["kept", "repeated"]).await?;
    ensure!(
        (sent, kept, repeated) == (reports, reports as u64, 0),
        "{sent} of {reports} reports were acknowledged, {kept} are kept and {repeated} count as repeated"
    );
    Ok((fleet, sent))
}

/// The bytes that it is kept in.
async fn size(platform: &Platform, server: Option<&PostgresServer>) -> anyhow::Result<u64> {
    let Some(server) = server else {
        let file = platform.file();
        let size = |end: &str| {
            let path = format!("{}{end}", file.display());
            std::fs::metadata(&path).map(|found| found.len()).with_context(|| format!("look at {path}"))
        };
        return Ok(size("")? + size("-wal")?);
    };
    server.size().await
}
