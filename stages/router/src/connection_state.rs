//! What a connection waits for, noted as it is read and written and as its requests come and end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use pipeline_core::Busy;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::moment::Moment;

/// What a connection waits for, seen from outside.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    /// Since when something of a request was read that is not handled yet.
    pub(crate) reading: Moment,
    /// Since when the peer takes nothing of what is to be sent.
    pub(crate) blocked: Moment,
    /// When the last request was over.
    pub(crate) idle: Moment,
    /// Whether HTTP/2 is spoken, whose frames come and go without any request.
    pub(crate) http2: AtomicBool,
}

impl ConnectionState {
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
pub(crate) struct RequestGuard {
    state: Arc<ConnectionState>,
    _busy: Busy,
}

impl RequestGuard {
    pub(crate) fn begin(state: Arc<ConnectionState>, busy: Busy, http2: bool) -> Arc<Self> {
        state.reading.clear();
        state.http2.store(http2, Ordering::Relaxed);
        Arc::new(Self { state, _busy: busy })
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.state.reading.clear();
        self.state.idle.touch();
    }
}

/// A stream that notes in its [`ConnectionState`] when it reads and when it is blocked.
pub(crate) struct WatchedStream<S> {
    stream: S,
    state: Arc<ConnectionState>,
}

impl<S> WatchedStream<S> {
    pub(crate) fn new(stream: S, state: Arc<ConnectionState>) -> Self {
        Self { stream, state }
    }

    fn noted<T>(&self, poll: Poll<T>) -> Poll<T> {
        match poll {
            Poll::Pending => self.state.blocked.begin(),
            Poll::Ready(_) => self.state.blocked.clear(),
        }
        poll
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.state.reading.begin();
        }
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
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
