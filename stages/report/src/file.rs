//! Appends reports to a file, a line each.
//!
//! takes: shipments - gives: an answer for each, after its line is on the disk; one fsync serves all batches that came while
//! the last was written - calls: nobody; lines are `{"idempotencyKey", "traceparent", "application", "kind",
//! "data"}`, newline-delimited JSON - fails: whatever the disk says (full, gone) retries; no half line stays.
//! The file may be moved away or removed by others (logrotate): the next batch finds that and opens a new
//! one. Only one process writes to it.
//!
//! Where digests are asked for they are lines too, `{"digest": {"ledger", "shard", "shards", "applications",
//! "entities", "digest", "at"}}`, which are told from reports by their one member: a report never has a `digest`,
//! a digest never an `idempotencyKey` or `data`. Whoever follows the file finds by them whether it missed a report:
//! the last keys of all entities of the shard give that digest, in the way that a platform computes it. Nobody
//! answers.

use std::fs::{self, File as Handle, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use pipeline_core::{Compared, Reason, ShardDigest, Shipment, StageError};

use crate::envelope;
use crate::lines::{Lines, Output};

/// The file that is written.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where; created (mode 0640) if it is not there, its folder is not.
    pub path: PathBuf,
}

impl Config {
    /// Opens the file and starts the thread that writes it. Blocks.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be opened, or another process writes to it.
    pub fn build(self) -> Result<File, ConfigError> {
        let handle = open(&self.path).map_err(|error| match error {
            TryLockError::WouldBlock => ConfigError::Taken { path: self.path.clone() },
            TryLockError::Error(source) => ConfigError::Open { path: self.path.clone(), source },
        })?;
        let open_file = OpenFile {
            path: self.path.clone(),
            torn: ends_torn(&handle).unwrap_or(false),
            handle: Some(handle),
            uncommitted: false,
        };
        let lines = Lines::start("file-sink", open_file)
            .map_err(|source| ConfigError::Open { path: self.path.clone(), source })?;
        Ok(File { lines })
    }
}

/// A file that cannot be written as configured.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be opened.
    #[error("cannot open the report file {}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else writes to it.
    #[error("another process writes to the report file {}: give each its own", path.display())]
    Taken {
        /// Which file.
        path: PathBuf,
    },
}

/// The sink that writes to a file.
#[derive(Debug)]
pub struct File {
    lines: Lines,
}

#[pipeline_core::async_trait]
impl pipeline_core::Sink for File {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        self.lines.ship(shipments).await
    }

    fn name(&self) -> &'static str {
        "file"
    }

    async fn digest(&self, digest: &ShardDigest) -> Result<Compared, StageError> {
        self.lines.append(envelope::digest_line(digest)).await?;
        Ok(Compared::Unknown)
    }
}

/// The open file, on its thread.
struct OpenFile {
    path: PathBuf,
    handle: Option<Handle>,
    /// The file ends in the middle of a line: a crash, or a failure that could not be undone.
    torn: bool,
    /// Lines were appended since the last commit.
    uncommitted: bool,
}

impl OpenFile {
    /// Opens the file anew if the path no longer leads to it; but not between lines that were appended and
    /// their commit, which makes them last in one place.
    fn follow(&mut self) -> io::Result<()> {
        if !self.uncommitted {
            self.handle.take_if(|handle| !leads_to(&self.path, handle));
        }
        if self.handle.is_none() {
            let handle = open(&self.path).map_err(io::Error::from)?;
            self.torn = ends_torn(&handle)?;
            self.handle = Some(handle);
        }
        Ok(())
    }
}

impl Output for OpenFile {
    const ACT: &'static str = "write to the report file";

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.follow()?;
        let Some(handle) = &mut self.handle else { return Err(io::ErrorKind::NotFound.into()) };
        let start = handle.metadata()?.len();
        let written = match self.torn {
            true => handle.write_all(b"\n").and_then(|()| handle.write_all(lines)),
            false => handle.write_all(lines),
        };
        match &written {
            Ok(()) => {
                self.torn = false;
                self.uncommitted = true;
            }
            // A line that was cut must not run into the next one.
            Err(_) => self.torn |= handle.set_len(start).is_err(),
        }
        written
    }

    fn commit(&mut self) -> io::Result<()> {
        self.uncommitted = false;
        self.handle.as_ref().map_or(Ok(()), Handle::sync_data)
    }

    fn failed(&mut self, error: &io::Error) -> Reason {
        let path = self.path.display();
        tracing::warn!(%path, error = error as &dyn std::error::Error, "reports could not be written to the file");
        Reason::Io
    }
}

fn open(path: &Path) -> Result<Handle, TryLockError> {
    let handle = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o640)
        .open(path)
        .map_err(TryLockError::Error)?;
    handle.try_lock()?;
    Ok(handle)
}

fn leads_to(path: &Path, handle: &Handle) -> bool {
    match (fs::metadata(path), handle.metadata()) {
        (Ok(there), Ok(ours)) => (there.dev(), there.ino()) == (ours.dev(), ours.ino()),
        _ => false,
    }
}

/// Whether the file ends in the middle of a line.
fn ends_torn(handle: &Handle) -> io::Result<bool> {
    use std::os::unix::fs::FileExt as _;
    let Some(last) = handle.metadata()?.len().checked_sub(1) else { return Ok(false) };
    let mut byte = [0_u8];
    handle.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}
