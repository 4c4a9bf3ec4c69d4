//! What was told of a shard lately and no row of it says any more: ends of lives, whose records are gone, and ends of
//! operations that later ones followed.
//!
//! A message of the bus whose acknowledgement did not arrive is delivered again, and after a cut, a pause or a kill to an
//! owner that did not tell what it says. From the rows alone that owner could only tell it again. So the latest of it stands
//! under one more key of each shard, and is written with the group in which the rows let go of it.
//!
//! ```text
//! told.<sink>.<shard>: digests u64 of the application, its uid and the operation, the oldest first
//! ```

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::join_all;
use pipeline_core::{Digest, Key, Record, Report, Uid};

use super::super::Ledger;
use super::super::intents::Intent;
use super::super::state::State;
use super::super::stored::{self, checksum};
use super::shards::Held;
use super::{Common, Remote};
use pipeline_bus::jetstream::{Expect, PutError};

/// Of one shard: 2 kB. At five a second more than a message waits to be delivered again.
const KEPT: usize = 256;

/// What was told of all shards that are held.
#[derive(Default)]
pub(super) struct Told {
    by_shard: Mutex<HashMap<u32, Page>>,
}

#[derive(Default)]
struct Page {
    /// Of the shard's claim.
    sequence: u64,
    /// The latest last.
    recent: VecDeque<u64>,
    /// The bucket does not hold all of it.
    changed: bool,
}

/// What a record says that was told, and what is lost with it: the end of the operation that it shows.
fn shown(record: Option<&Record>) -> Option<(Uid, Digest)> {
    let record = record.filter(|record| !record.fact.is_none())?;
    Some((record.uid.clone(), record.fact))
}

/// Of the end of an operation, or of no operation: of the life itself.
fn digest(key: &Key, uid: &Uid, operation: Digest) -> u64 {
    let mut bytes = operation.0.to_le_bytes().to_vec();
    bytes.extend_from_slice(uid.as_bytes());
    checksum(key.as_str(), &bytes)
}

impl Ledger {
    /// Moves one record; returns whether that changed anything. In a bucket it is remembered beside the records what one says
    /// no more.
    pub(crate) fn change(
        &self,
        state: &mut State,
        key: &Key,
        change: impl FnOnce(Option<Record>) -> Option<Record>,
    ) -> bool {
        let Some(held) = &self.inner.bucket else { return state.change(key, change) };
        let [mut before, mut now] = [None, None];
        let moved = state.change(key, |record| {
            before = shown(record.as_ref());
            let record = change(record);
            now = shown(record.as_ref());
            record
        });
        held.moved(key, before, now);
        moved
    }
}

impl Remote {
    /// A report was acknowledged: the end of a life, or anything else of one, which then is not over.
    pub(crate) fn acknowledged(&self, key: &Key, report: &Report) {
        let (shard, life) = (self.shard(key), digest(key, &report.uid, Digest::NONE));
        if report.ends {
            self.common.told.add(shard, life);
        } else {
            self.common.told.remove(shard, life);
        }
    }

    /// A record moved from what was `shown` before to what it shows now.
    fn moved(&self, key: &Key, before: Option<(Uid, Digest)>, now: Option<(Uid, Digest)>) {
        let Some((uid, operation)) = before else { return };
        // Where the life is over as well, its end says it all.
        if now.is_some_and(|(own, now)| own == uid && now != operation) {
            self.common.told.add(self.shard(key), digest(key, &uid, operation));
        }
    }

    /// Whether the end of this operation was told, or without an operation the end of this life.
    pub(crate) fn has_told(&self, key: &Key, uid: &Uid, operation: Digest) -> bool {
        let pages = self.common.told.lock();
        let page = pages.get(&self.shard(key)).filter(|page| !page.recent.is_empty());
        page.is_some_and(|page| page.recent.contains(&digest(key, uid, operation)))
    }

    fn shard(&self, key: &Key) -> u32 {
        self.common.options.sharding.place(key)
    }
}

impl Told {
    /// Begins a shard with what a former owner left; what cannot be read says nothing.
    pub(super) fn begin(&self, shard: u32, sequence: u64, left: Option<&[u8]>, key: &str) {
        let recent = left.and_then(|left| read(key, left)).unwrap_or_default();
        self.lock().insert(shard, Page { sequence, recent, changed: false });
    }

    /// Takes in what only the notes of a former owner say: its rows were not written since.
    pub(super) fn noted(&self, shard: u32, notes: &[Intent]) {
        for Intent { key, sent, .. } in notes {
            sent.told().for_each(|end| self.add(shard, digest(key, &sent.uid, end)));
        }
    }

    /// Forgets a shard.
    pub(super) fn forget(&self, shard: u32, sequence: u64) {
        let mut pages = self.lock();
        if pages.get(&shard).is_some_and(|page| page.sequence == sequence) {
            pages.remove(&shard);
        }
    }

    fn add(&self, shard: u32, one: u64) {
        if let Some(page) = self.lock().get_mut(&shard)
            && !page.recent.contains(&one)
        {
            if page.recent.len() >= KEPT {
                page.recent.pop_front();
            }
            page.recent.push_back(one);
            page.changed = true;
        }
    }

    fn remove(&self, shard: u32, one: u64) {
        if let Some(page) = self.lock().get_mut(&shard) {
            let before = page.recent.len();
            page.recent.retain(|held| *held != one);
            page.changed |= page.recent.len() < before;
        }
    }

    /// What is to be written of the shards that are held.
    fn take(&self, held: &HashMap<u32, Held>) -> Vec<(u32, u64, Vec<u8>)> {
        let mut taken = Vec::new();
        for (shard, page) in self.lock().iter_mut().filter(|(_, page)| page.changed) {
            if held.get(shard).is_some_and(|held| held.sequence == page.sequence) {
                page.changed = false;
                taken.push((*shard, page.sequence, page.packed()));
            }
        }
        taken
    }

    /// What was not written goes with the next group.
    fn put_back(&self, shard: u32, sequence: u64) {
        let mut pages = self.lock();
        if let Some(page) = pages.get_mut(&shard).filter(|page| page.sequence == sequence) {
            page.changed = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Page>> {
        self.by_shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Page {
    fn packed(&self) -> Vec<u8> {
        stored::encode(&self.recent)
    }
}

fn read(key: &str, sealed: &[u8]) -> Option<VecDeque<u64>> {
    stored::decode(stored::unseal(key, sealed).ok()?).ok()
}

impl Common {
    /// Writes what was told since the last group. An error is no reason to stop: the rows beside it meet the same.
    pub(super) async fn put_told(&self, held: &HashMap<u32, Held>) {
        let written = self.told.take(held).into_iter().map(async |(shard, sequence, packed)| {
            let (key, claim) = (self.names.told(shard), self.names.claim(shard));
            let expect = Expect::Other { key: &claim, sequence };
            let sealed = stored::seal(&key, &packed).into();
            let answer = match self.bucket.send(&key, sealed, expect).await {
                Ok(writing) => writing.answer().await.map(drop),
                Err(error) => Err(PutError::from(error)),
            };
            if let Err(error) = answer {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(shard, error, "what was told of a shard is written with the next group");
                self.told.put_back(shard, sequence);
            }
        });
        join_all(written).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intent_log::tests::an_intent;

    fn held(sequence: u64) -> HashMap<u32, Held> {
        [(3, Held { id: "id".into(), sequence })].into()
    }

    #[test]
    fn the_latest_is_kept_and_read_back() {
        let told = Told::default();
        told.add(3, 1);
        assert!(told.take(&held(7)).is_empty(), "the shard is not held");
        told.begin(3, 7, None, "k");
        (1..=KEPT as u64 + 2).for_each(|one| told.add(3, one));
        told.add(3, 9);
        told.remove(3, 8);
        told.remove(3, 1);
        let [(3, 7, packed)] = &told.take(&held(7))[..] else { panic!("one page is to be written") };
        assert!(told.take(&held(7)).is_empty(), "nothing has changed since");
        told.add(3, 9);
        assert!(told.take(&held(7)).is_empty(), "it was there");
        let sealed = stored::seal("k", packed);
        let left = read("k", &sealed).unwrap();
        assert_eq!((left.len(), left[0], left[left.len() - 1]), (KEPT - 1, 3, KEPT as u64 + 2));
        assert!(left.contains(&9) && !left.contains(&8));
        assert_eq!(read("l", &sealed), None, "what stands under another key is not its own");
        assert_eq!(read("k", b""), None);
        assert_eq!(read("k", &stored::seal("k", &[1, 2])), None);
    }

    #[test]
    fn what_only_the_notes_of_a_former_owner_say_is_taken_in_and_written() {
        let told = Told::default();
        told.begin(3, 7, None, "k");
        let mut note = an_intent(1, 1);
        (note.sent.told, note.sent.fact) = (vec![Digest(4)], Digest(5));
        told.noted(3, &[note.clone(), an_intent(2, 2)]);
        let ends = [4, 5].map(|end| digest(&note.key, &note.sent.uid, Digest(end)));
        assert_eq!(told.lock()[&3].recent, ends);
        assert_eq!(told.take(&held(7)).len(), 1);
    }

    #[test]
    fn what_was_not_written_is_written_again_unless_the_shard_was_lost() {
        let told = Told::default();
        told.begin(3, 7, None, "k");
        told.add(3, 1);
        assert!(told.take(&held(6)).is_empty(), "another claim");
        assert_eq!(told.take(&held(7)).len(), 1);
        told.put_back(3, 7);
        assert_eq!(told.take(&held(7)).len(), 1);
        told.begin(3, 8, Some(&stored::seal("k", &stored::encode(&[5_u64]))), "k");
        told.put_back(3, 7);
        assert!(told.take(&held(8)).is_empty(), "it was of an earlier claim");
        assert_eq!(told.lock()[&3].recent, [5]);
        told.forget(3, 7);
        assert!(told.lock().contains_key(&3));
        told.forget(3, 8);
        assert!(told.lock().is_empty());
    }
}
