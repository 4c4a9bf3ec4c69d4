//! A cluster that is read and watched.

use pipeline_core::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use pipeline_core::{
    Change, Emitter, Event, Fact, Key, Reason, Remembered, Shutdown, Source, SourceNote, StageError, Survey,
    SurveyResult, Surveyed, Timestamp, Uid, Version, async_trait,
};
use tokio::sync::broadcast;

use super::key;
use crate::on;

/// One object. Its body is the number that stands for what is reported of it.
#[derive(Clone)]
struct Object {
    life: u32,
    version: u64,
    content: u64,
    operation: Option<Fact>,
    padded: usize,
}

impl Object {
    /// No two lives share one, of whatever names they are.
    fn uid(&self, key: &Key) -> Uid {
        format!("{}-{}", key.name(), self.life).into()
    }
}

/// Objects by key. What is put here is watched.
#[derive(Clone)]
pub(crate) struct Cluster {
    objects: Arc<Mutex<BTreeMap<Key, Object>>>,
    events: broadcast::Sender<Event>,
    pub(crate) reads: Arc<AtomicUsize>,
    pub(crate) reading: Arc<AtomicUsize>,
    pub(crate) most_reading: Arc<AtomicUsize>,
    pub(crate) runs: Arc<AtomicUsize>,
    pub(crate) surveys: Arc<AtomicUsize>,
    /// Bodies have this many bytes at least.
    pub(crate) padded: Arc<AtomicUsize>,
    /// Since the last repetition.
    changed: Arc<AtomicBool>,
    /// How the source's runs end at once, first to last; later ones watch.
    pub(crate) failures: Arc<Mutex<Vec<Failure>>>,
    /// What is in a namespace that is not watched (any more).
    pub(crate) unwatched: Arc<Mutex<BTreeSet<Key>>>,
    /// What a list lacks although it is there.
    pub(crate) unlisted: Arc<Mutex<BTreeSet<Key>>>,
    /// The kinds that cannot be listed.
    pub(crate) unlisted_kinds: Arc<Mutex<BTreeSet<&'static str>>>,
    /// What cannot be read, and what makes a list fail if it is there.
    pub(crate) unreadable: Arc<Mutex<BTreeSet<Key>>>,
    /// What the ledger remembered when a watch began, and when a survey was asked for.
    pub(crate) known: Arc<[Mutex<Vec<Remembered>>; 2]>,
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
            surveys: Arc::default(),
            padded: Arc::default(),
            changed: Arc::default(),
            failures: Arc::default(),
            unwatched: Arc::default(),
            unlisted: Arc::default(),
            unlisted_kinds: Arc::default(),
            unreadable: Arc::default(),
            known: Arc::default(),
        }
    }

    /// Another state, with a content of its own.
    pub(crate) fn put(&self, name: &str, version: u64) {
        self.put_content(name, version, version * 2);
    }

    /// Another state; what is reported of it is told by `content`.
    pub(crate) fn put_content(&self, name: &str, version: u64, content: u64) {
        self.change(name, |object| {
            object.version = version;
            object.content = content;
        });
    }

    /// An operation ends at that second.
    pub(crate) fn finish(&self, name: &str, version: u64, second: u32) {
        let end = Fact { id: Digest(second.into()), body: format!("2024-03-01T10:00:{second:02}Z").into() };
        self.change(name, |object| {
            object.version = version;
            object.content = version * 2;
            object.operation = Some(end);
        });
    }

    /// The object goes, and the watch shows it.
    pub(crate) fn delete(&self, name: &str, version: u64) {
        let key = key(name);
        let mut object = self.objects.lock().unwrap().remove(&key).unwrap();
        object.version = version;
        let gone = Change::Deleted { body: Some(body(&object)) };
        self.events.send(Event { change: gone, ..event(&key, &object) }).unwrap();
    }

    /// An object of that name and life begins.
    pub(crate) fn begin(&self, name: &str, life: u32, version: u64) {
        let key = key(name);
        let object = Object { life, version, content: version * 2, operation: None, padded: 0 };
        // Without a watch there is only the list.
        let _ = self.events.send(event(&key, &object));
        self.objects.lock().unwrap().insert(key, object);
    }

    /// An object of that life and state is there, and no watch shows it.
    pub(crate) fn put_unwatched(&self, name: &str, life: u32, version: u64) {
        let object = Object { life, version, content: version * 2, operation: None, padded: 0 };
        self.objects.lock().unwrap().insert(key(name), object);
    }

    pub(crate) fn delete_unwatched(&self, name: &str) {
        self.objects.lock().unwrap().remove(&key(name));
    }

    /// The watch repeats the newest state.
    pub(crate) fn repeat(&self, name: &str) {
        if self.changed.swap(false, Ordering::SeqCst) {
            on::before_a_repeat();
        }
        let key = key(name);
        let object = self.objects.lock().unwrap()[&key].clone();
        self.events.send(event(&key, &object)).unwrap();
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Object)) {
        self.changed.store(true, Ordering::SeqCst);
        let key = key(name);
        let mut objects = self.objects.lock().unwrap();
        let new = || Object { life: 1, version: 0, content: 0, operation: None, padded: 0 };
        let object = objects.entry(key.clone()).or_insert_with(new);
        change(object);
        object.padded = self.padded.load(Ordering::SeqCst);
        // Without a watch there is only the list.
        let _ = self.events.send(event(&key, object));
    }
}

fn body(object: &Object) -> Bytes {
    let digits = object.content.to_string();
    let zeros = "0".repeat(object.padded.saturating_sub(digits.len()));
    (zeros + &digits).into()
}

fn event(key: &Key, object: &Object) -> Event {
    let (version, change) = (Version(object.version), Change::Applied { body: body(object) });
    let event = Event::watched(key.clone(), object.uid(key), version, change, Timestamp::now());
    Event { fact: object.operation.clone(), trace: u128::from(object.version), ..event }
}

#[async_trait]
impl Source for Cluster {
    fn name(&self) -> &'static str {
        "cluster"
    }

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
        out.note(SourceNote::Listing);
        let known = out.known().await;
        *self.known[0].lock().unwrap() = known;
        let objects = self.objects.lock().unwrap().clone();
        for (key, object) in &objects {
            if out.wants(key) {
                out.emit(event(key, object)).await;
            }
        }
        out.note(SourceNote::Listed { objects: objects.len() });
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

    fn as_survey(&self) -> Option<&dyn Survey> {
        Some(self)
    }

    async fn read(&self, key: &Key, not_older_than: Version) -> Result<Option<Event>, StageError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let reading = self.reading.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_reading.fetch_max(reading, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.reading.fetch_sub(1, Ordering::SeqCst);
        if self.unreadable.lock().unwrap().contains(key) {
            return Err(StageError::retry(Reason::Forbidden, "no right to read it"));
        }
        let object = self.objects.lock().unwrap().get(key).cloned();
        assert!(object.as_ref().is_none_or(|object| object.version >= not_older_than.0));
        Ok(object.map(|object| event(key, &object)))
    }
}

#[async_trait]
impl Survey for Cluster {
    fn watches(&self, key: &Key) -> bool {
        !self.unwatched.lock().unwrap().contains(key)
    }

    async fn survey(&self, known: Vec<Remembered>) -> Result<SurveyResult, StageError> {
        *self.known[1].lock().unwrap() = known;
        self.surveys.fetch_add(1, Ordering::SeqCst);
        let mut objects = self.objects.lock().unwrap().clone();
        if objects.keys().any(|key| self.unreadable.lock().unwrap().contains(key)) {
            return Err(StageError::retry(Reason::CutShort, "the list broke off"));
        }
        objects.retain(|key, _| !self.unlisted.lock().unwrap().contains(key));
        let unlisted = self.unlisted_kinds.lock().unwrap().clone();
        objects.retain(|key, _| !unlisted.contains(key.kind()));
        let seen = |(key, object): (_, Object)| {
            let uid = object.uid(&key);
            Surveyed { key, uid, version: Version(object.version), may_drift: false }
        };
        Ok(SurveyResult { objects: objects.into_iter().map(seen).collect(), unlisted })
    }
}
