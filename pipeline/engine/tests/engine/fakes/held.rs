//! What a receiver that compares remembers: the last key of every entity.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pipeline_core::{
    Compared, EntityId, Key, OTHERS_AT_ONCE, ObjectDigest, Others, OthersQuestion, Reason, ShardDigest,
    Shipment, StageError, Uid,
};
use sha2::Digest as _;

/// How a receiver answers when it is asked what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Compares {
    #[default]
    No,
    Yes,
    /// What it is asked about; what it holds beside that it does not say.
    NamedAlone,
    /// And fails when it is asked what it holds beside that.
    FailsOfOthers,
    Fails,
    Refuses,
    NeverAnswers,
}

#[derive(Default)]
struct Inside {
    compares: Compares,
    keys: BTreeMap<Key, BTreeMap<EntityId, u128>>,
    uids: BTreeMap<Key, Uid>,
    pages: Vec<usize>,
    questions: Vec<OthersQuestion>,
}

/// Shared by all clones.
#[derive(Clone, Default)]
pub(crate) struct TakenReports {
    inside: Arc<Mutex<Inside>>,
    /// Digests that came.
    pub(crate) digests: Arc<Mutex<Vec<ShardDigest>>>,
}

impl TakenReports {
    pub(crate) fn compares(&self, how: Compares) {
        self.inside.lock().unwrap().compares = how;
    }

    /// Remembers a report that was taken.
    pub(crate) fn take(&self, shipment: &Shipment) {
        let report = &shipment.report;
        let inside = &mut *self.inside.lock().unwrap();
        let keys = &mut inside.keys;
        if report.ends {
            keys.remove(&report.key);
            return;
        }
        inside.uids.insert(report.key.clone(), report.uid.clone());
        let full = sha2::Sha256::digest(shipment.idempotency_key.as_bytes());
        let first: [u8; 16] = full[..16].try_into().unwrap();
        keys.entry(report.key.clone()).or_default().insert(report.entity, u128::from_be_bytes(first));
    }

    /// It is restored: it holds this life of an object again.
    pub(crate) fn restore(&self, key: &Key, uid: &str) {
        let mut inside = self.inside.lock().unwrap();
        inside.keys.insert(key.clone(), BTreeMap::from([(EntityId::OBJECT, 1)]));
        inside.uids.insert(key.clone(), uid.into());
    }

    /// What it was asked to name beside what is known, each time.
    pub(crate) fn questions(&self) -> Vec<OthersQuestion> {
        self.inside.lock().unwrap().questions.clone()
    }

    /// Something goes wrong at the receiver: it remembers an entity otherwise.
    pub(crate) fn spoil(&self, key: &Key, entity: EntityId) {
        *self.inside.lock().unwrap().keys.get_mut(key).unwrap().get_mut(&entity).unwrap() ^= 1;
    }

    /// How many objects it was asked about, each time.
    pub(crate) fn pages(&self) -> Vec<usize> {
        self.inside.lock().unwrap().pages.clone()
    }

    async fn ready(&self) -> Result<bool, StageError> {
        let compares = self.inside.lock().unwrap().compares;
        match compares {
            Compares::No => Ok(false),
            Compares::Yes | Compares::NamedAlone | Compares::FailsOfOthers => Ok(true),
            Compares::Fails => Err(StageError::retry(Reason::ServerError, "it is broken")),
            Compares::Refuses => Err(StageError::reject(Reason::Refused, "it takes no such question")),
            Compares::NeverAnswers => {
                tokio::time::sleep(Duration::from_secs(1_000_000)).await;
                Ok(false)
            }
        }
    }

    /// Compares a shard; all that is held is of that shard.
    pub(crate) async fn digest(&self, digest: &ShardDigest) -> Result<Compared, StageError> {
        self.digests.lock().unwrap().push(digest.clone());
        if !self.ready().await? {
            return Ok(Compared::Unknown);
        }
        let inside = self.inside.lock().unwrap();
        let all = || inside.keys.values().flat_map(BTreeMap::values);
        let same = digest.digest == all().fold(0, |sum, key| sum ^ key)
            && digest.entities == all().count() as u64
            && digest.objects == inside.keys.len() as u64;
        Ok(if same { Compared::Equal } else { Compared::Differs })
    }

    pub(crate) async fn differing(&self, objects: &[ObjectDigest]) -> Result<Option<Vec<Key>>, StageError> {
        self.inside.lock().unwrap().pages.push(objects.len());
        if !self.ready().await? {
            return Ok(None);
        }
        let inside = self.inside.lock().unwrap();
        let none = BTreeMap::new();
        let differs = |asked: &&ObjectDigest| {
            let held = inside.keys.get(&asked.key).unwrap_or(&none);
            held.len() as u64 != asked.entities || held.values().fold(0, |sum, key| sum ^ key) != asked.digest
        };
        Ok(Some(objects.iter().filter(differs).map(|asked| asked.key.clone()).collect()))
    }

    /// All shards are asked about.
    pub(crate) async fn others(&self, question: &OthersQuestion) -> Result<Option<Others>, StageError> {
        self.inside.lock().unwrap().questions.push(question.clone());
        if !self.ready().await? {
            return Ok(None);
        }
        let inside = self.inside.lock().unwrap();
        match inside.compares {
            Compares::NamedAlone => return Ok(None),
            Compares::FailsOfOthers => return Err(StageError::retry(Reason::ServerError, "it is broken")),
            _ => {}
        }
        let is_asked = |key: &&Key| {
            question.after.as_ref().is_none_or(|after| *key > after)
                && question.upto.as_ref().is_none_or(|upto| *key <= upto)
                && question.known.binary_search(key).is_err()
        };
        let all = inside.keys.keys().filter(is_asked).take(OTHERS_AT_ONCE);
        let held: Vec<_> = all.map(|key| (key.clone(), inside.uids[key].clone())).collect();
        let last = held.last().map(|(key, _)| key.clone());
        Ok(Some(Others { more_after: last.filter(|_| held.len() == OTHERS_AT_ONCE), held }))
    }
}
