//! How long a visitor may take for the head of a request: an idle connection is kept for a while, and one that has begun a head is
//! to end it soon. The limit that hyper has for heads does not tell the two apart. The beginning of a head that
//! comes in one packet with the request before it has the time of an idle connection, until more of it comes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Counts the requests of a connection; clones share the counts.
#[derive(Debug, Default, Clone)]
pub(crate) struct RequestCounter(Arc<RequestCounts>);

#[derive(Debug, Default)]
struct RequestCounts {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl RequestCounter {
    /// Counts a request whose head has come as under way until what is returned is dropped.
    pub(crate) fn begin(&self) -> Arc<RequestGuard> {
        self.0.begun.fetch_add(1, Ordering::AcqRel);
        Arc::new(RequestGuard(self.clone()))
    }

    /// Notes that the connection has left HTTP, so that no head comes any more.
    pub(crate) fn leave(&self) {
        self.0.begun.fetch_add(1, Ordering::AcqRel);
    }

    /// How many requests have begun, and whether one is under way.
    fn now(&self) -> (u64, bool) {
        let ended = self.0.ended.load(Ordering::Acquire);
        let begun = self.0.begun.load(Ordering::Acquire);
        (begun, begun > ended)
    }
}

/// A request that is under way until all that hold this have ended: while something of it or of its answer is on its way.
#[derive(Debug)]
pub(crate) struct RequestGuard(RequestCounter);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.0.ended.fetch_add(1, Ordering::AcqRel);
    }
}

/// A visitor's connection; reading from it fails when a head has begun and does not end within a limit.
pub(crate) struct HeadTimeout<S> {
    inner: S,
    requests: RequestCounter,
    limit: Duration,
    /// How many requests had begun when the head did, and until when it is to end.
    head: Option<(u64, Pin<Box<Sleep>>)>,
}

impl<S> HeadTimeout<S> {
    pub(crate) fn new(inner: S, requests: RequestCounter, limit: Duration) -> Self {
        Self { inner, requests, limit, head: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadTimeout<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let (begun, is_asking) = this.requests.now();
        if is_asking || this.head.as_ref().is_some_and(|(before, _)| *before != begun) {
            this.head = None;
        }
        let before = out.filled().len();
        let poll = Pin::new(&mut this.inner).poll_read(cx, out);
        if is_asking {
            return poll;
        }
        match &mut this.head {
            Some((_, late)) if poll.is_pending() => {
                ready!(late.as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            None if out.filled().len() > before => {
                this.head = Some((begun, Box::pin(sleep(this.limit))));
                poll
            }
            _ => poll,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
