//! A bearer token that stands in a file and may be replaced there.

use std::io;
use std::path::{Path, PathBuf};

use http::HeaderValue;

/// Read for every request: requests are few (one page of a list, one watch in minutes), and so a new token
/// is in force at once. White space around it is dropped, as `kubectl` does and [`kube`] does not.
#[derive(Debug, Clone)]
pub(crate) struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    /// # Errors
    /// When the file cannot be read, is empty, or holds what cannot stand in a header.
    pub(crate) async fn open(path: &Path) -> io::Result<Self> {
        let file = Self { path: path.to_owned() };
        file.header().await.map(|_| file)
    }

    /// The value of `Authorization`, marked as not to be printed.
    pub(crate) async fn header(&self) -> io::Result<HeaderValue> {
        let text = tokio::fs::read_to_string(&self.path).await?;
        let token = text.trim();
        if token.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the token file is empty"));
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "the token file holds more than a token")
        })?;
        value.set_sensitive(true);
        Ok(value)
    }
}
