//! A cluster that is read and watched, an enrichment that remembers what the ledger says, a sink that writes
//! down what came.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use pipeline_core::{
    Cause, Change, Digest, Emitter, Enrich, Enriched, Entity, EntityId, Event, Filtered, Key, Note, Reason,
    Record, Report, ReportKind, Sections, Settle, Shipment, Shutdown, Sink, Source, StageError, Stub,
    Timestamp, Turn, Uid, Version,
};
use tokio::sync::{Semaphore, broadcast};

pub(crate) fn key(name: &str) -> Key {
    Key::new("argocd", name).unwrap()
}

/// Objects by key: life and version. What is put here is watched.
#[derive(Clone)]
pub(crate) struct Cluster {
    objects: Arc<Mutex<BTreeMap<Key, (u32, u64)>>>,
    events: broadcast::Sender<Event>,
    pub(crate) reads: Arc<AtomicUsize>,
    pub(crate) reading: Arc<AtomicUsize>,
    pub(crate) most_reading: Arc<AtomicUsize>,
    pub(crate) runs: Arc<AtomicUsize>,
    /// How the source's runs end at once, first to last; later ones watch.
    pub(crate) failures: Arc<Mutex<Vec<Failure>>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Failure {
    Error,
    Panic,
    Return,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        Self {
            objects: Arc::default(),
            events: broadcast::channel(100_000).0,
            reads: Arc::default(),
            reading: Arc::default(),
            most_reading: Arc::default(),
            runs: Arc::default(),
            failures: Arc::default(),
        }
    }

    pub(crate) fn put(&self, name: &str, version: u64) {
        let key = key(name);
        let life = {
            let mut objects = self.objects.lock().unwrap();
            let object = objects.entry(key.clone()).or_insert((1, version));
            object.1 = version;
            object.0
        };
        // Without a watch there is only the list.
        let _ = self.events.send(event(&key, life, version));
    }

    pub(crate) fn delete_unwatched(&self, name: &str) {
        self.objects.lock().unwrap().remove(&key(name));
    }

    /// The watch repeats the newest state.
    pub(crate) fn repeat(&self, name: &str) {
        let key = key(name);
        let (life, version) = self.objects.lock().unwrap()[&key];
        self.events.send(event(&key, life, version)).unwrap();
    }
}

fn event(key: &Key, life: u32, version: u64) -> Event {
    Event {
        key: key.clone(),
        uid: format!("life-{life}").into(),
        version: Version(version),
        change: Change::Applied { body: Bytes::from_static(b"{\"kind\":\"Application\"}") },
        cause: Cause::Watch,
        observed: Timestamp::now(),
        operation: None,
        coalesced_ends: Vec::new(),
        trace: u128::from(version),
    }
}

impl Source for Cluster {
    const NAME: &'static str = "cluster";

    async fn run(&self, out: Emitter, stop: Shutdown) -> Result<(), StageError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let failure = {
            let mut failures = self.failures.lock().unwrap();
            if failures.is_empty() { None } else { Some(failures.remove(0)) }
        };
        match failure {
            Some(Failure::Error) => return Err(StageError::retry(Reason::Unreachable, "cannot list")),
            Some(Failure::Panic) => panic!("a bug in the source"),
            Some(Failure::Return) => return Ok(()),
            None => {}
        }
        let mut events = self.events.subscribe();
        out.note(Note::Listing);
        let objects = self.objects.lock().unwrap().clone();
        for (key, (life, version)) in &objects {
            if out.wants(key) {
                out.emit(event(key, *life, *version)).await;
            }
        }
        out.note(Note::Listed { objects: objects.len() });
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Ok(event) = events.recv() => {
                    if out.wants(&event.key) {
                        out.emit(event).await;
                    }
                }
            }
        }
    }

    async fn survey(&self) -> Result<Vec<(Key, Uid, Version)>, StageError> {
        let objects = self.objects.lock().unwrap().clone();
        let seen = |(key, (life, version))| (key, format!("life-{life}").into(), Version(version));
        Ok(objects.into_iter().map(seen).collect())
    }

    async fn read(&self, key: &Key, not_older_than: Version) -> Result<Option<Event>, StageError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let reading = self.reading.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_reading.fetch_max(reading, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.reading.fetch_sub(1, Ordering::SeqCst);
        let object = self.objects.lock().unwrap().get(key).copied();
        assert!(object.is_none_or(|(_, version)| version >= not_older_than.0));
        Ok(object.map(|(life, version)| event(key, life, version)))
    }
}

/// Reports the application and `resources` resources whenever the version moved; leaves out what the ledger
/// says was acknowledged.
#[derive(Clone, Default)]
pub(crate) struct Enricher {
    pub(crate) resources: u64,
    /// Applications whose enrichment panics that many times.
    pub(crate) panics: Arc<Mutex<BTreeMap<Key, u32>>>,
    /// Applications that owe something after their first report.
    pub(crate) owes: Arc<Mutex<BTreeSet<Key>>>,
    pub(crate) tries: Arc<Mutex<Vec<(Key, Cause, Duration)>>>,
}

impl Enrich for Enricher {
    const NAME: &'static str = "enricher";

    async fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        turn: &Turn,
    ) -> Result<Enriched, StageError> {
        self.tries.lock().unwrap().push((event.key.clone(), event.cause, turn.trying_for));
        tokio::time::sleep(Duration::from_millis(1)).await;
        let panics = match self.panics.lock().unwrap().get_mut(&event.key) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        };
        assert!(!panics, "a bug in the enrichment");
        let known = known.filter(|known| known.uid == event.uid);
        let owed = event.cause == Cause::Owed;
        if event.is_deleted() {
            return Ok(match known {
                Some(_) => {
                    let report = Report { ends: true, ..self.report(event, Entity::Application, 0) };
                    Enriched { reports: vec![report], settle: None, filtered: None, owed: None }
                }
                None => Enriched::filtered(Filtered::NeverReported),
            });
        }
        if !owed && known.is_some_and(|known| known.sections.is_some() && known.version >= event.version) {
            return Ok(Enriched::filtered(Filtered::Unchanged));
        }
        let first = std::iter::once(Entity::Application);
        let entities = first.chain((1..=self.resources).map(|id| Entity::Resource(EntityId(id))));
        let reports = entities.map(|entity| self.report(event, entity, u64::from(owed)));
        let content = |report: &Report| match (known, report.entity) {
            (None, _) => None,
            (Some(known), Entity::Application) => Some(known.content),
            (Some(known), Entity::Resource(id)) => known.resource(id).map(|row| row.content),
        };
        let owes = !owed && self.owes.lock().unwrap().contains(&event.key);
        let settle = Settle {
            uid: event.uid.clone(),
            version: event.version,
            sections: Sections::default(),
            healthy: true,
            operation: Digest::NONE,
            owed: owes,
            unsent: Vec::new(),
            present: (1..=self.resources).map(EntityId).collect(),
            stub: Stub::default(),
        };
        Ok(Enriched {
            reports: reports.filter(|report| content(report) != Some(report.content)).collect(),
            settle: Some(settle),
            filtered: None,
            owed: owes.then_some(Duration::from_secs(60)),
        })
    }
}

impl Enricher {
    fn report(&self, event: &Event, entity: Entity, extra: u64) -> Report {
        Report {
            key: event.key.clone(),
            uid: event.uid.clone(),
            version: event.version,
            entity,
            kind: if entity == Entity::Application { ReportKind::App } else { ReportKind::Resource },
            decision: Digest(event.version.0),
            content: Digest(event.version.0 * 2 + extra),
            owed: false,
            ends: false,
            body: Bytes::from_static(b"{}"),
            trace: event.trace,
        }
    }
}

/// One report that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) key: Key,
    pub(crate) entity: Entity,
    pub(crate) version: u64,
    pub(crate) ends: bool,
    pub(crate) idempotency_key: Arc<str>,
    pub(crate) accepted: bool,
}

type Answer = dyn Fn(&Report, usize) -> Result<(), StageError> + Send + Sync;

/// Reports on their way: entity and version, by application.
type Flying = BTreeMap<Key, Vec<(Entity, u64)>>;

/// Answers as it is told, after `delay`, and asserts that a key's rounds keep their order.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) came: Arc<Mutex<Vec<Came>>>,
    pub(crate) answer: Arc<Mutex<Arc<Answer>>>,
    pub(crate) delay: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// Reports wait here for a permit.
    pub(crate) gate: Arc<Semaphore>,
    flying: Arc<Mutex<Flying>>,
    pub(crate) most_flying: Arc<AtomicUsize>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self {
            came: Arc::default(),
            answer: Arc::new(Mutex::new(Arc::new(|_: &Report, _| Ok(())))),
            delay: Arc::new(|| Duration::from_millis(5)),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            flying: Arc::default(),
            most_flying: Arc::default(),
        }
    }

    /// Decides by the report and how many came before.
    pub(crate) fn answers(
        &self,
        answer: impl Fn(&Report, usize) -> Result<(), StageError> + Send + Sync + 'static,
    ) {
        *self.answer.lock().unwrap() = Arc::new(answer);
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap().clone()
    }

    /// The newest version that was accepted of each application itself.
    pub(crate) fn newest(&self) -> BTreeMap<Key, u64> {
        let came = self.came();
        let accepted = came.iter().filter(|came| came.accepted && came.entity == Entity::Application);
        accepted.map(|came| (came.key.clone(), came.version)).collect()
    }
}

impl Sink for Receiver {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        let mut answers = Vec::new();
        for Shipment { report, idempotency_key } in shipments {
            {
                let mut flying = self.flying.lock().unwrap();
                let others = flying.entry(report.key.clone()).or_default();
                assert!(others.iter().all(|(_, version)| *version == report.version.0), "rounds overlap");
                let alone = |entity: &Entity| *entity == Entity::Application;
                let beside = others.iter().any(|(entity, _)| alone(entity) || alone(&report.entity));
                assert!(!beside, "an application's report goes alone");
                others.push((report.entity, report.version.0));
                self.most_flying.fetch_max(others.len(), Ordering::SeqCst);
            }
            self.gate.acquire().await.unwrap().forget();
            tokio::time::sleep((self.delay)()).await;
            let number = self.came.lock().unwrap().len();
            let answer = self.answer.lock().unwrap().clone();
            let answer = answer(report, number);
            self.came.lock().unwrap().push(Came {
                key: report.key.clone(),
                entity: report.entity,
                version: report.version.0,
                ends: report.ends,
                idempotency_key: idempotency_key.clone(),
                accepted: answer.is_ok(),
            });
            let mut flying = self.flying.lock().unwrap();
            flying.get_mut(&report.key).unwrap().retain(|(entity, _)| *entity != report.entity);
            drop(flying);
            answers.push(answer);
        }
        answers
    }

    fn name(&self) -> &'static str {
        "receiver"
    }
}
