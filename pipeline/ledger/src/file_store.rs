//! The ledger's file and the file of send intents beside it, as a store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};

use super::error::Failure;
use super::file::LedgerFile;
use super::group_commit::Group;
use super::intent_file::IntentFile;
use super::intents::Intent;
use super::state::Shared;
use super::store::{Store, Unwritten};

/// Both files.
pub(super) struct FileStore {
    shared: Arc<Shared>,
    path: PathBuf,
    /// `None` when it is closed.
    file: Mutex<Option<LedgerFile>>,
    pub(super) intents: IntentFile,
}

impl FileStore {
    pub(super) fn new(shared: Arc<Shared>, path: &Path, file: LedgerFile, intents: IntentFile) -> Self {
        Self { shared, path: path.to_owned(), file: Mutex::new(Some(file)), intents }
    }

    fn file(&self) -> MutexGuard<'_, Option<LedgerFile>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, group: &Group) -> Result<(), Failure> {
        let mut file = self.file();
        let file = file.as_mut().ok_or(Failure::Stopped)?;
        file.commit(&group.rows, group.number, || {
            let state = self.shared.lock();
            state.image(state.tables.row_ids())
        })
    }
}

impl Store for FileStore {
    fn storage(&self) -> &'static str {
        "file"
    }

    fn commit<'a>(&'a self, group: &'a Group) -> BoxFuture<'a, Result<(), Unwritten>> {
        let written = self.write(group);
        match written {
            Ok(()) => self.intents.covered(group.number),
            Err(_) => self.intents.sync(),
        }
        let row_ids = || group.rows.iter().map(|(row_id, _)| row_id.clone()).collect();
        ready(written.map_err(|failure| Unwritten { row_ids: row_ids(), failure, pauses: true })).boxed()
    }

    fn intend(&self, intent: Intent) -> BoxFuture<'_, bool> {
        self.intents.write(intent).map(|_| true).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        // While the ledger's file is still locked, so that no other process writes the one while this one does.
        self.intents.close();
        *self.file() = None;
        ready(()).boxed()
    }

    fn intent_errors(&self) -> u64 {
        self.intents.errors()
    }

    fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |file| file.len())
    }
}
