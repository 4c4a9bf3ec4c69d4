//! The stream of bytes of a control connection or of a work connection: a stream of a client's multiplexer, or a connection of its
//! own.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;

use crate::session::Io;

/// A stream of bytes whose first can be looked at before somebody reads it.
pub(super) struct Carrier {
    // Dropped before the place is given back.
    inner: Box<dyn Io>,
    first: Option<u8>,
    place: Option<OwnedSemaphorePermit>,
}

impl Carrier {
    pub(super) fn new(inner: impl Io + 'static) -> Self {
        Self { inner: Box::new(inner), first: None, place: None }
    }

    /// The first byte, which stays to be read.
    pub(super) async fn first(&mut self) -> io::Result<u8> {
        let byte = match self.first {
            Some(byte) => byte,
            None => self.inner.read_u8().await?,
        };
        Ok(*self.first.insert(byte))
    }

    /// Takes away the byte that was looked at.
    pub(super) fn skip(&mut self) {
        self.first = None;
    }

    /// Whether the other side has ended it. Only for one that waits for a visitor, as nothing is sent over it meanwhile.
    pub(super) fn is_over(&mut self) -> bool {
        matches!(self.first().now_or_never(), Some(Err(_)))
    }

    /// Keeps `place` until this is dropped.
    pub(super) fn hold(&mut self, place: OwnedSemaphorePermit) {
        self.place = Some(place);
    }
}

impl AsyncRead for Carrier {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if out.remaining() > 0
            && let Some(byte) = self.first.take()
        {
            out.put_slice(&[byte]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_read(cx, out)
    }
}

impl AsyncWrite for Carrier {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn the_first_byte_is_looked_at_and_read_all_the_same_unless_it_is_taken_away() {
        let (mut far, near) = tokio::io::duplex(99);
        let mut carrier = Carrier::new(near);
        assert!(!carrier.is_over(), "nothing is said yet");
        far.write_all(b"abc").await.unwrap();
        assert_eq!(carrier.first().await.unwrap(), b'a');
        assert_eq!(carrier.first().await.unwrap(), b'a', "it stays");
        assert_eq!(carrier.read_u8().await.unwrap(), b'a');
        assert_eq!(carrier.first().await.unwrap(), b'b');
        carrier.skip();
        assert_eq!(carrier.read_u8().await.unwrap(), b'c');
        drop(far);
        assert!(carrier.is_over());
    }
}
