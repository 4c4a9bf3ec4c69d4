//! The server of tunnels: one port for visitors and for clients.
//!
//! takes: connections - gives: those of visitors to the tunnel that their host names, those of clients to the tunnel they open -
//! fails: when the port cannot be had. Told to stop, it tells other servers at once, and goes on until whoever leads visitors here
//! knows as well; then it takes no more connections, tells clients to connect elsewhere, lets requests finish for a while, and
//! closes tunnels last.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pipeline_core::{Place, Places, Reason, Service, ServiceContext, StageError, WriteTimed};
use stages_client::{CertificateError, CertificateFiles, OwnCertificate};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::board::Board;
use crate::head_timeout::{HeadTimeout, RequestCounter};
use crate::holding_body::HoldingBody;
use crate::metrics::{Metrics, Refusal};
use crate::peers::Peers;
use crate::proxy::{HEAD, Proxy};
use crate::read_ahead::ReadAhead;
use crate::registry::Registry;
use crate::relay::keep_alive;
use crate::session::{Body, Io};
use crate::visitors::Networks;
use crate::{Credentials, Name, Verdict};
use crate::{frp, native};

/// How many bytes the head of a request may have: each connection may take so much memory for a head that does not end.
const MAX_HEAD: usize = 16 << 10;
/// How many bytes of a body that comes fast are read at once.
const READ_BUFFER: usize = 64 << 10;
/// How long the loop pauses after a failed accept, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long clients have to connect to another server before tunnels that nobody visits are closed.
const RECONNECT_TIME: Duration = Duration::from_secs(1);

/// How many clients of the frp family may be without a tunnel at a time, whether they have logged in or not, as anybody may log in.
pub(crate) const LOGINS: usize = 256;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// How often a client pings, and a server probes the service through the tunnel.
    pub ping: Duration,
    /// How long a peer may be silent before it is taken to be gone.
    pub silence: Duration,
    /// How long each of these may take: to make a connection, to log in, for a visitor to end the head of a request, and for the
    /// client to take a visitor.
    pub handshake: Duration,
    /// How long the head of an answer may take; and how long one direction of a connection that has left HTTP goes on after the
    /// end of the other.
    pub answer: Duration,
    /// How long a peer may take nothing of what is sent to it before it is cut off.
    pub write: Duration,
    /// How long a visitor waits for a tunnel that was connected until shortly before.
    pub expected: Duration,
    /// How long after its start a server lets visitors wait for a tunnel that was never connected to it, too.
    pub young: Duration,
    /// How often the credential of a tunnel is checked again.
    pub check: Duration,
    /// How long a tunnel stays open while its credential cannot be checked.
    pub unchecked: Duration,
    /// How long requests that are under way may go on when a tunnel was taken over.
    pub drain: Duration,
    /// How often the server's own certificate is read again.
    pub renew: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            ping: seconds(20),
            silence: seconds(28),
            handshake: seconds(10),
            answer: seconds(60),
            write: seconds(60),
            expected: seconds(10),
            young: seconds(10),
            check: seconds(20),
            unchecked: seconds(45),
            drain: seconds(600),
            renew: seconds(60),
        }
    }
}

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where it listens.
    pub address: SocketAddr,
    /// The tunnel `a-b` is visited at `a-b.<domain>`.
    pub domain: String,
    /// The certificate that it serves TLS with; without one, TLS ends at an ingress in front of it.
    pub tls: Option<CertificateFiles>,
    /// The networks whose `X-Forwarded-For` is believed.
    pub trusted: Networks,
    /// How many requests may be under way through one connection of a tunnel.
    pub streams: usize,
    /// How many connections there may be at a time; one more takes the place of the one that has been idle the longest.
    pub connections: usize,
    /// How long it goes on taking connections after it was told to stop.
    pub drain_delay: Duration,
    /// How long requests that are under way after that have to end.
    pub grace: Duration,
    /// How long things may take.
    pub times: Times,
}

/// Why a server cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The port cannot be had.
    #[error("cannot listen on {address}; stop the process that listens there, or change {setting}")]
    Listen {
        /// The setting that says where, and perhaps its flag.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// No key can be made that other servers are known by.
    #[error("make a key for other servers")]
    Key(#[source] getrandom::Error),
}

/// Takes TLS off with the server's own certificate.
fn acceptor(certificate: &Arc<OwnCertificate>) -> TlsAcceptor {
    certificate.serving(&["http/1.1"]).into()
}

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) proxy: Proxy,
    pub(crate) registry: Arc<Registry>,
    pub(crate) metrics: Metrics,
    pub(crate) credentials: Arc<dyn Credentials>,
    pub(crate) times: Times,
    pub(crate) streams: usize,
    /// Where it listens.
    pub(crate) port: u16,
    /// Places for clients of the frp family that have no tunnel yet.
    pub(crate) logins: Arc<Semaphore>,
    /// What clients of the frp family call their proxies.
    pub(crate) proxy_names: frp::ProxyNames,
    /// Clients of the frp family that have no multiplexer.
    pub(crate) without_mux: frp::ClientsWithoutMux,
    /// TLS of clients of the frp family, inside of their WebSocket.
    pub(crate) inner_tls: frp::InnerTls,
    /// Cancelled when no more connections are taken, so that clients are to connect elsewhere.
    pub(crate) leaving: CancellationToken,
    /// Cancelled when tunnels are to be closed.
    pub(crate) close: CancellationToken,
    /// The tasks of tunnels.
    pub(crate) tunnels: TaskTracker,
}

impl Shared {
    pub(crate) fn refuse(&self, why: Refusal, name: &str, peer: SocketAddr) {
        self.metrics.refused(why);
        tracing::warn!(tunnel = %name, peer = %peer.ip(), reason = why.as_str(), "a client of a tunnel was refused");
    }

    /// Ends when the credential of a tunnel does not open it any more.
    pub(crate) async fn revoked(&self, name: &Name, token: &pipeline_core::SecretString) {
        let mut known = tokio::time::Instant::now();
        loop {
            // Asked early enough that a minute is kept, whatever nobody can check.
            tokio::time::sleep(self.times.check.min(self.times.unchecked.saturating_sub(known.elapsed())))
                .await;
            match self.credentials.recheck(name, token).await {
                Verdict::Opens => known = tokio::time::Instant::now(),
                Verdict::Unknown if known.elapsed() < self.times.unchecked => {}
                Verdict::Refused | Verdict::Unknown => return,
            }
        }
    }
}

/// The server of tunnels.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    certificate: Option<Arc<OwnCertificate>>,
    connections: usize,
    drain_delay: Duration,
    grace: Duration,
    shared: Arc<Shared>,
    peers: Option<(TcpListener, Arc<Peers>)>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl ServerConfig {
    /// Listens on the address.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn build(
        self,
        credentials: Arc<dyn Credentials>,
        registry: &prometheus::Registry,
    ) -> Result<Server, ServerError> {
        let certificate = self.tls.clone().map(OwnCertificate::open).transpose()?;
        let listening = |source| ServerError::Listen {
            setting: "tunnelServer.listen (--listen)",
            address: self.address,
            source,
        };
        let listener = TcpListener::bind(self.address).await.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let metrics = Metrics::new(registry);
        let tunnels = Arc::new(Registry::new(self.times.young));
        let close = CancellationToken::new();
        let proxy = Proxy {
            domain: self.domain.to_ascii_lowercase(),
            trusted: self.trusted,
            times: self.times,
            registry: tunnels.clone(),
            metrics: metrics.clone(),
            visits: TaskTracker::new(),
            close: close.clone(),
        };
        let shared = Shared {
            proxy,
            registry: tunnels,
            metrics,
            credentials,
            times: self.times,
            streams: self.streams,
            port: address.port(),
            logins: Arc::new(Semaphore::new(LOGINS)),
            proxy_names: frp::ProxyNames::default(),
            without_mux: frp::ClientsWithoutMux::default(),
            inner_tls: frp::InnerTls::new(certificate.as_ref().map(acceptor)),
            leaving: CancellationToken::new(),
            close,
            tunnels: TaskTracker::new(),
        };
        Ok(Server {
            listener,
            address,
            certificate,
            connections: self.connections,
            drain_delay: self.drain_delay,
            grace: self.grace,
            shared: Arc::new(shared),
            peers: None,
        })
    }
}

impl Server {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens for other servers behind the same name as well; the servers tell each other of their tunnels over `board`. The
    /// others reach this one at `advertised`, or where it listens if that is not given.
    ///
    /// # Errors
    /// [`ServerError::Listen`] and [`ServerError::Key`].
    pub async fn beside(
        mut self,
        address: SocketAddr,
        advertised: Option<SocketAddr>,
        board: Arc<dyn Board>,
    ) -> Result<Self, ServerError> {
        let listening =
            |source| ServerError::Listen { setting: "tunnelServer.peers.listen", address, source };
        let listener = TcpListener::bind(address).await.map_err(listening)?;
        let own = listener.local_addr().map_err(listening)?;
        let advertised = advertised.map_or(own, |mut advertised| {
            if advertised.port() == 0 {
                advertised.set_port(own.port());
            }
            advertised
        });
        let peers = Peers::new(advertised, board, self.shared.registry.clone(), self.shared.times.write)
            .map_err(ServerError::Key)?;
        self.peers = Some((listener, Arc::new(peers)));
        Ok(self)
    }
}

#[async_trait]
impl Service for Server {
    fn name(&self) -> &'static str {
        "tunnel-server"
    }

    async fn serve(self: Box<Self>, given: ServiceContext) -> Result<(), StageError> {
        let places = Places::new(self.connections);
        let visitors = self.shared.proxy.visits.clone();
        let close = self.shared.close.clone();
        let nobody_else = close.child_token();
        let passed_on = self.peers.map(|(listener, peers)| {
            let (keeping, leaving, closing) = (peers.clone(), given.stop.clone(), close.clone());
            self.shared.tunnels.spawn(async move { keeping.keep(leaving, closing).await });
            // Visitors whom others pass on are visitors.
            let passing = peers.clone().serve(listener, visitors.clone(), nobody_else.clone(), close.clone());
            (peers, tokio::spawn(passing))
        });
        let tls = self.certificate.as_ref().map(acceptor);
        if let Some(certificate) = self.certificate {
            let (renewing, close) = (certificate.renew(self.shared.times.renew), close.clone());
            self.shared.tunnels.spawn(async move {
                tokio::select! {
                    () = close.cancelled() => {}
                    () = renewing => {}
                }
            });
        }
        let drained = async {
            given.stop.cancelled().await;
            tokio::time::sleep(self.drain_delay).await;
        };
        tokio::select! {
            () = drained => {}
            () = take_connections(&self.listener, &self.shared, tls.as_ref(), &places) => {}
        }
        drop(self.listener);
        self.shared.leaving.cancel();
        if let Some((peers, _)) = &passed_on {
            drop(
                tokio::time::timeout(RECONNECT_TIME.min(self.grace / 2), peers.handed_over.cancelled()).await,
            );
        }
        visitors.close();
        let ended = async {
            visitors.wait().await;
            // Whoever is passed on from now on is led another way, and whoever was just before is waited for.
            nobody_else.cancel();
            if let Some((_, passing)) = passed_on {
                drop(passing.await);
            }
            visitors.wait().await;
        };
        if tokio::time::timeout(self.grace, ended).await.is_err() {
            tracing::warn!(left = visitors.len(), "requests that did not finish in time are cut off");
        }
        close.cancel();
        self.shared.tunnels.close();
        tokio::time::timeout(Duration::from_secs(5), self.shared.tunnels.wait()).await.map_err(|_| {
            StageError::retry(Reason::Timeout, io::Error::other("tunnels did not close in time"))
        })
    }
}

/// Takes connections, and serves each in a task of its own; without end.
async fn take_connections(
    listener: &TcpListener,
    shared: &Arc<Shared>,
    tls: Option<&TlsAcceptor>,
    places: &Arc<Places>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let place = Arc::new(places.take().await);
                let conversing = connection(shared.clone(), tls.cloned(), stream, peer, place.clone());
                shared.proxy.visits.spawn(async move {
                    tokio::select! {
                        () = conversing => {}
                        // Nothing is asked over it, and somebody else has something to ask.
                        () = place.lost() => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection, with TLS or without.
async fn connection(
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    stream: TcpStream,
    peer: SocketAddr,
    place: Arc<Place>,
) {
    let mut first = [0];
    let looked = tokio::time::timeout(shared.times.handshake, stream.peek(&mut first)).await;
    let Ok(Ok(1)) = looked else { return };
    // A small answer is not held back until there is more.
    drop(stream.set_nodelay(true));
    keep_alive(&stream);
    let stream = WriteTimed::new(stream, shared.times.write);
    let io: Box<dyn Io> = match (first[0], tls) {
        // The frp family over TCP: its own mark before TLS, or the first byte of its streams.
        (0x17 | 0x00, _) => {
            shared.metrics.refused(Refusal::Protocol);
            tracing::warn!(
                peer = %peer.ip(),
                "a client of the frp family came over TCP: let it use its protocol websocket, or wss"
            );
            return;
        }
        (0x16, Some(tls)) => {
            let accepted =
                tokio::time::timeout(shared.times.handshake, tls.accept(ReadAhead::new(stream))).await;
            let Ok(Ok(stream)) = accepted else { return };
            return http(shared, Box::new(stream), peer, true, place).await;
        }
        (0x16, None) => {
            tracing::debug!(peer = %peer.ip(), "somebody speaks TLS to a port that has none");
            return;
        }
        (_, Some(_)) => {
            tracing::debug!(peer = %peer.ip(), "somebody speaks no TLS to a port that has it");
            return;
        }
        (_, None) => Box::new(stream),
    };
    http(shared, io, peer, false, place).await;
}

async fn http(shared: Arc<Shared>, io: Box<dyn Io>, peer: SocketAddr, is_secure: bool, place: Arc<Place>) {
    let leaving = shared.leaving.clone();
    let requests = RequestCounter::default();
    let io = HeadTimeout::new(io, requests.clone(), shared.times.handshake);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (shared, requests) = (shared.clone(), requests.clone());
        let (request_guard, busy) = (requests.begin(), place.busy());
        request.extensions_mut().insert(request_guard.clone());
        // On the heap: a connection that is kept has room for its future from the beginning.
        let answer = Box::pin(answer(shared, peer, is_secure, request));
        async move {
            let answer = answer.await;
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                requests.leave();
            }
            Ok::<_, Infallible>(answer.map(|body| HoldingBody::new(body, (request_guard, busy))))
        }
    });
    let connection = http1::Builder::new()
        .preserve_header_case(true)
        // A visitor that has said everything still gets the answer.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_header_size(MAX_HEAD)
        .max_buf_size(READ_BUFFER)
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    tokio::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = leaving.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of a visitor ended");
    }
}

async fn answer(
    shared: Arc<Shared>,
    peer: SocketAddr,
    is_secure: bool,
    request: Request<Incoming>,
) -> Response<Body> {
    match request.uri().path() {
        native::PATH => native::server::upgrade(shared, peer, request).await,
        frp::PATH => frp::server::upgrade(&shared, peer, request),
        _ => shared.proxy.answer(peer, is_secure, request).await,
    }
}
