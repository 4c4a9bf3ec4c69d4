//! Moments that several tasks see: when something moved last, since when something waits.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use pipeline_core::Busy;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

/// A moment, or none, that several tasks may read and set.
#[derive(Debug)]
pub(crate) struct Moment {
    began: Instant,
    /// One more than the milliseconds from `began` to the moment; 0 for none.
    at: AtomicU64,
}

impl Moment {
    pub(crate) fn none() -> Self {
        Self { began: Instant::now(), at: AtomicU64::new(0) }
    }

    pub(crate) fn now() -> Self {
        Self { at: AtomicU64::new(1), ..Self::none() }
    }

    fn read(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Sets the moment to now.
    pub(crate) fn touch(&self) {
        self.at.store(self.read(), Ordering::Relaxed);
    }

    /// Sets the moment to now, unless there is one already.
    fn begin(&self) {
        let _ = self.at.compare_exchange(0, self.read(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Sets the moment to none.
    pub(crate) fn clear(&self) {
        self.at.store(0, Ordering::Relaxed);
    }

    /// How long ago the moment is.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        let at = self.at.load(Ordering::Relaxed);
        (at > 0).then(|| Duration::from_millis(self.read().saturating_sub(at)))
    }

    /// What is left of `limit`, counted from the moment: `None` when it is over, all of it when there is no moment.
    pub(crate) fn left(&self, limit: Duration) -> Option<Duration> {
        limit.checked_sub(self.elapsed().unwrap_or_default()).filter(|left| !left.is_zero())
    }

    /// Waits until the moment is `limit` ago, however often it is set in the meantime.
    pub(crate) async fn stale(&self, limit: Duration) {
        while let Some(left) = self.left(limit) {
            sleep(left).await;
        }
    }
}

/// What a connection waits for, seen from outside.
#[derive(Debug)]
pub(crate) struct Wire {
    /// Since when something of a request was read that is not handled yet.
    pub(crate) reading: Moment,
    /// Since when the peer takes nothing of what is to be sent.
    pub(crate) blocked: Moment,
    /// When the last request was over.
    pub(crate) idle: Moment,
    /// Whether HTTP/2 is spoken, whose frames come and go without any request.
    pub(crate) http2: AtomicBool,
}

impl Wire {
    /// The moments of a connection that was just opened, whose first request is waited for.
    pub(crate) fn opened() -> Arc<Self> {
        Arc::new(Self {
            reading: Moment::now(),
            blocked: Moment::none(),
            idle: Moment::now(),
            http2: AtomicBool::new(false),
        })
    }
}

/// A request that is under way on a connection, which is neither idle nor late while this lives.
#[derive(Debug)]
pub(crate) struct Turn {
    wire: Arc<Wire>,
    _busy: Busy,
}

impl Turn {
    pub(crate) fn begin(wire: Arc<Wire>, busy: Busy, http2: bool) -> Arc<Self> {
        wire.reading.clear();
        wire.http2.store(http2, Ordering::Relaxed);
        Arc::new(Self { wire, _busy: busy })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.wire.reading.clear();
        self.wire.idle.touch();
    }
}

/// A stream that notes in its [`Wire`] when it reads and when it is blocked.
pub(crate) struct Watched<S> {
    stream: S,
    wire: Arc<Wire>,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, wire: Arc<Wire>) -> Self {
        Self { stream, wire }
    }

    fn noted<T>(&self, poll: Poll<T>) -> Poll<T> {
        match poll {
            Poll::Pending => self.wire.blocked.begin(),
            Poll::Ready(_) => self.wire.blocked.clear(),
        }
        poll
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.wire.reading.begin();
        }
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        self.noted(poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.noted(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.noted(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_moves_again_and_again_does_not_get_stale() {
        let moment = Moment::now();
        let moving = async {
            for _ in 0..9 {
                sleep(Duration::from_secs(9)).await;
                moment.touch();
            }
        };
        let began = Instant::now();
        tokio::join!(moving, moment.stale(Duration::from_secs(10)));
        assert_eq!(began.elapsed().as_secs(), 91);
        assert_eq!(Moment::none().elapsed(), None);
    }
}
