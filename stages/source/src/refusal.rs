//! Why a question is not answered, and the status that says so, whatever carried the question.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use stages_git::FetchError;

use crate::library::SourceError;
use crate::repositories::RepositoryError;

/// How long somebody who was turned away for too much work is to wait.
const LATER: HeaderValue = HeaderValue::from_static("5");

/// A question that is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// As HTTP has it.
    pub(crate) status: StatusCode,
    /// Why, and what to do next.
    pub(crate) why: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }

    /// Whoever asks may ask, but not this.
    pub(crate) fn not_for_you(operation: &str) -> Self {
        let why = format!(
            "whoever asks may not ask for {operation}: sourceServer.callers says who may ask for what"
        );
        Self::new(StatusCode::FORBIDDEN, why)
    }

    /// It is worth asking again.
    pub(crate) fn later(why: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }
}

impl From<&SourceError> for Refusal {
    fn from(error: &SourceError) -> Self {
        let why = error.to_string();
        match error {
            SourceError::Shared(error) => Self::from(&**error),
            SourceError::BadRequest(_) => Self::new(StatusCode::BAD_REQUEST, why),
            SourceError::Repository(RepositoryError::Unconfigured { .. }) => {
                Self::new(StatusCode::NOT_FOUND, why)
            }
            SourceError::Repository(error) if error.is_no_revision() => Self::new(StatusCode::NOT_FOUND, why),
            SourceError::Repository(RepositoryError::NotAllowed { .. }) => {
                Self::new(StatusCode::FORBIDDEN, why)
            }
            SourceError::Repository(RepositoryError::Fetch(error)) => not_fetched(error, why),
            SourceError::Version(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, why),
            SourceError::Busy(_) | SourceError::Repository(RepositoryError::TooMany) => Self::later(why),
            error => {
                tracing::warn!(
                    error = error as &dyn std::error::Error,
                    "a question about a repository was not answered"
                );
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        }
    }
}

/// Nothing that a caller or this server did wrong, but for an address that is none.
fn not_fetched(error: &FetchError, why: String) -> Refusal {
    match error {
        FetchError::Address { .. } => Refusal::new(StatusCode::BAD_REQUEST, why),
        FetchError::FilesRefused { .. } => Refusal::new(StatusCode::FORBIDDEN, why),
        FetchError::OtherProjects { .. } | FetchError::OfProjects { .. } | FetchError::NoProject { .. } => {
            Refusal::new(StatusCode::FORBIDDEN, why)
        }
        FetchError::NotOfProject { .. } | FetchError::NotPermitted { .. } => {
            Refusal::new(StatusCode::FORBIDDEN, why)
        }
        FetchError::NoRepository { .. } => Refusal::new(StatusCode::NOT_FOUND, why),
        error if error.is_transient() => Refusal::later(why),
        error => {
            tracing::warn!(error = error as &dyn std::error::Error, "a repository could not be fetched");
            Refusal::new(StatusCode::BAD_GATEWAY, why)
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { status, why } = self;
        let mut response = (status, Json(json!({"error": why}))).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, LATER);
        }
        response
    }
}
