//! The body of a form.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use tokio::time::timeout;

/// The most that a form may be long.
pub(super) const MOST: usize = 16 * 1_024;
/// It comes in this time: anybody may send one, and keeps a connection until then.
const WITHIN: Duration = Duration::from_secs(10);

/// The body of a form, as it was sent.
pub(crate) struct Form(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let Ok(body) = timeout(WITHIN, Bytes::from_request(request, state)).await else {
            let said = "the form did not come within 10 seconds\n";
            return Err((StatusCode::REQUEST_TIMEOUT, said).into_response());
        };
        match body {
            Ok(body) => Ok(Self(body)),
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                let said = format!("a form is at most {MOST} bytes long\n");
                Err((error.status(), said).into_response())
            }
            Err(error) => Err(error.into_response()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Body;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_form_that_does_not_come_keeps_its_connection_for_ten_seconds_and_no_longer() {
        let never = Body::from_stream(futures::stream::pending::<Result<Bytes, Infallible>>());
        let read = timeout(WITHIN * 2, Form::from_request(Request::new(never), &())).await;
        let refused = read.unwrap().err().unwrap();
        assert_eq!(refused.status(), StatusCode::REQUEST_TIMEOUT);
    }
}
