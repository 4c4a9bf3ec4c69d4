//! One verification, from the list to what is still different in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use pipeline_core::{Key, Reason, Record, StageError, Survey, SurveyResult, Surveyed, Uid, Version};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::compare::{Difference, acknowledged, difference, is_whole};
use super::others::{Beside, Known};
use super::{Found, Progress, Time, Verified, VerifyError, VerifyOptions, VerifyResult};
use crate::run::Handle;
use crate::shard::Shared;

/// Objects that a receiver is asked about at a time.
const PAGE: usize = 500;
/// Objects that are read at a time, beside what the shards read.
const READS: usize = 16;
/// So many take this long at least: an API server is not asked more than 400 times a second.
const PACE: Duration = Duration::from_millis(40);
/// What is under way gets so long to come to rest before it is judged.
pub(super) const REST: Duration = Duration::from_secs(30);
/// Between two looks at an object that is busy.
const LOOK: Duration = Duration::from_millis(50);
/// A receiver answers a page within this time.
const ASK: Duration = Duration::from_secs(30);
/// Records compared before something else gets its turn.
const BATCH: usize = 256;

/// What a list said of each object.
pub(super) type Listed = BTreeMap<Key, Surveyed>;

/// One verification.
pub(super) struct Check<'a> {
    pub(super) shared: &'a Shared,
    pub(super) handle: &'a Handle,
    pub(super) options: VerifyOptions,
    progress: &'a watch::Sender<Option<Progress>>,
    time: Time,
}

/// How busy an object's lane is with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Nothing of it is under way.
    Rests,
    /// It is queued, read, reported, or tried again.
    Busy,
    /// Nothing is under way: it was refused for good.
    Parked,
}

/// What was found, each object once, but for those of the receiver.
#[derive(Debug, Default)]
pub(super) struct Findings {
    missing: BTreeSet<Key>,
    recreated: BTreeSet<Key>,
    gone: BTreeSet<Key>,
    newer: BTreeSet<Key>,
    may_drift: BTreeSet<Key>,
    parked: BTreeSet<Key>,
    pub(super) unread: BTreeSet<Key>,
    busy: BTreeSet<Key>,
}

impl Findings {
    /// What is certainly different.
    fn different(&self) -> BTreeSet<Key> {
        [&self.missing, &self.recreated, &self.gone].into_iter().flatten().cloned().collect()
    }

    pub(super) fn add(&mut self, key: Key, what: Difference) {
        let set = match what {
            Difference::Missing => &mut self.missing,
            Difference::Recreated => &mut self.recreated,
            Difference::Unlisted => &mut self.gone,
            Difference::Newer => &mut self.newer,
            Difference::MayDrift => &mut self.may_drift,
        };
        set.insert(key);
    }
}

/// What the receiver said.
#[derive(Debug, Default)]
struct Receiver {
    /// What it holds otherwise; `None` when it does not compare, or did not answer.
    differs: Option<BTreeSet<Key>>,
    failed: Option<&'static str>,
}

impl<'a> Check<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        handle: &'a Handle,
        options: VerifyOptions,
        progress: &'a watch::Sender<Option<Progress>>,
    ) -> Self {
        Self { shared, handle, options, progress, time: Time::new(options.seconds) }
    }

    pub(super) async fn run(self) -> VerifyResult {
        self.say("listing", 0, 0);
        let source = self.shared.source.as_survey().ok_or(VerifyError::Unlisted)?;
        let late = |_| StageError::retry(Reason::Timeout, "the list took longer than the verification may");
        let listed = timeout_at(self.time.deadline, self.survey(source)).await;
        let (listed, others_unknown) = listed.map_err(late).flatten().map_err(VerifyError::Survey)?;
        let SurveyResult { objects, unlisted } = listed;
        // Of what is not watched, or of a kind that could not be listed, no list says anything.
        let ours =
            |key: &Key| self.handle.owns(key) && self.shared.watches(key) && !unlisted.contains(key.kind());
        let owned = objects.into_iter().filter(|listed| ours(&listed.key));
        let listed: Listed = owned.map(|listed| (listed.key.clone(), listed)).collect();
        let known = self.shared.ledger.known().into_iter().map(|(key, _)| key);
        let known: BTreeSet<Key> = known.filter(ours).collect();

        let mut found = self.compare(&listed, &known).await;
        let receiver = self.ask(&known, &mut found).await;
        let differs = receiver.differs.clone().unwrap_or_default();
        // What a list did not show whole may be there, and what another process knows is not unknown.
        let is_complete = unlisted.is_empty() && !others_unknown && source.watches_kind("");
        let asked = (receiver.differs.is_some() && is_complete).then(|| Known::new(&listed, &known));
        let beside = match &asked {
            Some(known) => self.beside(&listed, known, &mut found).await,
            None => Beside::default(),
        };
        let ended = self.to_tell(beside.ended.clone().unwrap_or_default(), listed.len().max(known.len()));
        let mut verified = Verified {
            dry: self.options.dry,
            objects: listed.len(),
            acknowledged: known.len(),
            missing: Found::of(&found.missing),
            recreated: Found::of(&found.recreated),
            gone: Found::of(&found.gone),
            newer: Found::of(&found.newer),
            receiver_differs: receiver.differs.as_ref().map(Found::of),
            receiver_others: beside.ended.as_ref().map(|ended| Found::of(ended.keys())),
            receiver_failed: receiver.failed.or(beside.failed).map(str::to_owned),
            others_unknown,
            unlisted: unlisted.iter().map(|kind| (*kind).to_owned()).collect(),
            ..Verified::default()
        };
        let mut still: BTreeSet<Key> =
            found.different().union(&differs).chain(ended.keys()).cloned().collect();
        if !self.options.dry {
            let mut keys: BTreeSet<Key> = still.union(&found.newer).cloned().collect();
            verified.repaired = keys.len();
            let may_drift: BTreeSet<Key> = found.may_drift.difference(&keys).cloned().collect();
            keys.extend(may_drift.iter().cloned());
            let reports = self.repair(&keys, &differs, &ended, &mut found).await;
            let drifted = |key: &&Key| reports.get(*key).is_some_and(|reports| *reports > 0);
            let drifted: BTreeSet<Key> = may_drift.iter().filter(drifted).cloned().collect();
            verified.repaired += drifted.len();
            verified.drifted = Found::of(&drifted);
            verified.reports = reports.values().sum();
            still = self.compare_again(&keys, &differs, &ended, &mut found, &mut verified).await;
            if let Some(known) = &asked {
                still.extend(self.held_still((&listed, known), &ended, &mut verified).await);
            }
        }
        verified.parked = Found::of(&found.parked);
        verified.unread = Found::of(&found.unread);
        verified.still_different = Found::of(&still);
        verified.unfinished = Found::of(&found.busy);
        verified.seconds = self.time.begun.elapsed().as_secs_f64();
        Ok(verified)
    }

    /// A list, measured by what the ledger remembered before: of all shards, where the bus answers, and of this process's own
    /// at least, since these are what is compared. Gives whether it was by its own alone.
    async fn survey(&self, source: &dyn Survey) -> Result<(SurveyResult, bool), StageError> {
        let ledger = &self.shared.ledger;
        let (known, others_unknown) = match ledger.remembered_by_all().await {
            Ok(known) => (known, false),
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    error,
                    "cannot read what other shards remember: verifying by this process's own"
                );
                (ledger.remembered(), true)
            }
        };
        Ok((source.survey(known).await?, others_unknown))
    }

    /// Lays the list beside the ledger; what seems to differ is judged once nothing of it is under way any more.
    async fn compare(&self, listed: &Listed, known: &BTreeSet<Key>) -> Findings {
        let all: BTreeSet<&Key> = listed.keys().chain(known).collect();
        let mut seem = Vec::new();
        for (done, key) in all.iter().enumerate() {
            if done % BATCH == 0 {
                self.say("comparing", done, all.len());
                tokio::task::yield_now().await;
            }
            if self.differs(key, listed.get(*key)).is_some() {
                seem.push(Key::clone(key));
            }
        }
        let mut found = Findings::default();
        let resting = self.rest(seem, Instant::now() + REST, &mut found).await;
        let mut sure = Vec::new();
        for key in resting {
            match self.differs(&key, listed.get(&key)) {
                None => {}
                Some(Difference::MayDrift) if !self.options.drift => {}
                // Read again in any case, when it is repaired.
                Some(what @ (Difference::Newer | Difference::MayDrift)) => found.add(key, what),
                Some(_) => sure.push(key),
            }
        }
        self.read(sure, "comparing", &mut found).await;
        found
    }

    pub(super) fn differs(&self, key: &Key, listed: Option<&Surveyed>) -> Option<Difference> {
        difference(listed, self.shared.ledger.get(key).as_ref())
    }

    /// Compares with what is in the cluster now, since the list is of a moment that is past.
    async fn read(&self, keys: Vec<Key>, step: &'static str, found: &mut Findings) {
        let compare = |key: &Key, now: Option<Surveyed>, found: &mut Findings| {
            if let Some(differs) = self.differs(key, now.as_ref()) {
                found.add(key.clone(), differs);
            }
        };
        self.look(keys, step, found, compare).await;
    }

    /// Reads objects, and gives what is in the cluster now of each to `then`: of those that are not there, and of those that are and
    /// are the route's. What there is no time for is left unread.
    pub(super) async fn look(
        &self,
        keys: Vec<Key>,
        step: &'static str,
        found: &mut Findings,
        mut then: impl FnMut(&Key, Option<Surveyed>, &mut Findings),
    ) {
        let deadline = self.time.deadline;
        for (page, some) in keys.chunks(READS).enumerate() {
            self.say(step, page * READS, keys.len());
            let paced = deadline.min(Instant::now() + PACE);
            let reads = some.iter().map(|key| timeout_at(deadline, self.shared.source.read(key, Version(0))));
            let late = Instant::now() >= deadline;
            let reads = if late { Vec::new() } else { join_all(reads).await };
            let mut reads = reads.into_iter();
            for key in some {
                let now = match reads.next() {
                    // It may be read for its labels alone.
                    Some(Ok(Ok(Some(event)))) if !self.shared.takes(&event) => continue,
                    Some(Ok(Ok(event))) => event.map(|event| Surveyed {
                        key: event.key.clone(),
                        uid: event.uid.clone(),
                        version: event.version,
                        // Of what was read one by one, that it is there and in which state is asked.
                        may_drift: false,
                    }),
                    Some(Ok(Err(error))) => {
                        let error: &dyn std::error::Error = &error;
                        tracing::debug!(%key, error, "cannot read an object to verify it");
                        found.unread.insert(key.clone());
                        continue;
                    }
                    Some(Err(_)) | None => {
                        found.unread.insert(key.clone());
                        continue;
                    }
                };
                then(key, now, found);
            }
            if !late {
                sleep_until(paced).await;
            }
        }
    }

    /// Waits until nothing of the objects is under way, and gives those; what is parked, or busy at `until`
    /// still, is a finding of its own.
    pub(super) async fn rest(&self, keys: Vec<Key>, until: Instant, found: &mut Findings) -> Vec<Key> {
        let until = until.min(self.time.deadline);
        let mut resting = Vec::new();
        for key in keys {
            loop {
                match self.activity(&key).await {
                    Activity::Rests => resting.push(key),
                    Activity::Parked => drop(found.parked.insert(key)),
                    Activity::Busy if Instant::now() < until => {
                        sleep(LOOK).await;
                        continue;
                    }
                    Activity::Busy => drop(found.busy.insert(key)),
                }
                break;
            }
        }
        resting
    }

    async fn activity(&self, key: &Key) -> Activity {
        let Some(explained) = self.handle.explain(key).await else { return Activity::Rests };
        let busy = explained.standing.is_some_and(|standing| standing.is_busy());
        match (busy, explained.parked) {
            (true, _) => Activity::Busy,
            (false, Some(_)) => Activity::Parked,
            (false, None) => Activity::Rests,
        }
    }

    /// Asks the receiver what it holds otherwise. What was on its way at that moment is asked for a second time, once
    /// it has come to rest.
    async fn ask(&self, known: &BTreeSet<Key>, found: &mut Findings) -> Receiver {
        let first = self.differing(known, "asking the receiver").await;
        let Ok(Some(seem)) = first else { return Receiver::of(first) };
        if seem.is_empty() {
            return Receiver::of(Ok(Some(seem)));
        }
        let resting = self.rest(seem.into_iter().collect(), Instant::now() + REST, found).await;
        Receiver::of(self.differing(&resting.into_iter().collect(), "asking the receiver").await)
    }

    /// Those of `keys` of which the receiver holds something else; `None` when it does not compare.
    async fn differing(
        &self,
        keys: &BTreeSet<Key>,
        step: &'static str,
    ) -> Result<Option<BTreeSet<Key>>, &'static str> {
        let mut differing = BTreeSet::new();
        let all: Vec<&Key> = keys.iter().collect();
        for (page, keys) in all.chunks(PAGE).enumerate() {
            self.say(step, page * PAGE, all.len());
            let asked: Vec<Key> = keys.iter().copied().cloned().collect();
            let ledger = self.shared.ledger.clone();
            // Some objects have a thousand resources.
            let digest = move || asked.iter().filter_map(|key| ledger.digest(key)).collect::<Vec<_>>();
            let Ok(digests) = tokio::task::spawn_blocking(digest).await else {
                tracing::error!("cannot digest what was acknowledged: this is a bug");
                return Err(Reason::Malformed.as_str());
            };
            match self.answered(self.shared.sink.differing(&digests)).await? {
                Some(keys) => differing.extend(keys),
                None => return Ok(None),
            }
        }
        // What it was not asked about is none of our business.
        differing.retain(|key| keys.contains(key));
        Ok(Some(differing))
    }

    /// What the receiver answers in its time.
    pub(super) async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, StageError>>,
    ) -> Result<T, &'static str> {
        let until = self.time.deadline.min(Instant::now() + ASK);
        match timeout_at(until, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let reason = error.reason().as_str();
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, reason, "cannot compare with the receiver");
                Err(reason)
            }
            Err(_) => {
                tracing::warn!("the receiver took too long to compare");
                Err(Reason::Timeout.as_str())
            }
        }
    }

    /// Has the objects read and reported again, and waits until that is done. Gives how many reports of each were
    /// acknowledged meanwhile.
    async fn repair(
        &self,
        keys: &BTreeSet<Key>,
        whole: &BTreeSet<Key>,
        ended: &BTreeMap<Key, Uid>,
        found: &mut Findings,
    ) -> BTreeMap<Key, u64> {
        let mut before: BTreeMap<Key, Option<Record>> = BTreeMap::new();
        for (done, key) in keys.iter().enumerate() {
            self.say("repairing", done, keys.len());
            let mut known = self.shared.ledger.get(key);
            match ended.get(key) {
                Some(uid) => {
                    known = known.or_else(|| Some(Record::new(uid.clone())));
                    self.handle.replay_held(key, uid).await;
                }
                None => drop(self.handle.replay(key, whole.contains(key)).await),
            }
            before.insert(key.clone(), known);
        }
        self.rest(keys.iter().cloned().collect(), self.time.deadline, found).await;
        let reports = before.into_iter().map(|(key, before)| {
            let reports = acknowledged(before.as_ref(), self.shared.ledger.get(&key).as_ref());
            (key, reports)
        });
        reports.collect()
    }

    /// What is different even now, of what was found.
    async fn compare_again(
        &self,
        keys: &BTreeSet<Key>,
        differed: &BTreeSet<Key>,
        ended: &BTreeMap<Key, Uid>,
        found: &mut Findings,
        verified: &mut Verified,
    ) -> BTreeSet<Key> {
        let done = |key: &&Key| !found.busy.contains(*key) && !found.parked.contains(*key);
        let done: BTreeSet<Key> = keys.iter().filter(done).cloned().collect();
        let mut now = Findings::default();
        let again = found.different().intersection(&done).cloned().collect();
        self.read(again, "comparing again", &mut now).await;
        let mut still: BTreeSet<Key> =
            found.different().union(differed).chain(ended.keys()).cloned().collect();
        still.retain(|key| !done.contains(key));
        still.extend(now.different());
        found.unread.extend(now.unread);
        let partly = |key: &&Key| self.shared.ledger.get(key).is_some_and(|record| !is_whole(&record));
        still.extend(done.iter().filter(partly).cloned());
        let asked: BTreeSet<Key> = differed.intersection(&done).cloned().collect();
        if !asked.is_empty() {
            let receiver = Receiver::of(self.differing(&asked, "comparing again").await);
            verified.failed_to_ask(receiver.failed);
            // Without an answer nothing is known to have changed.
            still.extend(receiver.differs.unwrap_or(asked));
        }
        still
    }

    pub(super) fn say(&self, step: &'static str, done: usize, total: usize) {
        self.progress.send_replace(Some(Progress { step, done, total }));
    }
}

impl Receiver {
    fn of(said: Result<Option<BTreeSet<Key>>, &'static str>) -> Self {
        match said {
            Ok(differs) => Self { differs, failed: None },
            Err(failed) => Self { differs: None, failed: Some(failed) },
        }
    }
}
