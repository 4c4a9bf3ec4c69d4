//! The ledger without threads, files or clock, for simulations: the same records, group commits, intents and recovery.
//!
//! ```text
//! let disk = Disk::new(7);                  // what survives a crash; the number chooses the ledger's id
//! disk.set_now(1_700_000_000);              // seconds since 1970: what `acknowledge` notes as `reported`
//! let ledger = Ledger::simulated(&disk);    // a process starts
//! ledger.sending(&key, &report, None).await;    // ready at the first poll; outlives a crash at once
//! ledger.acknowledge(&key, &report);        // in memory: lost by a crash before the next commit
//! ledger.commit_simulated();                // one group commit of all that changed
//! drop(ledger);                             // a crash: dropping commits nothing
//! let ledger = Ledger::simulated(&disk);    // the next process: what was committed, moved by the intents
//! ```
//! [`Disk::power_loss`] takes the intents away too. [`Disk::lost`] is a new, empty disk under another id. [`Disk::room`]
//! bounds a record as a bucket of the bus does. While [`Disk::full`] stands, commits fail and intents are not written. [`Ledger::flush`] commits and is ready at the first
//! poll; [`Ledger::close`] does nothing.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "of simulations alone, where a panic is a finding"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use pipeline_core::Key;

use super::error::Failure;
use super::group_commit::{Group, GroupCommit};
use super::intent_log::Owner;
use super::intents::{Intent, Intents};
use super::state::{Shared, State};
use super::store::{Store, Unwritten};
use super::tables::{RowId, Table, Tables};
use super::{Ledger, Origin, stored};

const SINK: &str = "simulated";

/// What survives a crash; cloning shares.
#[derive(Clone)]
pub struct Disk {
    held: Arc<Mutex<DiskContent>>,
}

struct DiskContent {
    owner: Owner,
    tables: BTreeMap<(Table, String), Vec<u8>>,
    covered: u64,
    /// A log of intents.
    intents: Vec<u8>,
    now: u32,
    full: bool,
    /// Bytes that a record may have, as in a bucket of the bus.
    room: usize,
}

impl Disk {
    /// An empty disk; `number` chooses the ledger's id.
    pub fn new(number: u64) -> Self {
        let owner = Owner { id: format!("{number:032x}"), sink: SINK.to_owned() };
        let intents = owner.head(0);
        let held = DiskContent {
            owner,
            tables: BTreeMap::new(),
            covered: 0,
            intents,
            now: 0,
            full: false,
            room: usize::MAX,
        };
        Self { held: Arc::new(Mutex::new(held)) }
    }

    /// An empty disk that took the place of this one, under another id.
    pub fn lost(&self) -> Self {
        let number =
            u64::from_str_radix(self.lock().owner.id.trim_start_matches('0'), 16).unwrap_or_default();
        let new = Self::new(number.wrapping_add(1));
        new.lock().now = self.now();
        new.lock().room = self.lock().room;
        new
    }

    /// Takes away what only the send intents say.
    pub fn power_loss(&self) {
        let mut held = self.lock();
        held.intents = held.owner.head(0);
    }

    /// Whether commits and intents fail from now on.
    pub fn full(&self, full: bool) {
        self.lock().full = full;
    }

    /// How many bytes a record may have: a larger one is written without its resources.
    pub fn room(&self, bytes: usize) {
        self.lock().room = bytes;
    }

    /// Seconds since 1970.
    pub fn set_now(&self, seconds: u32) {
        self.lock().now = seconds;
    }

    /// Seconds since 1970, as they were set.
    #[must_use]
    pub fn now(&self) -> u32 {
        self.lock().now
    }

    fn lock(&self) -> MutexGuard<'_, DiskContent> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Disk {
    fn storage(&self) -> &'static str {
        "file"
    }

    fn commit<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<(), Unwritten>> {
        let mut held = self.lock();
        if held.full {
            let row_ids: Vec<RowId> = group.rows.iter().map(|(row_id, _)| row_id.clone()).collect();
            return ready(Err(Unwritten { row_ids, failure: Failure::Stopped, pauses: true })).boxed();
        }
        for ((table, key), bytes) in &group.rows {
            let name = (*table, key.as_str().to_owned());
            match bytes {
                Some(bytes) if *table == Table::Records && bytes.len() > held.room => {
                    let cut = stored::encode(&stored::record(bytes).unwrap().without_listed());
                    held.tables.insert(name, stored::seal(key.as_str(), &cut));
                }
                Some(bytes) => drop(held.tables.insert(name, stored::seal(key.as_str(), bytes))),
                None => drop(held.tables.remove(&name)),
            }
        }
        held.covered = group.number;
        let mut intents: Intents = held.owner.read(&held.intents).intents.into_iter().collect();
        intents.cover(held.covered);
        held.intents = held.owner.log(held.covered, &intents);
        ready(Ok(())).boxed()
    }

    fn intend(&self, intent: Intent) -> BoxFuture<'_, bool> {
        let mut held = self.lock();
        if !held.full {
            let mut bytes = std::mem::take(&mut held.intents);
            held.owner.write(&intent, &mut bytes);
            held.intents = bytes;
        }
        ready(true).boxed()
    }

    fn now(&self) -> u32 {
        Self::now(self)
    }
}

impl Ledger {
    /// Opens what `disk` holds, as [`Ledger::open`] opens a file.
    pub fn simulated(disk: &Disk) -> Self {
        let held = disk.lock();
        let mut tables = Tables::default();
        for ((table, key), sealed) in &held.tables {
            let bytes = stored::unseal_row(*table, key, sealed).unwrap();
            tables.of_mut(*table).insert(Key::parse(key).unwrap(), bytes.into());
        }
        let found = held.owner.read(&held.intents);
        assert!(found.whole && !found.foreign, "a simulated log of intents is never torn");
        let mut state = State::default();
        state.begin(tables, held.covered, &found.intents);
        let origin = if held.tables.is_empty() { Origin::New } else { Origin::Existing };
        let shared = Arc::new(Shared::new(held.owner.id.clone(), SINK.to_owned(), state, Some(usize::MAX)));
        drop(held);
        let store = Arc::new(disk.clone());
        let work = GroupCommit::new(shared.clone(), store.clone(), Duration::ZERO, Duration::ZERO);
        let mut ledger = Self::over(shared, origin, store, None);
        Arc::get_mut(&mut ledger.inner).unwrap().by_hand = Some(Mutex::new(work));
        ledger
    }

    /// One group commit of everything that changed; whether it succeeded. A failed one loses nothing in memory.
    pub fn commit_simulated(&self) -> bool {
        let work = self.inner.by_hand.as_ref().expect("a simulated ledger has a disk");
        work.lock().unwrap().once().now_or_never().expect("it waits for nothing")
    }
}

#[cfg(test)]
mod tests;
