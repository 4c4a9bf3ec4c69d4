//! Bytes in the frames of a WebSocket (RFC 6455), as one stream.
//!
//! takes: a connection that was upgraded - gives: a stream of bytes, whatever frames they come in - fails: with
//! [`std::io::ErrorKind::InvalidData`] for what no peer may send. Frames are passed on as they arrive and never put together:
//! one of any length takes no room. The frp family puts any bytes into text frames, which libraries refuse.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, BytesMut};
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io_errors::invalid;

/// How many bytes a frame that is sent may have.
const MAX_FRAME: usize = 32 << 10;
/// How many bytes may wait to be written before nothing more is taken.
const MAX_WAITING: usize = 64 << 10;

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Which side of a WebSocket this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It masks what it sends.
    Client,
    /// It does not.
    Server,
}

/// Which frames carry the bytes. Both are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    /// As they should.
    Binary,
    /// As the frp family does.
    Text,
}

/// The answer to a `Sec-WebSocket-Key`.
#[must_use]
pub fn accept_of(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.trim().as_bytes());
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(hash.finalize())
}

/// A new `Sec-WebSocket-Key`.
pub(crate) fn new_key() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(STANDARD.encode(bytes))
}

/// Which part of a frame is read next.
#[derive(Debug)]
enum Reading {
    /// Its head.
    Head,
    /// So many bytes that belong to the stream.
    Payload { left: u64, mask: Option<[u8; 4]>, at: usize },
    /// So many bytes of a frame of the protocol itself.
    Control { opcode: u8, left: usize, mask: Option<[u8; 4]> },
    /// The peer closed.
    Ended,
}

/// A stream of bytes in the frames of a WebSocket.
#[derive(Debug)]
pub struct WebSocket<S> {
    inner: S,
    side: Side,
    opcode: u8,
    reading: Reading,
    /// What arrived and is not read: a head, or the payload of a frame of the protocol; at most [`MAX_FRAME`].
    arrived: BytesMut,
    waiting: BytesMut,
    /// Masks that are not used yet.
    masks: BytesMut,
    is_closing: bool,
}

impl<S> WebSocket<S> {
    /// Speaks over `inner`, which was upgraded.
    pub fn new(inner: S, side: Side, frames: Frames) -> Self {
        let opcode = if frames == Frames::Binary { BINARY } else { TEXT };
        Self {
            inner,
            side,
            opcode,
            reading: Reading::Head,
            arrived: BytesMut::new(),
            waiting: BytesMut::new(),
            masks: BytesMut::new(),
            is_closing: false,
        }
    }

    fn put(&mut self, opcode: u8, payload: &[u8]) -> io::Result<()> {
        let masked = if self.side == Side::Client { 0x80 } else { 0 };
        self.waiting.extend_from_slice(&[0x80 | opcode]);
        match payload.len() {
            small @ ..=125 => self.waiting.extend_from_slice(&[masked | small as u8]),
            length => {
                // A frame has at most MAX_FRAME bytes, which fits.
                self.waiting.extend_from_slice(&[masked | 126]);
                self.waiting.extend_from_slice(&(length as u16).to_be_bytes());
            }
        }
        if self.side == Side::Server {
            self.waiting.extend_from_slice(payload);
            return Ok(());
        }
        if self.masks.is_empty() {
            self.masks.resize(256, 0);
            getrandom::fill(&mut self.masks).map_err(io::Error::other)?;
        }
        let mask = self.masks.get_u32().to_be_bytes();
        self.waiting.extend_from_slice(&mask);
        let from = self.waiting.len();
        self.waiting.extend_from_slice(payload);
        apply(&mut self.waiting[from..], mask, 0);
        Ok(())
    }

    /// Reads a head, if all of it arrived.
    fn head(&mut self) -> io::Result<Option<Reading>> {
        let &[first, second, ..] = &self.arrived[..] else { return Ok(None) };
        let more = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let is_masked = second & 0x80 != 0;
        if self.arrived.len() < 2 + more + if is_masked { 4 } else { 0 } {
            return Ok(None);
        }
        if first & 0x70 != 0 {
            return Err(invalid("a frame with an extension that was not agreed on"));
        }
        if is_masked != (self.side == Side::Server) {
            return Err(invalid("a frame whose mask does not fit the side that it comes from"));
        }
        self.arrived.advance(2);
        let left = match more {
            2 => u64::from(self.arrived.get_u16()),
            8 => self.arrived.get_u64(),
            _ => u64::from(second & 0x7f),
        };
        let mask = is_masked.then(|| self.arrived.get_u32().to_be_bytes());
        match first & 0x0f {
            0 | TEXT | BINARY => Ok(Some(Reading::Payload { left, mask, at: 0 })),
            opcode @ (CLOSE | PING | PONG) if left <= 125 && first & 0x80 != 0 => {
                Ok(Some(Reading::Control { opcode, left: left as usize, mask }))
            }
            _ => Err(invalid("a frame of a kind that there is not")),
        }
    }
}

/// Masks or unmasks, from byte `at` of the payload on.
fn apply(bytes: &mut [u8], mask: [u8; 4], at: usize) {
    let key = [mask[at & 3], mask[(at + 1) & 3], mask[(at + 2) & 3], mask[(at + 3) & 3]];
    let wide = u64::from_ne_bytes([key[0], key[1], key[2], key[3], key[0], key[1], key[2], key[3]]);
    let mut chunks = bytes.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let mut eight = [0; 8];
        eight.copy_from_slice(chunk);
        chunk.copy_from_slice(&(u64::from_ne_bytes(eight) ^ wide).to_ne_bytes());
    }
    for (byte, key) in chunks.into_remainder().iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

/// Writes what waits.
pub(crate) fn drain(
    inner: &mut (impl AsyncWrite + Unpin),
    waiting: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while !waiting.is_empty() {
        let written = ready!(Pin::new(&mut *inner).poll_write(cx, waiting))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        waiting.advance(written);
    }
    Poll::Ready(Ok(()))
}

impl<S: AsyncWrite + Unpin> WebSocket<S> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        drain(&mut self.inner, &mut self.waiting, cx)
    }
}

impl<S: AsyncRead + Unpin> WebSocket<S> {
    /// Reads what there is; `false` at the end.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut space = [0; 4096];
        let mut space = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut space))?;
        self.arrived.extend_from_slice(space.filled());
        Poll::Ready(Ok(!space.filled().is_empty()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WebSocket<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match &mut this.reading {
                Reading::Ended => return Poll::Ready(Ok(())),
                Reading::Head => match this.head()? {
                    Some(next) => this.reading = next,
                    None => {
                        if !ready!(this.poll_more(cx))? {
                            let is_whole = this.arrived.is_empty();
                            this.reading = Reading::Ended;
                            if !is_whole {
                                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                            }
                        }
                    }
                },
                Reading::Payload { left: 0, .. } => this.reading = Reading::Head,
                Reading::Payload { left, mask, at } => {
                    let most = usize::try_from(*left).unwrap_or(usize::MAX).min(out.remaining());
                    if most == 0 {
                        return Poll::Ready(Ok(()));
                    }
                    let before = out.filled().len();
                    if this.arrived.is_empty() {
                        // Straight into the room of whoever reads.
                        let mut room = ReadBuf::new(out.initialize_unfilled_to(most));
                        ready!(Pin::new(&mut this.inner).poll_read(cx, &mut room))?;
                        let read = room.filled().len();
                        if read == 0 {
                            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                        }
                        if let Some(mask) = mask {
                            apply(room.filled_mut(), *mask, *at);
                        }
                        out.advance(read);
                    } else {
                        let read = most.min(this.arrived.len());
                        let mut bytes = this.arrived.split_to(read);
                        if let Some(mask) = mask {
                            apply(&mut bytes, *mask, *at);
                        }
                        out.put_slice(&bytes);
                    }
                    let read = out.filled().len() - before;
                    *left -= read as u64;
                    *at = (*at + read) & 3;
                    return Poll::Ready(Ok(()));
                }
                Reading::Control { opcode, left, mask } => {
                    if this.arrived.len() < *left {
                        if !ready!(this.poll_more(cx))? {
                            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                        }
                        continue;
                    }
                    let (opcode, mut payload) = (*opcode, this.arrived.split_to(*left));
                    if let Some(mask) = mask {
                        apply(&mut payload, *mask, 0);
                    }
                    this.reading = if opcode == CLOSE { Reading::Ended } else { Reading::Head };
                    // Who asks faster than they read is not answered each time.
                    if opcode == PING && this.waiting.len() < MAX_WAITING {
                        this.put(PONG, &payload)?;
                        if let Poll::Ready(done) = this.poll_drain(cx) {
                            done?;
                        }
                    }
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WebSocket<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_closing {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if this.waiting.len() >= MAX_WAITING {
            ready!(this.poll_drain(cx))?;
        }
        let length = bytes.len().min(MAX_FRAME);
        if length > 0 {
            let opcode = this.opcode;
            this.put(opcode, &bytes[..length])?;
        }
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_closing {
            this.is_closing = true;
            this.put(CLOSE, &1000_u16.to_be_bytes())?;
        }
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_the_standard() {
        assert_eq!(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[tokio::test]
    async fn bytes_pass_whole_in_both_directions_whatever_the_pieces() {
        for (frames, piece) in [(Frames::Text, 7), (Frames::Binary, 40_000), (Frames::Binary, 125)] {
            let (a, b) = tokio::io::duplex(999);
            let mut client = WebSocket::new(a, Side::Client, frames);
            let mut server = WebSocket::new(b, Side::Server, frames);
            let sent: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
            let copy = sent.clone();
            let writer = tokio::spawn(async move {
                for part in copy.chunks(piece) {
                    client.write_all(part).await.unwrap();
                }
                client.shutdown().await.unwrap();
                let mut back = Vec::new();
                client.read_to_end(&mut back).await.unwrap();
                back
            });
            let mut got = Vec::new();
            server.read_to_end(&mut got).await.unwrap();
            assert!(got == sent, "{frames:?} {piece}");
            server.write_all(&got).await.unwrap();
            server.shutdown().await.unwrap();
            assert!(writer.await.unwrap() == sent, "{frames:?} {piece}");
        }
    }

    /// What a server makes of these bytes.
    async fn read(bytes: &[u8]) -> Result<Vec<u8>, String> {
        let (mut a, b) = tokio::io::duplex(4096);
        a.write_all(bytes).await.unwrap();
        a.shutdown().await.unwrap();
        let mut server = WebSocket::new(b, Side::Server, Frames::Binary);
        let mut all = Vec::new();
        server.read_to_end(&mut all).await.map(|_| all).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn frames_are_put_together_pings_left_out_and_what_is_wrong_is_said() {
        const M: [u8; 4] = [0; 4];
        let frame =
            |first: u8, payload: &[u8]| [&[first, 0x80 | payload.len() as u8], &M[..], payload].concat();
        let parts =
            [frame(0x01, b"he"), frame(0x89, b"?"), frame(0x80, b"llo"), frame(0x82, b""), frame(0x81, b"!")];
        assert_eq!(read(&parts.concat()).await.unwrap(), b"hello!");
        assert_eq!(
            read(&[frame(0x82, b"a"), frame(0x88, b""), frame(0x82, b"b")].concat()).await.unwrap(),
            b"a"
        );
        let mask = "a frame whose mask does not fit the side that it comes from";
        assert_eq!(read(&[0x82, 1, b'a']).await.unwrap_err(), mask);
        assert_eq!(
            read(&frame(0xc2, b"a")).await.unwrap_err(),
            "a frame with an extension that was not agreed on"
        );
        let kind = "a frame of a kind that there is not";
        assert_eq!(read(&frame(0x83, b"a")).await.unwrap_err(), kind);
        assert_eq!(read(&frame(0x09, b"a")).await.unwrap_err(), kind, "a ping in parts");
        assert!(read(&frame(0x82, b"abc")[..7]).await.is_err(), "the end within a frame");
    }

    #[tokio::test]
    async fn a_ping_is_answered() {
        let (mut a, b) = tokio::io::duplex(4096);
        a.write_all(&[0x89, 0x82, 0, 0, 0, 0, b'h', b'i', 0x82, 0x81, 0, 0, 0, 0, b'x']).await.unwrap();
        let mut server = WebSocket::new(b, Side::Server, Frames::Binary);
        assert_eq!(server.read_u8().await.unwrap(), b'x');
        let mut answer = [0; 4];
        a.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, [0x8a, 2, b'h', b'i']);
    }
}
