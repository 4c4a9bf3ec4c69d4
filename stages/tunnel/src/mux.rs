//! Many streams over one connection.
//!
//! takes: a connection - gives: streams, opened here or by the peer - fails: when the connection does. One task drives it and
//! never waits for whoever reads a stream: what a slow reader leaves unread fills its own window, and nothing else.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use yamux::Mode;

use crate::deferred_flush::DeferredFlush;

/// How many streams that a known peer opened may wait to be taken.
pub(crate) const ACCEPTED: usize = 256;
/// How many bytes a stream may have under way before it is known how fast it is, as the protocol has it.
const WINDOW: usize = 256 << 10;
/// How many bytes the fast streams of one connection may have under way beside that, together.
const MAX_RECEIVE_WINDOW: usize = 64 << 20;
/// How many streams a connection may have beside its places: those that have ended and are not forgotten yet, and those that need
/// no place.
const SPARE_STREAMS: usize = 72;
/// How long the connection may take to close in an orderly way.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens streams of a connection; clones share it. The connection is closed by [`Mux::close`] alone, or by the peer.
#[derive(Debug, Clone)]
pub(crate) struct Mux {
    ask: mpsc::Sender<oneshot::Sender<yamux::Stream>>,
    places: Arc<Semaphore>,
    ping: Arc<Notify>,
    close: CancellationToken,
    closed: CancellationToken,
    kept: Arc<AtomicUsize>,
}

/// Why no stream could be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("as many streams are open as may be")]
    Full,
    #[error("the connection is closed")]
    Closed,
}

impl Mux {
    /// Drives `io` in a task of its own until it is closed. Streams that the peer opens come out of what is returned.
    pub(crate) fn start<S>(io: S, mode: Mode, streams: usize) -> (Self, mpsc::Receiver<MuxStream>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::keeping(io, mode, streams, ACCEPTED)
    }

    /// The same; of the streams that the peer opens so many are kept until somebody takes them.
    pub(crate) fn keeping<S>(
        io: S,
        mode: Mode,
        streams: usize,
        kept: usize,
    ) -> (Self, mpsc::Receiver<MuxStream>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut config = yamux::Config::default();
        let most = streams + SPARE_STREAMS;
        // Each setter looks at both values.
        config.set_max_connection_receive_window(None);
        config.set_max_num_streams(most);
        config.set_max_connection_receive_window(Some(most * WINDOW + MAX_RECEIVE_WINDOW));
        let connection = yamux::Connection::new(DeferredFlush::new(io).compat(), config, mode);
        let (ask, asked) = mpsc::channel(ACCEPTED);
        let (accept, accepted) = mpsc::channel(ACCEPTED);
        let (close, closed) = (CancellationToken::new(), CancellationToken::new());
        let (told, done) = (close.clone(), closed.clone());
        let ping = Arc::new(Notify::new());
        let kept = Arc::new(AtomicUsize::new(kept));
        let (pinged, keeps) = (ping.clone(), kept.clone());
        tokio::spawn(async move {
            let _done = done.clone().drop_guard();
            drive(connection, asked, (accept, &keeps), &pinged, (told, &done)).await;
        });
        (Self { ask, places: Arc::new(Semaphore::new(streams)), ping, close, closed, kept }, accepted)
    }

    /// A new stream. The peer hears of it with its first bytes.
    pub(crate) async fn open(&self) -> Result<MuxStream, OpenError> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| OpenError::Full)?;
        self.opened(Some(place)).await
    }

    /// A new stream that needs no place, for the few that are to be opened however many others there are. It waits while the peer
    /// has acknowledged too few of them.
    pub(crate) async fn open_own(&self) -> Result<MuxStream, OpenError> {
        self.opened(None).await
    }

    async fn opened(&self, place: Option<OwnedSemaphorePermit>) -> Result<MuxStream, OpenError> {
        let (give, given) = oneshot::channel();
        self.ask.send(give).await.map_err(|_| OpenError::Closed)?;
        let inner = given.await.map_err(|_| OpenError::Closed)?;
        Ok(MuxStream::new(inner, place, &self.closed))
    }

    /// Keeps as many of the streams that the peer opens as of any that is known.
    pub(crate) fn keep_all(&self) {
        self.kept.store(ACCEPTED, Ordering::Release);
    }

    /// Pings the peer, when the last ping was answered and is ten seconds old: the multiplexer does so by itself while there is
    /// something to do.
    pub(crate) fn ping(&self) {
        self.ping.notify_one();
    }

    /// Closes the connection with a goodbye; what its streams carry is lost.
    pub(crate) fn close(&self) {
        self.close.cancel();
    }

    /// Waits until the connection is closed, by whomever.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

/// What happens on a connection.
enum Event {
    Opened(yamux::Stream, oneshot::Sender<yamux::Stream>),
    Accepted(yamux::Stream),
    Closed,
}

async fn drive<S: AsyncRead + AsyncWrite + Send + Unpin>(
    mut connection: yamux::Connection<Compat<S>>,
    mut asked: mpsc::Receiver<oneshot::Sender<yamux::Stream>>,
    (accept, kept): (mpsc::Sender<MuxStream>, &AtomicUsize),
    ping: &Notify,
    (close, closed): (CancellationToken, &CancellationToken),
) {
    let mut next: Option<oneshot::Sender<yamux::Stream>> = None;
    loop {
        let turn = poll_fn(|cx| {
            match connection.poll_next_inbound(cx) {
                Poll::Ready(Some(Ok(stream))) => return Poll::Ready(Event::Accepted(stream)),
                Poll::Ready(_) => return Poll::Ready(Event::Closed),
                Poll::Pending => {}
            }
            if next.is_none()
                && let Poll::Ready(ask) = asked.poll_recv(cx)
            {
                next = ask;
            }
            let Some(give) = next.take() else { return Poll::Pending };
            match connection.poll_new_outbound(cx) {
                Poll::Ready(Ok(stream)) => Poll::Ready(Event::Opened(stream, give)),
                Poll::Ready(Err(_)) => Poll::Ready(Event::Closed),
                Poll::Pending => {
                    next = Some(give);
                    Poll::Pending
                }
            }
        });
        let event = tokio::select! {
            biased;
            () = close.cancelled() => break,
            event = turn => event,
            () = ping.notified() => continue,
        };
        match event {
            // Whoever asked may be gone: then the stream is dropped.
            Event::Opened(stream, give) => drop(give.send(stream)),
            // When nobody takes it, it is refused: the others are not kept waiting.
            Event::Accepted(stream) => {
                if accept.max_capacity() - accept.capacity() >= kept.load(Ordering::Acquire) {
                    continue;
                }
                drop(accept.try_send(MuxStream::new(stream, None, closed)));
            }
            Event::Closed => return,
        }
    }
    // The multiplexer forgets its streams now, and wakes none of those who wait for them.
    closed.cancel();
    let goodbye = poll_fn(|cx| connection.poll_close(cx));
    drop(tokio::time::timeout(GOODBYE_TIMEOUT, goodbye).await);
}

/// Whether the other side has ended a stream: by its end, by a reset, or with the whole connection.
pub(crate) fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

/// A future that ends when the connection does.
type Closed = Pin<Box<WaitForCancellationFutureOwned>>;

/// One stream. Dropped before it was shut down, it is reset, but where the other side had ended already: then it ends. One that is reset, or whose connection ends before it, gives an error:
/// with an end what came until then would look whole.
pub(crate) struct MuxStream {
    // Dropped before the place is given back.
    inner: Compat<yamux::Stream>,
    /// The frame that is being read, and how much of it was: whole frames are taken, so that no room need be made ready for them.
    rest: Option<(yamux::Packet, usize)>,
    /// This side has said that it is done.
    is_shut: bool,
    closed: CancellationToken,
    /// Who reads and who writes may be two tasks, and each is woken.
    closed_for_reader: Option<Closed>,
    closed_for_writer: Option<Closed>,
    _place: Option<OwnedSemaphorePermit>,
}

impl MuxStream {
    fn new(inner: yamux::Stream, place: Option<OwnedSemaphorePermit>, closed: &CancellationToken) -> Self {
        Self {
            inner: inner.compat(),
            rest: None,
            is_shut: false,
            closed: closed.clone(),
            closed_for_reader: None,
            closed_for_writer: None,
            _place: place,
        }
    }
}

impl std::fmt::Debug for MuxStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.get_ref().fmt(f)
    }
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

/// Waits until the connection is closed, to say so with an error.
fn poll_closed<T>(
    waiting: &mut Option<Closed>,
    closed: &CancellationToken,
    cx: &mut Context<'_>,
) -> Poll<io::Result<T>> {
    let waiting = waiting.get_or_insert_with(|| Box::pin(closed.clone().cancelled_owned()));
    waiting.as_mut().poll(cx).map(|()| Err(reset()))
}

impl AsyncRead for MuxStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = out.filled().len();
        loop {
            if let Some((frame, read)) = &mut this.rest {
                let left = &frame.as_ref()[*read..];
                let length = left.len().min(out.remaining());
                out.put_slice(&left[..length]);
                *read += length;
                if length < left.len() {
                    return Poll::Ready(Ok(()));
                }
                this.rest = None;
            }
            let is_read = out.filled().len() > before;
            match Pin::new(this.inner.get_mut()).poll_next(cx) {
                Poll::Ready(Some(Ok(frame))) => this.rest = Some((frame, 0)),
                // It is told again.
                _ if is_read => return Poll::Ready(Ok(())),
                // The connection is closed, which the multiplexer says in words for who writes.
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(reset())),
                // Both sides have ended it, or the other has reset it, or its connection is gone.
                Poll::Ready(None) if this.inner.get_ref().is_closed() && !this.is_shut => {
                    return Poll::Ready(Err(reset()));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => return poll_closed(&mut this.closed_for_reader, &this.closed, cx),
            }
        }
    }
}

impl AsyncWrite for MuxStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match Pin::new(&mut this.inner).poll_write(cx, bytes) {
            Poll::Pending => poll_closed(&mut this.closed_for_writer, &this.closed, cx),
            Poll::Ready(written) => Poll::Ready(written.map_err(|_| reset())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_shut = true;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::timeout;

    use super::*;

    /// Nothing takes longer unless it never comes.
    const BOUND: Duration = Duration::from_secs(20);

    /// A connection, and a stream of it as either side has it.
    async fn stream() -> ((Mux, MuxStream), (Mux, MuxStream)) {
        let (near, far) = duplex(1 << 10);
        let (near, _) = Mux::start(near, Mode::Client, 9);
        let (far, mut accepted) = Mux::start(far, Mode::Server, 9);
        let mut stream = near.open().await.unwrap();
        stream.write_all(b"x").await.unwrap();
        stream.flush().await.unwrap();
        let mut other = accepted.recv().await.unwrap();
        assert_eq!(other.read_u8().await.unwrap(), b'x');
        ((near, stream), (far, other))
    }

    async fn kind_of<T: std::fmt::Debug>(ending: impl Future<Output = io::Result<T>>) -> ErrorKind {
        timeout(BOUND, ending).await.expect("it ends").unwrap_err().kind()
    }

    #[tokio::test]
    async fn who_waits_for_a_stream_is_told_with_an_error_when_its_connection_is_closed() {
        let ((mux, mut near), (_far, mut other)) = stream().await;
        // All that the other side, which reads nothing, has room for.
        near.write_all(&[0; WINDOW - 1]).await.unwrap();
        let (mut reading, mut writing) = tokio::io::split(near);
        let writing = tokio::spawn(async move { writing.write_u8(0).await });
        let reading = tokio::spawn(async move { reading.read_u8().await });
        // Each has its turn, and waits.
        tokio::task::yield_now().await;
        mux.close();
        assert_eq!(kind_of(async { reading.await.unwrap() }).await, ErrorKind::ConnectionReset);
        assert_eq!(kind_of(async { writing.await.unwrap() }).await, ErrorKind::ConnectionReset);
        let rest = timeout(BOUND, other.read_to_end(&mut Vec::new())).await.expect("it ends");
        assert_eq!(rest.unwrap_err().kind(), ErrorKind::ConnectionReset, "the other side has not ended it");
    }

    #[tokio::test]
    async fn what_was_reset_is_no_end_and_what_was_ended_is() {
        let ((_near, mut stream), (_far, mut other)) = self::stream().await;
        other.write_all(b"half of what was to be said").await.unwrap();
        drop(other);
        let mut said = String::new();
        assert_eq!(kind_of(stream.read_to_string(&mut said)).await, ErrorKind::ConnectionReset);
        let ((_near, mut stream), (_far, mut other)) = self::stream().await;
        other.write_all(b"all").await.unwrap();
        other.shutdown().await.unwrap();
        drop(other);
        let mut said = String::new();
        timeout(BOUND, stream.read_to_string(&mut said)).await.unwrap().unwrap();
        assert_eq!(said, "all");
        // Who has ended its own side as well gets the end too.
        let ((_near, mut stream), (_far, mut other)) = self::stream().await;
        stream.shutdown().await.unwrap();
        assert_eq!(timeout(BOUND, other.read_to_end(&mut Vec::new())).await.unwrap().unwrap(), 0);
        other.shutdown().await.unwrap();
        assert_eq!(timeout(BOUND, stream.read_to_end(&mut Vec::new())).await.unwrap().unwrap(), 0);
    }
}
