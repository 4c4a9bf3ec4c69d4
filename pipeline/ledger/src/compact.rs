//! Files with more room than they need.

use std::path::Path;

use redb::Database;

use super::file::begin;

/// A file that is longer is compacted when more than half of it is free.
const COMPACT: u64 = 8 << 20;

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
mod tests {
    use std::fs;

    use super::*;
    use crate::Origin;
    use crate::hostile_tests::fast_folder;
    use crate::tests::{counted, key, open};

    #[test]
    fn a_file_that_is_mostly_free_is_compacted() {
        let folder = fast_folder();
        let path = folder.path().join("ledger.redb");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ledger = open(&path);
        let id = ledger.id().to_owned();
        let mut large = counted(3);
        large.state = vec![b'x'; 2000].into();
        for n in 0..5000 {
            ledger.update(&key(n), |_| Some(large.clone()));
        }
        runtime.block_on(ledger.flush()).unwrap();
        for n in 0..4900 {
            ledger.update(&key(n), |_| None);
        }
        runtime.block_on(ledger.flush()).unwrap();
        let before = ledger.status().file_bytes;
        drop(ledger);
        assert!(before > COMPACT, "{before}");
        let ledger = open(&path);
        let after = ledger.status().file_bytes;
        assert!(after < before / 2, "{before} bytes became {after}");
        assert_eq!(after, fs::metadata(&path).unwrap().len());
        assert_eq!((ledger.id(), ledger.origin()), (id.as_str(), &Origin::Existing));
        assert_eq!((ledger.known().len(), ledger.get(&key(4999))), (100, Some(large)));
    }
}
