//! Visitors whom another server passes on.

use async_trait::async_trait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

use super::passing::{PeerReply, VERSION};
use super::*;
use crate::board::{BoardError, Watching};
use crate::registry::{Conflict, Route};
use crate::session::{Io, Lead, LeadError};

/// A board of a server that is alone.
#[derive(Debug)]
struct Alone;

#[async_trait]
impl Board for Alone {
    async fn put(&self, _: &str, _: Bytes, _: Duration) -> Result<(), BoardError> {
        Ok(())
    }

    async fn remove(&self, _: &str) -> Result<(), BoardError> {
        Ok(())
    }

    fn watch(&self) -> Box<dyn Watching> {
        Box::new(Self)
    }
}

#[async_trait]
impl Watching for Alone {
    async fn next(&mut self) -> Posted {
        std::future::pending().await
    }
}

/// A server that passes visitors of `shop-web` on to what this leads to, who may come from `allowed`.
struct World {
    peers: Arc<Peers>,
    registry: Arc<Registry>,
    address: SocketAddr,
    running: TaskTracker,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl World {
    async fn start(write: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let registry = Arc::new(Registry::new(Duration::ZERO));
        let peers = Arc::new(Peers::new(address, Arc::new(Alone), registry.clone(), write).unwrap());
        let (running, stop, close) = (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let serving = tokio::spawn(peers.clone().serve(listener, running.clone(), stop.clone(), close));
        Self { peers, registry, address, running, stop, serving }
    }

    fn add(&self, lead: impl Lead + 'static, allowed: &str) -> Arc<Session> {
        let owner = Owner { client: "client".to_owned(), generation: 1 };
        let session = Arc::new(Session::new(1, owner, Box::new(lead), Networks::read(allowed).unwrap()));
        self.registry.add(&Name::read("shop-web").unwrap(), session.clone()).unwrap();
        session
    }
}

/// What another server says that passes a visitor on.
fn ask(peers: &Peers) -> Vec<u8> {
    let mut ask = vec![VERSION];
    ask.extend_from_slice(&peers.key);
    for text in ["shop-web", "192.0.2.1:1"] {
        ask.push(u8::try_from(text.len()).unwrap());
        ask.extend_from_slice(text.as_bytes());
    }
    ask
}

/// Leads to somebody who writes without end.
#[derive(Debug)]
struct Flood;

#[async_trait]
impl Lead for Flood {
    async fn lead(&self, _: SocketAddr) -> Result<Box<dyn Io>, LeadError> {
        let (near, mut far) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move { while far.write_all(&[0; 64 << 10]).await.is_ok() {} });
        Ok(Box::new(near))
    }

    fn lose(&self, _: Conflict) {}
}

#[tokio::test]
async fn a_visitor_whom_the_client_does_not_let_in_is_refused_whatever_the_other_server_knows_of_that() {
    let world = World::start(HANDSHAKE_TIMEOUT).await;
    world.add(Flood, "203.0.113.0/24");
    let mut other = TcpStream::connect(world.address).await.unwrap();
    other.write_all(&ask(&world.peers)).await.unwrap();
    assert_eq!(other.read_u8().await.unwrap(), PeerReply::Refused as u8);
}

#[tokio::test]
async fn a_server_that_takes_nothing_of_what_is_passed_on_to_it_keeps_no_place() {
    let world = World::start(Duration::from_millis(50)).await;
    let session = world.add(Flood, "");
    let mut other = TcpStream::connect(world.address).await.unwrap();
    other.write_all(&ask(&world.peers)).await.unwrap();
    assert_eq!(other.read_u8().await.unwrap(), PeerReply::Led as u8);
    assert_eq!(session.active(), 1);
    // Nothing is read, and nothing closed: the visit ends all the same.
    world.running.close();
    world.running.wait().await;
    assert_eq!(session.active(), 0);
    drop(other);
}

#[tokio::test]
async fn what_a_server_had_that_ended_without_a_word_is_forgotten() {
    let world = World::start(HANDSHAKE_TIMEOUT).await;
    let card = ServerEntry { address: world.address, key: hex::encode([7; KEY]), leaving: false };
    let said = TunnelEntry { client: "client".to_owned(), generation: 1, allowed: String::new() };
    world.peers.learn("server.other", &serde_json::to_vec(&card).unwrap());
    world.peers.learn("tunnel.other.shop-web", &serde_json::to_vec(&said).unwrap());
    let ago = |ago: Duration| {
        let mut known = lock(&world.peers.known);
        known.servers.values_mut().for_each(|peer| peer.heard -= ago);
        known.tunnels.values_mut().for_each(|remote| remote.learned -= ago);
    };
    let has = || matches!(world.registry.route(&Name::read("shop-web").unwrap(), &[]), Route::Through(_));
    ago(SERVER_TIMEOUT);
    world.peers.prune();
    assert!(!has());
    // It was only late.
    world.peers.take(Posted::Put("server.other".to_owned(), serde_json::to_vec(&card).unwrap().into()));
    assert!(has());
    ago(TUNNEL_TTL);
    world.peers.prune();
    assert!(lock(&world.peers.known).tunnels.is_empty());
    // What was said before the card came waits for it.
    world.peers.learn("tunnel.another.shop-web", &serde_json::to_vec(&said).unwrap());
    world.peers.prune();
    assert_eq!(lock(&world.peers.known).tunnels.len(), 1);
}

#[tokio::test]
async fn who_was_passed_on_before_a_server_takes_nobody_any_more_is_answered_and_the_next_is_refused() {
    let World { peers, address, running, stop, serving, .. } = World::start(HANDSHAKE_TIMEOUT).await;
    let mut taken = TcpStream::connect(address).await.unwrap();
    while running.is_empty() {
        tokio::task::yield_now().await;
    }
    stop.cancel();
    serving.await.unwrap();
    let refused = TcpStream::connect(address).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    taken.write_all(&ask(&peers)).await.unwrap();
    assert_eq!(taken.read_u8().await.unwrap(), PeerReply::NoTunnel as u8);
    running.close();
    running.wait().await;
}
