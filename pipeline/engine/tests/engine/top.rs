//! What keeps an engine busy.

use std::num::NonZeroU32;

use pipeline_engine::run::Config;
use pipeline_ownership::sharding::Sharding;

use crate::fakes::{Cluster, Enricher, Receiver};
use crate::running::start;

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
