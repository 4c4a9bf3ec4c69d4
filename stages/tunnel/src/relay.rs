//! Bytes between two connections, until both directions have ended.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy, copy_bidirectional_with_sizes, split};
use tokio::time::timeout;

/// Bytes of one piece.
const PIECE: usize = 16 << 10;

/// Passes bytes on both ways. The end of one direction is passed on as well, and the other goes on.
pub(crate) async fn relay(
    a: &mut (impl AsyncRead + AsyncWrite + Unpin + ?Sized),
    b: &mut (impl AsyncRead + AsyncWrite + Unpin + ?Sized),
) -> io::Result<(u64, u64)> {
    copy_bidirectional_with_sizes(a, b, PIECE, PIECE).await
}

/// The same, for one that ends alike whether it has said all or is gone: what is passed on to `a` after its end has `last` for it.
pub(crate) async fn relay_until(
    a: impl AsyncRead + AsyncWrite + Unpin,
    b: impl AsyncRead + AsyncWrite + Unpin,
    last: Duration,
) -> io::Result<()> {
    let ((mut a_read, mut a_write), (mut b_read, mut b_write)) = (split(a), split(b));
    let there = async {
        copy(&mut a_read, &mut b_write).await?;
        b_write.shutdown().await
    };
    let back = async {
        copy(&mut b_read, &mut a_write).await?;
        a_write.shutdown().await
    };
    tokio::pin!(there, back);
    tokio::select! {
        ended = &mut there => {
            ended?;
            timeout(last, back).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        }
        ended = &mut back => {
            ended?;
            there.await
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn who_has_ended_is_told_what_comes_soon_and_kept_for_no_one_after_that() {
        for is_silent in [false, true] {
            let ((mut visitor, a), (b, mut service)) = (duplex(99), duplex(99));
            let last = if is_silent { Duration::from_millis(10) } else { Duration::from_secs(600) };
            let relaying = tokio::spawn(relay_until(a, b, last));
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
