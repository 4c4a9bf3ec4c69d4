//! Why a request is not taken: status, text and reason of each. Nothing of the request stands in it.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A sender that is told to slow down, and one whose report the store could not keep, wait so many seconds.
const SLOW_DOWN: u64 = 1;
const STORE_AWAY: u64 = 5;

/// Why a request, or a report of a batch, is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the request needs the token of a runtime, in the header Authorization")]
    NoToken,
    #[error("this token is not known: make one with `gitops-runtime platform token create --runtime NAME`")]
    UnknownToken,
    #[error("the body did not arrive within {0} seconds")]
    Late(u64),
    #[error("the body broke off")]
    Broken,
    #[error("the body is larger than {0} bytes")]
    Large(usize),
    #[error("the body unpacks to more than {0} bytes")]
    LargeUnpacked(usize),
    #[error("the Content-Encoding must be gzip, or none")]
    Encoding,
    #[error("the body is not gzip, as its Content-Encoding says")]
    NotGzip,
    #[error("the body is not JSON that holds a report, at line {line} column {column}")]
    NotJson { line: usize, column: usize },
    #[error("the report has no object")]
    NoObject,
    #[error("the report's object is neither JSON nor base64 of it")]
    NotAnObject,
    #[error("the report's object has no kind or no name")]
    NoName,
    #[error("the report names no application")]
    NoApplicationName,
    #[error("the report's {field} is longer than {most} bytes")]
    Long { field: &'static str, most: usize },
    #[error("the report's {field} has more than {most} entries")]
    Many { field: &'static str, most: usize },
    #[error("the store cannot hold a report like this: a name or number in it is too large")]
    Unfit,
    #[error("the Idempotency-Key must be text of at most 256 bytes")]
    Key,
    #[error("the Fencing-Epoch must be a whole number")]
    Epoch,
    #[error("the Cluster-Era must be a whole number")]
    Era,
    #[error("the body is no batch of reports, at line {line} column {column}")]
    NotABatch { line: usize, column: usize },
    #[error("a batch may have at most {0} reports")]
    ManyReports(usize),
    #[error("the body is no digest to compare")]
    NotADigest,
    #[error("a newer owner has reported of this application: the Fencing-Epoch is outdated")]
    Outdated,
    #[error("this runtime has {0} requests under way: fewer at a time are taken")]
    ManyRequests(usize),
    #[error("this runtime has {0} bytes under way: fewer at a time are taken")]
    ManyBytes(usize),
    #[error("this runtime has {0} comparisons under way: fewer at a time are taken")]
    ManyComparisons(usize),
    #[error("the platform has as much under way as it can hold")]
    Busy,
    #[error("nothing was kept: the store cannot be written now, and the log of the platform says why")]
    Store,
    #[error("the store cannot be read now: the log of the platform says why")]
    Unreadable,
    #[error("there is no such application, or nothing was reported of it")]
    NoApplication,
    #[error("`{0}` must be a whole number")]
    Number(&'static str),
}

impl Refusal {
    /// The names under which refusals are counted.
    pub(crate) const REASONS: [&'static str; 8] =
        ["unauthorized", "late", "too_large", "malformed", "outdated", "quota", "busy", "store"];

    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::NoToken | Self::UnknownToken => "unauthorized",
            Self::Late(_) | Self::Broken => "late",
            Self::Large(_) | Self::LargeUnpacked(_) | Self::ManyReports(_) => "too_large",
            Self::Outdated => "outdated",
            Self::ManyRequests(_) | Self::ManyBytes(_) | Self::ManyComparisons(_) => "quota",
            Self::Busy => "busy",
            Self::Store | Self::Unreadable => "store",
            _ => "malformed",
        }
    }

    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::NoToken | Self::UnknownToken => StatusCode::UNAUTHORIZED,
            Self::Late(_) | Self::Broken => StatusCode::REQUEST_TIMEOUT,
            Self::Large(_) | Self::LargeUnpacked(_) | Self::ManyReports(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Encoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Outdated => StatusCode::PRECONDITION_FAILED,
            Self::ManyRequests(_) | Self::ManyBytes(_) | Self::ManyComparisons(_) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::Busy | Self::Store | Self::Unreadable => StatusCode::SERVICE_UNAVAILABLE,
            Self::NoApplication => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// Seconds after which it may go better.
    pub(crate) const fn retry_after(&self) -> Option<u64> {
        match self {
            Self::ManyRequests(_) | Self::ManyBytes(_) | Self::ManyComparisons(_) | Self::Busy => {
                Some(SLOW_DOWN)
            }
            Self::Store | Self::Unreadable => Some(STORE_AWAY),
            _ => None,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status(), Json(json!({"message": self.to_string()}))).into_response();
        if let Some(seconds) = self.retry_after() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // Whoever passes it on counts it.
        response.extensions_mut().insert(self);
        response
    }
}
