//! The Unix socket of a process: claimed, replaced when its last owner is dead, and removed at the end.
//!
//! takes: a path - gives: a listener on it, for the owner of the process alone (mode 0600)
//! calls: the file system - fails: when another process answers there, or the path is none for a socket

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

/// How many bytes of a socket's path every Unix takes, the closing zero not counted.
const PATH_BYTES: usize = 103;
/// How many names there are for the directory that a socket is made in.
const DIRECTORY_NAMES: u32 = 1 << 24;
/// How many of these names are tried.
const DIRECTORY_TRIES: usize = 16;
/// How long a connection to the socket is waited for: a process that does not take it in this time is busy, and so alive.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Why a socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The operating system has no room for the path.
    #[error(
        "the path of the admin socket {} is longer than the {PATH_BYTES} bytes that a socket's path may have: set \
         admin.socket to a shorter one, such as /tmp/gitops-runtime.sock", path.display()
    )]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Another process answers there.
    #[error(
        "another process answers on the admin socket {}: stop it, or set state.directory or admin.socket to a place \
         of this process's own", path.display()
    )]
    Live {
        /// The path.
        path: PathBuf,
    },
    /// Something that is not a socket is there, and is not touched.
    #[error(
        "{} is there and is no socket: set admin.socket to a path of its own", path.display()
    )]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// The operating system refuses.
    #[error(
        "cannot listen on the admin socket {}: set admin.socket to a path in a directory that this process may \
         write to, or to \"\" for none", path.display()
    )]
    Io {
        /// The path.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl SocketError {
    /// Whether the path is another's: going on without a socket would hide that.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Live { .. } | Self::NoSocket { .. })
    }
}

/// A listener and the file it listens on; dropping it removes the file, unless it is another's by then.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) listener: UnixListener,
    pub(super) file: SocketFile,
}

/// The file of a socket, which is removed when this is dropped unless it is another's by then.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// Whether the operating system takes `path` for a socket.
#[must_use]
pub fn fits(path: &Path) -> bool {
    let longest = path.as_os_str().len().max(socket_in(&directory_path(path, 0)).as_os_str().len());
    longest <= PATH_BYTES && !path.as_os_str().as_bytes().contains(&0)
}

/// Listens on `path`. The socket is made in a directory of its own beside it, which others may not enter, and moved
/// into place when its mode is set, so that nobody else can connect before that.
pub(super) async fn claim(path: &Path) -> Result<Claimed, SocketError> {
    if !fits(path) {
        return Err(SocketError::TooLong { path: path.to_owned() });
    }
    match fs::symlink_metadata(path) {
        Ok(known) if !known.file_type().is_socket() => {
            return Err(SocketError::NoSocket { path: path.to_owned() });
        }
        Ok(_) if is_answered(path).await => return Err(SocketError::Live { path: path.to_owned() }),
        // A dead process left it, or there is none: what is wrong with the directory shows next.
        Ok(_) | Err(_) => {}
    }
    place(path).map_err(|source| SocketError::Io { path: path.to_owned(), source })
}

async fn is_answered(path: &Path) -> bool {
    match tokio::time::timeout(ANSWERS_WITHIN, UnixStream::connect(path)).await {
        Ok(Ok(_)) | Err(_) => true,
        // No right to connect: somebody else's, who may well be alive.
        Ok(Err(error)) => !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound),
    }
}

fn place(path: &Path) -> io::Result<Claimed> {
    let directory = private_directory(path)?;
    let made = socket_in(&directory);
    let placed = UnixListener::bind(&made).and_then(|listener| {
        fs::set_permissions(&made, fs::Permissions::from_mode(0o600))?;
        let known = fs::symlink_metadata(&made)?;
        fs::rename(&made, path)?;
        let file = SocketFile { path: path.to_owned(), identity: (known.dev(), known.ino()) };
        Ok(Claimed { listener, file })
    });
    if placed.is_err() {
        // What cannot be moved is of no use; the first error is the one that tells.
        let _ = fs::remove_file(&made);
    }
    // An empty directory that stays does no harm.
    let _ = fs::remove_dir(&directory);
    placed
}

/// Makes a directory beside `path` that nobody else may enter, of a name that nobody has.
fn private_directory(path: &Path) -> io::Result<PathBuf> {
    let mut made = Err(ErrorKind::AlreadyExists.into());
    for _ in 0..DIRECTORY_TRIES {
        let directory = directory_path(path, fastrand::u32(..DIRECTORY_NAMES));
        made = fs::DirBuilder::new().mode(0o700).create(&directory).map(|()| directory);
        if !matches!(&made, Err(error) if error.kind() == ErrorKind::AlreadyExists) {
            break;
        }
    }
    made
}

fn directory_path(path: &Path, number: u32) -> PathBuf {
    path.with_file_name(format!(".a{number:06x}"))
}

fn socket_in(directory: &Path) -> PathBuf {
    directory.join("s")
}

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let own =
            fs::symlink_metadata(&self.path).is_ok_and(|known| (known.dev(), known.ino()) == self.identity);
        if own {
            // One that stays is found dead by the next process.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_for_its_owner_alone_and_goes_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin.sock");
        let claimed = claim(&path).await.unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(UnixStream::connect(&path).await.is_ok());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
        drop(claimed);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_is_made_where_nobody_else_may_enter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin.sock");
        let made = [private_directory(&path).unwrap(), private_directory(&path).unwrap()];
        assert_ne!(made[0], made[1]);
        for one in made {
            assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o700);
            assert_eq!(one.parent(), Some(directory.path()), "a rename does not leave the file system");
        }
    }

    #[tokio::test]
    async fn a_live_owner_is_left_alone_and_a_dead_ones_file_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("admin.sock");
        let first = claim(&path).await.unwrap();
        let error = claim(&path).await.unwrap_err();
        let expected = format!(
            "another process answers on the admin socket {}: stop it, or set state.directory or admin.socket to a \
             place of this process's own",
            path.display()
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.is_taken() && UnixStream::connect(&path).await.is_ok());
        // A killed process leaves the file behind.
        let Claimed { listener, file } = first;
        drop(listener);
        let second = claim(&path).await.unwrap();
        assert!(UnixStream::connect(&path).await.is_ok());
        // The first owner's end does not take the second one's file.
        drop(file);
        assert!(UnixStream::connect(&path).await.is_ok());
        drop(second);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_is_no_socket_is_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.redb");
        fs::write(&path, "precious").unwrap();
        let error = claim(&path).await.unwrap_err();
        let expected =
            format!("{} is there and is no socket: set admin.socket to a path of its own", path.display());
        assert_eq!(error.to_string(), expected);
        assert!(error.is_taken());
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn paths_that_are_too_long_or_nowhere_are_named() {
        let long = Path::new("/tmp").join("d".repeat(99)).join("s");
        let error = claim(&long).await.unwrap_err();
        let expected = format!(
            "the path of the admin socket {} is longer than the 103 bytes that a socket's path may have: set \
             admin.socket to a shorter one, such as /tmp/gitops-runtime.sock",
            long.display()
        );
        assert_eq!(error.to_string(), expected);
        assert!(fits(Path::new("/var/lib/gitops-runtime/admin.sock")));
        let nowhere = tempfile::tempdir().unwrap().path().join("gone/admin.sock");
        let error = claim(&nowhere).await.unwrap_err();
        let expected = format!(
            "cannot listen on the admin socket {}: set admin.socket to a path in a directory that this process may \
             write to, or to \"\" for none",
            nowhere.display()
        );
        assert_eq!(error.to_string(), expected);
        assert!(!error.is_taken());
    }
}
