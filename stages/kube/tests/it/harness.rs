//! Runs the watch against the fake and collects what it gives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pipeline_core::{
    Emitter, Event, Key, Meter, ObjectIndex, Progress, Remembered, Sample, Shutdown, Source as _, SourceNote,
    StageError, Version,
};
use serde::Deserialize;
use stages_kube::{Cluster, Config, Deps, Kind, Mapping, Watch};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Nothing in these tests takes that long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Shorter than anything that a watch waits for by itself: the minute of a call, or what a server asks for.
const QUICKLY: Duration = Duration::from_secs(30);

#[derive(Clone, Default)]
pub(crate) struct Samples(pub(crate) Arc<Mutex<Vec<Sample>>>);

impl Meter for Samples {
    fn record(&self, sample: Sample) {
        self.0.lock().unwrap().push(sample);
    }
}

/// What these tests watch, to the API server.
pub(crate) const WIDGETS: Kind =
    Kind { group: "example.org", version: "v1", plural: "widgets", singular: "widget" };

/// The kind of objects that these tests watch.
pub(crate) struct Widgets;

/// What is read of a widget's status.
#[derive(Deserialize)]
pub(crate) struct Status {
    #[serde(default)]
    trace: u128,
    #[serde(default)]
    loose: bool,
}

impl Mapping for Widgets {
    type Status = Status;

    fn kind(&self) -> Kind {
        WIDGETS
    }

    fn event(&self, event: Event, status: Option<&Status>) -> Event {
        let trace = status.map_or(event.trace, |status| status.trace);
        Event { trace, ..event }
    }

    fn may_drift(&self, status: Option<&Status>) -> bool {
        status.is_some_and(|status| status.loose)
    }
}

/// The namespace `home` alone, in the cluster that is usual.
pub(crate) fn usual() -> Config {
    Config::new(Cluster::Infer, "home".to_owned(), Vec::new(), 100)
}

pub(crate) fn config(address: std::net::SocketAddr) -> Config {
    Config {
        cluster: Cluster::Server {
            url: format!("http://{address}"),
            token: None,
            token_file: None,
            ca_file: None,
        },
        backoff_min: Duration::from_millis(5),
        backoff_max: Duration::from_millis(20),
        ..usual()
    }
}

pub(crate) async fn build(config: Config) -> (Watch<Widgets>, ObjectIndex, Samples) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (seen, samples) = (ObjectIndex::default(), Samples::default());
    let deps = Deps { seen: seen.clone(), meter: Arc::new(samples.clone()), unwatched: None };
    (config.build(Widgets, deps).await.unwrap(), seen, samples)
}

pub(crate) struct Run {
    pub(crate) watch: Arc<Watch<Widgets>>,
    pub(crate) seen: ObjectIndex,
    pub(crate) samples: Samples,
    /// How many events had been emitted each time a list asked whether it may go on.
    pub(crate) paced: Arc<Mutex<Vec<u64>>>,
    pub(crate) stop: Shutdown,
    events: mpsc::Receiver<Event>,
    notes: mpsc::UnboundedReceiver<SourceNote>,
    task: JoinHandle<Result<(), StageError>>,
}

impl Run {
    pub(crate) async fn start(config: Config) -> Self {
        Self::with(config, &[], |_| true).await
    }

    /// `known` is what the ledger knew; `wants` what this process owns.
    pub(crate) async fn with(
        config: Config,
        known: &[(&str, &str)],
        wants: impl Fn(&Key) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::of(config, known.iter().map(|(key, uid)| (*key, *uid, 0)), wants, None).await
    }

    /// The ledger remembers these versions.
    pub(crate) async fn remembering(config: Config, known: &[(&str, &str, u64)]) -> Self {
        Self::of(config, known.iter().copied(), |_| true, None).await
    }

    /// A former process came as far as this.
    pub(crate) async fn resuming(
        config: Config,
        known: &[(&str, &str, u64)],
        progress: Arc<dyn Progress>,
    ) -> Self {
        Self::of(config, known.iter().copied(), |_| true, Some(progress)).await
    }

    async fn of<'a>(
        config: Config,
        known: impl Iterator<Item = (&'a str, &'a str, u64)>,
        wants: impl Fn(&Key) -> bool + Send + Sync + 'static,
        progress: Option<Arc<dyn Progress>>,
    ) -> Self {
        let (watch, seen, samples) = build(config).await;
        let (to_shard, events) = mpsc::channel(10_000);
        let (to_notes, notes) = mpsc::unbounded_channel();
        let out = Emitter::new(
            wants,
            move |event| {
                let to_shard = to_shard.clone();
                Box::pin(async move { to_shard.send(event).await.is_ok() })
            },
            move |note| {
                let _ = to_notes.send(note);
            },
        );
        let known: Vec<_> = known.map(remembered).collect();
        let out = out.progressing(progress);
        let out = out.knowing(move || std::future::ready(known.clone()));
        let paced: Arc<Mutex<Vec<u64>>> = Arc::default();
        let asked = paced.clone();
        let out = out.paced(move |emitted| {
            asked.lock().unwrap().push(emitted);
            std::future::ready(())
        });
        let stop = Shutdown::new();
        let watch = Arc::new(watch);
        let (stopped, running) = (stop.clone(), watch.clone());
        let task = tokio::spawn(async move { running.run(out, stopped).await });
        Self { watch, seen, samples, paced, stop, events, notes, task }
    }

    pub(crate) async fn event(&mut self) -> Event {
        tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("an event in time").expect("an event")
    }

    /// The next event as `ns/name uid version`, `-` before a deletion, `(gone)` after one without a body.
    pub(crate) async fn next(&mut self) -> String {
        brief(&self.event().await)
    }

    /// The events that are there already.
    pub(crate) fn waiting(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.events.try_recv().ok()).map(|event| brief(&event)).collect()
    }

    /// Waits for a note, and returns it and all before it.
    pub(crate) async fn until(&mut self, wanted: impl Fn(SourceNote) -> bool) -> Vec<SourceNote> {
        let mut passed = Vec::new();
        loop {
            let note = tokio::time::timeout(PATIENCE, self.notes.recv()).await;
            let note = note.unwrap_or_else(|_| panic!("no such note after {passed:?}")).expect("a note");
            passed.push(note);
            if wanted(note) {
                return passed;
            }
        }
    }

    pub(crate) async fn listed(&mut self) -> usize {
        match self.until(|note| matches!(note, SourceNote::Listed { .. })).await.pop() {
            Some(SourceNote::Listed { objects }) => objects,
            _ => unreachable!(),
        }
    }

    /// What came until a list is complete, as deletions and the rest.
    pub(crate) async fn until_listed(&mut self) -> (Vec<SourceNote>, Vec<String>, Vec<String>) {
        let notes = self.until(|note| matches!(note, SourceNote::Listed { .. })).await;
        let (deleted, there) = self.waiting().into_iter().partition(|event| event.starts_with('-'));
        (notes, deleted, there)
    }

    /// Stops the watch and waits for its end.
    pub(crate) async fn finish(self) -> Result<(), StageError> {
        self.stop.cancel();
        tokio::time::timeout(QUICKLY, self.task).await.expect("it stops quickly").unwrap()
    }

    /// Lets everything that takes events go, as a process that stops does.
    pub(crate) async fn nobody_listens(self) -> Result<(), StageError> {
        drop(self.events);
        tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap()
    }
}

/// What a ledger remembers of one application.
pub(crate) fn remembered((key, uid, version): (&str, &str, u64)) -> Remembered {
    (Key::parse(key).unwrap(), uid.into(), Version(version))
}

pub(crate) fn brief(event: &Event) -> String {
    let (before, after) = match (event.is_deleted(), event.body().is_some()) {
        (false, _) => ("", ""),
        (true, true) => ("-", ""),
        (true, false) => ("-", " (gone)"),
    };
    format!("{before}{} {} {}{after}", event.key, event.uid, event.version.0)
}
