//! How one server passes a visitor on to another: it connects, says its key, the tunnel and the visitor, and is answered with a byte.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pipeline_core::WriteTimed;
use socket2::SockRef;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{HANDSHAKE_TIMEOUT, KEY, PeerTable, Peers};
use crate::Name;
use crate::lock::lock;
use crate::registry::{Conflict, Route};
use crate::relay::{keep_alive, relay};
use crate::session::{Io, Lead, LeadError};

/// The version of the protocol between servers.
pub(super) const VERSION: u8 = 1;
/// How long a server that was not reached is not tried again.
const RETRY_AFTER: Duration = Duration::from_secs(2);
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
pub(super) enum PeerReply {
    Led = 0,
    Key = 1,
    NoTunnel = 2,
    Full = 3,
    Late = 4,
    /// The visitor is not let in; servers of former versions take it for the lack of such a tunnel.
    Refused = 5,
}

impl Peers {
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
        let Ok(Ok((key, name, visitor))) = timeout(HANDSHAKE_TIMEOUT, read_request(&mut stream)).await else {
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

/// A connection between two servers. What waits in it is little, so that a visitor who takes it slowly is seen to take it: the system
/// says of a full buffer that it moved on when a third of it is free.
fn bounded(stream: &TcpStream) {
    keep_alive(stream);
    drop(SockRef::from(stream).set_send_buffer_size(SEND_BUFFER));
}

/// What another server asks for: its key, the tunnel and the visitor.
async fn read_request(
    stream: &mut (impl AsyncRead + Unpin),
) -> std::io::Result<([u8; KEY], Name, SocketAddr)> {
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
pub(super) struct PeerLead {
    pub(super) server: String,
    pub(super) name: Name,
    pub(super) write: Duration,
    pub(super) known: Arc<Mutex<PeerTable>>,
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
