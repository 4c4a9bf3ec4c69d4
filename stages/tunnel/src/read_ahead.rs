//! Reads a connection in large pieces, however small those are that its reader asks for: TLS asks for 4 KiB at a time, of records
//! that have 16 KiB.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

/// How many bytes are read at once.
const PIECE: usize = 32 << 10;

/// A connection that is read ahead. It takes no memory while nothing comes.
#[derive(Debug)]
pub(crate) struct ReadAhead<S> {
    inner: S,
    /// What was read and has not been asked for yet.
    rest: BytesMut,
}

impl<S> ReadAhead<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, rest: BytesMut::new() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            if out.remaining() >= PIECE {
                return Pin::new(&mut this.inner).poll_read(cx, out);
            }
            // The memory is given back when nothing comes.
            let mut piece = BytesMut::with_capacity(PIECE);
            ready!(poll_read_buf(Pin::new(&mut this.inner), cx, &mut piece))?;
            this.rest = piece;
        }
        let length = this.rest.len().min(out.remaining());
        out.put_slice(&this.rest[..length]);
        this.rest.advance(length);
        if this.rest.is_empty() {
            this.rest = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, bytes)
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn all_is_read_in_order_whatever_is_asked_for() {
        let sent: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
        let (mut far, near) = tokio::io::duplex(100_000);
        let copy = sent.clone();
        tokio::spawn(async move { far.write_all(&copy).await.unwrap() });
        let (mut near, mut read) = (ReadAhead::new(near), Vec::new());
        for length in [1, 4_096, PIECE, 7, PIECE * 2, 4_096].into_iter().cycle() {
            let mut piece = vec![0; length];
            match near.read(&mut piece).await.unwrap() {
                0 => break,
                length => read.extend_from_slice(&piece[..length]),
            }
        }
        assert!(read == sent, "{} bytes were read", read.len());
    }
}
