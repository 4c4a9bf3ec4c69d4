//! How requests to the API server fail.

use std::error::Error;
use std::io;
use std::time::Duration;

use pipeline_core::{Reason, StageError};

use crate::credentials;
use crate::kind::Act;

/// Layers of an error that are looked through; more would be a circle.
pub(crate) const LAYERS: usize = 16;

/// Why a request brought no result. Holds nothing of an answer: neither a body nor what a parser says of it,
/// which quotes it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{act}: the api server answered {code}")]
    Status { act: Act, code: u16, after: Option<Duration> },
    #[error("{act}: the api server did not answer in time")]
    Timeout { act: Act },
    #[error("{act}: nothing came for {limit:?}, not even a bookmark")]
    Silent { act: Act, limit: Duration },
    #[error("{act}: the connection failed")]
    Transport { act: Act, reason: Reason, source: Box<dyn Error + Send + Sync> },
    #[error("{act}: the answer ended before its end")]
    CutShort { act: Act },
    #[error("{act}: the answer is larger than {limit} bytes")]
    TooLarge { act: Act, limit: usize },
    #[error("{act}: the credentials cannot be had: {what}")]
    Credentials { act: Act, what: &'static str },
    #[error("{act}: the token file cannot be used")]
    Token { act: Act, source: io::Error },
    #[error("{act}: {what}")]
    Malformed { act: Act, what: &'static str },
}

impl Failure {
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Status { code, .. } => of_status(*code),
            Self::Timeout { .. } | Self::Silent { .. } => Reason::Timeout,
            Self::Transport { reason, .. } => *reason,
            Self::CutShort { .. } => Reason::CutShort,
            Self::Credentials { .. } | Self::Token { .. } => Reason::Unauthorized,
            Self::TooLarge { .. } => Reason::TooLarge,
            Self::Malformed { .. } => Reason::Malformed,
        }
    }

    /// Whether what was asked for is no longer held by the server: a continue token or a version that is too
    /// old. Only a new list helps.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Status { code: 410, .. })
    }

    /// Whether the version that a watch was to go on from may be the cause. It is not while the server cannot be
    /// reached, does not know us or has no time: to list then would make every watcher of a server that was away for
    /// a moment read everything anew.
    pub(crate) fn may_blame_version(&self) -> bool {
        match self {
            Self::Status { code, .. } => !matches!(code, 401 | 403 | 429 | 502 | 503),
            Self::Transport { .. } | Self::Credentials { .. } | Self::Token { .. } => false,
            _ => true,
        }
    }

    /// Whether it may be no more than the end of a watch that was open: the connection broke, or nothing came on it, as
    /// where no bookmarks are sent.
    pub(crate) fn ends_watch(&self) -> bool {
        match self {
            Self::CutShort { .. } | Self::Silent { .. } => true,
            Self::Transport { reason, .. } => *reason == Reason::Unreachable,
            _ => false,
        }
    }

    /// The peer's `Retry-After`.
    pub(crate) fn after(&self) -> Option<Duration> {
        match self {
            Self::Status { after, .. } => *after,
            _ => None,
        }
    }
}

/// Whether the same request may succeed later, without anybody changing the request.
pub(crate) fn is_passing(reason: Reason) -> bool {
    !matches!(reason, Reason::Refused | Reason::Redirect | Reason::TooLarge)
}

impl From<Failure> for StageError {
    fn from(failure: Failure) -> Self {
        let (reason, after) = (failure.reason(), failure.after());
        if is_passing(reason) {
            Self::Retry { reason, source: failure.into(), after }
        } else {
            Self::reject(reason, failure)
        }
    }
}

/// What a status means that is no success.
pub(crate) fn of_status(code: u16) -> Reason {
    match code {
        300..=399 => Reason::Redirect,
        401 => Reason::Unauthorized,
        403 => Reason::Forbidden,
        404 | 405 => Reason::NotFound,
        408 | 504 => Reason::Timeout,
        429 => Reason::RateLimited,
        400..=499 => Reason::Refused,
        _ => Reason::ServerError,
    }
}

pub(crate) fn unbuilt(act: Act, error: kube::core::request::Error) -> Failure {
    Failure::Transport { act, reason: Reason::Refused, source: error.into() }
}

pub(crate) fn broken(act: Act, error: kube::Error) -> Failure {
    if let Some(what) = credentials::refused(&error) {
        return Failure::Credentials { act, what };
    }
    match cause(&error) {
        Reason::CutShort => Failure::CutShort { act },
        Reason::Timeout => Failure::Timeout { act },
        reason => Failure::Transport { act, reason, source: error.into() },
    }
}

/// Looks through the layers of a client's error for what happened on the wire.
fn cause(error: &(dyn Error + 'static)) -> Reason {
    let mut layer = Some(error);
    for _ in 0..LAYERS {
        let Some(error) = layer else { break };
        if error.is::<rustls::Error>() {
            return Reason::Tls;
        }
        layer = error.source();
        let Some(error) = error.downcast_ref::<io::Error>() else { continue };
        match error.kind() {
            io::ErrorKind::UnexpectedEof => return Reason::CutShort,
            io::ErrorKind::TimedOut => return Reason::Timeout,
            // An io error's source is the source of what it wraps; what it wraps itself is asked for so.
            _ => layer = error.get_ref().map(|inner| inner as &(dyn Error + 'static)).or(layer),
        }
    }
    Reason::Unreachable
}

#[cfg(test)]
mod tests;
