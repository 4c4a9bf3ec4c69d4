//! Locks of files beside a store.
//!
//! takes: the path of the file - gives: a lock, for as long as it is held - fails: another process has it, the file cannot be made, or
//! its file system has no locks

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::database::with_end;
use crate::error::StoreError;

/// A lock that ends when it is dropped: a program that this process begins in that very moment has the file open as well, and would
/// keep a lock that ends with the file.
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl Drop for FileLock {
    fn drop(&mut self) {
        // Where that fails it ends with the file.
        let _ = self.0.unlock();
    }
}

/// One process has a file: two writers would wait for each other at best.
pub(crate) fn lock(path: &Path) -> Result<FileLock, StoreError> {
    let beside = with_end(path, ".lock");
    let file = |source| StoreError::File { act: "open", path: beside.display().to_string(), source };
    let lock = File::create(&beside).map_err(file)?;
    lock.try_lock().map_err(|error| refused(error, path))?;
    Ok(FileLock(lock))
}

/// Somebody has it, or nobody can.
fn refused(error: TryLockError, path: &Path) -> StoreError {
    match error {
        TryLockError::WouldBlock => StoreError::InUse(path.display().to_string()),
        TryLockError::Error(source) => no_lock(&with_end(path, ".lock"), source),
    }
}

fn no_lock(beside: &Path, source: io::Error) -> StoreError {
    StoreError::NoLock { path: beside.display().to_string(), source }
}

/// Whoever looks at which tables there are, and makes them, does so alone: for a moment, which all the others wait for.
pub(crate) async fn turn(path: &Path) -> Result<FileLock, StoreError> {
    let beside = with_end(path, ".migrating");
    let file = |source| StoreError::File { act: "open", path: beside.display().to_string(), source };
    let made = File::create(&beside).map_err(file)?;
    let locked = tokio::task::spawn_blocking(move || made.lock().map(|()| FileLock(made))).await;
    locked.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|source| no_lock(&beside, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_when_it_is_dropped_although_somebody_has_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("platform.db");
        let held = lock(&path).unwrap();
        // A child has such a copy until it runs its program.
        let _copy = held.0.try_clone().unwrap();
        let said = format!("another process has the store {} open: stop it first", path.display());
        assert_eq!(lock(&path).unwrap_err().to_string(), said);
        drop(held);
        lock(&path).unwrap();
    }

    #[test]
    fn a_file_system_without_locks_is_told_apart_from_another_process() {
        let path = Path::new("/data/platform.db");
        // ENOLCK, as of NFS whose server has no lock manager.
        let error = refused(TryLockError::Error(io::Error::from_raw_os_error(37)), path);
        assert!(matches!(error, StoreError::NoLock { .. }), "{error:?}");
        let said = "cannot lock /data/platform.db.lock: the store is to be on a disk of this machine, as network file systems may \
                    have no locks, or in Postgres";
        assert_eq!(error.to_string(), said);
        let error = refused(TryLockError::WouldBlock, path);
        assert!(matches!(error, StoreError::InUse(_)), "{error:?}");
    }
}
