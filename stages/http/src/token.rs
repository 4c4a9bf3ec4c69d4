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

use pipeline_core::{ExposeSecret as _, SecretString};
use reqwest::header::HeaderValue;
use tokio::io::AsyncReadExt as _;

/// No token is longer; what is, is not a token.
const MAX_BYTES: u64 = 64 * 1024;

/// A token. Cloning shares what was read of a file; `Debug` shows nothing of it.
#[derive(Debug, Clone)]
pub enum Token {
    /// As configured.
    Literal(SecretString),
    /// The content of a file.
    File(Arc<TokenFile>),
}

/// A file that holds a token and may be replaced while the process runs, as a mounted secret is.
pub struct TokenFile {
    path: PathBuf,
    last: Mutex<Option<(Stamp, SecretString)>>,
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

/// Tells two contents of a path apart: a mounted secret is replaced by another file, an edited one has a
/// newer time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Token {
    /// A token that never changes.
    #[must_use]
    pub fn literal(token: impl Into<String>) -> Self {
        Self::Literal(SecretString::from(token.into()))
    }

    /// A token that is read of `path` when it is first needed, and again whenever the file has changed.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File(Arc::new(TokenFile {
            path: path.into(),
            last: Mutex::new(None),
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
        }
    }

    /// The `Authorization` value `prefix` + token (prefix e.g. `"Bearer "`, or empty), marked sensitive.
    ///
    /// # Errors
    /// As [`Token::read`], and [`TokenError::Unfit`].
    pub async fn header(&self, prefix: &str) -> Result<HeaderValue, TokenError> {
        let token = self.read().await?;
        let text = SecretString::from(format!("{prefix}{}", token.expose_secret()));
        let mut value = HeaderValue::from_str(text.expose_secret()).map_err(|_| TokenError::Unfit)?;
        value.set_sensitive(true);
        Ok(value)
    }
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
                let Some(known) = self.known(None) else { return Err(error) };
                if !self.complained.swap(true, Ordering::Relaxed) {
                    let path = self.path.display();
                    tracing::warn!(%path, error = &error as &dyn std::error::Error, "the token read before stays in use");
                }
                Ok(known)
            }
        }
    }

    async fn fresh(&self) -> Result<SecretString, TokenError> {
        let fail = |source| TokenError::Read { path: self.path.clone(), source };
        let stamp = Stamp::of(&tokio::fs::metadata(&self.path).await.map_err(fail)?);
        if let Some(known) = self.known(Some(stamp)) {
            return Ok(known);
        }
        let file = tokio::fs::File::open(&self.path).await.map_err(fail)?;
        // Of the opened file, not of the path: what is read now must not be remembered as what comes next.
        let stamp = Stamp::of(&file.metadata().await.map_err(fail)?);
        let mut text = String::new();
        file.take(MAX_BYTES + 1).read_to_string(&mut text).await.map_err(fail)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(TokenError::TooLarge { path: self.path.clone() });
        }
        let token = text.trim();
        if token.is_empty() {
            return Err(TokenError::Empty { path: self.path.clone() });
        }
        let token = SecretString::from(token.to_owned());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((stamp, token.clone()));
        Ok(token)
    }

    /// What was read last, if it was read at `stamp`, where one is given.
    fn known(&self, stamp: Option<Stamp>) -> Option<SecretString> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(at, _)| stamp.is_none_or(|stamp| stamp == *at)).map(|(_, token)| token.clone())
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(token: &Token) -> String {
        token.read().await.unwrap().expose_secret().to_owned()
    }

    /// As a kubelet does it: written beside, then moved into place.
    fn replace(path: &std::path::Path, content: &str) {
        let beside = path.with_extension("new");
        std::fs::write(&beside, content).unwrap();
        std::fs::rename(beside, path).unwrap();
    }

    #[tokio::test]
    async fn a_replaced_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        replace(&path, "first\n");
        let token = Token::file(&path);
        assert_eq!(text(&token).await, "first");
        replace(&path, " other\n");
        assert_eq!(text(&token).await, "other");
        assert_eq!(token.header("Bearer ").await.unwrap().to_str().unwrap(), "Bearer other");
        assert_eq!(token.header("").await.unwrap().to_str().unwrap(), "other");
    }

    #[tokio::test]
    async fn a_file_that_vanishes_leaves_the_token_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        replace(&path, "first");
        let token = Token::file(&path);
        assert_eq!(text(&token).await, "first");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text(&token).await, "first");
        replace(&path, "\n");
        assert_eq!(text(&token).await, "first");
        replace(&path, "second");
        assert_eq!(text(&token).await, "second");
    }

    #[tokio::test]
    async fn what_is_no_token_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let shown = path.display();
        let refusal = async || Token::file(&path).header("Bearer ").await.unwrap_err().to_string();
        assert_eq!(refusal().await, format!("cannot read the token file {shown}"));
        replace(&path, " \n");
        assert_eq!(refusal().await, format!("the token file {shown} is empty"));
        replace(&path, &"x".repeat(64 * 1024 + 1));
        assert_eq!(refusal().await, format!("the token file {shown} is larger than 65536 bytes"));
        replace(&path, "two\nlines");
        assert_eq!(refusal().await, "the token holds characters that no header may hold");
        assert_eq!(Token::literal("a\u{7f}").header("").await.unwrap_err().to_string(), refusal().await);
    }

    #[tokio::test]
    async fn debug_shows_no_token() {
        let token = Token::literal("canary");
        assert!(!format!("{token:?}").contains("canary"));
        assert_eq!(format!("{:?}", token.header("Bearer ").await.unwrap()), "Sensitive");
    }
}
