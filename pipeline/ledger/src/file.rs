//! The ledger's file: opened and checked as a whole, written in groups, set aside when it is corrupt.
//!
//! takes: a path, the sink's name, and keys to commit - gives: every record at the start
//! calls: redb; all of it blocks - fails: [`LedgerError`] at the start, [`Failure`] for a commit, after which
//! the file is opened again
//!
//! The table `ledger` is the head: format, id, and `covered/<sink>`, the number of the last commit of these tables,
//! which know of all send intents that have lower numbers. Beside it a table of each kind for each
//! sink, key to sealed value. redb checks every page when it opens the file; each value has a checksum of
//! its own on top, over its key too. The bit that says which of two commits is the last is under no checksum: so the
//! number of the last commit is compared with the one that the file of send intents knows, or memory when the file is opened
//! again. A file that has gone back is as good as corrupt: what it forgot would be taken for never reported.
//!
//! A file that was lost while a process had it is written anew from memory, in one transaction: it holds all that was
//! acknowledged under its id, or nothing and no id. Only one sink's tables are in memory, so that id stands as
//! `id/<sink>`, and the file's `id` is a new one: what another sink had is gone, and with it its id.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use pipeline_core::Key;
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

use super::aside::{Unusable, make_private, set_aside, unreadable, unusable};
use super::error::{Failure, LedgerError};
use super::head::{Head, covered_of, head, id_of};
use super::intent_file::{left, path_of};
use super::intent_log::Found;
use super::intent_log::Owner;
use super::state::new_id;
use super::tables::{Bytes, Row, Table, Tables};
use super::{Origin, compact, stored};

/// The format of the file; each value has a version of its own.
pub(super) const FORMAT: u64 = 2;

pub(super) const LEDGER: TableDefinition<'_, &str, &str> = TableDefinition::new("ledger");

/// A table of one kind and sink.
pub(super) fn definition(name: &str) -> TableDefinition<'_, &'static str, &'static [u8]> {
    TableDefinition::new(name)
}

/// Opens the file, or makes it; called again after a failed commit.
pub(super) type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

/// What was in the file.
pub(super) struct Loaded {
    pub(super) id: String,
    pub(super) tables: Tables,
    /// The number of the last commit.
    pub(super) covered: u64,
    /// What stands in the file of send intents.
    pub(super) left: Found,
    pub(super) origin: Origin,
}

/// An open ledger file; its owner is the only one who writes it.
pub(super) struct LedgerFile {
    path: PathBuf,
    sink: String,
    id: String,
    /// The number of the last commit.
    covered: u64,
    opener: Opener,
    /// `None` after a failure: redb takes nothing more until the file is opened again.
    database: Option<Database>,
    /// The file was found empty, and a commit of everything has not succeeded since.
    anew: bool,
}

/// The opener of a real file.
pub(super) fn opener(path: PathBuf, cache: usize) -> Opener {
    Box::new(move || {
        make_private(&path)?;
        Builder::new().set_cache_size(cache).set_check_integrity_on_open(true).create(&path)
    })
}

impl LedgerFile {
    /// Opens the file and reads all of it, and the file of send intents beside it.
    pub(super) fn open(path: &Path, sink: &str, opener: Opener) -> Result<(Self, Loaded), LedgerError> {
        let whole = || {
            guarded(|| {
                let (database, head) = attempt(path, sink, &opener, None)?;
                let owner = Owner { id: head.id.clone(), sink: sink.to_owned() };
                let left = left(&path_of(path, sink), &owner);
                head.not_before(left.covered, path)?;
                let database = compact::compact(database, path);
                let read = load(&database, sink).map_err(|error| unreadable(path, error))?;
                let tables = read.ok_or(Unusable::Corrupt)?;
                let origin = if head.new { Origin::New } else { Origin::Existing };
                Ok((database, Loaded { id: head.id, tables, covered: head.covered, left, origin }))
            })
        };
        let (database, loaded) = match whole() {
            Ok(opened) => opened,
            Err(Unusable::Error(error)) => return Err(error),
            Err(Unusable::Corrupt) => {
                let aside = set_aside(path)?;
                tracing::error!(
                    file = %path.display(),
                    set_aside = %aside.display(),
                    "the ledger file is corrupt: it was set aside, and everything is reported again"
                );
                let (database, loaded) = whole().map_err(|error| error.lasting(path))?;
                (database, Loaded { origin: Origin::SetAside(aside), ..loaded })
            }
        };
        let (id, covered) = (loaded.id.clone(), loaded.covered);
        let (path, sink) = (path.to_owned(), sink.to_owned());
        Ok((Self { path, sink, id, covered, opener, database: Some(database), anew: false }, loaded))
    }

    /// Commits `rows`, under a number that is higher than that of any commit before and of any intent that they know of,
    /// in one transaction. After a failure the next call opens the file again. One that is found empty then gets `all`,
    /// and its id in the same transaction: one that has an id holds everything that was counted under it.
    pub(super) fn commit(
        &mut self,
        rows: &[Row],
        covered: u64,
        all: impl FnOnce() -> Vec<Row>,
    ) -> Result<(), Failure> {
        let database = self.opened()?;
        if self.anew {
            self.write(database, &all(), covered)?;
            self.anew = false;
            return Ok(());
        }
        self.write(database, rows, covered)
    }

    fn write(&mut self, database: Database, rows: &[Row], covered: u64) -> Result<(), Failure> {
        let anew = self.anew.then_some(self.id.as_str());
        // Whatever state a panic leaves the storage in, it is dropped and opened anew.
        match catch_unwind(AssertUnwindSafe(|| write(&database, &self.sink, rows, covered, anew))) {
            Ok(Ok(())) => {
                self.database = Some(database);
                self.covered = covered;
                Ok(())
            }
            Ok(Err(error)) => Err(Failure::Storage(error)),
            Err(_) => Err(Failure::Stopped),
        }
    }

    fn opened(&mut self) -> Result<Database, Failure> {
        match self.database.take() {
            Some(database) => Ok(database),
            None => {
                let (database, empty) = self.reopen()?;
                self.anew |= empty;
                Ok(database)
            }
        }
    }

    /// The records stay where they are: memory has them all, and what the file holds of them is replaced by
    /// what waits. Returns whether the file is empty.
    fn reopen(&self) -> Result<(Database, bool), Failure> {
        let head = || {
            guarded(|| {
                let (database, head) = attempt(&self.path, &self.sink, &self.opener, Some(&self.id))?;
                if head.id == self.id && !head.new {
                    head.not_before(self.covered, &self.path)?;
                }
                Ok((database, head))
            })
        };
        let (database, head) = match head() {
            Ok(opened) => opened,
            Err(Unusable::Error(error)) => return Err(Failure::Reopen(error)),
            Err(Unusable::Corrupt) => {
                let aside = set_aside(&self.path).map_err(Failure::Reopen)?;
                tracing::error!(
                    file = %self.path.display(),
                    set_aside = %aside.display(),
                    "the ledger file became corrupt: it was set aside, and is written anew from memory"
                );
                head().map_err(|error| Failure::Reopen(error.lasting(&self.path)))?
            }
        };
        if head.id != self.id {
            return Err(Failure::Replaced);
        }
        Ok((database, head.new))
    }
}

/// A storage that panics over a file says that the file is corrupt.
fn guarded<T>(open: impl FnOnce() -> Result<T, Unusable>) -> Result<T, Unusable> {
    catch_unwind(AssertUnwindSafe(open)).unwrap_or(Err(Unusable::Corrupt))
}

/// Opens the file; one that is made gets a new id, or is left empty when it is to get `id`.
fn attempt(path: &Path, sink: &str, opener: &Opener, id: Option<&str>) -> Result<(Database, Head), Unusable> {
    let database = opener().map_err(|error| unusable(path, error))?;
    let head = head(&database, sink, id).map_err(|error| unreadable(path, error))?;
    if head.format > FORMAT {
        let (path, found) = (path.to_owned(), head.format);
        return Err(Unusable::Error(LedgerError::Format { path, found, known: FORMAT }));
    }
    if head.format < FORMAT {
        let found = head.format;
        tracing::warn!(path = %path.display(), found, "the ledger file is of an earlier format that nobody reads any more");
        return Err(Unusable::Corrupt);
    }
    Ok((database, head))
}

/// All tables of a sink; `None` when a record is damaged, because a record that is left out would give old idempotency
/// keys to new reports. What else is damaged is left out and removed.
fn load(database: &Database, sink: &str) -> Result<Option<Tables>, redb::Error> {
    let mut tables = Tables::default();
    let mut damaged = Vec::new();
    let transaction = database.begin_read()?;
    for table in Table::ALL {
        let name = table.in_file(sink);
        let rows = match transaction.open_table(definition(&name)) {
            Ok(rows) => rows,
            Err(redb::TableError::TableDoesNotExist(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        for entry in rows.iter()? {
            let (key, sealed) = entry?;
            match whole(table, key.value(), sealed.value()) {
                Some((key, bytes)) => drop(tables.of_mut(table).insert(key, bytes)),
                None if table == Table::Records => return Ok(None),
                None => damaged.push((table, key.value().to_owned())),
            }
        }
    }
    drop(transaction);
    if !damaged.is_empty() {
        tracing::warn!(
            entries = damaged.len(),
            "some of what was journaled or parked is damaged and was dropped: a deletion, a fact such as the end of an operation, or \
             that something was refused is not known any more"
        );
        let transaction = begin(database)?;
        for (table, key) in damaged {
            transaction.open_table(definition(&table.in_file(sink)))?.remove(key.as_str())?;
        }
        transaction.commit()?;
    }
    Ok(Some(tables))
}

fn whole(table: Table, key: &str, sealed: &[u8]) -> Option<(Key, Bytes)> {
    Some((Key::parse(key).ok()?, stored::unseal_row(table, key, sealed).ok()?.into()))
}

/// Begins a transaction: every one begins here, so that its commit is in two phases. That costs one more write to the
/// disk, and a damaged newest commit is then refused as corrupt. In one phase the storage cannot tell it from one that
/// was cut off, and goes back to the commit before without a word: what was acknowledged last would be forgotten.
pub(super) fn begin(database: &Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_two_phase_commit(true);
    Ok(transaction)
}

/// `anew` is the id of a file that is to hold these rows alone.
fn write(
    database: &Database,
    sink: &str,
    rows: &[Row],
    covered: u64,
    anew: Option<&str>,
) -> Result<(), redb::Error> {
    let names = Table::ALL.map(|table| table.in_file(sink));
    let transaction = begin(database)?;
    {
        let mut head = transaction.open_table(LEDGER)?;
        if let Some(id) = anew {
            if head.get("id")?.is_none() {
                head.insert("id", new_id().as_str())?;
            }
            head.insert("format", FORMAT.to_string().as_str())?;
            head.insert(id_of(sink).as_str(), id)?;
            for name in &names {
                transaction.delete_table(definition(name))?;
            }
        }
        let [records, journal, parked, done] = &names;
        let mut records = transaction.open_table(definition(records))?;
        let mut journal = transaction.open_table(definition(journal))?;
        let mut parked = transaction.open_table(definition(parked))?;
        let mut done = transaction.open_table(definition(done))?;
        for ((table, key), bytes) in rows {
            let rows = match table {
                Table::Records => &mut records,
                Table::Journal => &mut journal,
                Table::Parked => &mut parked,
                Table::Done => &mut done,
            };
            let key = key.as_str();
            match bytes {
                Some(bytes) => drop(rows.insert(key, stored::seal(key, bytes).as_slice())?),
                None => drop(rows.remove(key)?),
            }
        }
        head.insert(covered_of(sink).as_str(), covered.to_string().as_str())?;
    }
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests;
