//! A file that cannot be used: what the storage's answers mean, and where a corrupt file goes.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pipeline_core::Timestamp;
use redb::{DatabaseError, StorageError};

use super::error::LedgerError;

/// Corrupt files kept beside the ledger; older ones are removed, so that a bad disk is not filled too.
pub(super) const KEPT_ASIDE: usize = 3;

/// Why a file is not a ledger that can be used.
pub(super) enum Unusable {
    /// It is damaged: it is set aside.
    Corrupt,
    /// It is somebody's to repair.
    Error(LedgerError),
}

impl Unusable {
    /// A new file that is corrupt at once is the disk's fault.
    pub(super) fn lasting(self, path: &Path) -> LedgerError {
        match self {
            Self::Error(error) => error,
            Self::Corrupt => io_error("make", path, redb::Error::Corrupted("a new file".to_owned())),
        }
    }
}

/// What the storage's answer to reading a file means.
pub(super) fn unreadable(path: &Path, error: redb::Error) -> Unusable {
    match error {
        redb::Error::Io(_) | redb::Error::PreviousIo => Unusable::Error(io_error("read", path, error)),
        _ => Unusable::Corrupt,
    }
}

/// What the storage's answer to opening a file means.
pub(super) fn unusable(path: &Path, error: DatabaseError) -> Unusable {
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

pub(super) fn io_error(act: &'static str, path: &Path, source: redb::Error) -> LedgerError {
    LedgerError::Io { act, path: path.to_owned(), source: Box::new(source) }
}

/// Makes the file with mode 0600 if it is not there: it names repositories and clusters.
pub(super) fn make_private(path: &Path) -> std::io::Result<()> {
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
pub(super) fn sync_folder(path: &Path) -> std::io::Result<()> {
    std::fs::File::open(folder_of(path))?.sync_all()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Renames a corrupt file to `<name>.corrupt-<time>` and forgets the oldest of such files.
pub(super) fn set_aside(path: &Path) -> Result<PathBuf, LedgerError> {
    let failed = |source| io_error("set aside", path, redb::Error::Io(source));
    let name = |time: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".corrupt-{time}"));
        PathBuf::from(name)
    };
    let aside = name(&Timestamp::now().strftime("%Y%m%dT%H%M%S.%6fZ").to_string());
    std::fs::rename(path, &aside).map_err(failed)?;
    sync_folder(path).map_err(failed)?;

    let prefix = name("");
    let (Some(prefix), Ok(entries)) =
        (prefix.file_name().map(|name| name.as_encoded_bytes()), folder_of(&aside).read_dir())
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
