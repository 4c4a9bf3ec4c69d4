//! A sink that writes down what came.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pipeline_core::{
    Compared, EntityId, Key, ObjectDigest, Others, OthersQuestion, Report, ShardDigest, Shipment, Sink,
    StageError, async_trait,
};
use tokio::sync::{Notify, Semaphore};

use super::held::TakenReports;

/// One report that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) key: Key,
    pub(crate) entity: EntityId,
    pub(crate) version: u64,
    pub(crate) ends: bool,
    pub(crate) idempotency_key: Arc<str>,
    pub(crate) accepted: bool,
    /// The body.
    pub(crate) told: String,
}

type Answer = dyn Fn(&Report, usize) -> Result<(), StageError> + Send + Sync;

/// Reports on their way: entity and version, by object.
type Flying = BTreeMap<Key, Vec<(EntityId, u64)>>;

/// Answers as it is told, after `delay`, and asserts that a key's deliveries keep their order.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) came: Arc<Mutex<Vec<Came>>>,
    pub(crate) answer: Arc<Mutex<Arc<Answer>>>,
    pub(crate) delay: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// Reports wait here for a permit.
    pub(crate) gate: Arc<Semaphore>,
    flying: Arc<Mutex<Flying>>,
    /// The most that one object had under way.
    pub(crate) most_flying: Arc<AtomicUsize>,
    /// The most that all had.
    pub(crate) most_of_all: Arc<AtomicUsize>,
    /// Tells that the token has changed.
    pub(crate) credentials: Arc<Notify>,
    /// What it remembers for comparing.
    pub(crate) held: TakenReports,
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
            most_of_all: Arc::default(),
            credentials: Arc::default(),
            held: TakenReports::default(),
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

    /// Reports that were sent and are not answered.
    pub(crate) fn unanswered(&self) -> usize {
        self.flying.lock().unwrap().values().map(Vec::len).sum()
    }

    /// The newest version that was accepted of each object itself.
    pub(crate) fn newest(&self) -> BTreeMap<Key, u64> {
        let came = self.came();
        let accepted = came.iter().filter(|came| came.accepted && came.entity == EntityId::OBJECT);
        accepted.map(|came| (came.key.clone(), came.version)).collect()
    }
}

#[async_trait]
impl Sink for Receiver {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        let mut answers = Vec::new();
        for shipment @ Shipment { report, idempotency_key, .. } in shipments {
            {
                let mut flying = self.flying.lock().unwrap();
                let others = flying.entry(report.key.clone()).or_default();
                assert!(others.iter().all(|(_, version)| *version == report.version.0), "deliveries overlap");
                let alone = |entity: &EntityId| *entity == EntityId::OBJECT;
                let beside = others.iter().any(|(entity, _)| alone(entity) || alone(&report.entity));
                assert!(!beside, "an object's report goes alone");
                others.push((report.entity, report.version.0));
                self.most_flying.fetch_max(others.len(), Ordering::SeqCst);
                self.most_of_all.fetch_max(flying.values().map(Vec::len).sum(), Ordering::SeqCst);
            }
            self.gate.acquire().await.unwrap().forget();
            tokio::time::sleep((self.delay)()).await;
            let number = self.came.lock().unwrap().len();
            let answer = self.answer.lock().unwrap().clone();
            let answer = answer(report, number);
            if answer.is_ok() {
                self.held.take(shipment);
            }
            self.came.lock().unwrap().push(Came {
                key: report.key.clone(),
                entity: report.entity,
                version: report.version.0,
                ends: report.ends,
                idempotency_key: idempotency_key.clone(),
                accepted: answer.is_ok(),
                told: String::from_utf8(report.body.to_vec()).unwrap(),
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

    async fn credentials_changed(&self) {
        self.credentials.notified().await;
    }

    async fn digest(&self, digest: &ShardDigest) -> Result<Compared, StageError> {
        self.held.digest(digest).await
    }

    async fn differing(&self, objects: &[ObjectDigest]) -> Result<Option<Vec<Key>>, StageError> {
        self.held.differing(objects).await
    }

    async fn others(&self, question: &OthersQuestion) -> Result<Option<Others>, StageError> {
        self.held.others(question).await
    }
}
