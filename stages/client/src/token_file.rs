//! A token that stands in a file.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pipeline_core::{ExposeSecret as _, SecretString};
use tokio::io::AsyncReadExt as _;

use crate::TokenError;

/// No token is longer; what is, is not a token.
pub(crate) const MAX_BYTES: u64 = 64 * 1024;
/// How often a file is looked at by whoever waits for it to change. Asked for and not notified of: a mounted secret is
/// a link to a folder that is replaced as a whole, which no watch of the file itself sees, and one look costs one
/// system call.
pub(crate) const POLL: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 1_000 });

/// A file that was looked at so lately is not looked at again for a header: each request asks for one, and a look leaves
/// the runtime's threads.
const LATELY: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 100 });

/// A file that holds a token and may be replaced while the process runs, as a mounted secret is.
pub struct TokenFile {
    path: PathBuf,
    last: Mutex<Option<CachedToken>>,
    /// What the file held when a change of it was told last.
    told: Mutex<Option<SecretString>>,
    complained: AtomicBool,
}

/// What was read of the file.
#[derive(Clone)]
struct CachedToken {
    stamp: Stamp,
    token: SecretString,
    /// When the file was seen to hold this.
    looked: Instant,
}

/// Tells two contents of a path apart: a mounted secret is replaced by another file, an edited one has newer
/// times, of which the second cannot be set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl TokenFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        let (last, told) = (Mutex::new(None), Mutex::new(None));
        Self { path, last, told, complained: AtomicBool::new(false) }
    }

    /// A file that vanishes or empties after it was read once (a volume that is being replaced) leaves the
    /// known token in use: if that is no longer right, the peer says so.
    pub(crate) async fn read(&self) -> Result<SecretString, TokenError> {
        match self.fresh().await {
            Ok(token) => {
                self.complained.store(false, Ordering::Relaxed);
                Ok(token)
            }
            Err(error) => {
                let (path, held) = (self.path.display(), self.held());
                if !self.complained.swap(true, Ordering::Relaxed) {
                    let error = &error as &dyn std::error::Error;
                    if held.is_some() {
                        tracing::warn!(%path, error, "the token read before stays in use");
                    } else {
                        tracing::error!(%path, error, "no token can be read: until the file holds one nothing is sent");
                    }
                }
                held.map(|held| held.token).ok_or(error)
            }
        }
    }

    async fn fresh(&self) -> Result<SecretString, TokenError> {
        let stamp = self.stamp().await?;
        let held = match self.held().filter(|held| held.stamp == stamp) {
            Some(held) => CachedToken { looked: Instant::now(), ..held },
            None => {
                let (stamp, token) = self.content().await?;
                CachedToken { stamp, token, looked: Instant::now() }
            }
        };
        self.hold(held.clone());
        Ok(held.token)
    }

    async fn stamp(&self) -> Result<Stamp, TokenError> {
        let fail = |source| TokenError::Read { path: self.path.clone(), source };
        Ok(Stamp::of(&tokio::fs::metadata(&self.path).await.map_err(fail)?))
    }

    /// What the file holds, whatever was read of it before.
    async fn content(&self) -> Result<(Stamp, SecretString), TokenError> {
        let fail = |source| TokenError::Read { path: self.path.clone(), source };
        let file = tokio::fs::File::open(&self.path).await.map_err(fail)?;
        // Of the opened file, not of the path: what is read now must not be remembered as what comes next.
        let stamp = Stamp::of(&file.metadata().await.map_err(fail)?);
        let mut text = String::new();
        file.take(MAX_BYTES + 1).read_to_string(&mut text).await.map_err(fail)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(TokenError::TooLarge { path: self.path.clone() });
        }
        // Windows begins a file with a mark of its encoding.
        let token = text.trim_start_matches('\u{feff}').trim();
        if token.is_empty() {
            return Err(TokenError::Empty { path: self.path.clone() });
        }
        Ok((stamp, SecretString::from(token.to_owned())))
    }

    /// Leaves what was given out last as it is: who sends reads the file itself.
    pub(crate) async fn changed(&self) {
        let mut looked = None;
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let before = match told.or_else(|| self.held().map(|held| held.token)) {
            Some(token) => Some(token),
            None => self.content().await.ok().map(|(stamp, token)| {
                looked = Some(stamp);
                token
            }),
        };
        loop {
            tokio::time::sleep(POLL).await;
            let Ok(stamp) = self.stamp().await else { continue };
            if looked == Some(stamp) {
                continue;
            }
            if let Ok((stamp, now)) = self.content().await {
                looked = Some(stamp);
                if before.as_ref().is_none_or(|before| before.expose_secret() != now.expose_secret()) {
                    *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(now.clone());
                    // Whoever goes on now sends the new one.
                    self.hold(CachedToken { stamp, token: now, looked: Instant::now() });
                    return;
                }
            }
        }
    }

    /// What was read last, if the file was looked at lately. Whoever is told that it was not is the one who looks:
    /// others who ask at the same time are not made to look as well.
    pub(crate) fn lately(&self) -> Option<SecretString> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let held = last.as_mut()?;
        if held.looked.elapsed() < LATELY {
            return Some(held.token.clone());
        }
        held.looked = Instant::now();
        None
    }

    /// What was read last.
    fn held(&self) -> Option<CachedToken> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hold(&self, held: CachedToken) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Stamp {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
