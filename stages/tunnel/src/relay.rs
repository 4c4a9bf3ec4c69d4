//! Passes bytes between two connections, until both directions have ended, or one has and the other does not in time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::sleep;

/// How long a connection is silent before the peer is probed; one that went away without a word is noticed after three probes.
const PROBE: Duration = Duration::from_secs(20);

/// Lets the system ask a peer that says nothing whether it is there: one whose node lost its power closes nothing, and would keep its
/// place for ever.
pub(crate) fn keep_alive(stream: &TcpStream) {
    let asking = TcpKeepalive::new().with_time(PROBE).with_interval(PROBE).with_retries(3);
    // A system that does not know it has its own times.
    drop(SockRef::from(stream).set_tcp_keepalive(&asking));
}

/// How many bytes are passed on at once.
const PIECE: usize = 16 << 10;

/// Passes bytes on both ways. The end of one direction is passed on as well, and the other has `last` after it: who does not close is
/// kept no longer. The family closes both at once.
pub(crate) async fn relay(
    a: impl AsyncRead + AsyncWrite + Unpin,
    b: impl AsyncRead + AsyncWrite + Unpin,
    last: Duration,
) -> io::Result<()> {
    let ended = Notify::new();
    let (mut a, mut b) = (Side { inner: a, ended: &ended }, Side { inner: b, ended: &ended });
    let over = async {
        ended.notified().await;
        sleep(last).await;
    };
    tokio::select! {
        relayed = copy_bidirectional_with_sizes(&mut a, &mut b, PIECE, PIECE) => relayed.map(drop),
        () = over => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// One side of a relay, which is shut down once the other side has ended.
struct Side<'a, S> {
    inner: S,
    ended: &'a Notify,
}

impl<S: AsyncRead + Unpin> AsyncRead for Side<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, out)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Side<'_, S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ended.notify_one();
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn whichever_side_ends_first_the_other_is_kept_for_a_while_and_no_longer() {
        for is_service in [false, true] {
            let ((visitor, a), (b, service)) = (duplex(99), duplex(99));
            let relaying = tokio::spawn(relay(a, b, Duration::from_millis(10)));
            let (mut ending, mut silent) = if is_service { (service, visitor) } else { (visitor, service) };
            ending.write_all(b"all").await.unwrap();
            ending.shutdown().await.unwrap();
            let mut all = String::new();
            silent.read_to_string(&mut all).await.unwrap();
            assert_eq!(all, "all");
            let ended = timeout(Duration::from_secs(20), relaying).await.expect("it ends");
            assert_eq!(ended.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
    }

    #[tokio::test]
    async fn who_has_ended_is_told_what_comes_soon_and_kept_for_no_one_after_that() {
        for is_silent in [false, true] {
            let ((mut visitor, a), (b, mut service)) = (duplex(99), duplex(99));
            let last = if is_silent { Duration::from_millis(10) } else { Duration::from_secs(600) };
            let relaying = tokio::spawn(relay(a, b, last));
            visitor.write_all(b"asked").await.unwrap();
            visitor.shutdown().await.unwrap();
            let (mut asked, mut told) = (String::new(), String::new());
            service.read_to_string(&mut asked).await.unwrap();
            assert_eq!(asked, "asked");
            if !is_silent {
                service.write_all(b"told").await.unwrap();
                drop(service);
            }
            visitor.read_to_string(&mut told).await.unwrap();
            assert_eq!(told, if is_silent { "" } else { "told" });
            assert_eq!(relaying.await.unwrap().is_err(), is_silent);
        }
    }
}
