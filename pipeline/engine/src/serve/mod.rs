//! Serves what the process says of itself over HTTP: health, readiness, metrics, status, and where applications are.
//!
//! takes: the parts that answer ([`Served`]) - gives: an HTTP/1.1 server on one address
//! calls: nothing - fails: an address that cannot be listened on, before anything runs; a client that is slow,
//! sends a body or too large a head is answered or cut off, and never holds more than its own connection
//!
//! Every page is read-only and without secrets: numbers, states, and names of applications.

mod pages;
mod status;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use pipeline_core::{Key, Service, Shutdown, StageError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::health::Health;
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::run::Status;
use crate::sharding::Sharding;

/// Bytes of a request's line and headers.
const HEAD_BYTES: usize = 16 << 10;
/// After a failed accept (no file descriptors left, say), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Where and how to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    /// `host:port`; port 0 takes a free one, see [`Server::address`].
    pub listen: String,
    /// The name of the setting that `listen` came from, for messages.
    pub setting: &'static str,
    /// A client has this long to send a request's head, or its next one.
    pub head_timeout: Duration,
    /// An answer is made in this time, or the client is told that it was not.
    pub request_timeout: Duration,
    /// A connection is closed after this long, however busy: a client that stops reading goes too.
    pub connection_age: Duration,
    /// Answers under way when the process stops have this long.
    pub grace: Duration,
    /// Connections at a time; more wait to be accepted.
    pub connections: usize,
    /// Serve `/metrics` and nothing else.
    pub metrics_only: bool,
}

impl ServeConfig {
    /// The defaults, for one address and the setting that it came from.
    #[must_use]
    pub fn new(listen: impl Into<String>, setting: &'static str) -> Self {
        Self {
            listen: listen.into(),
            setting,
            head_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(10),
            connection_age: Duration::from_secs(300),
            grace: Duration::from_secs(5),
            connections: 256,
            metrics_only: false,
        }
    }

    /// Listens, and is ready to serve.
    ///
    /// # Errors
    /// [`ServeError`] when the address cannot be listened on.
    pub async fn build(self, served: Served) -> Result<Server, ServeError> {
        let listener =
            TcpListener::bind(&self.listen).await.map_err(|source| ServeError::new(&self, source))?;
        let address = listener.local_addr().map_err(|source| ServeError::new(&self, source))?;
        tracing::info!(%address, "listening");
        let pages = pages::router(Arc::new(served), self.request_timeout, self.metrics_only);
        Ok(Server { listener, address, pages, config: self })
    }
}

/// Keys that are known, whoever owns their shard.
pub type Keys = Arc<dyn Fn() -> Vec<Key> + Send + Sync>;
/// A snapshot of the engine: [`crate::run::Handle::status`].
pub type Look = Arc<dyn Fn() -> Status + Send + Sync>;

/// What answers.
#[derive(Clone)]
pub struct Served {
    /// `/healthz` and `/readyz`.
    pub health: Health,
    /// `/metrics`.
    pub metrics: Metrics,
    /// Asked for its figures whenever health, metrics or status are.
    pub ledger: Ledger,
    /// `/app-distribution`: the sharding in force.
    pub sharding: Sharding,
    /// `/app-distribution`: what is placed.
    pub keys: Keys,
    /// `/status`.
    pub engine: Look,
}

/// An address that cannot be listened on; each message names the setting.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Somebody listens there.
    #[error(
        "cannot listen on {listen}: the address is in use; stop the process that listens there, or change \
         the setting `{setting}`"
    )]
    InUse {
        /// The address.
        listen: String,
        /// The setting.
        setting: &'static str,
    },
    /// It is not this process's to listen on.
    #[error("cannot listen on {listen}: no right to; take a port above 1023 in the setting `{setting}`")]
    Permission {
        /// The address.
        listen: String,
        /// The setting.
        setting: &'static str,
    },
    /// It is no address of this host, or no address.
    #[error(
        "cannot listen on {listen}: the setting `{setting}` is to be `host:port` with a host of this machine"
    )]
    Address {
        /// The address.
        listen: String,
        /// The setting.
        setting: &'static str,
        /// The operating system's answer.
        source: std::io::Error,
    },
}

impl ServeError {
    fn new(config: &ServeConfig, source: std::io::Error) -> Self {
        let (listen, setting) = (config.listen.clone(), config.setting);
        match source.kind() {
            ErrorKind::AddrInUse => Self::InUse { listen, setting },
            ErrorKind::PermissionDenied => Self::Permission { listen, setting },
            _ => Self::Address { listen, setting, source },
        }
    }
}

/// A server that listens and does not serve yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    pages: Router,
    config: ServeConfig,
}

impl Server {
    /// The address with its true port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Service for Server {
    const NAME: &'static str = "serve";

    async fn serve(self, stop: Shutdown) -> Result<(), StageError> {
        let Self { listener, pages, config, .. } = self;
        let config = Arc::new(config);
        let places = Arc::new(Semaphore::new(config.connections.max(1)));
        let tasks = TaskTracker::new();
        let accepting = async {
            loop {
                let Ok(place) = places.clone().acquire_owned().await else { return };
                let stream = accept(&listener).await;
                tasks.spawn(converse(stream, pages.clone(), config.clone(), stop.clone(), place));
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = accepting => {}
        }
        drop(listener);
        tasks.close();
        // Every conversation has its own grace; none is waited for longer.
        tasks.wait().await;
        Ok(())
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                let gone = [ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset, ErrorKind::Interrupted];
                if !gone.contains(&error.kind()) {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// One connection, until its client, its age or the process ends it.
async fn converse(
    stream: TcpStream,
    pages: Router,
    config: Arc<ServeConfig>,
    stop: Shutdown,
    place: OwnedSemaphorePermit,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(config.head_timeout).max_buf_size(HEAD_BYTES);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages)));
    let ended = tokio::select! {
        result = connection.as_mut() => Some(result),
        () = stop.cancelled() => None,
        () = tokio::time::sleep(config.connection_age) => None,
    };
    let ended = match ended {
        Some(result) => Some(result),
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(config.grace, connection).await.ok()
        }
    };
    if let Some(Err(error)) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(place);
}

#[cfg(test)]
mod tests;
