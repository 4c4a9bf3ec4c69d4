//! Against a bus that refuses each object once, on the paused clock, and one that is made anew.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use pipeline_bus::{Bus, Delivered, Durable, Publishing, Refusal};
use pipeline_core::{Emitter, Fact, Questions, Reason, RequestError, Requests, Source, async_trait};
use pipeline_observe::metrics::{Metrics, MetricsConfig};
use pipeline_ownership::sharding::Sharding;
use tokio_util::task::AbortOnDropHandle;

use super::*;

/// Refuses the first message of each object, and passes on every other.
#[derive(Debug)]
struct RefusesOnce {
    refused: Mutex<HashSet<Key>>,
    taken: mpsc::UnboundedSender<Message>,
}

#[async_trait]
impl Requests for RefusesOnce {
    async fn request(&self, _: &str, _: Bytes, _: Duration) -> Result<Bytes, RequestError> {
        Err(RequestError::Away)
    }

    async fn serve(&self, _: &str) -> Result<Box<dyn Questions>, RequestError> {
        Err(RequestError::Away)
    }
}

#[async_trait]
impl Bus for RefusesOnce {
    fn is_lossless(&self) -> bool {
        false
    }

    async fn ready(&self, _: Vec<Durable>) {}

    fn made(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    async fn publish(&self, _: &str, _: u32, message: Message, _: Keep) -> Result<Publishing, BusError> {
        let published = if self.refused.lock().unwrap().insert(message.key.clone()) {
            Published::Refused(Refusal::Full)
        } else {
            self.taken.send(message).unwrap();
            Published::Duplicate
        };
        Ok(Box::pin(async move { Ok(published) }))
    }

    fn subscribe(&self, _: Durable, _: mpsc::Sender<Delivered>, _: Shutdown) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// What cannot be read is in the namespace `a`; or every read `hangs`.
struct Cluster {
    hangs: bool,
}

#[async_trait]
impl Source for Cluster {
    fn name(&self) -> &'static str {
        "cluster"
    }

    async fn run(&self, _: Emitter, stop: Shutdown) -> Result<(), StageError> {
        stop.cancelled().await;
        Ok(())
    }

    async fn read(&self, key: &Key, _: Version) -> Result<Option<Event>, StageError> {
        match key.namespace() {
            _ if self.hangs => std::future::pending().await,
            "a" => Err(StageError::retry(Reason::Forbidden, "no right to read it")),
            _ => Ok(Some(event("z", key.name(), Change::Applied { body: Bytes::new() }))),
        }
    }
}

fn event(namespace: &str, name: &str, change: Change) -> Event {
    let key = Key::new(namespace, name).unwrap();
    Event::watched(key, name.into(), Version(1), change, Timestamp::UNIX_EPOCH)
}

/// Publishes forty objects that cannot be read, one that can, and a deletion, each of which the bus refuses at first. Gives
/// the names of those that it takes then, within a minute, sorted.
async fn taken(hangs: bool) -> Vec<String> {
    let (taking, mut taken) = mpsc::unbounded_channel();
    let bus = Arc::new(RefusesOnce { refused: Mutex::default(), taken: taking });
    let sharding = Sharding::Jump { shards: std::num::NonZeroU32::MIN };
    let feed = Feed { name: "objects".into(), source: Arc::new(Cluster { hangs }), bus, sharding };
    let metrics = Metrics::new(&MetricsConfig::new(0..1, "1.2.3"));
    let (_watching, watches) = watch::channel(true);
    let (emit, events) = mpsc::channel(64);
    let publisher = Publisher::new(feed, metrics.bus().clone());
    let _publishing = AbortOnDropHandle::new(tokio::spawn(publisher.run(events, watches, Shutdown::new())));
    for n in 0..40 {
        emit.send(event("a", &n.to_string(), Change::Applied { body: Bytes::new() })).await.unwrap();
    }
    emit.send(event("z", "readable", Change::Applied { body: Bytes::new() })).await.unwrap();
    emit.send(event("z", "gone", Change::Deleted { body: None })).await.unwrap();
    let mut names = Vec::new();
    let all = async {
        while let Some(message) = taken.recv().await {
            names.push(message.key.name().to_owned());
        }
    };
    let _over = timeout(Duration::from_secs(60), all).await;
    names.sort_unstable();
    names
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_holds_up_neither_what_can_nor_a_deletion() {
    assert_eq!(taken(false).await, ["gone", "readable"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_goes_out_while_every_read_that_there_may_be_hangs() {
    assert_eq!(taken(true).await, ["gone"]);
}

/// Takes everything; what it is told of how it is kept is passed on.
#[derive(Debug)]
struct TakesAll {
    made: watch::Sender<u64>,
    taken: mpsc::UnboundedSender<Keep>,
}

#[async_trait]
impl Requests for TakesAll {
    async fn request(&self, _: &str, _: Bytes, _: Duration) -> Result<Bytes, RequestError> {
        Err(RequestError::Away)
    }

    async fn serve(&self, _: &str) -> Result<Box<dyn Questions>, RequestError> {
        Err(RequestError::Away)
    }
}

#[async_trait]
impl Bus for TakesAll {
    fn is_lossless(&self) -> bool {
        false
    }

    async fn ready(&self, _: Vec<Durable>) {}

    fn made(&self) -> watch::Receiver<u64> {
        self.made.subscribe()
    }

    async fn publish(&self, _: &str, _: u32, _: Message, keep: Keep) -> Result<Publishing, BusError> {
        self.taken.send(keep).unwrap();
        Ok(Box::pin(async { Ok(Published::Stored { sequence: 1, whole: true }) }))
    }

    fn subscribe(&self, _: Durable, _: mpsc::Sender<Delivered>, _: Shutdown) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_fact_that_was_lost_with_the_bus_must_arrive_once_more() {
    let (taking, mut taken) = mpsc::unbounded_channel();
    let made = watch::Sender::new(0);
    let bus = Arc::new(TakesAll { made: made.clone(), taken: taking });
    let sharding = Sharding::Jump { shards: std::num::NonZeroU32::MIN };
    let feed = Feed { name: "objects".into(), source: Arc::new(Cluster { hangs: false }), bus, sharding };
    let metrics = Metrics::new(&MetricsConfig::new(0..1, "1.2.3"));
    let (_watching, watches) = watch::channel(true);
    let (emit, events) = mpsc::channel(64);
    let publisher = Publisher::new(feed, metrics.bus().clone());
    let _publishing = AbortOnDropHandle::new(tokio::spawn(publisher.run(events, watches, Shutdown::new())));
    let fact = Fact { id: Digest(1), body: Bytes::new() };
    let shown = Event { fact: Some(fact), ..event("z", "shop", Change::Applied { body: Bytes::new() }) };
    let mut kept = Vec::new();
    for made_anew in [false, false, true, false] {
        if made_anew {
            made.send_modify(|made| *made += 1);
        }
        emit.send(shown.clone()).await.unwrap();
        kept.push(taken.recv().await.unwrap());
        // The answer is heard before the next event is shown.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(kept, [Keep::Each, Keep::Newest, Keep::Each, Keep::Newest]);
}
