//! A pack on its way into a repository: looked through, indexed, and there only when all of it came.

use std::io::Write as _;
use std::path::Path;

use bytes::Bytes;
use git2::{Indexer, Repository};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::scan::{Refusal, Scan};
use super::{FetchError, RepositoryUrl};
use crate::GitSeries;

/// Parts of a pack that wait to be written; each is at most 64 KiB.
const WAITING: usize = 16;

/// What a pack may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackLimits {
    /// Bytes that arrive.
    pub(super) bytes: u64,
    /// Bytes of one object.
    pub(super) object: u64,
}

/// Takes a pack into a repository. Dropped before its end, nothing of it stays.
pub(super) struct PackReceiver {
    sender: mpsc::Sender<Option<Bytes>>,
    written: JoinHandle<Result<(), FetchError>>,
    url: RepositoryUrl,
    limit: u64,
    received: u64,
    series: GitSeries,
    _cancel: DropGuard,
}

impl PackReceiver {
    /// Begins to take one into the repository of a directory.
    pub(super) fn new(directory: &Path, url: &RepositoryUrl, limits: PackLimits, series: GitSeries) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        let stop = CancellationToken::new();
        let cancel = stop.clone().drop_guard();
        let (directory, of) = (directory.to_owned(), url.clone());
        let written =
            tokio::task::spawn_blocking(move || write(&directory, &of, limits.object, receiver, &stop));
        Self { sender, written, url: url.clone(), limit: limits.bytes, received: 0, series, _cancel: cancel }
    }

    /// Takes the next bytes.
    pub(super) async fn take(&mut self, bytes: Bytes) -> Result<(), FetchError> {
        self.received += bytes.len() as u64;
        self.series.received(bytes.len() as u64);
        if self.received > self.limit {
            return Err(FetchError::TooLarge { url: self.url.to_string(), limit: self.limit });
        }
        match self.sender.send(Some(bytes)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.end().await.err().unwrap_or(FetchError::Stopping)),
        }
    }

    /// It is whole: it is indexed and becomes part of the repository.
    pub(super) async fn finish(mut self) -> Result<(), FetchError> {
        // Who is gone says why when it is asked.
        let _ = self.sender.send(None).await;
        self.end().await
    }

    async fn end(&mut self) -> Result<(), FetchError> {
        (&mut self.written).await.unwrap_or(Err(FetchError::Stopping))
    }
}

fn write(
    directory: &Path,
    url: &RepositoryUrl,
    limit: u64,
    mut receiver: mpsc::Receiver<Option<Bytes>>,
    cancelled: &CancellationToken,
) -> Result<(), FetchError> {
    let damaged = |why: &str| FetchError::Damaged { url: url.to_string(), why: why.to_owned() };
    let cannot = |error: git2::Error| FetchError::cache(directory, error.message());
    let repository = Repository::open_bare(directory).map_err(cannot)?;
    let odb = repository.odb().map_err(cannot)?;
    // The library's own verification takes a submodule's commit for one that is missing; ours is `bare::is_whole`.
    let mut indexer =
        Indexer::new(Some(&odb), &directory.join("objects/pack"), 0o644, false).map_err(cannot)?;
    indexer.progress(|_| !cancelled.is_cancelled());
    let mut scan = Scan::new(limit);
    while let Some(part) = receiver.blocking_recv() {
        let Some(bytes) = part else {
            if !scan.is_done() {
                return Err(damaged("it ends before its end"));
            }
            return match indexer.commit() {
                Ok(_) => Ok(()),
                Err(_) if cancelled.is_cancelled() => Err(FetchError::Stopping),
                Err(error) if error.class() == git2::ErrorClass::Os => Err(cannot(error)),
                Err(error) => Err(damaged(error.message())),
            };
        };
        scan.feed(&bytes).map_err(|refusal| match refusal {
            Refusal::Damaged(why) => damaged(why),
            Refusal::Large(size) => FetchError::LargeObject { url: url.to_string(), size, limit },
        })?;
        indexer.write_all(&bytes).map_err(|error| {
            let text = error.to_string();
            // What the disk says is about the disk; what the index says is about the pack.
            if text.contains("class=Os") { FetchError::cache(directory, text) } else { damaged(&text) }
        })?;
    }
    Err(FetchError::Stopping)
}
