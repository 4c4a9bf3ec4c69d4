//! What the family calls encryption: AES-128 in CFB mode, each direction after 16 bytes of its own.
//!
//! The key is made of the server's token, which is empty here, as it is with the incumbent: everybody knows it. It is spoken
//! because clients do, and protects nothing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use aes::Aes128;
use bytes::BytesMut;
use cfb_mode::cipher::KeyIvInit as _;
use cfb_mode::{BufDecryptor, BufEncryptor};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::ws::drain;

/// PBKDF2 with HMAC-SHA-1 of an empty password, the salt `frp`, and 64 rounds.
const KEY: [u8; 16] =
    [0xcd, 0xc9, 0xdc, 0x4c, 0x47, 0x2c, 0x37, 0x33, 0x12, 0x81, 0xdf, 0x4c, 0x23, 0x2a, 0x84, 0x07];
/// How many bytes are taken at once, and how many may wait to be written.
const PIECE: usize = 16 << 10;

/// A stream whose bytes are encrypted on the way.
pub(crate) struct Encrypted<S> {
    inner: S,
    first: [u8; 16],
    first_read: usize,
    reading: Option<BufDecryptor<Aes128>>,
    writing: Option<BufEncryptor<Aes128>>,
    waiting: BytesMut,
}

impl<S> Encrypted<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, first: [0; 16], first_read: 0, reading: None, writing: None, waiting: BytesMut::new() }
    }
}

impl<S: AsyncWrite + Unpin> Encrypted<S> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        drain(&mut self.inner, &mut self.waiting, cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let decryptor = loop {
            if let Some(decryptor) = &mut this.reading {
                break decryptor;
            }
            let mut rest = ReadBuf::new(&mut this.first[this.first_read..]);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut rest))?;
            match rest.filled().len() {
                0 if this.first_read == 0 => return Poll::Ready(Ok(())),
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                read => this.first_read += read,
            }
            if this.first_read == this.first.len() {
                this.reading = Some(BufDecryptor::new(&KEY.into(), &this.first.into()));
            }
        };
        let before = out.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, out))?;
        decryptor.decrypt(&mut out.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_drain(cx))?;
        let this = &mut *self;
        let encryptor = match &mut this.writing {
            Some(encryptor) => encryptor,
            None => {
                let mut first = [0; 16];
                getrandom::fill(&mut first).map_err(io::Error::other)?;
                this.waiting.extend_from_slice(&first);
                this.writing.insert(BufEncryptor::new(&KEY.into(), &first.into()))
            }
        };
        let taken = &bytes[..bytes.len().min(PIECE)];
        let from = this.waiting.len();
        this.waiting.extend_from_slice(taken);
        encryptor.encrypt(&mut this.waiting[from..]);
        // What cannot be written yet is written before more is taken, or when it is flushed.
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
    async fn what_is_encrypted_is_read_again_in_pieces_of_any_size() {
        // So little room that everything comes in pieces.
        let (near, far) = tokio::io::duplex(7);
        let (mut near, mut far) = (Encrypted::new(near), Encrypted::new(far));
        let sent: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let writing = async {
            for piece in sent.chunks(33_333) {
                near.write_all(piece).await.unwrap();
            }
            near.shutdown().await.unwrap();
        };
        let mut read = Vec::new();
        let (_, all) = tokio::join!(writing, far.read_to_end(&mut read));
        all.unwrap();
        assert_eq!(read, sent);
    }
}
