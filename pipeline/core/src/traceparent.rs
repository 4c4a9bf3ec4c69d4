//! The trace that work on an event belongs to, for whoever calls a peer while doing it.
//!
//! Handed along by the task and not by arguments: between the engine, which knows the event, and the client, which
//! sends the request, lie layers that it does not concern.

use std::sync::Arc;

tokio::task_local! {
    static CURRENT: Option<Arc<str>>;
}

/// Does `work` as part of the trace that `header` names, a W3C `traceparent`; `None` is of no trace.
pub async fn traced<F: Future>(header: Option<Arc<str>>, work: F) -> F::Output {
    CURRENT.scope(header, work).await
}

/// The W3C `traceparent` of what the current task works on, if it is traced.
#[must_use]
pub fn traceparent() -> Option<Arc<str>> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_knows_its_own_trace_alone() {
        let header = |text: &str| Some(Arc::from(text));
        let inner = traced(header("b"), async { traceparent() });
        let (outer, inner, after) =
            traced(header("a"), async { (traceparent(), inner.await, traceparent()) }).await;
        assert_eq!((outer, inner, after), (header("a"), header("b"), header("a")));
        assert_eq!(traced(None, async { traceparent() }).await, None);
        assert_eq!(traceparent(), None);
    }
}
