//! Who may ask.

use std::path::{Path, PathBuf};

use pipeline_core::{ExposeSecret as _, SecretString, async_trait};
use subtle::ConstantTimeEq as _;

use crate::operation::Operations;

/// Bytes of a token, and of a file that holds one.
const MAX_TOKEN: usize = 16 * 1024;

/// What is known of somebody who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// May ask this, and nothing else.
    To(Operations),
    /// May not: nobody knows the token, or it is somebody's who may not.
    No,
    /// It could not be found out.
    Unknown,
}

/// Says who may ask.
#[async_trait]
pub trait Callers: std::fmt::Debug + Send + Sync {
    /// What whoever has this token may.
    async fn admit(&self, token: &SecretString) -> Admitted;
}

/// Whoever may ask does so over the bus.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

#[async_trait]
impl Callers for Nobody {
    async fn admit(&self, _: &SecretString) -> Admitted {
        Admitted::No
    }
}

/// One token for all who may, in a file that may change.
#[derive(Debug, Clone)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// Reads it once, to say at the start when it cannot be read.
    pub async fn open(path: &Path) -> Self {
        let file = Self(path.to_owned());
        let _ = file.expected().await;
        file
    }

    /// The token that is in it now; `None`, which is said, when it cannot be read.
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
    async fn admit(&self, token: &SecretString) -> Admitted {
        let Some(expected) = self.expected().await else { return Admitted::Unknown };
        let (expected, token) = (expected.expose_secret().as_bytes(), token.expose_secret().as_bytes());
        // An empty file lets nobody in.
        let is_it = !expected.is_empty() && bool::from(expected.ct_eq(token));
        if is_it { Admitted::To(Operations::ALL) } else { Admitted::No }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admitted, Callers as _, MAX_TOKEN, Operations, TokenFile};

    const ALL: Admitted = Admitted::To(Operations::ALL);

    #[tokio::test]
    async fn the_token_of_the_file_is_read_anew_each_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let callers = TokenFile::open(&path).await;
        let admit = async |token: &str| callers.admit(&token.to_owned().into()).await;
        assert_eq!(admit("first").await, Admitted::Unknown);
        std::fs::write(&path, "first\n").unwrap();
        assert_eq!((admit("first").await, admit("second").await), (ALL, Admitted::No));
        std::fs::write(&path, "second").unwrap();
        assert_eq!((admit("first").await, admit("second").await), (Admitted::No, ALL));
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(admit("").await, Admitted::No);
        std::fs::write(&path, "x".repeat(MAX_TOKEN + 1)).unwrap();
        assert_eq!(admit("x").await, Admitted::Unknown);
    }
}
