//! What is behind the router: answers with so many bytes, counts what it is sent, and tells of an event every half second.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use futures::StreamExt as _;
use futures::stream;
use loadtest_sim::server::serve;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Bytes of one piece of a body.
const PIECE: usize = 64 << 10;
/// Between two events.
const PAUSE: Duration = Duration::from_millis(500);

/// Starts it and gives its address; it ends with the program. Each event holds its number and the microseconds from `begun`
/// until it was made.
pub(super) async fn start(begun: Instant) -> anyhow::Result<String> {
    let routes = Router::new()
        .route("/app-proxy/bytes/{number}", get(bytes))
        .route("/app-proxy/up", post(up))
        .route("/app-proxy/events", get(move || events(begun)));
    serve(routes).await
}

async fn bytes(Path(number): Path<usize>) -> impl IntoResponse {
    let piece = Bytes::from(vec![b'x'; PIECE]);
    let whole = stream::iter((0..number / PIECE).map({
        let piece = piece.clone();
        move |_| Ok::<_, Infallible>(piece.clone())
    }));
    let rest = piece.slice(..number % PIECE);
    let body = Body::from_stream(whole.chain(stream::iter((!rest.is_empty()).then_some(Ok(rest)))));
    ([(CONTENT_LENGTH, number)], body)
}

async fn up(request: Request) -> String {
    let mut body = request.into_body().into_data_stream();
    let mut read = 0;
    while let Some(Ok(bytes)) = body.next().await {
        read += bytes.len();
    }
    read.to_string()
}

async fn events(begun: Instant) -> Sse<impl stream::Stream<Item = Result<Event, Infallible>>> {
    let mut ticks = interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Sse::new(stream::unfold((ticks, 0_u64), move |(mut ticks, number)| async move {
        ticks.tick().await;
        let event = Event::default().data(format!("{number} {}", begun.elapsed().as_micros()));
        Some((Ok(event), (ticks, number + 1)))
    }))
}
