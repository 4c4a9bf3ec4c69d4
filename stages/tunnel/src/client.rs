//! The client of a tunnel: beside the service that visitors want, it connects to a server and leads them there.
//!
//! takes: streams of a server - gives: connections to the service - fails: at once when the server refuses the token or name
//! before any connection stood, and (but in standby) when a newer client took the tunnel over; everything else it tries again, after a while
//! chosen at random up to a bound that doubles.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pipeline_core::{Reason, Service, ServiceContext, Shutdown, StageError};
use prometheus::IntGauge;
use stages_client::{GaugeGuard, Token};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use url::Url;

use crate::dial::{Dial, DialError};
use crate::lock::lock;
use crate::metrics::{ClientMetrics, Visit};
use crate::relay::relay;
use crate::{Name, Packing, Times, frp, native};

/// How long the first pause after a lost connection may be; the next may be twice as long, and so on.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// How long a pause may be at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// After how many failures the pause does not grow any more.
const MOST_FAILURES: u32 = 10;

/// The protocol that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Our own.
    Native,
    /// That of the frp 0.44 family, for servers that speak nothing else. It is weaker, and has one connection.
    Frp(Packing),
}

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The server.
    pub dial: Dial,
    /// What the server speaks.
    pub protocol: Protocol,
    /// The tunnel.
    pub name: Name,
    /// Opens it.
    pub token: Token,
    /// The service, such as `http://localhost:3000`.
    pub forward: Url,
    /// Connections to keep.
    pub connections: usize,
    /// Tells this client from others of the tunnel; a newer life of it takes over.
    pub id: String,
    /// Which life this is, such as the milliseconds of its start.
    pub generation: u64,
    /// The addresses that may visit; empty: all.
    pub allowed: String,
    /// What is under way may finish for so long when it is told to stop.
    pub grace: Duration,
    /// Waits beside a newer life of it that took the tunnel over, and has it again when that is gone; else it ends.
    pub standby: bool,
    /// How long things may take.
    pub times: Times,
}

/// Why a client has no tunnel.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The service's address is none.
    #[error("the address to forward to begins with http:// and names a host, such as http://localhost:3000")]
    Forward,
    /// The server was not reached.
    #[error(transparent)]
    Dial(DialError),
    /// The server refused the token or what was asked for.
    #[error(transparent)]
    Refused(DialError),
    /// The token cannot be read.
    #[error(transparent)]
    Token(stages_client::TokenError),
    /// A server of the frp family refused the login.
    #[error("the server refused the login: {0}")]
    Login(String),
    /// A server of the frp family refused the tunnel.
    #[error("the server refused the tunnel: {0}")]
    Proxy(String),
    /// A server of the frp family does not take it for the client that has logged in.
    #[error("the server refused a ping: {0}")]
    Ping(String),
    /// Something does not fit into a header.
    #[error("the id of the client or the addresses that may visit hold characters that no header may hold")]
    Header,
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The server is not heard any more.
    #[error("the server was not heard any more")]
    Silent,
    /// Another client has the tunnel.
    #[error("another client has this tunnel; a runtime has one client")]
    Taken,
    /// A newer life of this client has it.
    #[error("a newer client with the same id has taken this tunnel over")]
    Superseded,
    /// The token does not open the tunnel any more.
    #[error("the token does not open this tunnel any more")]
    Revoked,
}

impl ClientError {
    /// Whether it comes of the settings: another try ends in the same way.
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Header | Self::Login(_))
    }
}

/// How a connection ends that the server has closed.
pub(crate) fn closed(is_agreed: bool) -> Result<(), ClientError> {
    if is_agreed { Ok(()) } else { Err(ClientError::Closed) }
}

/// What happens on a connection to the server.
#[derive(Debug)]
pub(crate) enum Event {
    /// Visitors come.
    Serving,
    /// It is about to be closed: another is needed.
    Leaving,
    /// A newer life of this client has the tunnel.
    Superseded,
    /// It is over.
    Ended(Result<(), ClientError>),
}

/// What all connections of a client share.
#[derive(Debug)]
pub(crate) struct Forwarding {
    pub(crate) dial: Dial,
    protocol: Protocol,
    /// What is known of a server of the frp family.
    pub(crate) server_profile: frp::ServerProfile,
    pub(crate) name: Name,
    pub(crate) token: Token,
    host: String,
    port: u16,
    pub(crate) id: String,
    pub(crate) generation: u64,
    pub(crate) allowed: String,
    pub(crate) grace: Duration,
    pub(crate) standby: bool,
    pub(crate) times: Times,
    pub(crate) metrics: ClientMetrics,
    ready: Ready,
    /// Some connection was served once: what is refused later may be granted again.
    was_served: AtomicBool,
}

impl Forwarding {
    /// Connects to the service.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = timeout(self.times.handshake, connecting).await??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Leads a visitor to the service; one who cannot be is told so by the end of their stream.
    pub(crate) async fn lead(&self, visitor: impl AsyncRead + AsyncWrite + Unpin) {
        match self.connect().await {
            Ok(service) => {
                self.metrics.visited(Visit::Led);
                if let Err(error) = relay(visitor, service, self.times.answer).await {
                    tracing::debug!(%error, "a visitor's connection was cut off");
                }
            }
            Err(error) => {
                self.metrics.visited(Visit::Unreachable);
                tracing::warn!(%error, "the service cannot be reached");
            }
        }
    }

    /// The server asked through the tunnel whether the service can be reached.
    pub(crate) fn probed(&self, is_reached: bool) {
        let mut last = lock(&self.ready.reached);
        *last = is_reached.then(Instant::now);
    }
}

/// Whether visitors can reach the service through the tunnel; clones share it.
#[derive(Debug, Clone)]
pub struct Ready {
    serving: Arc<AtomicUsize>,
    /// Connections that wait beside a newer life of this client.
    waiting: Arc<AtomicUsize>,
    reached: Arc<Mutex<Option<Instant>>>,
    lately: Duration,
}

impl Ready {
    /// Whether a connection is served, and the server found the service through one lately.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let last = *lock(&self.reached);
        self.serving.load(Ordering::Acquire) > 0 && last.is_some_and(|last| last.elapsed() < self.lately)
    }

    /// Whether a newer life of this client has the tunnel, which this one takes over when that is gone.
    #[must_use]
    pub fn stands_by(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}

/// The client of a tunnel.
#[derive(Debug)]
pub struct Client {
    to: Arc<Forwarding>,
    connections: usize,
}

impl ClientConfig {
    /// Checks what it was given.
    ///
    /// # Errors
    /// [`ClientError::Forward`].
    pub fn build(self, registry: &prometheus::Registry) -> Result<Client, ClientError> {
        let host = self.forward.host_str().filter(|_| self.forward.scheme() == "http");
        let host = host.ok_or(ClientError::Forward)?.trim_matches(['[', ']']).to_owned();
        let ready = Ready {
            serving: Arc::default(),
            waiting: Arc::default(),
            reached: Arc::default(),
            lately: self.times.ping * 2 + self.times.handshake,
        };
        let to = Forwarding {
            dial: self.dial,
            protocol: self.protocol,
            server_profile: frp::ServerProfile::default(),
            name: self.name,
            token: self.token,
            host,
            port: self.forward.port_or_known_default().unwrap_or(80),
            id: self.id,
            generation: self.generation,
            allowed: self.allowed,
            grace: self.grace,
            standby: self.standby,
            times: self.times,
            metrics: ClientMetrics::new(registry),
            ready,
            was_served: AtomicBool::new(false),
        };
        let most = if self.protocol == Protocol::Native { 4 } else { 1 };
        Ok(Client { to: Arc::new(to), connections: self.connections.clamp(1, most) })
    }
}

impl Client {
    /// To ask whether visitors can come.
    #[must_use]
    pub fn ready(&self) -> Ready {
        self.to.ready.clone()
    }

    /// Keeps one connection up until told to stop.
    async fn keep(to: Arc<Forwarding>, stop: Shutdown) -> Result<(), ClientError> {
        let mut failures = 0_u32;
        let mut waiting: Option<Counted> = None;
        // Those that are about to be closed go on beside the next.
        let mut running = JoinSet::new();
        while !stop.is_cancelled() {
            let (events, mut told) = mpsc::channel(4);
            let began = Instant::now();
            running.spawn(connection(to.clone(), events, stop.clone()));
            let mut is_superseded = false;
            loop {
                match told.recv().await {
                    Some(Event::Serving) => {
                        (failures, waiting) = (0, None);
                        tracing::info!(tunnel = %to.name, "the tunnel is open");
                    }
                    Some(Event::Superseded) => is_superseded = true,
                    Some(Event::Ended(ended))
                        if is_superseded || matches!(ended, Err(ClientError::Superseded)) =>
                    {
                        if !to.standby {
                            return Err(ClientError::Superseded);
                        }
                        if waiting.is_none() {
                            tracing::info!(tunnel = %to.name, "a newer client has taken this tunnel over; waiting beside it");
                            waiting = Some(Counted::new(to.ready.waiting.clone()));
                        }
                        // A server that lets nobody wait there answers at once, and is asked now and then.
                        let has_waited = is_superseded || began.elapsed() >= to.times.handshake / 4;
                        failures = if has_waited { 0 } else { MOST_FAILURES };
                        break;
                    }
                    Some(Event::Leaving) => break,
                    Some(Event::Ended(Ok(()))) | None => break,
                    Some(Event::Ended(Err(error))) => {
                        if error.is_refusal() && !to.was_served.load(Ordering::Acquire) {
                            return Err(error);
                        }
                        failures = (failures + 1).min(MOST_FAILURES);
                        // Who has the tunnel now is not known.
                        waiting = None;
                        to.metrics.failures.inc();
                        let source = std::error::Error::source(&error).map(ToString::to_string);
                        tracing::warn!(tunnel = %to.name, %error, source, failures, "the tunnel is not open; trying again");
                        break;
                    }
                }
            }
            let most = FIRST_PAUSE.saturating_mul(1 << failures).min(LONGEST_PAUSE);
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(most.mul_f64(fastrand::f64())) => {}
            }
            while running.try_join_next().is_some() {}
        }
        while running.join_next().await.is_some() {}
        Ok(())
    }
}

async fn connection(to: Arc<Forwarding>, events: mpsc::Sender<Event>, stop: Shutdown) {
    let (tell, mut told) = mpsc::channel(4);
    let of = to.clone();
    let passing = async {
        let mut counted = None;
        while let Some(event) = told.recv().await {
            if matches!(event, Event::Serving) && counted.is_none() {
                of.was_served.store(true, Ordering::Release);
                counted = Some(Served::new(of.ready.serving.clone(), &of.metrics.connections));
            }
            drop(events.send(event).await);
        }
    };
    let running = async {
        match to.protocol {
            Protocol::Native => native::client::run(to, tell, stop).await,
            Protocol::Frp(packing) => frp::client::run(to, packing, tell, stop).await,
        }
    };
    let (ended, ()) = tokio::join!(running, passing);
    drop(events.send(Event::Ended(ended)).await);
}

/// Counts one more, until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(all: Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::AcqRel);
        Self(all)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Counts a connection to the server as one that is served, until it is dropped.
struct Served {
    _one: Counted,
    _counted: GaugeGuard,
}

impl Served {
    fn new(all: Arc<AtomicUsize>, gauge: &IntGauge) -> Self {
        Self { _one: Counted::new(all), _counted: GaugeGuard::new(gauge) }
    }
}

#[async_trait]
impl Service for Client {
    fn name(&self) -> &'static str {
        "tunnel-client"
    }

    async fn serve(self: Box<Self>, given: ServiceContext) -> Result<(), StageError> {
        if matches!(self.to.protocol, Protocol::Frp(_)) {
            tracing::warn!(
                "the protocol of the frp family is weaker: TLS alone protects the token, and the service is looked for from \
                 this side alone"
            );
        }
        if !self.to.dial.is_secure() {
            tracing::warn!(
                "the address of the tunnel server has no TLS: who listens on the way reads token and visitors"
            );
        }
        let stop = given.stop.child_token();
        let mut kept = JoinSet::new();
        for _ in 0..self.connections {
            kept.spawn(Self::keep(self.to.clone(), stop.clone()));
        }
        let mut ended = Ok(());
        while let Some(done) = kept.join_next().await {
            let done = match done {
                Ok(done) => done.map_err(|error| StageError::reject(Reason::Refused, error)),
                Err(error) => Err(StageError::retry(Reason::Io, error)),
            };
            if done.is_err() && ended.is_ok() {
                ended = done;
                stop.cancel();
            }
        }
        ended
    }
}
