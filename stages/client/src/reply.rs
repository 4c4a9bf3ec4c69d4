//! A whole answer of a peer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pipeline_core::Timestamp;
use reqwest::header::{LOCATION, RETRY_AFTER};
use reqwest::{Response, Url};
use serde::de::DeserializeOwned;

use crate::error::of_body;
use crate::target::authority;
use crate::{Fault, HttpError, retry_after};

/// Of an answer that is not 2xx so much is kept: enough for the peer's own error text.
const ERROR_BODY: usize = 64 * 1024;

/// An answer.
pub struct Reply {
    act: &'static str,
    host: Arc<str>,
    status: u16,
    after: Option<Duration>,
    location: Option<String>,
    body: Bytes,
}

impl Reply {
    /// What the head of an answer says, and what is kept of its body.
    pub(crate) fn new(act: &'static str, host: Arc<str>, response: &Response, body: Bytes) -> Self {
        let status = response.status().as_u16();
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let after = text(RETRY_AFTER).and_then(|value| retry_after(value, Timestamp::now()));
        let location = text(LOCATION)
            .filter(|_| (300..400).contains(&status))
            .and_then(|location| response.url().join(location).ok())
            .and_then(|url: Url| authority(&url));
        Self { act, host, status, after, location, body }
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Its body; of an answer that is not 2xx at most the first 64 KiB, and nothing where only the head was asked for.
    /// Never to be logged.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// How long the peer asks to wait.
    #[must_use]
    pub fn after(&self) -> Option<Duration> {
        self.after
    }

    /// The error that this answer is for a reason of its own, e.g. because it is not the JSON expected.
    #[must_use]
    pub fn into_error(self, fault: Fault) -> HttpError {
        HttpError::new(self.act, self.host, fault).with_after(self.after)
    }

    /// The answer itself if it is a 2xx.
    ///
    /// # Errors
    /// Any other status.
    pub fn checked(self) -> Result<Self, HttpError> {
        match self.status {
            200..=299 => Ok(self),
            status @ 300..=399 => {
                let host = self.location.clone();
                Err(self.into_error(Fault::Redirect { status, host }))
            }
            status => Err(self.into_error(Fault::Status(status))),
        }
    }

    /// Its body, read as JSON.
    ///
    /// # Errors
    /// [`Fault::Json`], when it is not the JSON that was expected.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, HttpError> {
        serde_json::from_slice(&self.body).map_err(|error| self.into_error(error.into()))
    }

    /// The body of a 2xx.
    ///
    /// # Errors
    /// Any other status.
    pub fn into_body(self) -> Result<Bytes, HttpError> {
        self.checked().map(|reply| reply.body)
    }
}

impl std::fmt::Debug for Reply {
    /// Without the body, which may hold anything.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

/// The whole body, or why there is none. Counts decoded bytes, so that a small archive cannot become a
/// large answer.
pub(crate) async fn whole(response: &mut Response, limit: usize) -> Result<Bytes, Fault> {
    let announced = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Fault::TooLarge { limit });
    }
    // What is announced may never come: room is made ahead for an ordinary answer only.
    let mut body = Vec::with_capacity(announced.min(1024 * 1024));
    while let Some(chunk) = response.chunk().await.map_err(of_body)? {
        if body.len() + chunk.len() > limit {
            return Err(Fault::TooLarge { limit });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.into())
}

/// The beginning of a body that may be as long and as broken as it likes: the status has said enough.
pub(crate) async fn beginning(response: &mut Response) -> Bytes {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = ERROR_BODY - body.len();
        if chunk.len() >= room {
            body.extend(chunk.iter().take(room));
            break;
        }
        body.extend_from_slice(&chunk);
    }
    body.into()
}
