//! `loadtest bench ingest`: the platform takes reports, durably.
//!
//! takes: the bodies of recorded reports, each made one of another application, gzipped, some of whom have thirty days of history
//! behind them - gives: reports a second from as
//! many senders as keep it busy, latencies at half the bound of that, memory, the cost of comparing digests, and beside
//! them the same texts inserted with SQLite's defaults; and how many statements a report takes, which no neighbour of the machine
//! changes - calls: the platform as a process, on SQLite and in the long form on
//! Postgres, and shares the machine's cores with it - fails: when a report that was acknowledged is not kept once, or in
//! the long form when a figure misses its bound

mod plain;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use jiff::{SignedDuration, Timestamp};

use crate::bodies::Bodies;
use crate::measure::{Measure, Measures};
use crate::platform::Platform;
use crate::senders::SENDERS;
use crate::times::{Times, millis};
use loadtest_judge::screen::say;
use loadtest_sim::postgres::PostgresServer;

/// Bodies that are made before they are sent, so that making them takes no time of the platform's.
const MADE: usize = 10_000;
/// Days of a history.
const DAYS: i64 = 30;
/// Shards that a comparison asks for.
const SHARDS: u32 = 32;

/// What must be reached in the long form.
const REPORTS_A_SECOND: f64 = 2_000.0;
const P99: Duration = Duration::from_millis(100);
const RESIDENT: u64 = 256 << 20;

/// How much is sent.
#[derive(Debug, Clone, Copy)]
struct Form {
    applications: usize,
    /// So many of them have a history of thirty days before anything is measured, of so many reports each.
    lived: usize,
    past: usize,
    /// Reports of states that follow, of applications at random,
    changes: usize,
    /// and those at a steady rate, with so many in a second.
    steady: usize,
    rate: usize,
    is_judged: bool,
}

const SHORT: Form =
    Form { applications: 60, lived: 20, past: 3, changes: 400, steady: 100, rate: 50, is_judged: false };
const LONG: Form = Form {
    applications: 10_000,
    lived: 1_000,
    past: 60,
    changes: 40_000,
    steady: 30_000,
    rate: 1_000,
    is_judged: true,
};

/// What was measured of one store.
struct Figures {
    store: &'static str,
    reports: usize,
    rate: f64,
    /// Of the database, for each report while as many came as could.
    statements: f64,
    latencies: Times,
    resident: u64,
    shards: Vec<Duration>,
    plain: Option<f64>,
}

/// Runs it; whether all was as it must be.
pub(crate) async fn run(program: &Path, is_short: bool) -> anyhow::Result<bool> {
    let form = if is_short { SHORT } else { LONG };
    let mut all = vec![measure(program, "SQLite", None, form).await?];
    if !is_short {
        let server = PostgresServer::start().await?;
        all.push(measure(program, "Postgres", Some(&server.url()), form).await?);
    }
    let mut measures = Measures::new("ingest", !form.is_judged);
    for Figures { store, reports, rate, statements, latencies, resident, shards, plain } in &all {
        let of = |what: &str| format!("{store}: {what}");
        let slowest = shards.iter().max().copied().unwrap_or_default();
        measures.add([
            Measure::at_least(of(&format!("reports a second, of {reports}")), *rate, REPORTS_A_SECOND),
            Measure::beside(of("statements each"), format!("{statements:.2}")),
            Measure::beside(of("p50"), millis(latencies.quantile(0.5))),
            Measure::time(of("p99"), latencies.quantile(0.99), P99),
            Measure::memory(of("resident memory, most"), *resident, RESIDENT),
            Measure::beside(of("digests of all shards"), millis(shards.iter().sum())),
            Measure::beside(of("of the slowest"), millis(slowest)),
        ]);
        let times = |plain: &f64| format!("{:.1} x", rate / plain.max(0.001));
        measures.add(plain.iter().map(|plain| Measure::beside(of("as many as with defaults"), times(plain))));
    }
    say(&format!(
        "ingest: {} applications, {} of them with {DAYS} days of history, {SENDERS} senders; latencies at {} reports/s; with \
         defaults the same texts are inserted by SQLite, a commit each",
        form.applications, form.lived, form.rate
    ));
    Ok(measures.judge())
}

async fn measure(
    program: &Path,
    store: &'static str,
    postgres: Option<&str>,
    form: Form,
) -> anyhow::Result<Figures> {
    say(&format!("== ingest on {store}"));
    let platform = Platform::start(program, postgres).await?;
    let mut bodies = Bodies::new(form.applications)?;
    let (mut sent, mut loaded, mut took) = (0, 0, Duration::ZERO);
    // Every application once, and then what follows of some.
    for is_first in [true, false] {
        loop {
            let most =
                if is_first { MADE } else { MADE.min(form.changes.saturating_sub(sent - bodies.firsts())) };
            let made = if is_first { bodies.first(most)? } else { bodies.next(most)? };
            if made.is_empty() {
                break;
            }
            took += platform.take(&made).await?;
            sent += made.len();
        }
        if is_first {
            loaded = load(&platform, &mut bodies, form).await?;
        }
    }
    let rate = sent as f64 / took.as_secs_f64();
    let [statements] = platform.counted(["statements"]).await?;
    let statements = statements as f64 / (sent + loaded) as f64;
    say(&format!(
        "{sent} reports taken beside {loaded} of a history, {rate:.0} a second, with {statements:.2} statements each"
    ));
    let made = platform.senders().requests(&bodies.next(form.steady)?);
    let mut latencies = Times::new()?;
    for latency in made.at_a_rate(form.rate).await? {
        latencies.add(latency)?;
    }
    sent += made.len();
    let mut shards = Vec::new();
    for shard in 0..SHARDS {
        let begun = Instant::now();
        platform.compare(shard, SHARDS).await?;
        shards.push(begun.elapsed());
    }
    let [kept, repeated] = platform.counted(["kept", "repeated"]).await?;
    ensure!(
        (kept, repeated) == ((sent + loaded) as u64, 0),
        "{sent} and {loaded} reports were acknowledged, {kept} are kept and {repeated} count as repeated"
    );
    let resident = platform.highest_resident()?;
    platform.stop().await?;
    let plain = match postgres {
        None => Some(plain::rate(&bodies.next(form.steady.min(2_000))?).await?),
        Some(_) => None,
    };
    Ok(Figures { store, reports: sent, rate, statements, latencies, resident, shards, plain })
}

/// Gives applications their history, the oldest first; how many reports that are.
async fn load(platform: &Platform, bodies: &mut Bodies, form: Form) -> anyhow::Result<usize> {
    let (now, mut loaded) = (Timestamp::now(), 0);
    let past = i64::try_from(form.past)?;
    for number in 0..past {
        let ago = SignedDuration::from_secs(DAYS * 86_400 * (past - number) / past);
        let made = bodies.past(form.lived, now.checked_sub(ago)?)?;
        platform.take(&made).await?;
        loaded += made.len();
    }
    Ok(loaded)
}
