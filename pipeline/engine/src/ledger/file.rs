//! The ledger's file: opened and checked as a whole, written in groups, set aside when it is corrupt.
//!
//! takes: a path, the sink's name, and keys to commit - gives: every record at the start
//! calls: redb; all of it blocks - fails: [`LedgerError`] at the start, [`Failure`] for a commit, after which
//! the file is opened again
//!
//! Two tables: `ledger` (format and id) and `records/<sink>` (key to sealed record). redb checks every page
//! when it opens the file; each record has a checksum of its own on top, over its key too.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use pipeline_core::{Key, Timestamp};
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition,
};

use super::error::{Failure, LedgerError};
use super::{Origin, Records, new_id, packed};

/// The format of the two tables; a record's own format stands in its first byte.
const FORMAT: u64 = 1;
/// Corrupt files kept beside the ledger; older ones are removed, so that a bad disk is not filled too.
const KEPT_ASIDE: usize = 3;

const LEDGER: TableDefinition<'_, &str, &str> = TableDefinition::new("ledger");

/// Opens the file, or makes it; called again after a failed commit.
pub(super) type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

/// What was in the file.
pub(super) struct Loaded {
    pub(super) id: String,
    pub(super) records: Records,
    pub(super) origin: Origin,
}

/// An open ledger file; its owner is the only one who writes it.
pub(super) struct Store {
    path: PathBuf,
    table: String,
    id: String,
    opener: Opener,
    /// `None` after a failure: redb takes nothing more until the file is opened again.
    database: Option<Database>,
}

/// Why a file is not a ledger that can be used.
enum Unusable {
    /// It is damaged: it is set aside.
    Corrupt,
    /// It is somebody's to repair.
    Error(LedgerError),
}

/// Whether a commit reached a file that holds everything else.
pub(super) enum Committed {
    /// It did.
    Keys,
    /// The file was found empty: all records are to be committed.
    Nothing,
}

/// The opener of a real file.
pub(super) fn opener(path: PathBuf, cache: usize) -> Opener {
    Box::new(move || {
        make_private(&path)?;
        Builder::new().set_cache_size(cache).set_check_integrity_on_open(true).create(&path)
    })
}

impl Store {
    /// Opens the file and reads all of it.
    pub(super) fn open(path: &Path, sink: &str, opener: Opener) -> Result<(Self, Loaded), LedgerError> {
        let table = format!("records/{sink}");
        let whole = || {
            guarded(|| {
                let (database, head) = attempt(path, &opener, None)?;
                let records = records(&database, &table).map_err(|error| unreadable(path, error))?;
                let origin = if head.new { Origin::New } else { Origin::Existing };
                Ok((database, Loaded { id: head.id, records: records.ok_or(Unusable::Corrupt)?, origin }))
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
        let id = loaded.id.clone();
        Ok((Self { path: path.to_owned(), table, id, opener, database: Some(database) }, loaded))
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Commits the present state of `keys`, as `read` gives it: `None` removes. After a failure the next call
    /// opens the file again.
    pub(super) fn commit<'a>(
        &mut self,
        keys: impl Iterator<Item = &'a Key>,
        read: impl Fn(&Key) -> Option<Box<[u8]>>,
    ) -> Result<Committed, Failure> {
        let database = match self.database.take() {
            Some(database) => database,
            None => match self.reopen()? {
                (database, Committed::Keys) => database,
                (database, Committed::Nothing) => {
                    self.database = Some(database);
                    return Ok(Committed::Nothing);
                }
            },
        };
        // Whatever state a panic leaves the storage in, it is dropped and opened anew.
        match catch_unwind(AssertUnwindSafe(|| write(&database, &self.table, keys, read))) {
            Ok(Ok(())) => {
                self.database = Some(database);
                Ok(Committed::Keys)
            }
            Ok(Err(error)) => Err(Failure::Storage(error)),
            Err(_) => Err(Failure::Stopped),
        }
    }

    /// The records stay where they are: memory has them all, and what the file holds of them is replaced by
    /// what waits.
    fn reopen(&self) -> Result<(Database, Committed), Failure> {
        let head = || guarded(|| attempt(&self.path, &self.opener, Some(&self.id)));
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
        Ok((database, if head.new { Committed::Nothing } else { Committed::Keys }))
    }
}

impl Unusable {
    /// A new file that is corrupt at once is the disk's fault.
    fn lasting(self, path: &Path) -> LedgerError {
        match self {
            Self::Error(error) => error,
            Self::Corrupt => io_error("make", path, redb::Error::Corrupted("a new file".to_owned())),
        }
    }
}

/// A storage that panics over a file says that the file is corrupt.
fn guarded<T>(open: impl FnOnce() -> Result<T, Unusable>) -> Result<T, Unusable> {
    catch_unwind(AssertUnwindSafe(open)).unwrap_or(Err(Unusable::Corrupt))
}

/// Opens the file; one that is made gets `id`, or a new one.
fn attempt(path: &Path, opener: &Opener, id: Option<&str>) -> Result<(Database, Head), Unusable> {
    let database = opener().map_err(|error| unusable(path, error))?;
    let head = head(&database, id).map_err(|error| unreadable(path, error))?;
    if head.format != FORMAT {
        // Earlier formats are migrated here, one step a version; there is none yet.
        let (path, found) = (path.to_owned(), head.format);
        return Err(Unusable::Error(LedgerError::Format { path, found, known: FORMAT }));
    }
    Ok((database, head))
}

struct Head {
    format: u64,
    id: String,
    new: bool,
}

/// Reads format and id; a file that has neither is new and gets them, in one commit.
fn head(database: &Database, id: Option<&str>) -> Result<Head, redb::Error> {
    match read_head(database)? {
        (Some(format), Some(id)) => {
            let format = format.parse().map_err(|_| redb::Error::Corrupted("format".to_owned()))?;
            Ok(Head { format, id, new: false })
        }
        (None, None) => {
            let id = id.map_or_else(new_id, str::to_owned);
            let transaction = database.begin_write()?;
            {
                let mut table = transaction.open_table(LEDGER)?;
                table.insert("format", FORMAT.to_string().as_str())?;
                table.insert("id", id.as_str())?;
            }
            transaction.commit()?;
            Ok(Head { format: FORMAT, id, new: true })
        }
        _ => Err(redb::Error::Corrupted("half a head".to_owned())),
    }
}

fn read_head(database: &Database) -> Result<(Option<String>, Option<String>), redb::Error> {
    let table = match database.begin_read()?.open_table(LEDGER) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok((None, None)),
        Err(error) => return Err(error.into()),
    };
    let read = |name: &str| Ok::<_, redb::Error>(table.get(name)?.map(|value| value.value().to_owned()));
    Ok((read("format")?, read("id")?))
}

/// Every record; `None` when one of them is damaged, because a record that is left out would give old
/// idempotency keys to new reports.
fn records(database: &Database, table: &str) -> Result<Option<Records>, redb::Error> {
    let transaction = database.begin_read()?;
    let definition: TableDefinition<'_, &str, &[u8]> = TableDefinition::new(table);
    let table = match transaction.open_table(definition) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Some(Records::new())),
        Err(error) => return Err(error.into()),
    };
    let mut records = Records::new();
    for entry in table.iter()? {
        let (key, sealed) = entry?;
        let (text, sealed) = (key.value(), sealed.value());
        let (Ok(key), Ok(packed)) = (Key::parse(text), packed::unseal(text, sealed)) else { return Ok(None) };
        if packed::decode(packed).is_err() {
            return Ok(None);
        }
        records.insert(key, packed.into());
    }
    Ok(Some(records))
}

fn write<'a>(
    database: &Database,
    table: &str,
    keys: impl Iterator<Item = &'a Key>,
    read: impl Fn(&Key) -> Option<Box<[u8]>>,
) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let definition: TableDefinition<'_, &str, &[u8]> = TableDefinition::new(table);
        let mut table = transaction.open_table(definition)?;
        for key in keys {
            let key_text = key.as_str();
            match read(key) {
                Some(packed) => {
                    table.insert(key_text, packed::seal(key_text, &packed).as_slice())?;
                }
                None => {
                    table.remove(key_text)?;
                }
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

/// What the storage's answer to reading a file means.
fn unreadable(path: &Path, error: redb::Error) -> Unusable {
    match error {
        redb::Error::Io(_) => Unusable::Error(io_error("read", path, error)),
        _ => Unusable::Corrupt,
    }
}

/// What the storage's answer to opening a file means.
fn unusable(path: &Path, error: DatabaseError) -> Unusable {
    let path_buf = || path.to_owned();
    Unusable::Error(match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            LedgerError::Held { path: path_buf() }
        }
        DatabaseError::Storage(StorageError::Io(source)) => match source.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                LedgerError::Permission { path: path_buf(), source }
            }
            ErrorKind::NotFound | ErrorKind::NotADirectory => LedgerError::NoFolder { path: path_buf() },
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof => return Unusable::Corrupt,
            _ => io_error("open", path, redb::Error::Io(source)),
        },
        // The file says something that this storage never wrote.
        DatabaseError::UpgradeRequired(_)
        | DatabaseError::RepairAborted
        | DatabaseError::Storage(StorageError::Corrupted(_)) => return Unusable::Corrupt,
        error => io_error("open", path, error.into()),
    })
}

fn io_error(act: &'static str, path: &Path, source: redb::Error) -> LedgerError {
    LedgerError::Io { act, path: path.to_owned(), source: Box::new(source) }
}

/// Makes the file with mode 0600 if it is not there: it names repositories and clusters.
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            file.sync_all()?;
            sync_folder(path)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes a new or renamed name outlive a power loss.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Renames a corrupt file to `<name>.corrupt-<time>` and forgets the oldest of such files.
fn set_aside(path: &Path) -> Result<PathBuf, LedgerError> {
    let failed = |source| io_error("set aside", path, redb::Error::Io(source));
    let name = |time: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".corrupt-{time}"));
        PathBuf::from(name)
    };
    let aside = name(&Timestamp::now().strftime("%Y%m%dT%H%M%S.%6fZ").to_string());
    std::fs::rename(path, &aside).map_err(failed)?;
    sync_folder(path).map_err(failed)?;

    let folder = aside.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let prefix = name("");
    let (Some(prefix), Ok(entries)) =
        (prefix.file_name().map(|name| name.as_encoded_bytes()), folder.read_dir())
    else {
        return Ok(aside);
    };
    let mut kept: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    kept.sort_unstable();
    for oldest in kept.iter().rev().skip(KEPT_ASIDE) {
        if let Err(error) = std::fs::remove_file(oldest) {
            tracing::warn!(file = %oldest.display(), %error, "cannot remove an old corrupt ledger file");
        }
    }
    Ok(aside)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
