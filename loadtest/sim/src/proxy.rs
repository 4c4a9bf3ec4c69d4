//! A TCP proxy between a client and a server that can be cut and mended, as a network can.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Bytes that one direction of a connection holds.
const BUFFER: usize = 16 * 1024;

/// What the network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Everything passes.
    Whole,
    /// Nothing passes and nobody is told: connections stand, new ones are not answered. What was sent meanwhile arrives
    /// when it is mended, as it does where packets were lost.
    Silent,
    /// Connections break, and new ones too.
    Broken,
}

/// Passes on what comes to [`Self::address`]; ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    passed: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free port of loopback for connections to `target`.
    pub async fn start(target: SocketAddr) -> anyhow::Result<Self> {
        Self::at(Ipv4Addr::LOCALHOST, target).await
    }

    /// Listens on a free port of an address of this machine.
    pub async fn at(address: Ipv4Addr, target: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((address, 0)).await.context("listen between client and server")?;
        let address = listener.local_addr().context("ask for the address of a proxy")?;
        let network = watch::Sender::new(Network::Whole);
        let passed = Arc::<AtomicU64>::default();
        let accepting = tokio::spawn(accept(listener, target, (network.subscribe(), passed.clone())));
        Ok(Self { address, network, passed, accepting })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bytes that it has passed on, both ways.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Cuts or mends the network from now on.
    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Connections end with the sender of their network.
        self.accepting.abort();
    }
}

/// What the network does, and the bytes that were passed on.
type Watched = (watch::Receiver<Network>, Arc<AtomicU64>);

async fn accept(listener: TcpListener, target: SocketAddr, watched: Watched) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => drop(tokio::spawn(connect(client, target, watched.clone()))),
            // No file descriptor is free, for one: that passes.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Serves one connection to its end; nobody is told why it broke.
async fn connect(client: TcpStream, target: SocketAddr, (mut network, passed): Watched) {
    if network.wait_for(|network| *network != Network::Silent).await.is_err() {
        return;
    }
    let Ok(server) = TcpStream::connect(target).await else { return };
    for stream in [&client, &server] {
        // Small messages are not to wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let mut other = network.clone();
    tokio::select! {
        _ = network.wait_for(|network| *network == Network::Broken) => {}
        () = pass(from_client, to_server, (other.clone(), passed.clone())) => {}
        () = pass(from_server, to_client, (other.clone(), passed)) => {}
        // Whoever cut the network has gone.
        () = async { while other.changed().await.is_ok() {} } => {}
    }
}

/// Passes one direction on until it ends; holds at most one buffer while the network is cut.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, (mut network, passed): Watched) {
    let mut buffer = vec![0; BUFFER];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
        if network.wait_for(|network| *network != Network::Silent).await.is_err() {
            return;
        }
        let Some(read) = buffer.get(..read) else { return };
        if to.write_all(read).await.is_err() {
            return;
        }
        passed.fetch_add(read.len() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::PATIENCE;

    /// Answers everything with itself.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.into_split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        address
    }

    async fn said(stream: &mut TcpStream, word: &[u8; 4]) {
        stream.write_all(word).await.unwrap();
        heard(stream, word).await;
    }

    async fn heard(stream: &mut TcpStream, word: &[u8; 4]) {
        let mut answer = [0; 4];
        let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer)).await;
        read.expect("nothing comes back").unwrap();
        assert_eq!(&answer, word);
    }

    #[tokio::test]
    async fn what_is_sent_while_the_network_is_silent_arrives_when_it_is_mended() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        said(&mut stream, b"one ").await;
        proxy.set(Network::Silent);
        stream.write_all(b"two ").await.unwrap();
        let mut late = TcpStream::connect(proxy.address()).await.unwrap();
        late.write_all(b"late").await.unwrap();
        let mut byte = [0];
        let silent = tokio::time::timeout(Duration::from_millis(200), stream.read(&mut byte)).await;
        assert!(silent.is_err(), "something came through");
        proxy.set(Network::Whole);
        heard(&mut stream, b"two ").await;
        heard(&mut late, b"late").await;
        // What was passed on last is counted a moment after it is here.
        assert!((8..=24).contains(&proxy.passed()), "{} bytes were passed on", proxy.passed());
    }

    #[tokio::test]
    async fn a_broken_network_ends_connections_and_refuses_new_ones() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        said(&mut stream, b"one ").await;
        proxy.set(Network::Broken);
        let ended = async |stream: &mut TcpStream| {
            let mut byte = [0];
            let read = tokio::time::timeout(PATIENCE, stream.read(&mut byte)).await;
            matches!(read.expect("it stands"), Ok(0) | Err(_))
        };
        assert!(ended(&mut stream).await);
        let mut other = TcpStream::connect(proxy.address()).await.unwrap();
        assert!(ended(&mut other).await);
        proxy.set(Network::Whole);
        let mut third = TcpStream::connect(proxy.address()).await.unwrap();
        said(&mut third, b"more").await;
        drop(proxy);
        assert!(ended(&mut third).await);
    }
}
