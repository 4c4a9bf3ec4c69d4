//! Recorded watch streams through the whole program: what the platform knows in the end is what an oracle finds
//! in the last recorded state, and each application's reports came in the order of its states.

use std::collections::BTreeSet;
use std::time::Duration;

use loadtest::oracle::{self, Expected};
use loadtest::recordings::packed;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::platform::{Keep, Totals};
use loadtest::sim::{Load, Setup, Simulation};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::runtime::{Runtime, SOON, ensure};

/// How a replay goes.
struct Play {
    /// So many times as fast as it was recorded; at once when 0.
    speed: f64,
    /// Over the program's settings.
    settings: Value,
    /// Every so many reports the platform fails in one way or another.
    flaky: bool,
    /// An application whose whole life passed while its first report waited need not be known: what was never
    /// reported needs no deletion.
    unseen_lives: bool,
}

impl Default for Play {
    fn default() -> Self {
        Self { speed: 0.0, settings: json!({}), flaky: false, unseen_lives: false }
    }
}

/// Ways to fail, some of which are noticed by the program alone.
fn failures(simulation: &Simulation) {
    let refused = |status| Fault::Status { status, retry_after: None };
    let faults = simulation.platform.faults();
    faults.add(Rule::always(refused(503)).rate(0.1));
    faults.add(Rule::always(refused(429)).rate(0.05));
    faults.add(Rule::always(Fault::Close).rate(0.1));
    faults.add(Rule::always(Fault::Close).rate(0.1).after_effect());
    // Tried again within the event: none of these is used up.
    let faults = simulation.argocd.faults();
    faults.add(Rule::always(refused(502)).rate(0.05));
    faults.add(Rule::always(Fault::Cut { after: 20 }).rate(0.05));
}

/// Replays every case of a set, and asserts that the platform knows what an oracle finds.
async fn replay(set: &str, play: Play) -> Totals {
    let cases = packed(set).unwrap();
    let mut expected = Vec::new();
    for case in &cases {
        expected.extend(oracle::expected(case).unwrap());
    }
    let applications: BTreeSet<&str> =
        cases.iter().flat_map(|case| case.meta.applications.iter().map(String::as_str)).collect();
    let mut simulation = Simulation::start(Setup {
        load: Load::Recording(cases.clone()),
        tls: [None; 3],
        keep: Keep { last: true, reports: 1_000_000 },
        ..Setup::default()
    })
    .await
    .unwrap();
    if play.flaky {
        failures(&simulation);
    }
    let runtime = Runtime::start(&simulation, &play.settings).await;
    runtime.until("the first list", |status| status.ready).await;
    let mut player = simulation.player.take().unwrap();
    let events = player.remaining() as u64;
    player.play(&simulation.kube, play.speed, Duration::from_millis(20)).await.unwrap();

    // A fact that could not be had is asked for again after a minute.
    let deadline = Instant::now() + SOON;
    let mut unseen: BTreeSet<String>;
    let differences = loop {
        let status = runtime.idle(events).await;
        assert_eq!(status.total.parked, 0, "{status:?}");
        assert!(status.shards.iter().all(|shard| shard.balance() == 0), "{status:?}");
        let known = simulation.platform.last();
        let is_unseen = |expected: &Expected| {
            play.unseen_lives
                && expected.facts.get("deleted") == Some(&json!(true))
                && !known.iter().any(|(entity, _)| *entity == expected.entity)
        };
        unseen = expected
            .iter()
            .filter(|expected| is_unseen(expected))
            .map(|expected| expected.entity.app_name.clone())
            .collect();
        let mut differences = oracle::check(&expected, &known);
        differences.retain(|difference| !unseen.contains(&difference.entity.app_name));
        if differences.is_empty() || Instant::now() > deadline {
            break differences;
        }
        sleep(Duration::from_millis(200)).await;
    };
    let text: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert!(text.is_empty(), "{} of {} differ:\n{}", text.len(), expected.len(), text.join("\n"));
    runtime.stop().await;

    let kept = simulation.platform.kept();
    let totals = ensure(simulation.platform.totals(), "reports were dropped by the test", |totals| {
        totals.taken == kept.len() as u64
    });
    assert_eq!((totals.out_of_order, totals.malformed, totals.without_key), (0, 0, 0), "{totals:?}");
    let of_applications: Vec<_> =
        kept.into_iter().filter(|report| report.entity.resource.is_none()).collect();
    assert_eq!(oracle::order(&of_applications), []);
    let reported: BTreeSet<&str> =
        of_applications.iter().map(|report| report.entity.app_name.as_str()).collect();
    let missing: Vec<_> =
        applications.difference(&reported).filter(|name| !unseen.contains(**name)).collect();
    assert!(missing.is_empty(), "never reported: {missing:?}");
    totals
}

#[tokio::test]
async fn incumbent_2_12_event_by_event() {
    replay("incumbent-2.12", Play { speed: 100.0, ..Play::default() }).await;
}

#[tokio::test]
async fn argocd_3_2_all_at_once() {
    replay("argocd-3.2", Play::default()).await;
}

/// Nearly every event finds the queue full: its application is read again instead.
#[tokio::test]
async fn through_a_queue_of_two_events() {
    for set in ["incumbent-2.12", "argocd-3.2"] {
        let settings = json!({"reporter": {
            "sharding": {"shards": 1}, "queue": {"events": 2}, "lanes": {"concurrency": 2},
        }});
        replay(set, Play { settings, unseen_lives: true, ..Play::default() }).await;
    }
}

#[tokio::test]
async fn with_peers_that_fail_every_few_calls() {
    let settings = json!({"reporter": {"lanes": {"retry": {"min": "50ms", "max": "500ms"}}}});
    let totals = replay("argocd-3.2", Play { settings, flaky: true, ..Play::default() }).await;
    assert!(totals.spoilt > 20 && totals.duplicates > 0, "nothing failed: {totals:?}");
}
