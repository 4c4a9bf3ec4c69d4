//! The directory of a clone: whoever reads it keeps it where it is.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::{fs, io};

use super::lock;

/// Held by whoever reads a clone.
#[derive(Debug)]
pub(super) struct Reading;

/// A directory, and who reads the clone in it.
#[derive(Debug)]
pub(super) struct CloneDir {
    path: PathBuf,
    /// Another one after the clone was taken away.
    reading: Mutex<Arc<Reading>>,
}

impl CloneDir {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, reading: Mutex::new(Arc::new(Reading)) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The clone is not taken away while the answer is held.
    pub(super) fn read(&self) -> Arc<Reading> {
        self.lock().clone()
    }

    /// Tells the clone that is there now from the ones after it, and keeps none.
    pub(super) fn mark(&self) -> Weak<Reading> {
        Arc::downgrade(&self.lock())
    }

    /// As [`CloneDir::read`], unless the clone was taken away since it was marked.
    pub(super) fn read_marked(&self, mark: &Weak<Reading>) -> Option<Arc<Reading>> {
        let reading = self.lock();
        std::ptr::eq(mark.as_ptr(), Arc::as_ptr(&reading)).then(|| reading.clone())
    }

    /// Does something to the clone, unless somebody reads it; until it is done nobody begins to.
    pub(super) fn while_unread(&self, act: impl FnOnce()) -> bool {
        let reading = self.lock();
        let unread = Arc::strong_count(&reading) == 1;
        if unread {
            act();
        }
        unread
    }

    /// Takes the clone away and says so, unless somebody reads it.
    pub(super) fn take_away(&self) -> io::Result<bool> {
        let gone = self.path.with_extension("old.gone");
        if let Err(error) = fs::remove_dir_all(&gone)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        {
            let mut reading = self.lock();
            if Arc::strong_count(&reading) > 1 {
                return Ok(false);
            }
            fs::rename(&self.path, &gone)?;
            *reading = Arc::new(Reading);
        }
        // What stays of it is removed at the next start.
        let _ = fs::remove_dir_all(&gone);
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Reading>> {
        lock(&self.reading)
    }
}

#[cfg(test)]
mod tests {
    use super::CloneDir;

    #[test]
    fn a_clone_is_taken_away_only_while_nobody_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let clone = CloneDir::new(folder.path().join("a.git"));
        std::fs::create_dir(clone.path()).unwrap();
        let before = clone.mark();
        let reading = clone.read_marked(&before).unwrap();
        assert!(!clone.take_away().unwrap());
        assert!(clone.path().exists());
        drop(reading);
        assert!(clone.take_away().unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(clone.read_marked(&before).is_none(), "what was marked is gone");
        clone.take_away().unwrap_err();
    }
}
