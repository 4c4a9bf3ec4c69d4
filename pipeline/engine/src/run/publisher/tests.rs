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

/// A bus to which nobody subscribes: what becomes of a message its test says.
struct Answers<F> {
    made: watch::Sender<u64>,
    answer: F,
}

impl<F> std::fmt::Debug for Answers<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answers")
    }
}

#[async_trait]
impl<F: Fn(Message, Keep) -> Published + Send + Sync + 'static> Requests for Answers<F> {
    async fn request(&self, _: &str, _: Bytes, _: Duration) -> Result<Bytes, RequestError> {
        Err(RequestError::Away)
    }

    async fn serve(&self, _: &str) -> Result<Box<dyn Questions>, RequestError> {
        Err(RequestError::Away)
    }
}

#[async_trait]
impl<F: Fn(Message, Keep) -> Published + Send + Sync + 'static> Bus for Answers<F> {
    fn is_lossless(&self) -> bool {
        false
    }

    async fn ready(&self, _: Vec<Durable>) {}

    fn made(&self) -> watch::Receiver<u64> {
        self.made.subscribe()
    }

    async fn publish(&self, _: &str, _: u32, message: Message, keep: Keep) -> Result<Publishing, BusError> {
        let published = (self.answer)(message, keep);
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

/// Begins to publish what is emitted; ends with the second part.
fn publishing(
    made: watch::Sender<u64>,
    hangs: bool,
    answer: impl Fn(Message, Keep) -> Published + Send + Sync + 'static,
) -> (mpsc::Sender<Event>, (watch::Sender<bool>, AbortOnDropHandle<()>)) {
    let bus = Arc::new(Answers { made, answer });
    let sharding = Sharding::Jump { shards: std::num::NonZeroU32::MIN };
    let feed = Feed { name: "objects".into(), source: Arc::new(Cluster { hangs }), bus, sharding };
    let metrics = Metrics::new(&MetricsConfig::new(0..1, "1.2.3"));
    let (watching, watches) = watch::channel(true);
    let (emit, events) = mpsc::channel(64);
    let publisher = Publisher::new(feed, metrics.bus().clone());
    let task = tokio::spawn(publisher.run(events, watches, Shutdown::new()));
    (emit, (watching, AbortOnDropHandle::new(task)))
}

/// Publishes forty objects that cannot be read, one that can, and a deletion, each of which the bus refuses at first. Gives
/// the names of those that it takes then, within a minute, sorted.
async fn taken(hangs: bool) -> Vec<String> {
    let (taking, mut taken) = mpsc::unbounded_channel();
    let refused = Mutex::<HashSet<Key>>::default();
    let refuses_once = move |message: Message, _| {
        if refused.lock().unwrap().insert(message.key.clone()) {
            return Published::Refused(Refusal::Full);
        }
        taking.send(message).unwrap();
        Published::Duplicate
    };
    let (emit, _publishing) = publishing(watch::Sender::new(0), hangs, refuses_once);
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

#[tokio::test(start_paused = true)]
async fn a_fact_that_was_lost_with_the_bus_must_arrive_once_more() {
    let (taking, mut taken) = mpsc::unbounded_channel();
    let made = watch::Sender::new(0);
    let takes_all = move |_, keep| {
        taking.send(keep).unwrap();
        Published::Stored { sequence: 1, whole: true }
    };
    let (emit, _publishing) = publishing(made.clone(), false, takes_all);
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
