//! An answer of a peer that goes on.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::Response;

use crate::HttpError;
use crate::error::of_body;

/// An answer that is read as it comes.
pub struct Opened {
    pub(crate) act: &'static str,
    pub(crate) host: Arc<str>,
    pub(crate) response: Response,
}

impl Opened {
    /// A header of it, unless it is no text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// What came next; `None` at its end. Of the size that it came in: whoever puts pieces together bounds that. Nothing is lost
    /// where nobody waits for it to the end.
    ///
    /// # Errors
    /// It was cut short, or its time is over.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let (act, host) = (self.act, &self.host);
        self.response.chunk().await.map_err(|error| HttpError::new(act, host.clone(), of_body(error)))
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("host", &self.host).finish_non_exhaustive()
    }
}
