//! A network that is far away: what is written arrives after a while, however much it is.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Bytes of one piece, and pieces on their way at a time: 128 MiB.
const PIECE: usize = 64 << 10;
const PIECES: usize = 2_048;

/// A way to `to` that takes `one_way` in each direction.
pub(super) async fn start(to: SocketAddr, one_way: Duration) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen on loopback")?;
    let address = listener.local_addr().context("listen on loopback")?;
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let Ok(far) = TcpStream::connect(to).await else { continue };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
            tokio::spawn(carry(near_read, far_write, one_way));
            tokio::spawn(carry(far_read, near_write, one_way));
        }
    });
    Ok(address)
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, one_way: Duration) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(PIECES);
    let reading = async move {
        loop {
            let mut bytes = vec![0; PIECE];
            let Ok(read @ 1..) = from.read(&mut bytes).await else { return };
            bytes.truncate(read);
            if sender.send((Instant::now() + one_way, bytes)).await.is_err() {
                return;
            }
        }
    };
    let writing = async move {
        while let Some((when, bytes)) = receiver.recv().await {
            tokio::time::sleep_until(when).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(reading, writing);
}
