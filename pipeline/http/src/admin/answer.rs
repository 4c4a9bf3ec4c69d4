//! Answers that are not 2xx.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::wire::Failed;

/// A refusal of a request: the status, what is wrong, and names that may have been meant.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    failed: Failed,
}

/// A refusal with a text that says what is wrong.
pub(super) fn failed(status: StatusCode, error: impl Into<String>) -> Refusal {
    Refusal { status, failed: Failed { error: error.into(), near: Vec::new() } }
}

impl Refusal {
    /// Adds names that may have been meant.
    pub(super) fn near(mut self, near: Vec<String>) -> Self {
        self.failed.near = near;
        self
    }

    /// The body of the answer.
    pub(super) fn into_body(self) -> Failed {
        self.failed
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        failed(rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for Refusal {
    fn from(rejection: QueryRejection) -> Self {
        failed(rejection.status(), rejection.body_text())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(self.failed)).into_response()
    }
}
