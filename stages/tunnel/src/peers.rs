//! Servers behind one name: each tells the others which tunnels it has, and visitors who come to another are passed on.
//!
//! takes: what stands on a [`Board`] that they share - gives: a way to the server that has a tunnel, beside the tunnels of this
//! one; streams of other servers, led through the tunnels of this one
//! calls: the board; other servers at the address that each says of itself, with the key that it says there: whoever may read
//! the board may pass visitors on, and nobody else
//! fails: what is known stays while the board is away; a server that is not heard of for ten seconds is gone, and so are its
//! tunnels. Of two clients that open one tunnel at two servers at the same moment, or while the board is away, both are taken until
//! the board has told: then the one that began earlier keeps it.

mod passing;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::passing::PeerLead;
use crate::Name;
use crate::board::{Board, Posted};
use crate::lock::lock;
use crate::registry::Registry;
use crate::session::{Owner, Session};
use crate::visitors::Networks;

/// What the keys of servers on the board begin with.
const SERVER_PREFIX: &str = "server.";
/// What the keys of tunnels on the board begin with.
const TUNNEL_PREFIX: &str = "tunnel.";
/// How many bytes the secret key of a server has.
const KEY: usize = 32;
/// How often a server says on the board that it is there.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// How long a server may be silent before it is taken to be gone.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the entry of a tunnel stays on the board; it is written again in a third of that.
const TUNNEL_TTL: Duration = Duration::from_secs(600);
/// How long it may take to reach another server, and for that to answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to remove what was written to the board.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

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
}

/// The server and the tunnel of a key.
fn which(key: &str) -> Option<(String, Name)> {
    let (server, name) = key.strip_prefix(TUNNEL_PREFIX)?.split_once('.')?;
    Some((server.to_owned(), Name::read(name).ok()?))
}

#[cfg(test)]
mod tests;
