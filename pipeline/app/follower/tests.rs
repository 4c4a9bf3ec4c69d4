use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use loadtest::nats::NatsServer;
use pipeline_bus::jetstream::{self, connect};
use pipeline_bus::{Keep, Payload, Published, Subject};
use pipeline_core::{Remembered, SurveyResult, Timestamp, Uid};
use tokio::sync::mpsc;

use super::*;

const SOON: Duration = Duration::from_secs(60);

/// A cluster of one kind: what is there, and what was asked of it.
#[derive(Default)]
struct Cluster {
    there: Mutex<BTreeMap<String, (Uid, u64)>>,
    asked: Mutex<Vec<String>>,
    /// A list begins when it is told to.
    lists: Notify,
    /// A list begins whenever it likes.
    open: AtomicBool,
}

impl Cluster {
    fn put(&self, name: &str, uid: &str, version: u64) {
        self.there.lock().unwrap().insert(name.to_owned(), (uid.into(), version));
    }

    fn remove(&self, name: &str) {
        self.there.lock().unwrap().remove(name);
    }

    fn asks(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

struct Watch {
    cluster: Arc<Cluster>,
    seen: ObjectIndex,
}

#[async_trait]
impl Source for Watch {
    fn name(&self) -> &'static str {
        "objects"
    }

    async fn run(&self, out: Emitter, stop: Shutdown) -> Result<(), StageError> {
        self.cluster.asks("list".to_owned());
        if !self.cluster.open.load(Ordering::Relaxed) {
            self.cluster.lists.notified().await;
        }
        let all = self.cluster.there.lock().unwrap().clone();
        for (name, (uid, version)) in &all {
            let event = message(name, uid, *version).into_event().unwrap();
            self.delivered(&event);
            assert!(out.emit(event).await);
        }
        out.note(SourceNote::Listed { objects: all.len() });
        stop.cancelled().await;
        Ok(())
    }

    async fn read(&self, key: &Key, _: Version) -> Result<Option<Event>, StageError> {
        self.cluster.asks(format!("read {}", key.name()));
        let found = self.cluster.there.lock().unwrap().get(key.name()).cloned();
        Ok(found.map(|(uid, version)| message(key.name(), &uid, version).into_event().unwrap()))
    }

    fn delivered(&self, event: &Event) {
        self.seen.shown(&event.key, &event.uid, event.version, event.is_deleted());
    }
}

#[async_trait]
impl Survey for Watch {
    fn watches(&self, key: &Key) -> bool {
        key.namespace() == "shop"
    }

    async fn survey(&self, _: Vec<Remembered>) -> Result<SurveyResult, StageError> {
        Ok(SurveyResult::default())
    }
}

fn message(name: &str, uid: &str, version: u64) -> Message {
    let (key, change) = (Key::new("shop", name).unwrap(), Change::Applied { body: "{}".into() });
    Message::of(Event::watched(key, uid.into(), Version(version), change, Timestamp::UNIX_EPOCH))
}

fn end(name: &str, uid: &str, version: u64) -> Message {
    Message { payload: Payload::Deleted { body: None }, ..message(name, uid, version) }
}

/// A reporter of one shard, which publishes what it is told to.
struct Reporter {
    bus: JetStream,
    consumes: Shutdown,
}

impl Reporter {
    async fn start(server: &NatsServer) -> Self {
        let bus = connect(config(server), &Shutdown::new()).await.unwrap();
        bus.ensure(&pipeline_bus::durables(ROUTE, PIPELINE, 1)).await.unwrap();
        let reporter = Self { bus, consumes: Shutdown::new() };
        let mut deliveries = reporter.bus.consume(&durable(), reporter.consumes.clone()).unwrap();
        tokio::spawn(async move {
            while let Some(delivery) = deliveries.next().await {
                delivery.unwrap().acker.ack().await.unwrap();
            }
        });
        while !reporter.bus.are_consumed(ROUTE, PIPELINE, 1).await.unwrap() {
            tokio::task::yield_now().await;
        }
        reporter
    }

    async fn publishes(&self, message: Message) {
        let subject = Subject::of(PIPELINE, 0, &message, Keep::of(&message, None));
        let published = self.bus.publish(&subject, &message).await.unwrap();
        assert!(matches!(published, Published::Stored { .. }), "{published:?}");
    }
}

fn durable() -> pipeline_bus::Durable {
    pipeline_bus::durables(ROUTE, PIPELINE, 1).remove(0)
}

fn config(server: &NatsServer) -> jetstream::Config {
    let (urls, credentials) = (vec![server.url()], jetstream::Credentials::None);
    jetstream::Config {
        access: jetstream::Access { urls, timeout: SOON / 2, credentials, tls: None, inbox_prefix: None },
        prefix: "reporters".to_owned(),
        replicas: 1,
        max_bytes: 1 << 30,
        reports_max_bytes: 1 << 20,
        duplicate_window: Duration::from_secs(120),
        ack_wait: SOON,
        max_ack_pending: 1_000,
        heartbeat: SOON,
    }
}

/// A follower that runs, and what it emits.
struct Runs {
    cluster: Arc<Cluster>,
    events: mpsc::UnboundedReceiver<String>,
    stop: Shutdown,
    run: tokio::task::JoinHandle<()>,
}

impl Runs {
    async fn start(server: &NatsServer) -> Self {
        let of_changes = jetstream::Config { prefix: "changes".to_owned(), ..config(server) };
        let bus = connect(of_changes, &Shutdown::new()).await.unwrap().beside("reporters").unwrap();
        let (cluster, seen) = (Arc::new(Cluster::default()), ObjectIndex::default());
        let watch = Watch { cluster: cluster.clone(), seen: seen.clone() };
        let follower = Follower { watch, seen, bus, group: "changes".to_owned(), shards: 1 };
        let (out, events) = mpsc::unbounded_channel();
        let emit = move |event: Event| -> futures::future::BoxFuture<'static, bool> {
            let what = if event.is_deleted() { "end of" } else { "state of" };
            let taken = out.send(format!("{what} {} {} {}", event.key.name(), event.uid, event.version.0));
            Box::pin(std::future::ready(taken.is_ok()))
        };
        let stop = Shutdown::new();
        let stops = stop.clone();
        let run = tokio::spawn(async move {
            let emitter = Emitter::new(|_| true, emit, |_| {});
            follower.run(emitter, stops).await.unwrap();
        });
        Self { cluster, events, stop, run }
    }

    async fn next(&mut self) -> String {
        soon("an event", self.events.recv()).await.unwrap()
    }

    async fn asks(&self, what: &str) {
        let asked = async {
            while !self.cluster.asked.lock().unwrap().iter().any(|asked| asked == what) {
                tokio::task::yield_now().await;
            }
        };
        soon(what, asked).await;
    }
}

async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(SOON, work).await {
        Ok(done) => done,
        Err(_) => panic!("{what} did not come within {SOON:?}"),
    }
}

#[tokio::test]
async fn what_is_published_before_the_list_is_judged_by_it_and_what_is_published_later_is_taken_as_it_is() {
    let server = NatsServer::start().await.unwrap();
    let reporter = Reporter::start(&server).await;
    // Nobody is told of what was published before anybody followed, but by the list.
    reporter.publishes(message("a", "a1", 1)).await;
    let mut runs = Runs::start(&server).await;
    runs.asks("list").await;
    // While it is listed: one that is gone again, one that is newer in the list, one that is as in the list.
    reporter.publishes(message("gone", "g1", 2)).await;
    reporter.publishes(message("newer", "n1", 3)).await;
    reporter.publishes(message("same", "s1", 5)).await;
    runs.cluster.put("a", "a1", 1);
    runs.cluster.put("newer", "n1", 4);
    runs.cluster.put("same", "s1", 5);
    runs.cluster.lists.notify_one();
    for listed in ["state of a a1 1", "state of newer n1 4", "state of same s1 5"] {
        assert_eq!(runs.next().await, listed);
    }
    for published in ["end of gone g1 2", "state of newer n1 4", "state of same s1 5"] {
        assert_eq!(runs.next().await, published);
    }
    assert_eq!(runs.cluster.asked(), ["list", "read gone", "read newer"]);

    // Afterwards: a state of what is known, one without its body, a life that is not known, and the end of a life.
    reporter.publishes(message("a", "a1", 6)).await;
    runs.cluster.put("same", "s1", 7);
    reporter
        .publishes(Message { payload: Payload::Overlarge { about: None }, ..message("same", "s1", 7) })
        .await;
    runs.cluster.put("new", "w1", 8);
    reporter.publishes(message("new", "w1", 8)).await;
    runs.cluster.remove("newer");
    reporter.publishes(end("newer", "n1", 9)).await;
    for published in ["state of a a1 6", "state of same s1 7", "state of new w1 8", "end of newer n1 9"] {
        assert_eq!(runs.next().await, published);
    }
    // A name whose life is another by now: its end says nothing of the next life.
    runs.cluster.put("a", "a2", 11);
    reporter.publishes(message("a", "a2", 11)).await;
    reporter.publishes(end("a", "a1", 10)).await;
    for published in ["state of a a2 11", "end of a a1 10"] {
        assert_eq!(runs.next().await, published);
    }
    reporter.publishes(message("a", "a2", 12)).await;
    assert_eq!(runs.next().await, "state of a a2 12");
    assert_eq!(runs.cluster.asked(), ["read same", "read new", "read a"], "no second list");

    // What is not watched is not handed over, and held by nobody.
    let elsewhere = Message { key: Key::new("elsewhere", "x").unwrap(), ..message("x", "x1", 13) };
    reporter.publishes(elsewhere).await;
    reporter.publishes(message("a", "a2", 14)).await;
    assert_eq!(runs.next().await, "state of a a2 14");
    runs.stop.cancel();
    soon("the end", runs.run).await.unwrap();
    let durables = reporter.bus.show(PIPELINE).await.unwrap().durables;
    let left: Vec<&str> = durables.iter().map(|durable| &*durable.name).collect();
    assert_eq!(left, ["reporter_applications_0"], "whoever ends leaves no interest behind");
}

#[tokio::test]
async fn one_that_is_killed_leaves_a_durable_that_goes_by_itself() {
    let server = NatsServer::start().await.unwrap();
    let reporter = Reporter::start(&server).await;
    let runs = Runs::start(&server).await;
    runs.asks("list").await;
    runs.run.abort();
    let client = async_nats::connect(server.url()).await.unwrap();
    let stream = async_nats::jetstream::new(client).get_stream("reporters_applications").await.unwrap();
    let durables = reporter.bus.show(PIPELINE).await.unwrap().durables;
    let left = durables.iter().find(|durable| durable.name.starts_with("changes-")).unwrap();
    let info = stream.consumer_info(&left.name).await.unwrap();
    assert_eq!(info.config.inactive_threshold, Duration::from_secs(600));
}

#[tokio::test]
async fn a_durable_that_is_gone_brings_a_list_after_a_new_one() {
    let server = NatsServer::start().await.unwrap();
    let reporter = Reporter::start(&server).await;
    let mut runs = Runs::start(&server).await;
    runs.cluster.put("a", "a1", 1);
    runs.cluster.lists.notify_one();
    assert_eq!(runs.next().await, "state of a a1 1");
    let client = async_nats::connect(server.url()).await.unwrap();
    let stream = async_nats::jetstream::new(client).get_stream("reporters_applications").await.unwrap();
    let followed = |reporter: &Reporter| {
        let bus = reporter.bus.clone();
        async move {
            let durables = bus.show(PIPELINE).await.unwrap().durables;
            durables.into_iter().find(|it| it.name.starts_with("changes-") && it.waiting > 0)
        }
    };
    let first = loop {
        if let Some(found) = soon("who follows", followed(&reporter)).await {
            break found.name;
        }
    };
    assert_eq!(runs.cluster.asked(), ["list"]);
    // It watches by itself, and follows again, each time with a list.
    runs.cluster.open.store(true, Ordering::Relaxed);
    runs.cluster.put("a", "a1", 2);
    reporter.publishes(message("a", "a1", 2)).await;
    stream.delete_consumer(&first).await.unwrap();
    while soon("who follows", followed(&reporter)).await.is_none_or(|found| found.name == first) {
        tokio::task::yield_now().await;
    }
    reporter.publishes(message("a", "a1", 3)).await;
    let mut last = runs.next().await;
    while last == "state of a a1 2" {
        last = runs.next().await;
    }
    assert_eq!(last, "state of a a1 3");
    assert!(runs.cluster.asked().iter().filter(|asked| *asked == "list").count() >= 2);
    runs.stop.cancel();
    soon("the end", runs.run).await.unwrap();
}

#[tokio::test]
async fn a_reporter_that_leaves_a_shard_to_nobody_is_not_followed() {
    let server = NatsServer::start().await.unwrap();
    let reporter = Reporter::start(&server).await;
    let mut runs = Runs::start(&server).await;
    runs.cluster.lists.notify_one();
    runs.asks("list").await;
    runs.cluster.asked();
    reporter.consumes.cancel();
    runs.cluster.put("a", "a1", 1);
    runs.asks("list").await;
    runs.cluster.lists.notify_one();
    assert_eq!(runs.next().await, "state of a a1 1", "it watches by itself");
    let is_followed = reporter.bus.is_followed("changes", PIPELINE).await.unwrap();
    assert!(!is_followed, "and says so");
    runs.stop.cancel();
    soon("the end", runs.run).await.unwrap();
}
