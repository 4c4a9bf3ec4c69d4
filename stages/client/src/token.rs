//! The token that a peer is called with, from the configuration or from a file.
//!
//! takes: a secret, or the path of a file that holds one - gives: the value of an `Authorization` header -
//! fails: with [`TokenError`], which names the file and never its content.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use pipeline_core::{ExposeSecret as _, SecretString};
use reqwest::header::HeaderValue;
use tokio::sync::watch;

use crate::token_file::{MAX_BYTES, TokenFile};

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
        Self::File(Arc::new(TokenFile::new(path.into())))
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

#[cfg(test)]
mod tests;
