//! `loadtest bench ingest`: the platform takes reports, durably.
//!
//! takes: the bodies of recorded reports, each made one of another application, gzipped - gives: reports a second from as
//! many senders as keep it busy, latencies at half the bound of that, memory, the cost of comparing digests, and beside
//! them the same texts inserted with SQLite's defaults - calls: the platform as a process, on SQLite and in the long form on
//! Postgres, and shares the machine's cores with it - fails: when a report that was acknowledged is not kept once, or in
//! the long form when a figure misses its bound

mod plain;
mod postgres;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::task::JoinSet;

use crate::bodies::{Bodies, Body};
use crate::platform::{Platform, SENDERS};
use crate::times::{Times, mib, millis};
use loadtest_judge::screen::{judged, say, table};

/// Bodies that are made before they are sent, so that making them takes no time of the platform's.
const MADE: usize = 10_000;
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
    /// Reports of states that follow, of applications at random,
    changes: usize,
    /// and those at a steady rate, with so many in a second.
    steady: usize,
    rate: usize,
    is_judged: bool,
}

const SHORT: Form = Form { applications: 60, changes: 400, steady: 100, rate: 50, is_judged: false };
const LONG: Form =
    Form { applications: 10_000, changes: 40_000, steady: 30_000, rate: 1_000, is_judged: true };

/// What was measured of one store.
struct Figures {
    store: &'static str,
    reports: usize,
    rate: f64,
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
        let server = postgres::Server::start().await?;
        all.push(measure(program, "Postgres", Some(&server.url()), form).await?);
    }
    let mut good = true;
    let mut rows = Vec::new();
    for figures in &all {
        let p99 = figures.latencies.quantile(0.99);
        let is_met = figures.rate >= REPORTS_A_SECOND && p99 <= P99 && figures.resident <= RESIDENT;
        good &= is_met || !form.is_judged;
        let total: Duration = figures.shards.iter().sum();
        let slowest = figures.shards.iter().max().copied().unwrap_or_default();
        let verdict = match form.is_judged {
            true => judged(if is_met { "passed" } else { "missed" }, is_met),
            false => "not judged".to_owned(),
        };
        rows.push(vec![
            figures.store.to_owned(),
            verdict,
            figures.reports.to_string(),
            format!("{:.0}", figures.rate),
            figures.plain.map_or_else(String::new, |plain| format!("{:.1}", figures.rate / plain.max(0.001))),
            millis(figures.latencies.quantile(0.5)),
            millis(p99),
            mib(figures.resident),
            millis(total),
            millis(slowest),
        ]);
    }
    let header = [
        "store",
        "",
        "reports",
        "reports/s",
        "x defaults",
        "p50",
        "p99",
        "resident",
        "digests",
        "slowest shard",
    ];
    say(&table(2, &header, &rows));
    say(&format!(
        "ingest: {} applications, {SENDERS} senders; latencies at {} reports/s; \"x defaults\": as many times as many a \
         second as the same texts inserted with SQLite's defaults, a commit each",
        form.applications, form.rate
    ));
    Ok(good)
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
    let (mut sent, mut took) = (0, Duration::ZERO);
    // Every application once, and then what follows of some.
    for is_first in [true, false] {
        loop {
            let most =
                if is_first { MADE } else { MADE.min(form.changes.saturating_sub(sent - bodies.firsts())) };
            let made = Arc::new(if is_first { bodies.first(most)? } else { bodies.next(most)? });
            if made.is_empty() {
                break;
            }
            let begun = Instant::now();
            platform.take(&made).await?;
            took += begun.elapsed();
            sent += made.len();
        }
    }
    let rate = sent as f64 / took.as_secs_f64();
    say(&format!("{sent} reports taken, {rate:.0} a second"));
    let made = Arc::new(bodies.next(form.steady)?);
    let latencies = at_a_rate(&platform, &made, form.rate).await?;
    sent += made.len();
    let mut shards = Vec::new();
    for shard in 0..SHARDS {
        let begun = Instant::now();
        platform.compare(shard, SHARDS).await?;
        shards.push(begun.elapsed());
    }
    let counted = platform.counted().await?;
    ensure!(
        counted == (sent as u64, 0),
        "{sent} reports were acknowledged, {} are kept and {} count as repeated",
        counted.0,
        counted.1
    );
    let resident = platform.highest_resident()?;
    platform.stop().await?;
    let plain = match postgres {
        None => Some(plain::rate(&bodies.next(form.steady.min(2_000))?).await?),
        Some(_) => None,
    };
    Ok(Figures { store, reports: sent, rate, latencies, resident, shards, plain })
}

/// Each at its time, however long the ones before it take; a latency counts from then.
async fn at_a_rate(platform: &Platform, bodies: &Arc<Vec<Body>>, rate: usize) -> anyhow::Result<Times> {
    let (mut senders, begun) = (JoinSet::new(), tokio::time::Instant::now());
    let mut latencies = Times::new()?;
    for (number, _) in bodies.iter().enumerate() {
        let due = begun + Duration::from_secs_f64(number as f64 / rate as f64);
        tokio::time::sleep_until(due).await;
        let (sender, bodies) = (platform.sender(), bodies.clone());
        senders.spawn(async move {
            if let Some(body) = bodies.get(number) {
                sender.send(body).await?;
            }
            anyhow::Ok(due.elapsed())
        });
        while let Some(ended) = senders.try_join_next() {
            latencies.add(ended.context("send reports")??)?;
        }
    }
    while let Some(ended) = senders.join_next().await {
        latencies.add(ended.context("send reports")??)?;
    }
    Ok(latencies)
}
