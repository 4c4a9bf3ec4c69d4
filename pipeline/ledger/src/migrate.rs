//! Files of earlier formats, and files with more room than they need.

use std::path::Path;

use redb::{Database, ReadableTable as _, TableHandle as _};

use super::aside::{Unusable, unreadable};
use super::file::{FORMAT, LEDGER, begin, definition};
use super::{binary, packed};

/// A file that is longer is compacted when more than half of it is free.
pub(super) const COMPACT: u64 = 8 << 20;

/// Brings a file of format `found` to [`FORMAT`], in one transaction: a process that is killed in the middle leaves
/// the file as it was.
pub(super) fn migrate(database: &Database, path: &Path, found: u64) -> Result<(), Unusable> {
    let records = rewrite(database).map_err(|error| match unreadable(path, error) {
        Unusable::Error(super::LedgerError::Io { path, source, .. }) => {
            Unusable::Error(super::LedgerError::Io { act: "migrate", path, source })
        }
        other => other,
    })?;
    tracing::info!(file = %path.display(), from = found, to = FORMAT, records, "the ledger file was migrated");
    Ok(())
}

/// Rewrites all records in the present format, so that none takes the room of an earlier one.
fn rewrite(database: &Database) -> Result<usize, redb::Error> {
    let damaged = |what: &str| redb::Error::Corrupted(what.to_owned());
    let transaction = begin(database)?;
    let names: Vec<String> = transaction.list_tables()?.map(|table| table.name().to_owned()).collect();
    let mut count = 0;
    for name in names.iter().filter(|name| name.starts_with("records/")) {
        let mut rows = transaction.open_table(definition(name))?;
        let mut keys = Vec::new();
        for entry in rows.iter()? {
            keys.push(entry?.0.value().to_owned());
        }
        for key in &keys {
            let sealed = rows.get(key.as_str())?.map(|sealed| sealed.value().to_vec()).unwrap_or_default();
            let record = binary::unseal(key, &sealed).and_then(packed::decode);
            let record = record.map_err(|_| damaged("a record of an earlier format"))?;
            rows.insert(key.as_str(), binary::seal(key, &packed::encode(&record)).as_slice())?;
        }
        count += keys.len();
    }
    transaction.open_table(LEDGER)?.insert("format", FORMAT.to_string().as_str())?;
    transaction.commit()?;
    Ok(count)
}

/// Gives back what of a long file is free. A failure is said, and the file is used as it is.
pub(super) fn compact(mut database: Database, path: &Path) -> Database {
    let length = || std::fs::metadata(path).map_or(0, |file| file.len());
    let before = length();
    if before <= COMPACT || used(&database).unwrap_or(before).saturating_mul(2) >= before {
        return database;
    }
    match database.compact() {
        Ok(_) => tracing::info!(
            file = %path.display(), before, after = length(), "the ledger file was compacted: sizes are in bytes"
        ),
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the ledger file stays as long as it is"
            );
        }
    }
    database
}

/// Bytes of pages that hold something, at most: a page is at least half full.
fn used(database: &Database) -> Result<u64, redb::Error> {
    let transaction = begin(database)?;
    let stats = transaction.stats()?;
    let used = 2 * (stats.stored_bytes() + stats.metadata_bytes());
    transaction.abort()?;
    Ok(used)
}

#[cfg(test)]
#[path = "migrate_tests.rs"]
mod tests;
