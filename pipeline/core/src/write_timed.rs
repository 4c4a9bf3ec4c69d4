//! A connection that is given up when its peer takes nothing of what is written to it for too long: who asks and does not read what
//! is answered would keep its place for as long as it likes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection whose writes have so long each to move on.
#[derive(Debug)]
pub struct WriteTimed<S> {
    inner: S,
    limit: Duration,
    /// Runs while the peer takes nothing.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimed<S> {
    /// What is written waits for `limit` at most.
    #[must_use]
    pub fn new(inner: S, limit: Duration) -> Self {
        Self { inner, limit, timer: None }
    }

    fn timed<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_pending() {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.limit)));
            ready!(timer.as_mut().poll(cx));
        }
        self.timer = None;
        if written.is_pending() { Poll::Ready(Err(io::ErrorKind::TimedOut.into())) } else { written }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimed<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(cx, out)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimed<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write(cx, bytes);
        this.timed(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.inner).poll_write_vectored(cx, bytes);
        this.timed(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}
