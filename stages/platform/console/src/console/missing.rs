//! What no route answers: people are led home, programs are told in a line.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};

use super::handlers::{framed, send, unavailable};
use super::{Console, is_for_people, refused};
use crate::page;

/// An address that is none of the console's.
pub(super) async fn path(State(console): State<Console>, request: Request) -> Response {
    answer(&console, request, StatusCode::NOT_FOUND).await
}

/// One that is, and is asked by another method. A browser that goes back asks for what a form of the settings was answered by the
/// address that it was sent to: the page that the form stood on is above that.
pub(super) async fn method(State(console): State<Console>, request: Request) -> Response {
    let above = request.uri().path().rsplit_once('/').map(|(above, _)| above);
    let settings = above.filter(|above| above.starts_with("/settings") && is_for_people(&request));
    if let Some(page) = settings {
        return Redirect::to(page).into_response();
    }
    answer(&console, request, StatusCode::METHOD_NOT_ALLOWED).await
}

async fn answer(console: &Console, request: Request, status: StatusCode) -> Response {
    if !is_for_people(&request) {
        return (status, "there is no such page\n").into_response();
    }
    let headers = request.headers();
    match console.session_of(headers).await {
        Ok(Some(session)) => send(status, &framed(&page::missing::page(), &session, headers)),
        Ok(None) => refused(&request),
        Err(error) => unavailable(error, None, headers),
    }
}
