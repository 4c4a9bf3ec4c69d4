//! Flushes what is written in small pieces together.
//!
//! A multiplexer flushes after each frame, and ends each of its turns with a read. What it wants to be flushed is kept until that
//! read has to wait: until then more may come, and one write carries it all. While there is always something to read it is
//! passed on after a while all the same.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes may be read before what is due is flushed all the same.
const MAX_READ_BEFORE_FLUSH: usize = 64 << 10;

/// A connection whose flushes are put off until a read has to wait.
#[derive(Debug)]
pub(crate) struct DeferredFlush<S> {
    inner: S,
    /// Whether a flush was asked for and not made yet.
    is_due: bool,
    /// How many bytes were read since a flush is due.
    read: usize,
}

impl<S> DeferredFlush<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, is_due: false, read: 0 }
    }
}

impl<S: AsyncWrite + Unpin> DeferredFlush<S> {
    /// Makes the flush that is due, if any. When it cannot be made yet, the next read tries again, for which the task is woken.
    fn pass(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.is_due
            && let Poll::Ready(done) = Pin::new(&mut self.inner).poll_flush(cx)
        {
            done?;
            self.is_due = false;
        }
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for DeferredFlush<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.read >= MAX_READ_BEFORE_FLUSH {
            this.pass(cx)?;
        }
        let before = out.filled().len();
        let Poll::Ready(done) = Pin::new(&mut this.inner).poll_read(cx, out) else {
            this.pass(cx)?;
            return Poll::Pending;
        };
        this.read += out.filled().len() - before;
        Poll::Ready(done)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for DeferredFlush<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_due {
            (this.is_due, this.read) = (true, 0);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.inner).poll_flush(cx))?;
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use futures::poll;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufWriter, DuplexStream};

    use super::*;

    fn pair() -> (DeferredFlush<BufWriter<DuplexStream>>, DuplexStream) {
        let (near, far) = tokio::io::duplex(1 << 20);
        (DeferredFlush::new(BufWriter::new(near)), far)
    }

    /// What has arrived by now.
    async fn arrived(far: &mut DuplexStream) -> usize {
        let mut bytes = [0; 99];
        match poll!(Box::pin(far.read(&mut bytes))) {
            Poll::Ready(read) => read.unwrap(),
            Poll::Pending => 0,
        }
    }

    #[tokio::test]
    async fn what_was_flushed_goes_out_with_the_first_read_that_waits() {
        let (mut near, mut far) = pair();
        far.write_all(b"ab").await.unwrap();
        near.write_all(b"one").await.unwrap();
        near.flush().await.unwrap();
        near.write_all(b"two").await.unwrap();
        near.flush().await.unwrap();
        assert_eq!(near.read_u16().await.unwrap(), u16::from_be_bytes(*b"ab"));
        assert_eq!(arrived(&mut far).await, 0, "there was something to read");
        assert!(poll!(Box::pin(near.read_u8())).is_pending());
        assert_eq!(arrived(&mut far).await, 6, "both, together");
    }

    #[tokio::test]
    async fn what_was_not_flushed_stays_and_what_was_is_not_kept_for_ever() {
        let (mut near, mut far) = pair();
        near.write_all(b"more will come").await.unwrap();
        assert!(poll!(Box::pin(near.read_u8())).is_pending());
        assert_eq!(arrived(&mut far).await, 0);
        near.flush().await.unwrap();
        far.write_all(&vec![0; MAX_READ_BEFORE_FLUSH + 1]).await.unwrap();
        near.read_exact(&mut vec![0; MAX_READ_BEFORE_FLUSH]).await.unwrap();
        assert_eq!(arrived(&mut far).await, 0);
        near.read_u8().await.unwrap();
        assert_eq!(arrived(&mut far).await, 14, "though there was always something to read");
    }

    #[tokio::test]
    async fn the_end_takes_what_is_left_along_and_a_flush_that_fails_is_told_by_the_read() {
        let (mut near, mut far) = pair();
        near.write_all(b"goodbye").await.unwrap();
        near.shutdown().await.unwrap();
        let mut all = Vec::new();
        far.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, b"goodbye");
        let mut near = DeferredFlush::new(Broken);
        near.flush().await.unwrap();
        assert_eq!(near.read_u8().await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    /// Gives nothing, and takes nothing.
    struct Broken;

    impl AsyncRead for Broken {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Broken {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(ErrorKind::BrokenPipe.into()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(ErrorKind::BrokenPipe.into()))
        }
    }
}
