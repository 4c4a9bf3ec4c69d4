//! What went wrong with a call, in a closed set.
//!
//! Every message names the act and the host; the cause, where there is one, is the `source`. Neither ever
//! holds a path, a query, a body or a token: of reqwest's errors the URL is cut away, of a redirect only the
//! host is kept, and of JSON that does not fit only the place is.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Reason, StageError};

use crate::{TargetError, TokenError};

/// A call that gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} at {host}: {fault}")]
pub struct HttpError {
    act: &'static str,
    host: Arc<str>,
    after: Option<Duration>,
    #[source]
    fault: Fault,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Neither connected nor answered in time.
    #[error("no answer in time")]
    Timeout(#[source] Option<reqwest::Error>),
    /// Never sent: the caller's own bounds kept it back until its time was over.
    #[error("it was not its turn in time")]
    Unsent,
    /// No connection, or it broke before the answer's head.
    #[error("the connection failed")]
    Connect(#[source] reqwest::Error),
    /// The certificate does not verify.
    #[error("its certificate does not verify")]
    Certificate(#[source] reqwest::Error),
    /// TLS failed for another reason.
    #[error("the TLS handshake failed")]
    Handshake(#[source] reqwest::Error),
    /// An answer that is not 2xx.
    #[error("it answered {0}")]
    Status(u16),
    /// A 3xx answer; `host` is where it points to, if that is known.
    #[error("it answered {status}, a redirect{}, which is not followed", to(host.as_deref()))]
    Redirect {
        /// The status.
        status: u16,
        /// Host and port of `Location`.
        host: Option<String>,
    },
    /// More bytes than allowed.
    #[error("its answer is larger than {limit} bytes")]
    TooLarge {
        /// How many are allowed.
        limit: usize,
    },
    /// The body ended before its end.
    #[error("its answer ended before its end")]
    CutShort(#[source] reqwest::Error),
    /// The body cannot be decoded: broken gzip.
    #[error("its answer is not what its encoding says")]
    Encoding(#[source] reqwest::Error),
    /// The body is not the JSON that was expected. Where, and not what: the text around it may be secret.
    #[error("its answer is not the JSON that was expected (line {line}, column {column})")]
    Json {
        /// Line, from 1; 0 when unknown.
        line: usize,
        /// Column, from 1; 0 when unknown.
        column: usize,
    },
    /// There is no token to call with.
    #[error("{0}")]
    Token(#[source] TokenError),
    /// There is no session to call with, because a login failed.
    #[error("there is no session: the login {}", answered(*status))]
    Login {
        /// Why the login failed.
        reason: Reason,
        /// The status that it was answered with, if it was answered and not with 2xx.
        status: Option<u16>,
    },
    /// The call has no address.
    #[error("{0}")]
    Address(#[source] TargetError),
    /// The request could not be built.
    #[error("the request cannot be built")]
    Request(#[source] reqwest::Error),
}

impl HttpError {
    /// `act` completes "cannot ...": `read managed resources`.
    #[must_use]
    pub fn new(act: &'static str, host: Arc<str>, fault: Fault) -> Self {
        Self { act, host, after: None, fault }
    }

    /// With the time that the peer asked to wait.
    #[must_use]
    pub fn with_after(mut self, after: Option<Duration>) -> Self {
        self.after = after;
        self
    }

    /// Why, from the closed set.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match &self.fault {
            Fault::Timeout(_) | Fault::Unsent => Reason::Timeout,
            Fault::Connect(_) => Reason::Unreachable,
            Fault::Certificate(_) | Fault::Handshake(_) => Reason::Tls,
            Fault::Status(status) => reason_of_status(*status).unwrap_or(Reason::Malformed),
            Fault::Redirect { .. } => Reason::Redirect,
            Fault::TooLarge { .. } => Reason::TooLarge,
            Fault::CutShort(_) => Reason::CutShort,
            Fault::Encoding(_) | Fault::Json { .. } => Reason::Malformed,
            Fault::Token(_) => Reason::Unauthorized,
            Fault::Login { reason, .. } => *reason,
            Fault::Address(_) | Fault::Request(_) => Reason::Refused,
        }
    }

    /// How long the peer asked to wait, if it did.
    #[must_use]
    pub fn after(&self) -> Option<Duration> {
        self.after
    }

    /// What went wrong.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// The status of the answer, if there was one that is not 2xx.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self.fault {
            Fault::Status(status) | Fault::Redirect { status, .. } => Some(status),
            _ => None,
        }
    }

    /// As "try again later", not before the time that the peer asked for.
    #[must_use]
    pub fn into_retry(self) -> StageError {
        StageError::Retry { reason: self.reason(), after: self.after, source: Box::new(self) }
    }

    /// As "never try this again".
    #[must_use]
    pub fn into_reject(self) -> StageError {
        StageError::reject(self.reason(), self)
    }
}

/// The reason of a status; `None` for 2xx. 1xx never gets here.
#[must_use]
pub fn reason_of_status(status: u16) -> Option<Reason> {
    match status {
        200..=299 => None,
        300..=399 => Some(Reason::Redirect),
        401 => Some(Reason::Unauthorized),
        403 => Some(Reason::Forbidden),
        404 | 405 => Some(Reason::NotFound),
        408 => Some(Reason::Timeout),
        425 | 429 => Some(Reason::RateLimited),
        // What stands between wants a password of its own, does not lead there, or gave up itself: the peer has refused nobody.
        407 | 421 | 499 => Some(Reason::ServerError),
        400..=499 => Some(Reason::Refused),
        _ => Some(Reason::ServerError),
    }
}

/// The fault of a request that got no answer's head.
pub(crate) fn of_request(error: reqwest::Error) -> Fault {
    let error = error.without_url();
    if error.is_timeout() {
        return Fault::Timeout(Some(error));
    }
    if error.is_builder() {
        return Fault::Request(error);
    }
    match find::<rustls::Error>(&error) {
        Some(rustls::Error::InvalidCertificate(_)) => Fault::Certificate(error),
        Some(_) => Fault::Handshake(error),
        None => Fault::Connect(error),
    }
}

/// The fault of a body that could not be read to its end.
pub(crate) fn of_body(error: reqwest::Error) -> Fault {
    let error = error.without_url();
    if error.is_timeout() {
        return Fault::Timeout(Some(error));
    }
    let kind = find::<io::Error>(&error).map(io::Error::kind);
    if matches!(kind, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)) {
        return Fault::Encoding(error);
    }
    Fault::CutShort(error)
}

/// The first error of type `T` in a chain, also inside an `io::Error`, whose `source` skips what it wraps.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

fn to(host: Option<&str>) -> String {
    host.map_or_else(String::new, |host| format!(" to {host}"))
}

fn answered(status: Option<u16>) -> String {
    status.map_or_else(|| "failed".to_owned(), |status| format!("was answered {status}"))
}
