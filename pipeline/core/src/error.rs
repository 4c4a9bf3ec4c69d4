//! What a stage says when it has no result: retry, or reject.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why something failed, from a closed set: it is a metric label and a log field.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// The peer did not answer in time.
    Timeout,
    /// The peer could not be reached, or the connection broke.
    Unreachable,
    /// The peer answered 5xx.
    ServerError,
    /// The peer answered 429, or asked to come back later.
    RateLimited,
    /// The peer answered 401: the token is missing, wrong, or expired.
    Unauthorized,
    /// The peer answered 403: the rights are missing.
    Forbidden,
    /// The peer answered 404 or 405.
    NotFound,
    /// The peer refuses this request for good (any other 4xx).
    Refused,
    /// The answer or the object is not what its format promises.
    Malformed,
    /// The answer or the object is larger than its limit.
    TooLarge,
    /// The object or an answer took longer to work on than it may.
    TooSlow,
    /// The body ended before its end.
    CutShort,
    /// The peer's certificate does not verify.
    Tls,
    /// The peer redirects elsewhere, which is not followed.
    Redirect,
    /// The place to write to failed (disk full, pipe closed).
    Io,
    /// The process is stopping.
    Stopping,
}

impl Reason {
    /// All reasons, for tests and for metrics that start at zero.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Whether it may pass without anybody changing anything.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        matches!(
            self,
            Self::Timeout | Self::Unreachable | Self::ServerError | Self::RateLimited | Self::CutShort
        )
    }

    /// The label and log value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a stage answers instead of a result. The engine alone decides when a retry happens.
///
/// `source` names the act that failed and never holds a payload, a token or a manifest: it is logged.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Try again later; not before `after`, when the peer said so.
    #[error("{source}")]
    Retry {
        /// From the closed set.
        reason: Reason,
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
        /// The peer's `Retry-After`, if it gave one.
        after: Option<Duration>,
    },
    /// Never try this again as it is: it is parked.
    #[error("{source}")]
    Reject {
        /// From the closed set.
        reason: Reason,
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StageError {
    /// A [`StageError::Retry`] without a time.
    pub fn retry(reason: Reason, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Retry { reason, source: source.into(), after: None }
    }

    /// A [`StageError::Reject`].
    pub fn reject(reason: Reason, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Reject { reason, source: source.into() }
    }

    /// Why, from the closed set.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Retry { reason, .. } | Self::Reject { reason, .. } => *reason,
        }
    }

    /// Whether trying again may help.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        matches!(self, Self::Retry { .. })
    }
}
