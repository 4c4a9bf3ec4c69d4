//! What another role needs: a pipeline and a service that are not the reporter's, on either bus.

mod api;
mod buses;
mod configmaps;
mod greeter;
mod services;

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pipeline_bus::Bus;
use pipeline_core::{
    Attempt, Backoff, Checkpoint, Enrich, Enriched, Event, Reason, Record, Shutdown, StageError, async_trait,
};
use pipeline_engine::run::{Config, Engine, EngineError, Handle, Match, Pipeline, Route};
use pipeline_ledger::{Ledger, LedgerOptions};
use pipeline_observe::health::{Health, HealthLimits};
use pipeline_observe::metrics::{Metrics, MetricsConfig};
use tokio::task::JoinHandle;

use crate::on;
use crate::restart::crash;
use crate::running::{self, config, one_shard};
use api::{Api, key};
use configmaps::{ConfigMaps, Data, Journal};

/// A reporter of ConfigMaps that runs.
pub(crate) struct Reporter {
    api: Arc<Api>,
    journal: Journal,
    handle: Handle,
    stop: Shutdown,
    task: JoinHandle<Result<(), EngineError>>,
}

fn route(name: &str, takes: Match, journal: &Journal, ledger: Ledger, config: Config) -> Route {
    let owned = config.owned.shards(config.sharding);
    let metrics = Metrics::new(&MetricsConfig::new(owned.clone(), "test"));
    let health = Health::new(HealthLimits::default(), owned, Instant::now());
    Route { takes, ..running::route(name, Arc::new(journal.clone()), ledger, metrics, health) }
}

fn pipeline(api: &Arc<Api>, routes: Vec<Route>) -> Pipeline {
    pipeline_of(api, Arc::new(Data), routes)
}

fn pipeline_of(api: &Arc<Api>, enrich: Arc<dyn Enrich>, routes: Vec<Route>) -> Pipeline {
    let source = Arc::new(ConfigMaps(api.clone()));
    Pipeline { name: "configmaps".to_owned(), source, enrich, routes }
}

impl Reporter {
    fn start(config: Config, api: Arc<Api>, journal: Journal, ledger: Ledger, bus: Arc<dyn Bus>) -> Self {
        let route = route("archive", Match::default(), &journal, ledger, config);
        let pipeline = pipeline(&api, vec![route]);
        Self::of(pipeline, config, api, journal, bus)
    }

    fn of(pipeline: Pipeline, config: Config, api: Arc<Api>, journal: Journal, bus: Arc<dyn Bus>) -> Self {
        let engine = Engine::new(config, bus, None).pipeline(pipeline);
        let handle = engine.handle("configmaps", "archive").unwrap();
        let stop = Shutdown::new();
        let task = tokio::spawn(engine.run(stop.clone()));
        Self { api, journal, handle, stop, task }
    }

    /// What was written last of a name, and whether that was its end.
    fn newest(&self, name: &str) -> Option<(String, bool)> {
        let lines = self.journal.lines.lock().unwrap();
        let of = lines.iter().rfind(|(of, ..)| *of == key(name))?;
        Some((String::from_utf8(of.1.to_vec()).unwrap(), of.2))
    }

    fn written(&self) -> usize {
        self.journal.lines.lock().unwrap().len()
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        running::until(&self.handle, what, || is_so(self)).await;
        let total = self.handle.status().total();
        assert_eq!(total.balance(), 0, "{total:?}");
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

async fn open(directory: &Path) -> Ledger {
    let path = directory.join("ledger");
    let options = LedgerOptions::new("journal-of-tests".to_owned());
    tokio::task::spawn_blocking(move || Ledger::open(path, options).unwrap()).await.unwrap()
}

fn small() -> Config {
    Config { queue_events: 10, ..one_shard() }
}

/// Every state that counts is written once, and the end; what equals its predecessor is not.
pub(crate) async fn follows(ledger: Ledger, bus: Arc<dyn Bus>) {
    let api = Arc::new(Api::new());
    api.put("one", "a");
    api.put("two", "a");
    let reporter = Reporter::start(config(), api, Journal::default(), ledger, bus);
    reporter.until("listed", |it| it.written() == 2).await;
    reporter.api.put("one", "b");
    reporter.until("changed", |it| it.newest("one") == Some(("b".to_owned(), false))).await;
    reporter.api.put("one", "b");
    reporter.api.delete("two");
    reporter.until("over", |it| it.newest("two").is_some_and(|(_, ends)| ends)).await;
    let idle = |it: &Reporter| it.handle.status().total().held() == 0;
    reporter.until("idle", |it| idle(it) && it.handle.status().total().filtered >= 1).await;
    assert_eq!(reporter.written(), 4);
    reporter.end().await;
}

/// What waits for its sink when the queue is full is read again on its turn: the newest state of each arrives.
pub(crate) async fn overflows(ledger: Ledger, bus: Arc<dyn Bus>) {
    let (api, journal) = (Arc::new(Api::new()), Journal::default());
    journal.down.store(true, Ordering::SeqCst);
    for number in 0..100 {
        api.put(&format!("map-{number}"), "old");
    }
    let reporter = Reporter::start(small(), api, journal, ledger, bus);
    reporter.until("observed", |it| it.handle.status().total().observed >= 10).await;
    for number in 0..100 {
        reporter.api.put(&format!("map-{number}"), "new");
    }
    reporter.journal.down.store(false, Ordering::SeqCst);
    let newest = |it: &Reporter| {
        (0..100).all(|number| it.newest(&format!("map-{number}")).is_some_and(|(data, _)| data == "new"))
    };
    reporter.until("all of them", newest).await;
    reporter.end().await;
}

#[tokio::test(start_paused = true)]
async fn config_maps_are_reported_when_they_change_and_when_they_end() {
    let (bus, kept) = on::bus();
    follows(Ledger::memory(), bus).await;
    kept.end();
}

#[tokio::test(start_paused = true)]
async fn config_maps_are_reported_through_a_queue_of_ten() {
    let (bus, kept) = on::bus();
    overflows(Ledger::memory(), bus).await;
    kept.end();
}

#[tokio::test]
async fn config_maps_are_reported_with_a_ledger_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let (bus, kept) = on::bus();
    follows(open(directory.path()).await, bus).await;
    kept.end();
}

#[tokio::test]
async fn a_reporter_of_config_maps_that_is_killed_goes_on_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let api = Arc::new(Api::new());
    for name in ["one", "two", "three"] {
        api.put(name, "a");
    }
    let (bus, kept) = on::bus();
    let patient = Duration::from_secs(3 * 3600);
    let waits = Config { retry: Backoff { min: patient, max: patient }, ..one_shard() };
    let ledger = open(directory.path()).await;
    let first = Reporter::start(waits, api.clone(), Journal::default(), ledger.clone(), bus);
    first.until("reported", |it| it.written() == 3).await;
    ledger.flush().await.unwrap();
    first.journal.down.store(true, Ordering::SeqCst);
    api.put("one", "b");
    api.delete("two");
    first.until("waiting", |it| it.handle.status().total().observed >= 5).await;
    let image = crash(directory.path());
    first.task.abort();
    kept.end();

    let (bus, kept) = on::bus();
    let ledger = open(image.path()).await;
    let again = Reporter::start(one_shard(), api, Journal::default(), ledger, bus);
    again.until("the change", |it| it.newest("one") == Some(("b".to_owned(), false))).await;
    again.until("the end", |it| it.newest("two").is_some_and(|(_, ends)| ends)).await;
    assert_eq!(again.newest("three"), None, "it was acknowledged before");
    again.end().await;
    kept.end();
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_is_down_delays_its_own_route_alone() {
    let (bus, kept) = on::bus();
    let api = Arc::new(Api::new());
    let (quick, slow) = (Journal::default(), Journal::default());
    slow.down.store(true, Ordering::SeqCst);
    let config = Config { concurrency: NonZeroU32::MIN, ..small() };
    let team = Match::default().in_namespaces(|namespace| namespace.starts_with("team-"));
    let routes = vec![
        route("archive", Match::default(), &quick, Ledger::memory(), config),
        route("slow", team, &slow, Ledger::memory(), config),
    ];
    for number in 0..60 {
        api.put(&format!("team-a/map-{number}"), "a");
        api.put(&format!("other/map-{number}"), "a");
    }
    let reporter = Reporter::of(pipeline(&api, routes), config, api, quick, bus);
    reporter.until("all of the quick route", |it| it.written() == 120).await;
    assert_eq!(slow.lines.lock().unwrap().len(), 0);
    slow.down.store(false, Ordering::SeqCst);
    reporter.until("all of the slow route", |_| slow.lines.lock().unwrap().len() >= 60).await;
    let others = slow.lines.lock().unwrap().iter().filter(|(key, ..)| key.namespace() == "other").count();
    assert_eq!((others, reporter.written()), (0, 120));
    reporter.end().await;
    kept.end();
}

#[tokio::test(start_paused = true)]
async fn what_leaves_a_route_while_it_is_on_its_way_is_brought_up_to_date_and_nothing_else_comes_in() {
    const MINE: &str = r#"{"metadata":{"labels":{"team":"a"}}}"#;
    const OTHERS: &str = r#"{"metadata":{"labels":{"team":"b"}}}"#;
    let (bus, kept) = on::bus();
    let (api, journal) = (Arc::new(Api::new()), Journal::default());
    journal.down.store(true, Ordering::SeqCst);
    for number in 0..40 {
        api.put(&format!("mine-{number}"), MINE);
        api.put(&format!("others-{number}"), OTHERS);
    }
    let takes = Match::default().labelled(|labels| labels.get("team").is_some_and(|team| team == "a"));
    let route = route("archive", takes, &journal, Ledger::memory(), small());
    let pipeline = pipeline(&api, vec![route]);
    let reporter = Reporter::of(pipeline, small(), api, journal, bus);
    let waits = |it: &Reporter| it.handle.status().total().observed >= 40;
    reporter.until("all of them wait", waits).await;
    for number in 0..40 {
        reporter.api.put(&format!("mine-{number}"), OTHERS);
    }
    // What the route has taken last is the last that it is shown.
    reporter.api.put("last", MINE);
    reporter.journal.down.store(false, Ordering::SeqCst);
    let idle = |it: &Reporter| it.newest("last").is_some() && it.handle.status().total().held() == 0;
    reporter.until("idle", idle).await;
    let lines = reporter.journal.lines.lock().unwrap().clone();
    assert!(lines.iter().all(|(key, ..)| !key.name().starts_with("others")), "{lines:?}");
    for number in 0..40 {
        let newest = reporter.newest(&format!("mine-{number}"));
        assert!(newest.is_none_or(|(data, _)| data == OTHERS), "mine-{number} is left as it was");
    }
    reporter.end().await;
    kept.end();
}

/// Remembers more than it may.
struct Hoards(usize);

#[async_trait]
impl Enrich for Hoards {
    async fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        attempt: &Attempt,
    ) -> Result<Enriched, StageError> {
        let enriched = Data.enrich(event, known, attempt).await?;
        let state = vec![0; self.0].into();
        let settle = enriched.settle.map(|settle| Checkpoint { state, ..settle });
        Ok(Enriched { settle, ..enriched })
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_stage_remembers_of_an_object_is_bounded_and_more_is_parked() {
    for (bytes, written, parked) in [(64 << 10, 1, vec![]), ((64 << 10) + 1, 0, vec![Reason::TooLarge])] {
        let (bus, kept) = on::bus();
        let (api, journal) = (Arc::new(Api::new()), Journal::default());
        api.put("one", "a");
        let route = route("archive", Match::default(), &journal, Ledger::memory(), one_shard());
        let pipeline = pipeline_of(&api, Arc::new(Hoards(bytes)), vec![route]);
        let reporter = Reporter::of(pipeline, one_shard(), api, journal, bus);
        let done = |it: &Reporter| {
            let total = it.handle.status().total();
            total.observed == 1 && total.held() == 0
        };
        reporter.until("done", done).await;
        let found: Vec<_> = reporter.handle.parked().await.into_iter().map(|(_, it)| it.reason).collect();
        assert_eq!((reporter.written(), found), (written, parked), "{bytes}");
        reporter.end().await;
        kept.end();
    }
}
