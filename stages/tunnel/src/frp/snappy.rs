//! What the family calls compression: the framing format of Snappy, a chunk for each write.

use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use snap::read::FrameDecoder;
use snap::write::FrameEncoder;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io_errors::invalid;
use crate::ws::drain;

/// The chunk that a stream begins with, and that may come again anywhere in it.
const STREAM_IDENTIFIER: &[u8] = b"\xff\x06\x00\x00sNaPpY";
/// How many bytes one chunk may unpack to, by the format.
const MAX_CHUNK: usize = 64 << 10;
/// How many bytes a chunk may have as it is sent; what does not get smaller is sent as it is.
const MAX_PACKED: usize = MAX_CHUNK + (MAX_CHUNK / 6) + 64;
/// How many bytes are taken at once.
const PIECE: usize = 16 << 10;

/// A stream whose bytes are compressed on the way.
pub(crate) struct Compressed<S> {
    inner: S,
    arrived: BytesMut,
    unpacked: BytesMut,
    packing: FrameEncoder<Vec<u8>>,
    waiting: BytesMut,
}

impl<S> Compressed<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self {
            inner,
            arrived: BytesMut::new(),
            unpacked: BytesMut::new(),
            packing: FrameEncoder::new(Vec::new()),
            waiting: BytesMut::new(),
        }
    }

    /// Unpacks the next chunk, if all of it arrived.
    fn unpack(&mut self) -> io::Result<bool> {
        let &[_, low, middle, high, ..] = &self.arrived[..] else { return Ok(false) };
        let length = 4 + u32::from_le_bytes([low, middle, high, 0]) as usize;
        if length > MAX_PACKED {
            return Err(invalid("a chunk that is longer than one may be"));
        }
        if self.arrived.len() < length {
            return Ok(false);
        }
        let chunk = self.arrived.split_to(length);
        // Each chunk stands alone.
        let mut decoder =
            FrameDecoder::new(io::Read::chain(STREAM_IDENTIFIER, &chunk[..])).take(MAX_CHUNK as u64);
        let mut unpacked = Vec::new();
        decoder.read_to_end(&mut unpacked)?;
        self.unpacked.extend_from_slice(&unpacked);
        Ok(true)
    }
}

impl<S: AsyncWrite + Unpin> Compressed<S> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        drain(&mut self.inner, &mut self.waiting, cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Compressed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.unpacked.is_empty() {
            if this.unpack()? {
                continue;
            }
            let mut space = [0; 4096];
            let mut read = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(match this.arrived.is_empty() {
                    true => Ok(()),
                    false => Err(io::ErrorKind::UnexpectedEof.into()),
                });
            }
            this.arrived.extend_from_slice(read.filled());
        }
        let some = this.unpacked.split_to(this.unpacked.len().min(out.remaining()));
        out.put_slice(&some);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Compressed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_drain(cx))?;
        let this = &mut *self;
        let taken = &bytes[..bytes.len().min(PIECE)];
        this.packing.write_all(taken)?;
        this.packing.flush()?;
        this.waiting.extend_from_slice(this.packing.get_ref());
        this.packing.get_mut().clear();
        if let Poll::Ready(Err(error)) = this.poll_drain(cx) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn what_is_compressed_is_read_again_in_pieces_of_any_size() {
        let (near, far) = tokio::io::duplex(11);
        let (mut near, mut far) = (Compressed::new(near), Compressed::new(far));
        let mut sent: Vec<u8> = (0..50_000_u32).map(|number| (number / 100) as u8).collect();
        // What cannot be made smaller.
        sent.extend((0..50_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8));
        let writing = async {
            near.write_all(&sent).await.unwrap();
            near.shutdown().await.unwrap();
        };
        let mut read = Vec::new();
        let (_, all) = tokio::join!(writing, far.read_to_end(&mut read));
        all.unwrap();
        assert_eq!(read, sent);
    }

    #[tokio::test]
    async fn a_chunk_that_is_too_long_is_refused_before_it_is_read() {
        let mut stream = Compressed::new(&b"\x00\xff\xff\xff"[..]);
        let error = stream.read_u8().await.unwrap_err();
        assert_eq!(error.to_string(), "a chunk that is longer than one may be");
    }
}
