//! Why an object is where it is.

use std::num::NonZeroU32;
use std::time::Duration;

use pipeline_core::{Call, EntityId, Filtered, Reason, ReportKind, StageError, Step};
use pipeline_engine::lane::Blame;
use pipeline_engine::run::{Config, Explained};
use pipeline_ownership::sharding::{Owned, Sharding};

use crate::fakes::{Cluster, Enricher, Receiver, key};
use crate::running::{one_shard, start};

const CALL: Call = Call::new(pipeline_core::Peer::new("peer"), "call");
const OBJECT: ReportKind = ReportKind::of_object("object");
const LISTED: ReportKind = ReportKind::of_listed("listed");

fn steps(explained: &Explained) -> Vec<Step> {
    explained.moments.iter().map(|moment| moment.step).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_acknowledged_is_told_with_the_time_each_step_took() {
    let (cluster, mut receiver) = (Cluster::new(), Receiver::new());
    receiver.delay = std::sync::Arc::new(|| Duration::from_millis(30));
    cluster.put("app", 7);
    let enricher = Enricher { resources: 1, ..Enricher::default() };
    let engine = start(one_shard(), cluster, enricher, receiver);
    engine.until_idle(1).await;
    engine.cluster.repeat("app");
    engine.until_idle(2).await;
    let explained = engine.handle.explain(&key("app")).await.unwrap();
    let sent = Duration::from_millis(30);
    let short = Duration::from_millis(1);
    let told = steps(&explained);
    let expected = [
        Step::Observed,
        Step::Started { attempt: 0 },
        Step::Fetched { call: CALL, took: short, failed: None },
        Step::Enriched { reports: 2, took: short },
        Step::Reported { kind: OBJECT, took: sent },
        Step::Reported { kind: LISTED, took: sent },
        Step::Acked { after: short + 2 * sent },
        Step::Observed,
        Step::Started { attempt: 0 },
        Step::Filtered(Filtered::Stale),
    ];
    assert_eq!(told, expected);
    assert!(explained.moments.iter().all(|moment| moment.version.0 == 7 && moment.trace == 7));
    assert!(explained.moments.is_sorted_by_key(|moment| moment.at));
    assert_eq!((explained.shard, explained.standing, explained.parked), (0, None, None));
    assert_eq!(explained.record, engine.ledger.get(&key("app")));
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_told_with_what_it_waits_for() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("app", 7);
    receiver.answers(|_, _| Err(StageError::retry(Reason::ServerError, "status 500")));
    let engine = start(one_shard(), cluster, Enricher::default(), receiver);
    engine.until("waiting", |counts| counts.waiting == 1 && counts.retried == 3).await;
    let explained = engine.handle.explain(&key("app")).await.unwrap();
    let standing = explained.standing.unwrap();
    assert_eq!((standing.state, standing.events, standing.failures), ("waiting", 1, 3));
    assert_eq!(standing.blame, Some(Blame::Sink));
    assert!(standing.due.is_some_and(|due| due <= Duration::from_secs(4)), "{standing:?}");
    assert!(
        explained
            .record
            .as_ref()
            .is_some_and(|record| record.object().in_doubt && record.object().counter == 0)
    );
    let told = steps(&explained);
    assert!(matches!(
        told[told.len() - 2..],
        [
            Step::NotTaken { kind: OBJECT, reason: Reason::ServerError, .. },
            Step::Retried { reason: Reason::ServerError, .. }
        ]
    ));
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_told_with_its_reason() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    cluster.put("app", 7);
    receiver.answers(|report, _| match report.entity {
        EntityId(2) => Err(StageError::reject(Reason::TooLarge, "status 413")),
        _ => Ok(()),
    });
    let enricher = Enricher { resources: 2, ..Enricher::default() };
    let engine = start(one_shard(), cluster, enricher, receiver);
    engine.until("parked", |counts| counts.parked == 1).await;
    let explained = engine.handle.explain(&key("app")).await.unwrap();
    let parked = explained.parked.clone().unwrap();
    assert_eq!((parked.reason, parked.version.0, parked.refused.len()), (Reason::TooLarge, 7, 1));
    assert_eq!(parked.refused[0].0, EntityId(2));
    assert_eq!(steps(&explained).last(), Some(&Step::Parked(Reason::TooLarge)));
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_of_which_nothing_is_known_has_no_history_and_one_of_another_process_no_answer() {
    let sharding = Sharding::Jump { shards: NonZeroU32::new(5).unwrap() };
    let config = Config { sharding, owned: Owned::One(3), ..crate::running::config() };
    let engine = start(config, Cluster::new(), Enricher::default(), Receiver::new());
    let names = (0..100).map(|number| key(&format!("app-{number}")));
    let (own, others): (Vec<_>, Vec<_>) = names.partition(|name| sharding.place(name) == 3);
    let explained = engine.handle.explain(&own[0]).await.unwrap();
    assert_eq!((explained.shard, explained.moments.len(), explained.record), (3, 0, None));
    assert!(engine.handle.explain(&others[0]).await.is_none());
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_objects_to_which_something_happened_last_are_remembered() {
    let cluster = Cluster::new();
    for number in 0..50 {
        cluster.put(&format!("app-{number:02}"), number + 1);
    }
    let config = Config { history: 10, concurrency: NonZeroU32::MIN, ..one_shard() };
    let engine = start(config, cluster, Enricher::default(), Receiver::new());
    engine.until_idle(50).await;
    let mut known = Vec::new();
    for number in 0..50 {
        let explained = engine.handle.explain(&key(&format!("app-{number:02}"))).await.unwrap();
        if !explained.moments.is_empty() {
            known.push(number);
        }
    }
    assert_eq!(known, (40..50).collect::<Vec<_>>());
    engine.end().await;
}
