//! The task that writes send intents: of each shard all that are needed, under one key, so that an intent of many costs
//! one write.
//!
//! An intent goes with the write after its record was written. What is left in the bucket meanwhile is harmless, as a
//! record that is ahead of an intent does not move by it; only an intent of an incarnation that is over would bring its
//! record back, and goes at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::sync::{Notify, oneshot};

use super::super::intents::{Intent, Intents};
use super::super::stored;
use super::BucketStore;
use pipeline_bus::jetstream::{Expect, PutError};

/// So long it is waited for more intents while there are several at a time.
const GATHER: Duration = Duration::from_millis(1);

/// So long intents may be left in the bucket that are not needed any more.
const QUIET: Duration = Duration::from_secs(1);

/// Pause after a failed write.
const PAUSE: Duration = Duration::from_millis(200);

/// The intents of all shards that are held.
#[derive(Default)]
pub(super) struct IntentPages {
    pages: Mutex<Pages>,
    wake: Notify,
}

#[derive(Default)]
struct Pages {
    by_shard: HashMap<u32, Page>,
    errors: u64,
    failing: bool,
    closing: bool,
    closed: bool,
}

/// The intents of one shard.
struct Page {
    /// Of the shard's claim.
    sequence: u64,
    intents: Intents,
    /// Who waits for the next write.
    tell: Vec<oneshot::Sender<bool>>,
    /// Something stands in the bucket, or may.
    written: bool,
    /// When it is to be written; `None` when the bucket holds what is here.
    due: Option<Instant>,
}

/// A page on its way.
struct Leaf {
    shard: u32,
    sequence: u64,
    /// `None` when nothing is needed any more.
    value: Option<Vec<u8>>,
    tell: Vec<oneshot::Sender<bool>>,
}

impl IntentPages {
    /// Begins a shard with what a former owner left.
    pub(super) fn begin(&self, shard: u32, sequence: u64, left: Vec<Intent>) {
        let intents: Intents = left.into_iter().collect();
        let written = !intents.is_empty();
        let page = Page { sequence, intents, tell: Vec::new(), written, due: None };
        self.lock().by_shard.insert(shard, page);
    }

    /// Adds an intent; told when it stands in the bucket, or with false when the shard is not held any more.
    pub(super) fn add(&self, shard: u32, intent: Intent) -> oneshot::Receiver<bool> {
        let (tell, told) = oneshot::channel();
        let mut pages = self.lock();
        if !pages.closed
            && let Some(page) = pages.by_shard.get_mut(&shard)
        {
            page.intents.add(intent);
            page.tell.push(tell);
            page.due = Some(Instant::now());
            drop(pages);
            self.wake.notify_one();
        }
        told
    }

    /// The rows of a shard say what its intents up to `number` say; `now` when they are to go at once.
    pub(super) fn covered(&self, shard: u32, sequence: u64, number: u64, now: bool) {
        let mut pages = self.lock();
        let Some(page) = pages.by_shard.get_mut(&shard).filter(|page| page.sequence == sequence) else {
            return;
        };
        if page.intents.cover(number) {
            let due = if now { Instant::now() } else { Instant::now() + QUIET };
            page.due = Some(page.due.map_or(due, |earlier| earlier.min(due)));
            drop(pages);
            self.wake.notify_one();
        }
    }

    /// Waits until the bucket holds what is needed and nothing else.
    pub(super) async fn settled(&self, shard: u32, sequence: u64) {
        let (tell, told) = oneshot::channel();
        match self.lock().by_shard.get_mut(&shard).filter(|page| page.sequence == sequence) {
            Some(page) => {
                page.due = Some(Instant::now());
                page.tell.push(tell);
            }
            None => return,
        }
        self.wake.notify_one();
        let _ = told.await;
    }

    /// Forgets a shard; who waits is told that nothing may be sent.
    pub(super) fn forget(&self, shard: u32, sequence: u64) {
        let mut pages = self.lock();
        if pages.by_shard.get(&shard).is_some_and(|page| page.sequence == sequence) {
            pages.by_shard.remove(&shard);
        }
    }

    /// Has what is left written once.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.wake.notify_one();
    }

    pub(super) fn errors(&self) -> u64 {
        self.lock().errors
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is to be written; whether it is the last time.
    async fn due(&self) -> bool {
        loop {
            let woken = self.wake.notified();
            let wait = {
                let pages = self.lock();
                if pages.closing {
                    return true;
                }
                pages.by_shard.values().filter_map(|page| page.due).min()
            };
            match wait.map(|due| due.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return false,
                Some(wait) => drop(tokio::time::timeout(wait, woken).await),
                None => woken.await,
            }
        }
    }

    /// Takes what is to be written now.
    fn take(&self, closing: bool) -> Vec<Leaf> {
        let mut pages = self.lock();
        let now = Instant::now();
        let mut leaves = Vec::new();
        for (shard, page) in &mut pages.by_shard {
            if page.due.is_none_or(|due| due > now && !closing) {
                continue;
            }
            page.due = None;
            let tell = std::mem::take(&mut page.tell);
            if page.intents.is_empty() && !page.written {
                tell.into_iter().for_each(tell_written);
                continue;
            }
            page.written = !page.intents.is_empty();
            let value = page.written.then(|| stored::encode(&page.intents.in_order()));
            leaves.push(Leaf { shard: *shard, sequence: page.sequence, value, tell });
        }
        leaves
    }

    /// Puts back what was not written; it is tried again after a pause.
    fn put_back(&self, leaf: Leaf, error: &PutError) {
        let mut pages = self.lock();
        pages.errors += 1;
        if !std::mem::replace(&mut pages.failing, true) {
            tracing::warn!(
                error = error as &dyn std::error::Error,
                "cannot write down in the bucket which reports are about to be sent: they wait until it can be"
            );
        }
        let page = pages.by_shard.get_mut(&leaf.shard).filter(|page| page.sequence == leaf.sequence);
        if let Some(page) = page {
            page.tell.extend(leaf.tell);
            page.written = true;
            page.due = Some(Instant::now() + PAUSE);
        }
    }

    fn wrote(&self, leaf: Leaf) {
        leaf.tell.into_iter().for_each(tell_written);
        if std::mem::take(&mut self.lock().failing) {
            tracing::info!("reports that are about to be sent are written down in the bucket again");
        }
    }
}

/// An error means that nobody waits any more.
fn tell_written(tell: oneshot::Sender<bool>) {
    let _ = tell.send(true);
}

/// Writes intents until the ledger is closed, and then what is left, once.
pub(super) async fn write(store: Arc<BucketStore>) {
    let (intents, mut several) = (&store.intents, false);
    loop {
        let closing = intents.due().await;
        if several && !closing {
            tokio::time::sleep(GATHER).await;
        }
        let leaves = intents.take(closing);
        several = leaves.iter().map(|leaf| leaf.tell.len()).sum::<usize>() > 1;
        let answers = join_all(leaves.iter().map(|leaf| store.put_intents(leaf))).await;
        let mut pauses = false;
        for (leaf, answer) in leaves.into_iter().zip(answers) {
            match answer {
                Ok(()) => intents.wrote(leaf),
                Err(error) => {
                    pauses = true;
                    store.failed(leaf.shard, leaf.sequence, &error).await;
                    intents.put_back(leaf, &error);
                }
            }
        }
        if closing {
            // Whoever still waits is told that nothing may be sent.
            let mut pages = intents.lock();
            pages.closed = true;
            pages.by_shard.clear();
            return;
        }
        if pauses {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl BucketStore {
    async fn put_intents(&self, leaf: &Leaf) -> Result<(), PutError> {
        let (key, claim) = (self.names.intents(leaf.shard), self.names.claim(leaf.shard));
        let expect = Expect::Other { key: &claim, sequence: leaf.sequence };
        let _turn = self.turn(leaf.shard).await;
        let writing = match &leaf.value {
            Some(value) => self.bucket.send(&key, stored::seal(&key, value).into(), expect).await?,
            None => self.bucket.send_remove(&key, expect).await?,
        };
        writing.answer().await.map(drop)
    }
}
