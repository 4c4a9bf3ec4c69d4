//! What the receiver holds beside what is known: it was restored, and remembers nothing of ends that it had acknowledged. Nothing
//! here remembers them either, so that it alone can name such objects.
//!
//! Whatever it names is looked at in the cluster: the end of an object is told only where that one is certainly not there.

use std::collections::{BTreeMap, BTreeSet};

use pipeline_core::{Key, OTHERS_AT_ONCE, OthersQuestion, Surveyed, Uid};
use tokio::time::Instant;

use super::Verified;
use super::check::{Check, Findings, Listed, REST};

/// Objects that are looked at in one verification; further ones are left unread.
const MOST: usize = 10_000;
/// So many are told to be over by a comparison that nobody asked for, or a tenth of what is known.
const UNASKED: usize = 10;

/// What the receiver holds beside what is known.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// What is certainly not in the cluster, and which life of it the receiver holds; `None`: it does not say, or was not asked.
    pub(super) ended: Option<BTreeMap<Key, Uid>>,
    pub(super) failed: Option<&'static str>,
}

/// What is listed or remembered, in order: what the receiver need not name.
pub(super) struct Known(Vec<Key>);

impl Known {
    pub(super) fn new(listed: &Listed, remembered: &BTreeSet<Key>) -> Self {
        let all: BTreeSet<&Key> = listed.keys().chain(remembered).collect();
        Self(all.into_iter().filter(|key| key.kind().is_empty()).cloned().collect())
    }
}

impl Check<'_> {
    /// Asks what the receiver holds beside what is known, and looks for that in the cluster. What is there, and is the route's, is
    /// missing as any other of which nothing was acknowledged.
    pub(super) async fn beside(&self, listed: &Listed, known: &Known, found: &mut Findings) -> Beside {
        let mut named = match self.others(listed, known, "asking the receiver").await {
            Ok(Some(named)) => named,
            Ok(None) => return Beside::default(),
            Err(failed) => return Beside { ended: None, failed: Some(failed) },
        };
        if let Some(first) = named.keys().nth(MOST).cloned() {
            found.unread.extend(named.split_off(&first).into_keys());
        }
        // What was on its way is known once it has come to rest.
        let resting = self.rest(named.keys().cloned().collect(), Instant::now() + REST, found).await;
        let unknown = resting.into_iter().filter(|key| self.shared.ledger.get(key).is_none()).collect();
        let owned = |(key, uid): (&Key, &Uid)| (key.clone(), uid.clone());
        let mut ended = BTreeMap::new();
        let compare = |key: &Key, now: Option<Surveyed>, found: &mut Findings| {
            let is_gone = now.is_none();
            match self.differs(key, now.as_ref()) {
                Some(differs) => found.add(key.clone(), differs),
                None if is_gone => ended.extend(named.get_key_value(key).map(owned)),
                None => {}
            }
        };
        self.look(unknown, "comparing", found, compare).await;
        Beside { ended: Some(ended), failed: None }
    }

    /// Of what is not in the cluster that which is told to be over. Nobody looks at a comparison that comes by itself: where more are
    /// gone than are likely to have been deleted since a backup, they may be another cluster's that reports to the same place, and
    /// somebody is to decide.
    pub(super) fn to_tell(&self, ended: BTreeMap<Key, Uid>, known: usize) -> BTreeMap<Key, Uid> {
        if self.options.drift || ended.len() <= UNASKED.max(known / 10) {
            return ended;
        }
        tracing::warn!(
            objects = ended.len(),
            "the receiver holds many objects that are not in this cluster: does another cluster report to it under the same token? \
             If not, `gitops-runtime verify` tells it that they are over"
        );
        BTreeMap::new()
    }

    /// What of `ended` the receiver holds even now. Where it does not say that, nothing is known to have changed.
    pub(super) async fn held_still(
        &self,
        (listed, known): (&Listed, &Known),
        ended: &BTreeMap<Key, Uid>,
        verified: &mut Verified,
    ) -> BTreeSet<Key> {
        if ended.is_empty() {
            return BTreeSet::new();
        }
        let named = self.others(listed, known, "comparing again").await;
        verified.failed_to_ask(named.as_ref().err().copied());
        let named = named.ok().flatten();
        let held = |key: &&Key| named.as_ref().is_none_or(|named| named.contains_key(*key));
        ended.keys().filter(held).cloned().collect()
    }

    /// What the receiver holds of this process's own that is neither listed nor remembered, and which life of each; `None` when it does
    /// not say. A few more than are looked at in one verification end it.
    async fn others(
        &self,
        listed: &Listed,
        Known(known): &Known,
        step: &'static str,
    ) -> Result<Option<BTreeMap<Key, Uid>>, &'static str> {
        let own: Vec<u32> = self.handle.status().shards.into_iter().map(|(shard, _)| shard).collect();
        let mut named = BTreeMap::new();
        let mut after: Option<Key> = None;
        while !own.is_empty() && named.len() <= MOST {
            let done = known.partition_point(|key| after.as_ref().is_some_and(|after| key <= after));
            self.say(step, done, known.len());
            let mut pages = known.split_at(done).1.chunks(OTHERS_AT_ONCE);
            let page = pages.next().unwrap_or_default();
            // The last one takes in all that follows.
            let upto = page.last().filter(|_| pages.next().is_some()).cloned();
            let question = OthersQuestion {
                shards: self.handle.shards(),
                own: own.clone(),
                after: after.clone(),
                upto: upto.clone(),
                known: page.to_vec(),
            };
            let answer = self.answered(self.shared.sink.others(&question)).await?;
            let Some(others) = answer else { return Ok(None) };
            named.extend(others.held.into_iter().filter(|(key, _)| self.is_unknown(key, listed)));
            let next = others.more_after.or(upto);
            if next <= after {
                break;
            }
            after = next;
        }
        Ok(Some(named))
    }

    /// Whether an object is this process's to tell of, and it knows nothing of it.
    fn is_unknown(&self, key: &Key, listed: &Listed) -> bool {
        let is_own = self.handle.owns(key) && self.shared.watches(key);
        is_own && !listed.contains_key(key) && self.shared.ledger.get(key).is_none()
    }
}
