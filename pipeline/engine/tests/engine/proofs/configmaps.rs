//! A reporter of ConfigMaps: a source, an enrichment and a sink, and nothing else.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pipeline_core::{
    Attempt, Cause, Change, Checkpoint, Digest, Emitter, Enrich, Enriched, Event, Filtered, Key, Reason,
    Record, Report, ReportKind, Shipment, Shutdown, Sink, Source, SourceNote, StageError, Timestamp, Version,
    async_trait,
};

use super::api::{Api, Object};

/// Lists and watches.
pub(super) struct ConfigMaps(pub(super) Arc<Api>);

fn event(key: &Key, object: &Object, deleted: bool, cause: Cause) -> Event {
    let (body, uid) = (object.data.clone().into(), object.uid.as_str().into());
    let change = if deleted { Change::Deleted { body: Some(body) } } else { Change::Applied { body } };
    let event = Event::watched(key.clone(), uid, Version(object.version), change, Timestamp::now());
    Event { cause, ..event }
}

#[async_trait]
impl Source for ConfigMaps {
    fn name(&self) -> &'static str {
        "configmaps"
    }

    async fn run(&self, out: Emitter, stop: Shutdown) -> Result<(), StageError> {
        let mut changes = self.0.watch();
        out.note(SourceNote::Listing);
        let (known, there) = (out.known().await, self.0.list());
        let listed: BTreeSet<&Key> = there.iter().map(|(key, _)| key).collect();
        for (key, uid, version) in known {
            if !listed.contains(&key) {
                let object = Object { uid: uid.to_string(), version: version.0, data: String::new() };
                let gone = Change::Deleted { body: None };
                out.emit(Event { change: gone, ..event(&key, &object, true, Cause::Watch) }).await;
            }
        }
        for (key, object) in &there {
            out.wait_for_capacity().await;
            out.emit(event(key, object, false, Cause::Watch)).await;
        }
        out.note(SourceNote::Listed { objects: there.len() });
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Ok((key, object, deleted)) = changes.recv() => {
                    out.emit(event(&key, &object, deleted, Cause::Watch)).await;
                }
            }
        }
    }

    async fn read(&self, key: &Key, _: Version) -> Result<Option<Event>, StageError> {
        Ok(self.0.get(key).map(|object| event(key, &object, false, Cause::Read)))
    }
}

const CONFIG_MAP: ReportKind = ReportKind::of_object("config_map");

/// Reports what a ConfigMap holds whenever that changed, and its end.
pub(super) struct Data;

#[async_trait]
impl Enrich for Data {
    async fn enrich(
        &self,
        event: &Event,
        known: Option<&Record>,
        _: &Attempt,
    ) -> Result<Enriched, StageError> {
        let known = known.filter(|known| known.uid == event.uid);
        let body = event.body().cloned().unwrap_or_default();
        let digest = Digest::of(&body);
        let report = Report::of_object(event, CONFIG_MAP, digest);
        let report = Report { ends: event.is_deleted(), body, ..report };
        if event.is_deleted() {
            return Ok(match known {
                Some(_) => Enriched { reports: vec![report], settle: None, filtered: None, refetch: None },
                None => Enriched::filtered(Filtered::NeverReported),
            });
        }
        let same = |known: &Record| known.object().decision == digest && !known.is_in_doubt();
        if known.is_some_and(|known| known.is_settled() && same(known)) {
            return Ok(Enriched::filtered(Filtered::Unchanged));
        }
        let settle = Checkpoint::new(event.uid.clone(), event.version, bytes::Bytes::new());
        Ok(Enriched { reports: vec![report], settle: Some(settle), filtered: None, refetch: None })
    }
}

/// What was written: of which key, what, and whether its life is over.
type Lines = Arc<Mutex<Vec<(Key, bytes::Bytes, bool)>>>;

/// Writes lines, while it is not down.
#[derive(Clone, Default)]
pub(super) struct Journal {
    pub(super) lines: Lines,
    pub(super) down: Arc<AtomicBool>,
}

#[async_trait]
impl Sink for Journal {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        let write = |Shipment { report, .. }: &Shipment| {
            if self.down.load(Ordering::SeqCst) {
                return Err(StageError::retry(Reason::Unreachable, "connection refused"));
            }
            self.lines.lock().unwrap().push((report.key.clone(), report.body.clone(), report.ends));
            Ok(())
        };
        shipments.iter().map(write).collect()
    }

    fn name(&self) -> &'static str {
        "journal"
    }
}
