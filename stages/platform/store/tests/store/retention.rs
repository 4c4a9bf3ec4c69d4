//! What is taken away by the clock that is believed, and by what is set in the store itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use pipeline_core::Shutdown;
use stages_platform_store::{Place, Retention, RetentionDays};
use tempfile::TempDir;

use crate::accounts::by;
use crate::postgres::Server;
use crate::support::{Opened, digest, open_with, report};

/// It is looked for what is too old as often as can be.
const BUSY: Duration = Duration::from_millis(5);
/// It may take so long on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// Of which so many are looked at before anything is said of a clock.
const LOOKS: u32 = 10;

async fn until(mut is_so: impl AsyncFnMut() -> bool, what: &str) {
    let asked = async {
        while !is_so().await {
            tokio::time::sleep(BUSY).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect(what);
}

/// The process was ended, and its node came back with a clock that is a year ahead.
async fn a_clock_that_is_ahead_when_a_platform_starts_takes_nothing_away_at_once(place: &Place) {
    let month = Duration::from_secs(30 * 86_400);
    let retention = Retention { history: month, keys: month, interval: BUSY };
    let opened = open_with(place, retention).await;
    opened.keep(report("u", 1, 1)).await;
    opened.close().await;
    let opened = open_with(place, retention).await;
    // What is told once it runs again says nothing of its clock.
    opened.keep(report("u", 2, 2)).await;
    let (begin, looks, goes_on) =
        (Instant::now(), Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let clock = {
        let (looks, goes_on) = (Arc::clone(&looks), Arc::clone(&goes_on));
        move || {
            let look = looks.fetch_add(1, Ordering::SeqCst);
            let passed = match goes_on.load(Ordering::SeqCst) {
                true => 120,
                false => look.min(50),
            };
            let ahead = SignedDuration::from_hours(365 * 24) + SignedDuration::from_mins(passed.into());
            (Timestamp::now() + ahead, begin + Duration::from_secs(60 * u64::from(passed)))
        }
    };
    let stop = Shutdown::new();
    let retaining = tokio::spawn({
        let (store, stop) = (opened.store.clone(), stop.clone());
        async move { store.retain_by(clock, stop).await }
    });
    until(async || looks.load(Ordering::SeqCst) > 50 + LOOKS, "it is looked at").await;
    assert_eq!(opened.versions().await, (vec![1, 2], 2), "the clock may be put right");
    // A platform that was really away for a year takes away what has become too old, after a while.
    goes_on.store(true, Ordering::SeqCst);
    until(async || opened.versions().await.0 == [2], "the clock has stayed where it is").await;
    stop.cancel();
    retaining.await.unwrap();
    opened.close().await;
}

/// What is kept while the clock is in doubt has its time from that clock, and says nothing of it at the next start.
async fn a_clock_that_is_in_doubt_stays_so_from_one_start_to_the_next(place: &Place) {
    let retention = Retention { history: Duration::ZERO, keys: Duration::ZERO, interval: BUSY };
    let (begin, year) = (Instant::now(), SignedDuration::from_hours(365 * 24));
    // Runs until it was looked at so often what a clock says that is so far behind.
    let look = async |opened: &Opened, behind: SignedDuration| {
        let (looks, stop) = (AtomicU32::new(0), Shutdown::new());
        let clock = || {
            looks.fetch_add(1, Ordering::SeqCst);
            (Timestamp::now() - behind, begin)
        };
        let looked = async {
            until(async || looks.load(Ordering::SeqCst) > LOOKS, "it is looked at").await;
            stop.cancel();
        };
        tokio::join!(opened.store.retain_by(clock, stop.clone()), looked);
    };
    let opened = open_with(place, retention).await;
    look(&opened, year).await;
    opened.close().await;
    for version in 1..=3 {
        let opened = open_with(place, retention).await;
        opened.keep(report("u", version, version)).await;
        look(&opened, SignedDuration::ZERO).await;
        assert_eq!(opened.versions().await, ((1..=version).collect(), version), "the clock may be put right");
        opened.close().await;
    }
}

/// No process lives for as long as a clock is in doubt that is ahead: each leaves to the next for how long it was.
async fn processes_that_all_end_soon_take_away_what_is_too_old(place: &Place) {
    let month = Duration::from_secs(30 * 86_400);
    let retention = Retention { history: month, keys: month, interval: BUSY };
    let opened = open_with(place, retention).await;
    opened.keep(report("u", 1, 1)).await;
    opened.keep(report("u", 2, 2)).await;
    opened.close().await;
    let mut left = Vec::new();
    for run in 0..4_i64 {
        let opened = open_with(place, retention).await;
        let (begin, looks, stop) = (Instant::now(), AtomicU32::new(0), Shutdown::new());
        // Twenty minutes of a node that is a year ahead, ten minutes after the run before.
        let clock = || {
            let minutes = 2 * looks.fetch_add(1, Ordering::SeqCst).min(11);
            let ahead = SignedDuration::from_hours(365 * 24) + SignedDuration::from_mins(run * 30);
            let wall = Timestamp::now() + ahead + SignedDuration::from_mins(minutes.into());
            (wall, begin + Duration::from_secs(60 * u64::from(minutes)))
        };
        let looked = async {
            until(async || looks.load(Ordering::SeqCst) > 11 + LOOKS, "it is looked at").await;
            stop.cancel();
        };
        tokio::join!(opened.store.retain_by(clock, stop.clone()), looked);
        left.push(opened.versions().await.0);
        opened.close().await;
    }
    assert_eq!(left, [vec![1, 2], vec![1, 2], vec![2], vec![2]]);
}

/// Sessions that have ended go with the first step, whatever is set.
async fn first_step(opened: &Opened) {
    let now = Timestamp::now().as_millisecond();
    opened.store.keep_session(digest("over"), "ada", now - 120_000, now - 60_000).await.unwrap();
    let stop = Shutdown::new();
    let gone = async {
        let session = async || opened.store.session(digest("over"), now - 120_000).await.unwrap();
        until(async || session().await.is_none(), "what has ended goes").await;
        stop.cancel();
    };
    tokio::join!(opened.store.retain(stop.clone()), gone);
}

async fn how_long_is_set_holds_for_whoever_takes_away(place: &Place) {
    let file = Retention { history: Duration::ZERO, keys: Duration::ZERO, interval: BUSY };
    let opened = crate::accounts::with_ada(open_with(place, file).await).await;
    opened.keep(report("u", 1, 1)).await;
    opened.keep(report("u", 2, 2)).await;
    // Set by another process, which this one is told nothing by.
    let days = Some(RetentionDays { history: 90, keys: 7 });
    opened.store.keep_retention_days(&by(), days, 0).await.unwrap();
    first_step(&opened).await;
    assert_eq!(opened.versions().await, (vec![1, 2], 2));
    opened.store.keep_retention_days(&by(), None, 0).await.unwrap();
    let stop = Shutdown::new();
    let gone = async {
        until(async || opened.versions().await.0 == [2], "it is as the file says").await;
        stop.cancel();
    };
    tokio::join!(opened.store.retain(stop.clone()), gone);
    opened.close().await;
}

#[tokio::test]
async fn what_is_too_old_on_sqlite() {
    let folder = TempDir::new().unwrap();
    let place = |name: &str| Place::Sqlite(folder.path().join(name));
    Box::pin(a_clock_that_is_ahead_when_a_platform_starts_takes_nothing_away_at_once(&place("1.db"))).await;
    Box::pin(a_clock_that_is_in_doubt_stays_so_from_one_start_to_the_next(&place("3.db"))).await;
    Box::pin(how_long_is_set_holds_for_whoever_takes_away(&place("2.db"))).await;
    Box::pin(processes_that_all_end_soon_take_away_what_is_too_old(&place("4.db"))).await;
}

#[tokio::test]
async fn what_is_too_old_on_postgres() {
    let server = Server::start().await;
    let place = async || Place::Postgres(server.database().await);
    Box::pin(a_clock_that_is_ahead_when_a_platform_starts_takes_nothing_away_at_once(&place().await)).await;
    Box::pin(a_clock_that_is_in_doubt_stays_so_from_one_start_to_the_next(&place().await)).await;
    Box::pin(how_long_is_set_holds_for_whoever_takes_away(&place().await)).await;
    Box::pin(processes_that_all_end_soon_take_away_what_is_too_old(&place().await)).await;
}
