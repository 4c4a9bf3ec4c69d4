//! Bytes between two connections, until both directions have ended.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};

/// Bytes of one piece.
const PIECE: usize = 16 << 10;

/// Passes bytes on both ways. The end of one direction is passed on as well, and the other goes on.
pub(crate) async fn relay(
    a: &mut (impl AsyncRead + AsyncWrite + Unpin + ?Sized),
    b: &mut (impl AsyncRead + AsyncWrite + Unpin + ?Sized),
) -> io::Result<(u64, u64)> {
    copy_bidirectional_with_sizes(a, b, PIECE, PIECE).await
}
