//! The head of an answer that goes on, and what is told first.
//!
//! takes: answers of a schema as they come - gives: the events of a stream over HTTP - fails: never

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _, stream};
use pipeline_core::Shutdown;
use reqwest::header::{self, HeaderName, HeaderValue};
use serde::Serialize;
use tokio::time::timeout;

/// How long a head waits for what is told first.
const HEAD: Duration = Duration::from_millis(100);

/// What tells nginx, by its value `no`, to pass events on as they come: it gathers an answer first, unless it is set otherwise.
pub const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Answers of a schema as a stream of events: `next`, each with an answer, and `complete` at their end or when `stop` comes. While
/// there is none, a comment every `beat` says that the stream lives. Nobody keeps it.
pub async fn event_stream<A: Serialize + 'static>(
    answers: impl Stream<Item = A> + Send + 'static,
    stop: Shutdown,
    beat: Duration,
) -> Response {
    let answers = answers.take_until(async move { stop.cancelled().await });
    let events = answers.map(|answer| Event::default().event("next").json_data(answer).unwrap_or_default());
    let events = events.chain(stream::once(async { Event::default().event("complete") }));
    let events = begun(events.map(Ok::<_, Infallible>)).await;
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(beat)).into_response();
    // A stream says of itself that it may be kept and asked about.
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Waits a little for the first item of a stream that answers a request, and gives the whole stream: the head of an answer goes
/// with what is told first, or soon without it.
///
/// What passes requests on may be one of Go's standard library, as many ingress controllers are. Where an answer begins before it
/// has seen that the request has no more bytes, it takes its own reading of them for a failure, and breaks off the answer: one
/// in a hundred where the head came at once, none where it came a millisecond later.
async fn begun<S: Stream + Send>(items: S) -> impl Stream<Item = S::Item> + Send
where
    S::Item: Send,
{
    let mut items = Box::pin(items.fuse());
    let first = timeout(HEAD, items.next()).await.ok().flatten();
    stream::iter(first).chain(items)
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_begins_with_what_is_told_first() {
        let told = stream::unfold(0, |number| async move {
            sleep(Duration::from_millis(40)).await;
            (number < 3).then_some((number, number + 1))
        });
        let asked = Instant::now();
        let told = begun(told).await;
        assert_eq!(asked.elapsed().as_millis() / 10, 4);
        assert_eq!(told.collect::<Vec<_>>().await, [0, 1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_begins_soon_where_nothing_is_told_yet() {
        let told = stream::once(async {
            sleep(Duration::from_secs(3_600)).await;
            "late"
        });
        let asked = Instant::now();
        let told = begun(told).await;
        assert_eq!(asked.elapsed().as_millis() / 10, HEAD.as_millis() / 10);
        assert_eq!(told.collect::<Vec<_>>().await, ["late"]);
    }

    #[tokio::test]
    async fn an_answer_of_nothing_ends() {
        assert!(begun(stream::empty::<u8>()).await.collect::<Vec<_>>().await.is_empty());
    }
}
