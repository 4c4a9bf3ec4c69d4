//! The token that a peer is called with, from the configuration or from a file.
//!
//! takes: a secret, or the path of a file that holds one - gives: the value of an `Authorization` header -
//! fails: with [`TokenError`], which names the file and never its content.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pipeline_core::{ExposeSecret as _, SecretString};
use reqwest::header::HeaderValue;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;

/// No token is longer; what is, is not a token.
const MAX_BYTES: u64 = 64 * 1024;
/// How often a file is looked at by whoever waits for it to change. Asked for and not notified of: a mounted secret is
/// a link to a folder that is replaced as a whole, which no watch of the file itself sees, and one look costs one
/// system call.
const POLL: Duration = Duration::from_millis(if cfg!(test) { 50 } else { 1_000 });

/// A file that was looked at so lately is not looked at again for a header: each request asks for one, and a look leaves
/// the runtime's threads.
const LATELY: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 100 });

/// A token. Cloning shares what was read of a file; `Debug` shows nothing of it.
#[derive(Debug, Clone)]
pub enum Token {
    /// As configured.
    Literal(SecretString),
    /// The content of a file.
    File(Arc<TokenFile>),
    /// What somebody tells who follows where it stands.
    Followed(Arc<FollowedToken>),
}

/// A token that is told anew while the process runs.
pub struct FollowedToken(watch::Receiver<SecretString>, tokio::sync::Mutex<watch::Receiver<SecretString>>);

impl fmt::Debug for FollowedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowedToken").finish_non_exhaustive()
    }
}

/// A file that holds a token and may be replaced while the process runs, as a mounted secret is.
pub struct TokenFile {
    path: PathBuf,
    last: Mutex<Option<CachedToken>>,
    /// What the file held when a change of it was told last.
    told: Mutex<Option<SecretString>>,
    complained: AtomicBool,
}

/// A token that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read, and never could.
    #[error("cannot read the token file {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file holds nothing but white space.
    #[error("the token file {} is empty", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// The file is no token.
    #[error("the token file {} is larger than {MAX_BYTES} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
    },
    /// Line breaks or other control characters, which no header may hold.
    #[error("the token holds characters that no header may hold")]
    Unfit,
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

impl Token {
    /// A token that never changes.
    #[must_use]
    pub fn literal(token: impl Into<String>) -> Self {
        Self::Literal(SecretString::from(token.into()))
    }

    /// A token that is `first`, and from then on whatever is sent.
    #[must_use]
    pub fn told(first: SecretString) -> (Self, watch::Sender<SecretString>) {
        let (sender, receiver) = watch::channel(first);
        let waiting = tokio::sync::Mutex::new(receiver.clone());
        (Self::Followed(Arc::new(FollowedToken(receiver, waiting))), sender)
    }

    /// A token that is read of `path` when it is first needed, and again whenever the file has changed; for headers it is
    /// looked at ten times a second at most.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File(Arc::new(TokenFile {
            path: path.into(),
            last: Mutex::new(None),
            told: Mutex::new(None),
            complained: AtomicBool::new(false),
        }))
    }

    /// The token as it is now, without white space around it.
    ///
    /// # Errors
    /// [`TokenError`] when the file cannot be read or holds no token, and no earlier content is known.
    pub async fn read(&self) -> Result<SecretString, TokenError> {
        match self {
            Self::Literal(token) => Ok(token.clone()),
            Self::File(file) => file.read().await,
            Self::Followed(followed) => Ok(followed.0.borrow().clone()),
        }
    }

    /// Returns when the file holds another token than at the last return; the first time, than the one that was last
    /// given out, or else than the one it held at the call. So no change is missed between two calls, and none is told
    /// twice. Looks once a second, the first time after a second. A file that is touched, vanishes or holds no token
    /// has not changed. Never returns for a token as configured. For one waiter: clones share what was told.
    pub async fn changed(&self) {
        match self {
            Self::Literal(_) => std::future::pending().await,
            Self::File(file) => file.changed().await,
            Self::Followed(followed) => {
                if followed.1.lock().await.changed().await.is_err() {
                    // Nobody tells anything any more.
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// The `Authorization` value `prefix` + token (prefix e.g. `"Bearer "`, or empty), marked sensitive.
    ///
    /// # Errors
    /// As [`Token::read`], and [`TokenError::Unfit`].
    pub async fn header(&self, prefix: &str) -> Result<HeaderValue, TokenError> {
        let lately = if let Self::File(file) = self { file.lately() } else { None };
        let token = match lately {
            Some(token) => token,
            None => self.read().await?,
        };
        authorization(prefix, &token)
    }

    /// The `Authorization` value for a peer of whose scheme nothing is known: a token that holds a space names it itself, such as `Basic`
    /// or `Splunk`; any other is that of a bearer.
    ///
    /// # Errors
    /// As [`Token::header`].
    pub async fn header_of_any_scheme(&self) -> Result<HeaderValue, TokenError> {
        let whole = self.header("").await?;
        if whole.as_bytes().contains(&b' ') { Ok(whole) } else { self.header("Bearer ").await }
    }
}

/// The `Authorization` value `prefix` + token, marked sensitive.
pub(crate) fn authorization(prefix: &str, token: &SecretString) -> Result<HeaderValue, TokenError> {
    let text = SecretString::from(format!("{prefix}{}", token.expose_secret()));
    let mut value = HeaderValue::from_str(text.expose_secret()).map_err(|_| TokenError::Unfit)?;
    value.set_sensitive(true);
    Ok(value)
}

impl TokenFile {
    /// A file that vanishes or empties after it was read once (a volume that is being replaced) leaves the
    /// known token in use: if that is no longer right, the peer says so.
    async fn read(&self) -> Result<SecretString, TokenError> {
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
    async fn changed(&self) {
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
    fn lately(&self) -> Option<SecretString> {
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

#[cfg(test)]
mod tests;
