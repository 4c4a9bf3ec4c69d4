//! Authorization of those who ask over HTTP.

use std::path::{Path, PathBuf};

use pipeline_core::{ExposeSecret as _, SecretString, async_trait};
use subtle::ConstantTimeEq as _;

use crate::operation::Operations;

/// The most bytes of a token, and of a file that holds one.
const MAX_TOKEN: usize = 16 * 1024;

/// Whether the owner of a token may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// They may ask these questions, and no others.
    To(Operations),
    /// They may not ask, or nobody knows the token.
    No,
    /// It could not be determined.
    Unknown,
}

/// Decides who may ask.
#[async_trait]
pub trait Callers: std::fmt::Debug + Send + Sync {
    /// Which questions the owner of a token may ask.
    async fn admit(&self, token: &SecretString) -> Admission;
}

/// Admits nobody, where questions are answered over the bus alone.
#[derive(Debug, Clone, Copy)]
pub struct NoCallers;

#[async_trait]
impl Callers for NoCallers {
    async fn admit(&self, _: &SecretString) -> Admission {
        Admission::No
    }
}

/// Admits whoever has the token that a file holds; the file may change.
#[derive(Debug, Clone)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// A file of a token. It is read once, so that the log tells at the start if that fails.
    pub async fn open(path: &Path) -> Self {
        let file = Self(path.to_owned());
        let _ = file.expected().await;
        file
    }

    /// The token that the file holds now; `None`, which is logged, if it cannot be read.
    async fn expected(&self) -> Option<SecretString> {
        let path = self.0.display();
        match tokio::fs::read(&self.0).await {
            Ok(expected) if expected.len() <= MAX_TOKEN => {
                Some(String::from_utf8_lossy(&expected).trim().to_owned().into())
            }
            Ok(_) => {
                tracing::warn!(%path, "the file of the callers' token is too large to be one: nobody may ask");
                None
            }
            Err(error) => {
                tracing::warn!(%path, %error, "the file of the callers' token cannot be read: until it can nobody may ask");
                None
            }
        }
    }
}

#[async_trait]
impl Callers for TokenFile {
    async fn admit(&self, token: &SecretString) -> Admission {
        let Some(expected) = self.expected().await else { return Admission::Unknown };
        let (expected, token) = (expected.expose_secret().as_bytes(), token.expose_secret().as_bytes());
        // An empty file lets nobody in.
        let is_it = !expected.is_empty() && bool::from(expected.ct_eq(token));
        if is_it { Admission::To(Operations::ALL) } else { Admission::No }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, Callers as _, MAX_TOKEN, Operations, TokenFile};

    const ALL: Admission = Admission::To(Operations::ALL);

    #[tokio::test]
    async fn the_token_of_the_file_is_read_anew_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let callers = TokenFile::open(&path).await;
        let admit = async |token: &str| callers.admit(&token.to_owned().into()).await;
        assert_eq!(admit("first").await, Admission::Unknown);
        std::fs::write(&path, "first\n").unwrap();
        assert_eq!((admit("first").await, admit("second").await), (ALL, Admission::No));
        std::fs::write(&path, "second").unwrap();
        assert_eq!((admit("first").await, admit("second").await), (Admission::No, ALL));
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(admit("").await, Admission::No);
        std::fs::write(&path, "x".repeat(MAX_TOKEN + 1)).unwrap();
        assert_eq!(admit("x").await, Admission::Unknown);
    }
}
