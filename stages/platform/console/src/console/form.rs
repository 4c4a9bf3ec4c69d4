//! The body of a form.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

/// The most that a form may be long.
pub(super) const MOST: usize = 16 * 1_024;

/// The body of a form, as it was sent.
pub(crate) struct Form(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        match Bytes::from_request(request, state).await {
            Ok(body) => Ok(Self(body)),
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                let said = format!("a form is at most {MOST} bytes long\n");
                Err((error.status(), said).into_response())
            }
            Err(error) => Err(error.into_response()),
        }
    }
}
