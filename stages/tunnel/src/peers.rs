//! Servers behind one name: each tells the others which tunnels it has, and visitors who come to another are passed on.
//!
//! takes: what stands on a [`Board`] that they share - gives: a way to the server that has a tunnel, beside the tunnels of this
//! one; streams of other servers, led through the tunnels of this one
//! calls: the board; other servers at the address that each says of itself, with the key that it says there: whoever may read
//! the board may pass visitors on, and nobody else
//! fails: what is known stays while the board is away; a server that is not heard of for ten seconds is gone, and so are its
//! tunnels. Of two clients that open one tunnel at two servers at the same moment, or while the board is away, both are taken until
//! the board has told: then the one that began earlier keeps it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pipeline_core::WriteTimed;
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Name;
use crate::board::{Board, Posted};
use crate::registry::{Conflict, Registry, Route};
use crate::relay::{keep_alive, relay};
use crate::session::{Io, Lead, LeadError, Owner, Session};
use crate::visitors::Networks;

/// What the keys of servers on the board begin with.
const SERVER_PREFIX: &str = "server.";
/// What the keys of tunnels on the board begin with.
const TUNNEL_PREFIX: &str = "tunnel.";
/// How many bytes the secret key of a server has.
const KEY: usize = 32;
/// The version of the protocol between servers.
const VERSION: u8 = 1;
/// How often a server says on the board that it is there.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// How long a server may be silent before it is taken to be gone.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the entry of a tunnel stays on the board; it is written again in a third of that.
const TUNNEL_TTL: Duration = Duration::from_secs(600);
/// How long a server that was not reached is not tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// How long it may take to reach another server, and for that to answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to remove what was written to the board.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one side of a visitor's connection is kept that does not close after the other has ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);
/// How many bytes may wait in a connection to another server: a visitor who takes 2 kB a second takes a third of them within the
/// time that writes have.
const SEND_BUFFER: usize = 256 << 10;
/// How many connections of other servers there may be at a time.
const MAX_CONNECTIONS: usize = 16_384;

/// What a server answers another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum PeerReply {
    Led = 0,
    Key = 1,
    NoTunnel = 2,
    Full = 3,
    Late = 4,
    /// The visitor is not let in; servers of former versions take it for the lack of such a tunnel.
    Refused = 5,
}

/// What a server writes to the board about itself.
#[derive(Serialize, Deserialize)]
struct ServerEntry {
    address: SocketAddr,
    key: String,
    /// Whether it was told to stop; servers of former versions do not say so.
    #[serde(default)]
    leaving: bool,
}

/// What a server writes to the board about a tunnel that it has.
#[derive(Serialize, Deserialize, PartialEq, Eq, Clone)]
struct TunnelEntry {
    client: String,
    generation: u64,
    allowed: String,
}

/// Another server.
#[derive(Debug, Clone)]
struct Peer {
    address: SocketAddr,
    key: [u8; KEY],
    heard: Instant,
    leaving: bool,
    /// When it is tried again, if it was not reached.
    aside: Option<Instant>,
}

/// Another server's tunnel.
struct Remote {
    said: TunnelEntry,
    session: Arc<Session>,
    /// When it is removed unless it is written again, if a list of all entries did not hold it.
    doomed: Option<Instant>,
    learned: Instant,
}

#[derive(Default)]
struct PeerTable {
    servers: HashMap<String, Peer>,
    tunnels: HashMap<(String, Name), Remote>,
    is_interrupted: bool,
}

/// The other servers behind the same name, and the tunnels that they have.
pub(crate) struct Peers {
    id: String,
    key: [u8; KEY],
    address: SocketAddr,
    board: Arc<dyn Board>,
    registry: Arc<Registry>,
    /// How long a server may take nothing of what is sent to it before it is cut off.
    write: Duration,
    known: Arc<Mutex<PeerTable>>,
    /// Cancelled once this server is leaving and every tunnel that it has is also connected to a server that stays.
    pub(crate) handed_over: CancellationToken,
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").field("id", &self.id).field("address", &self.address).finish_non_exhaustive()
    }
}

fn lock(known: &Mutex<PeerTable>) -> MutexGuard<'_, PeerTable> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peers {
    /// A server that others reach at `address`.
    pub(crate) fn new(
        address: SocketAddr,
        board: Arc<dyn Board>,
        registry: Arc<Registry>,
        write: Duration,
    ) -> Result<Self, getrandom::Error> {
        let (mut id, mut key) = ([0; 8], [0; KEY]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut key)?;
        Ok(Self {
            id: hex::encode(id),
            key,
            address,
            board,
            registry,
            write,
            known: Arc::default(),
            handed_over: CancellationToken::new(),
        })
    }

    /// Tells others, and listens to what they tell, until told to stop; then takes back what it told. One that is leaving takes a
    /// tunnel back as soon as a server that stays has it: visitors go there, and none is under way here at the end.
    pub(crate) async fn keep(&self, leaving: CancellationToken, stop: CancellationToken) {
        let mut told = HashMap::new();
        // A board that takes nothing keeps nobody from ending.
        stop.run_until_cancelled(self.exchange(&mut told, leaving)).await;
        let leave = async {
            self.drop_said(&format!("{SERVER_PREFIX}{}", self.id)).await;
            for name in told.keys() {
                self.drop_said(&format!("{TUNNEL_PREFIX}{}.{name}", self.id)).await;
            }
        };
        // What is not taken back goes by itself.
        drop(timeout(FAREWELL_TIMEOUT, leave).await);
    }

    async fn exchange(&self, told: &mut HashMap<Name, (TunnelEntry, Instant)>, leaving: CancellationToken) {
        let mut watching = self.board.watch();
        let mut changes = self.registry.changes();
        let mut beat = Instant::now();
        let mut is_leaving = false;
        loop {
            tokio::select! {
                () = leaving.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    beat = Instant::now();
                    continue;
                }
                posted = watching.next() => {
                    if matches!(posted, Posted::All(_)) {
                        // The board may have lost what it was told.
                        told.clear();
                        beat = Instant::now();
                    }
                    self.take(posted);
                }
                () = tokio::time::sleep_until(beat) => {
                    let card = ServerEntry { address: self.address, key: hex::encode(self.key), leaving: is_leaving };
                    self.put(&format!("{SERVER_PREFIX}{}", self.id), &card, SERVER_TIMEOUT).await;
                    beat = Instant::now() + HEARTBEAT;
                    self.prune();
                }
                _ = changes.changed() => {}
            }
            self.tell(told, is_leaving).await;
            if is_leaving && told.is_empty() {
                self.handed_over.cancel();
            }
        }
    }

    /// Says which tunnels there are here, where that differs from what was said.
    async fn tell(&self, told: &mut HashMap<Name, (TunnelEntry, Instant)>, is_leaving: bool) {
        let mut here = self.registry.here();
        if is_leaving {
            here.retain(|name, _| !self.stays_elsewhere(name));
        }
        let gone: Vec<Name> = told.keys().filter(|name| !here.contains_key(*name)).cloned().collect();
        for name in gone {
            // While the board is away nothing is told, and all that happens meanwhile is told at once later.
            if !self.drop_said(&format!("{TUNNEL_PREFIX}{}.{name}", self.id)).await {
                return;
            }
            told.remove(&name);
        }
        for (name, (owner, allowed)) in here {
            let said = TunnelEntry {
                client: owner.client,
                generation: owner.generation,
                allowed: allowed.to_string(),
            };
            let is_new =
                told.get(&name).is_none_or(|(before, at)| *before != said || at.elapsed() > TUNNEL_TTL / 3);
            if !is_new {
                continue;
            }
            if !self.put(&format!("{TUNNEL_PREFIX}{}.{name}", self.id), &said, TUNNEL_TTL).await {
                return;
            }
            told.insert(name, (said, Instant::now()));
        }
    }

    /// Whether a server has the tunnel that lives, as far as is known, and is not about to end.
    fn stays_elsewhere(&self, name: &Name) -> bool {
        let (known, now) = (lock(&self.known), Instant::now());
        let stays = |peer: &Peer| {
            !peer.leaving
                && now.duration_since(peer.heard) < HEARTBEAT * 2
                && peer.aside.is_none_or(|until| until <= now)
        };
        known.tunnels.iter().any(|((server, of), remote)| {
            of == name && remote.doomed.is_none() && known.servers.get(server).is_some_and(stays)
        })
    }

    async fn put(&self, key: &str, value: &impl Serialize, ttl: Duration) -> bool {
        let Ok(value) = serde_json::to_vec(value) else { return false };
        match timeout(HANDSHAKE_TIMEOUT, self.board.put(key, Bytes::from(value), ttl)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::debug!(error = &*error as &dyn std::error::Error, "other servers are not told");
                false
            }
            Err(_) => false,
        }
    }

    async fn drop_said(&self, key: &str) -> bool {
        matches!(timeout(HANDSHAKE_TIMEOUT, self.board.remove(key)).await, Ok(Ok(())))
    }

    /// What happened on the board.
    fn take(&self, posted: Posted) {
        match posted {
            Posted::All(all) => {
                let now = Instant::now();
                let listed: HashSet<&str> = all.iter().map(|(key, _)| key.as_str()).collect();
                {
                    let mut known = lock(&self.known);
                    known.is_interrupted = false;
                    // Who could not say meanwhile that it is there has time to.
                    known.servers.values_mut().for_each(|peer| peer.heard = now);
                    for ((server, name), remote) in &mut known.tunnels {
                        if !listed.contains(format!("{TUNNEL_PREFIX}{server}.{name}").as_str()) {
                            remote.doomed.get_or_insert(now + SERVER_TIMEOUT);
                        }
                    }
                }
                for (key, value) in &all {
                    self.learn(key, value);
                }
            }
            Posted::Put(key, value) => self.learn(&key, &value),
            Posted::Removed(key) => {
                let mut known = lock(&self.known);
                if let Some(server) = key.strip_prefix(SERVER_PREFIX) {
                    known.servers.remove(server);
                } else if let Some(which) = which(&key) {
                    known.tunnels.remove(&which);
                }
            }
            Posted::Interrupted => lock(&self.known).is_interrupted = true,
        }
        self.publish();
    }

    fn learn(&self, key: &str, value: &[u8]) {
        if let Some(server) = key.strip_prefix(SERVER_PREFIX) {
            if server == self.id {
                return;
            }
            let Ok(card) = serde_json::from_slice::<ServerEntry>(value) else { return };
            let mut key = [0; KEY];
            if hex::decode_to_slice(&card.key, &mut key).is_err() {
                return;
            }
            let peer = Peer {
                address: card.address,
                key,
                heard: Instant::now(),
                leaving: card.leaving,
                aside: None,
            };
            let mut known = lock(&self.known);
            let aside = known.servers.get(server).and_then(|before| before.aside);
            known.servers.insert(server.to_owned(), Peer { aside, ..peer });
        } else if let Some((server, name)) = which(key) {
            if server == self.id {
                return;
            }
            let Ok(said) = serde_json::from_slice::<TunnelEntry>(value) else { return };
            let Ok(allowed) = Networks::read(&said.allowed) else { return };
            let mut known = lock(&self.known);
            if let Some(before) = known.tunnels.get_mut(&(server.clone(), name.clone()))
                && before.said == said
            {
                before.doomed = None;
                before.learned = Instant::now();
                return;
            }
            let owner = Owner { client: said.client.clone(), generation: said.generation };
            let passed = PeerLead {
                server: server.clone(),
                name: name.clone(),
                write: self.write,
                known: self.known.clone(),
            };
            let session = Arc::new(Session::new(self.registry.number(), owner, Box::new(passed), allowed));
            known
                .tunnels
                .insert((server, name), Remote { said, session, doomed: None, learned: Instant::now() });
        }
    }

    /// Forgets servers that are gone, and their tunnels.
    fn prune(&self) {
        {
            let mut known = lock(&self.known);
            if known.is_interrupted {
                return;
            }
            let now = Instant::now();
            known.servers.retain(|_, peer| now.duration_since(peer.heard) < SERVER_TIMEOUT);
            known.tunnels.retain(|_, remote| remote.doomed.is_none_or(|when| now < when));
            // One that ended without a word took nothing back. What was said may come before its server's card, or outlive one
            // that could not be renewed in time.
            let PeerTable { servers, tunnels, .. } = &mut *known;
            tunnels.retain(|(server, _), remote| {
                servers.contains_key(server) || now.duration_since(remote.learned) < TUNNEL_TTL
            });
        }
        self.publish();
    }

    /// Tells the registry which tunnels other servers have.
    fn publish(&self) {
        let mut remotes: HashMap<Name, Vec<Arc<Session>>> = HashMap::new();
        {
            let known = lock(&self.known);
            for ((server, name), remote) in &known.tunnels {
                if known.servers.contains_key(server) {
                    remotes.entry(name.clone()).or_default().push(remote.session.clone());
                }
            }
        }
        self.registry.elsewhere(remotes);
    }

    /// Leads what other servers pass on through the tunnels of this one: takes nobody any more once told to stop, and leads those
    /// whom it took until `close`.
    pub(crate) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        running: TaskTracker,
        stop: CancellationToken,
        close: CancellationToken,
    ) {
        let places = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Ok(place) = places.clone().try_acquire_owned() else { continue };
            let (own, close) = (self.clone(), close.clone());
            running.spawn(async move {
                tokio::select! {
                    () = close.cancelled() => {}
                    () = own.lead(stream, peer) => {}
                }
                drop(place);
            });
        }
    }

    async fn lead(&self, stream: TcpStream, peer: SocketAddr) {
        drop(stream.set_nodelay(true));
        bounded(&stream);
        let mut stream = WriteTimed::new(stream, self.write);
        let Ok(Ok((key, name, visitor))) = timeout(HANDSHAKE_TIMEOUT, asked(&mut stream)).await else {
            return;
        };
        if !bool::from(key.ct_eq(&self.key)) {
            tracing::warn!(peer = %peer.ip(), "somebody who is no server of tunnels asked for one");
            drop(stream.write_u8(PeerReply::Key as u8).await);
            return;
        }
        let Route::Through(active) = self.registry.local(&name) else {
            drop(stream.write_u8(PeerReply::NoTunnel as u8).await);
            return;
        };
        // What the other server knows of whom the client lets in may be older.
        let allowed = &active.session().allowed;
        if !allowed.is_empty() && !allowed.hold(visitor.ip()) {
            drop(stream.write_u8(PeerReply::Refused as u8).await);
            return;
        }
        let answer = match active.session().lead.lead(visitor).await {
            Ok(io) => {
                if stream.write_u8(PeerReply::Led as u8).await.is_ok() {
                    drop(relay(stream, io, CLOSE_TIMEOUT).await);
                }
                return;
            }
            Err(LeadError::Full) => PeerReply::Full,
            Err(LeadError::Gone) => PeerReply::NoTunnel,
            Err(LeadError::Late) => PeerReply::Late,
            Err(LeadError::Refused) => PeerReply::Refused,
        };
        drop(stream.write_u8(answer as u8).await);
    }
}

/// The server and the tunnel of a key.
fn which(key: &str) -> Option<(String, Name)> {
    let (server, name) = key.strip_prefix(TUNNEL_PREFIX)?.split_once('.')?;
    Some((server.to_owned(), Name::read(name).ok()?))
}

/// A connection between two servers. What waits in it is little, so that a visitor who takes it slowly is seen to take it: the system
/// says of a full buffer that it moved on when a third of it is free.
fn bounded(stream: &TcpStream) {
    keep_alive(stream);
    drop(SockRef::from(stream).set_send_buffer_size(SEND_BUFFER));
}

/// What another server asks for: its key, the tunnel and the visitor.
async fn asked(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<([u8; KEY], Name, SocketAddr)> {
    let wrong = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    if stream.read_u8().await? != VERSION {
        return Err(wrong());
    }
    let mut key = [0; KEY];
    stream.read_exact(&mut key).await?;
    let mut text = async || -> std::io::Result<String> {
        let mut bytes = vec![0; usize::from(stream.read_u8().await?)];
        stream.read_exact(&mut bytes).await?;
        String::from_utf8(bytes).map_err(|_| wrong())
    };
    let name = Name::read(&text().await?).map_err(|_| wrong())?;
    let visitor = text().await?.parse().map_err(|_| wrong())?;
    Ok((key, name, visitor))
}

/// Leads visitors to a tunnel of another server.
struct PeerLead {
    server: String,
    name: Name,
    write: Duration,
    known: Arc<Mutex<PeerTable>>,
}

impl fmt::Debug for PeerLead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerLead")
            .field("server", &self.server)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Lead for PeerLead {
    async fn lead(&self, visitor: SocketAddr) -> Result<Box<dyn Io>, LeadError> {
        let peer = lock(&self.known).servers.get(&self.server).cloned().ok_or(LeadError::Gone)?;
        if peer.aside.is_some_and(|until| Instant::now() < until) {
            return Err(LeadError::Gone);
        }
        let asking = async {
            let stream = TcpStream::connect(peer.address).await?;
            stream.set_nodelay(true)?;
            bounded(&stream);
            let mut stream = WriteTimed::new(stream, self.write);
            let visitor = visitor.to_string();
            let mut ask = vec![VERSION];
            ask.extend_from_slice(&peer.key);
            for text in [self.name.as_str(), &visitor] {
                // Names and addresses are short.
                ask.push(u8::try_from(text.len()).map_err(std::io::Error::other)?);
                ask.extend_from_slice(text.as_bytes());
            }
            stream.write_all(&ask).await?;
            let answer = stream.read_u8().await?;
            Ok::<_, std::io::Error>((stream, answer))
        };
        match timeout(HANDSHAKE_TIMEOUT, asking).await {
            Ok(Ok((stream, answer))) if answer == PeerReply::Led as u8 => Ok(Box::new(stream)),
            Ok(Ok((_, answer))) if answer == PeerReply::Full as u8 => Err(LeadError::Full),
            Ok(Ok((_, answer))) if answer == PeerReply::Late as u8 => Err(LeadError::Late),
            Ok(Ok((_, answer))) if answer == PeerReply::Refused as u8 => Err(LeadError::Refused),
            Ok(Ok(_)) => Err(LeadError::Gone),
            Ok(Err(_)) | Err(_) => {
                if let Some(peer) = lock(&self.known).servers.get_mut(&self.server) {
                    peer.aside = Some(Instant::now() + RETRY_AFTER);
                }
                Err(LeadError::Gone)
            }
        }
    }

    fn is_passed_on(&self) -> bool {
        true
    }

    // Its own server tells the client, which learns of the other as this one did.
    fn lose(&self, _: Conflict) {}
}

#[cfg(test)]
mod tests;
