//! The head of an answer that goes on, and what is told first.

use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use tokio::time::timeout;

/// How long a head waits for what is told first.
const HEAD: Duration = Duration::from_millis(100);

/// Waits a little for the first item of a stream that answers a request, and gives the whole stream: the head of an answer goes
/// with what is told first, or soon without it.
///
/// What passes requests on may be one of Go's standard library, as many ingress controllers are. Where an answer begins before it
/// has seen that the request has no more bytes, it takes its own reading of them for a failure, and breaks off the answer: one
/// in a hundred where the head came at once, none where it came a millisecond later.
pub async fn begun<S: Stream + Send>(items: S) -> impl Stream<Item = S::Item> + Send
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
