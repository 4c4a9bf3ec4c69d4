//! The ledger without threads, files or clock, for simulations: the same records, packed forms, notes and recovery.
//!
//! ```text
//! let disk = Disk::new(7);                  // what survives a crash; the number chooses the ledger's id
//! disk.set_now(1_700_000_000);              // seconds since 1970: what `acknowledge` notes as `reported`
//! let ledger = Ledger::simulated(&disk);    // a process starts
//! ledger.sending(&key, &report, None).await;    // ready at the first poll; outlives a crash at once
//! ledger.acknowledge(&key, &report);        // in memory: lost by a crash before the next commit
//! ledger.commit_simulated();                // one group commit of all that changed
//! drop(ledger);                             // a crash: dropping commits nothing
//! let ledger = Ledger::simulated(&disk);    // the next process: what was committed, moved by the notes
//! ```
//! [`Disk::power_loss`] takes the notes away too. [`Disk::lost`] is a new, empty disk under another id. While
//! [`Disk::room`] bounds a record as a bucket of the bus does. While
//! [`Disk::full`] stands, commits fail and notes are not written. [`Ledger::flush`] commits and is ready at the first
//! poll; [`Ledger::close`] does nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pipeline_core::Key;

use super::intent_log::Owner;
use super::intents::{Intent, Intents};
use super::state::{Shared, State};
use super::tables::{Table, Tables};
use super::{Ledger, Origin, stored};

const SINK: &str = "simulated";

/// What survives a crash; cloning shares.
#[derive(Clone)]
pub struct Disk {
    held: Arc<Mutex<Held>>,
}

struct Held {
    owner: Owner,
    tables: BTreeMap<(Table, String), Vec<u8>>,
    covered: u64,
    flight: Vec<u8>,
    now: u32,
    full: bool,
    /// Bytes that a record may have, as in a bucket of the bus.
    room: usize,
}

impl Disk {
    /// An empty disk; `number` chooses the ledger's id.
    pub fn new(number: u64) -> Self {
        let owner = Owner { id: format!("{number:032x}"), sink: SINK.to_owned() };
        let flight = owner.head(0);
        let held = Held {
            owner,
            tables: BTreeMap::new(),
            covered: 0,
            flight,
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

    /// Takes away what only the flight file holds.
    pub fn power_loss(&self) {
        let mut held = self.lock();
        held.flight = held.owner.head(0);
    }

    /// Whether commits and notes fail from now on.
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

    pub(super) fn write(&self, note: &Intent) {
        let mut held = self.lock();
        if !held.full {
            let mut bytes = std::mem::take(&mut held.flight);
            held.owner.write(note, &mut bytes);
            held.flight = bytes;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    /// Opens what `disk` holds, as [`Ledger::open`] opens a file.
    pub fn simulated(disk: &Disk) -> Self {
        let held = disk.lock();
        let mut tables = Tables::default();
        for ((table, key), sealed) in &held.tables {
            let packed = stored::unseal_row(*table, key, sealed).unwrap();
            tables.of_mut(*table).insert(Key::parse(key).unwrap(), packed.into());
        }
        let found = held.owner.read(&held.flight);
        assert!(found.whole && !found.foreign, "a simulated flight file is never torn");
        let state = State::new(tables, held.covered, &found.intents);
        let origin = if held.tables.is_empty() { Origin::New } else { Origin::Existing };
        let shared = Shared::new(held.owner.id.clone(), SINK.to_owned(), state, Some(usize::MAX));
        drop(held);
        let mut ledger = Self::over(Arc::new(shared), origin);
        Arc::get_mut(&mut ledger.inner).unwrap().disk = Some(disk.clone());
        ledger
    }

    /// One group commit of everything that changed; whether it succeeded. A failed one loses nothing in memory.
    pub fn commit_simulated(&self) -> bool {
        let disk = self.inner.disk.as_ref().expect("a simulated ledger has a disk");
        let mut held = disk.lock();
        let mut state = self.inner.shared.lock();
        if held.full {
            state.errors += 1;
            return false;
        }
        let dirty = std::mem::take(&mut state.dirty);
        for (table, key) in dirty {
            let name = (table, key.as_str().to_owned());
            match state.tables.of(table).get(&key) {
                Some(packed) if table == Table::Records && packed.len() > held.room => {
                    let cut = stored::encode(&stored::record(packed).unwrap().without_resources());
                    held.tables.insert(name, stored::seal(key.as_str(), &cut));
                }
                Some(packed) => drop(held.tables.insert(name, stored::seal(key.as_str(), packed))),
                None => drop(held.tables.remove(&name)),
            }
        }
        state.dirty_since = None;
        (state.committed, held.covered) = (state.changed, state.noted);
        state.commits += 1;
        // As the flight file: what is covered is forgotten.
        let mut notes = Intents::default();
        held.owner.read(&held.flight).intents.into_iter().for_each(|note| notes.add(note));
        notes.cover(held.covered);
        let mut flight = held.owner.head(held.covered);
        notes.in_order().into_iter().for_each(|note| held.owner.write(note, &mut flight));
        held.flight = flight;
        true
    }
}

#[cfg(test)]
#[path = "simulated_tests.rs"]
mod tests;
