//! What keeps an engine busy.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use pipeline_core::{Peer, Reason, StageError, Step};
use pipeline_engine::run::Config;
use pipeline_observe::top::{Fetched, Ranking};
use pipeline_ownership::sharding::Sharding;

use crate::fakes::{Cluster, Enricher, Receiver, key};
use crate::running::{one_shard, start};

/// The first `limit` of each list of the only shard.
async fn top(engine: &crate::running::Running, limit: usize) -> Ranking {
    let mut rankings = engine.handle.top(limit).await;
    assert_eq!(rankings.len(), 1);
    let (shard, ranking) = rankings.remove(0);
    assert_eq!(shard, 0);
    ranking
}

#[tokio::test(start_paused = true)]
async fn the_hottest_the_slowest_and_what_fails_are_told() {
    let (cluster, receiver) = (Cluster::new(), Receiver::new());
    let left = AtomicU32::new(2);
    receiver.answers(move |report, _| {
        let one_less = || left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        match report.key == key("slow") && one_less().is_ok() {
            true => Err(StageError::retry(Reason::Timeout, "no answer")),
            false => Ok(()),
        }
    });
    for (name, version) in [("slow", 1), ("calm", 2)] {
        cluster.put(name, version);
    }
    let enricher = Enricher { resources: 1, ..Enricher::default() };
    let engine = start(one_shard(), cluster, enricher, receiver);
    engine.until_idle(2).await;
    for version in 10..20 {
        engine.cluster.put("hot", version);
        engine.until_idle(version - 7).await;
    }
    let ranking = top(&engine, 2).await;
    let hottest: Vec<_> = ranking.hottest.iter().map(|app| (&app.key, app.at_least, app.at_most)).collect();
    assert_eq!(hottest, [(&key("hot"), 10, 10), (&key("calm"), 1, 1)]);
    assert_eq!(ranking.hottest[0].detail.reports, 20);
    let calls: Vec<_> = ranking.most_calls.iter().map(|app| (&app.key, app.at_least, app.detail)).collect();
    let took = Duration::from_millis;
    let (ten, three) = (Fetched { calls: 10, took: took(10) }, Fetched { calls: 3, took: took(3) });
    assert_eq!(calls, [(&key("hot"), 10, ten), (&key("slow"), 3, three)], "a try is a call");
    assert_eq!(ranking.longest_fetch[0].at_least, 10_000);
    let failing = &ranking.failing[0];
    assert_eq!((&failing.key, failing.at_least, failing.detail.parked), (&key("slow"), 2, 0));
    let last = failing.detail.last.unwrap();
    assert_eq!((last.reason, last.version.0, last.trace), (Reason::Timeout, 1, 1));
    let errors: Vec<_> =
        ranking.errors.iter().map(|error| (error.peer, error.reason, error.count, &error.key)).collect();
    assert_eq!(errors, [(Peer::PLATFORM, Reason::Timeout, 2, &key("slow"))]);

    // The slowest is what explain tells of.
    let worst = &ranking.slowest[0].worst;
    assert_eq!((&worst.key, worst.version.0, ranking.slowest.len()), (&key("slow"), 1, 2));
    let explained = engine.handle.explain(&key("slow")).await.unwrap();
    let acked = explained.moments.last().unwrap();
    let Step::Acked { after } = acked.step else { panic!("{acked:?}") };
    assert!(after.abs_diff(worst.took) < Duration::from_millis(1), "{after:?} and {worst:?}");
    assert_eq!(acked.trace, worst.trace);
    let bucket = ranking.latency.iter().find(|bucket| bucket.examples.contains(worst)).unwrap();
    assert_eq!(bucket.count, 1);
    assert!(bucket.up_to.is_some_and(|up_to| worst.took.as_secs_f64() <= up_to), "{bucket:?}");
    assert_eq!(ranking.latency.iter().map(|bucket| bucket.count).sum::<u64>(), 12);

    // What is over for long is told no more, but for the examples.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let ranking = top(&engine, 2).await;
    assert_eq!((ranking.hottest.len(), ranking.slowest.len(), ranking.errors.len()), (0, 0, 0));
    let examples: usize = ranking.latency.iter().map(|bucket| bucket.examples.len()).sum();
    assert!((2..=8).contains(&examples), "{:?}", ranking.latency);
    engine.end().await;
}

#[tokio::test(start_paused = true)]
async fn every_shard_tells_of_its_own_objects() {
    let sharding = Sharding::Jump { shards: NonZeroU32::new(3).unwrap() };
    let cluster = Cluster::new();
    for number in 1..=30 {
        cluster.put(&format!("app-{number}"), number);
    }
    let config = Config { sharding, ..crate::running::config() };
    let engine = start(config, cluster, Enricher::default(), Receiver::new());
    engine.until_idle(30).await;
    let rankings = engine.handle.top(100).await;
    assert_eq!(rankings.iter().map(|(shard, _)| *shard).collect::<Vec<_>>(), [0, 1, 2]);
    let mut all = 0;
    for (shard, ranking) in &rankings {
        assert!(ranking.hottest.iter().all(|app| sharding.place(&app.key) == *shard));
        all += ranking.hottest.len();
    }
    assert_eq!(all, 30);
    let handle = engine.handle.clone();
    engine.end().await;
    assert_eq!(handle.top(100).await, [], "what has ended is left out");
}
