//! Why an object is where it is.

use std::num::NonZeroU32;

use pipeline_engine::run::Config;
use pipeline_ownership::sharding::{Owned, Sharding};

use crate::fakes::{Cluster, Enricher, Receiver, key};
use crate::running::{one_shard, start};

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
