//! Serves what the process says of itself over HTTP: health, readiness, metrics, status, and where applications are.
//!
//! takes: the parts that answer ([`Served`]) - gives: an HTTP/1.1 server on one address
//! calls: nothing - fails: an address that cannot be listened on, before anything runs; a client that is slow,
//! sends a body or too large a head is answered or cut off, and never holds more than its own connection
//!
//! Every page is read-only and without secrets: numbers, states, and names of applications.

pub(crate) mod connections;
mod counted_body;
mod pages;
pub(crate) mod status;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use pipeline_core::{Key, Service, ServiceContext, StageError, async_trait};
use tokio::net::TcpListener;

use self::connections::Bounds;
use pipeline_engine::run::Status;
use pipeline_ledger::Ledger;
use pipeline_observe::health::Health;
use pipeline_observe::metrics::Metrics;
use pipeline_ownership::sharding::Sharding;

/// What the first of several routes is called.
pub const DEFAULT_ROUTE: &str = "default";
/// Whoever follows lines or events for longer than this begins anew.
pub const FOLLOWED: Duration = Duration::from_secs(24 * 3600);

/// Where and how to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    /// `host:port`; port 0 takes a free one, see [`Server::address`].
    pub listen: String,
    /// The name of the setting that `listen` came from, for messages.
    pub setting: &'static str,
    /// The flag of the command line that says the same, for messages; any setting may be given by `--set`.
    pub flag: Option<&'static str>,
    /// A client has this long to send a request's head, or its next one.
    pub head_timeout: Duration,
    /// An answer is made in this time, or the client is told that it was not.
    pub request_timeout: Duration,
    /// A connection takes one further request after this long.
    pub connection_age: Duration,
    /// What is being answered then has this much longer.
    pub answer_age: Duration,
    /// Answers under way when the process stops have this long.
    pub grace: Duration,
    /// Connections at a time; one more takes the place of the one that has been idle the longest.
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
            flag: None,
            // Longer than what asks through it keeps a connection for the next request, such as a load balancer of Google Cloud for
            // ten minutes or Envoy for an hour: what is asked while it is being closed would be lost.
            head_timeout: Duration::from_secs(65 * 60),
            request_timeout: Duration::from_secs(10),
            connection_age: Duration::from_secs(300),
            answer_age: Duration::from_secs(300),
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
        let (listener, address) = listen(&self.listen, self.setting, self.flag).await?;
        tracing::info!(%address, "listening");
        let pages = pages::router(Arc::new(served), self.request_timeout, self.metrics_only);
        Ok(Server { listener, address, pages, config: self })
    }

    /// Listens, and is ready to serve these routes and no page beside them: what has no engine to show.
    ///
    /// # Errors
    /// [`ServeError`] when the address cannot be listened on.
    pub async fn build_bare(self, routes: Router) -> Result<Server, ServeError> {
        let (listener, address) = listen(&self.listen, self.setting, self.flag).await?;
        tracing::info!(%address, "listening");
        Ok(Server { listener, address, pages: Router::new(), config: self }.mount(routes))
    }
}

/// Keys that are known, whoever owns their shard.
pub type Keys = Arc<dyn Fn() -> Vec<Key> + Send + Sync>;
/// A snapshot of the engine: [`pipeline_engine::run::Handle::status`].
pub type Look = Arc<dyn Fn() -> Status + Send + Sync>;

/// What answers.
#[derive(Clone)]
pub struct Served {
    /// `/healthz` and `/readyz`.
    pub health: Health,
    /// `/metrics`.
    pub metrics: Metrics,
    /// `/app-distribution`: the sharding in force.
    pub sharding: Sharding,
    /// What there is to ask when the process has begun to work, which may be long after it serves.
    pub works: Arc<OnceLock<WorkingProcess>>,
    /// Routes beside the first.
    pub routes: Vec<ServedRoute>,
}

/// A route beside the first, as it is served.
#[derive(Clone)]
pub struct ServedRoute {
    /// What it is called.
    pub name: Arc<str>,
    /// Its own.
    pub health: Health,
    /// Its own.
    pub metrics: Metrics,
    /// What there is to ask of it when it has begun to work.
    pub works: Arc<OnceLock<WorkingRoute>>,
}

/// What answers of a route that works.
#[derive(Clone)]
pub struct WorkingRoute {
    /// Its own.
    pub ledger: Ledger,
    /// Its own.
    pub engine: Look,
}

/// What answers of a process that works.
#[derive(Clone)]
pub struct WorkingProcess {
    /// Asked for its figures whenever health, metrics or status are.
    pub ledger: Ledger,
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
         the setting `{setting}` (`{flag}`)"
    )]
    InUse {
        /// The address.
        listen: String,
        /// The setting.
        setting: &'static str,
        /// What changes it on the command line.
        flag: String,
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
    fn new(listen: &str, setting: &'static str, flag: Option<&'static str>, source: std::io::Error) -> Self {
        let listen = listen.to_owned();
        match source.kind() {
            ErrorKind::AddrInUse => {
                let flag = flag.map_or_else(|| format!("--set {setting}=HOST:PORT"), str::to_owned);
                Self::InUse { listen, setting, flag }
            }
            ErrorKind::PermissionDenied => Self::Permission { listen, setting },
            _ => Self::Address { listen, setting, source },
        }
    }
}

/// Listens on `address`, which `setting` names, and perhaps a flag of its own; gives the address with its true port as well.
pub(crate) async fn listen(
    address: &str,
    setting: &'static str,
    flag: Option<&'static str>,
) -> Result<(TcpListener, SocketAddr), ServeError> {
    let refused = |source| ServeError::new(address, setting, flag, source);
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}

/// A server that listens and does not serve yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    pages: Router,
    config: ServeConfig,
}

impl Server {
    /// The same with more routes: what a service answers over HTTP. Each answers within the same time as a page.
    #[must_use]
    pub fn mount(self, routes: Router) -> Self {
        let timeout = self.config.request_timeout;
        let routes = routes.layer(from_fn(move |request, next| connections::timed(request, next, timeout)));
        Self { pages: self.pages.merge(routes), ..self }
    }

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

#[async_trait]
impl Service for Server {
    fn name(&self) -> &'static str {
        "serve"
    }

    async fn serve(self: Box<Self>, ServiceContext { stop, .. }: ServiceContext) -> Result<(), StageError> {
        let Self { listener, pages, config, .. } = *self;
        let bounds = Bounds {
            head_timeout: config.head_timeout,
            connection_age: config.connection_age,
            answer_age: config.answer_age,
            grace: config.grace,
            connections: config.connections,
        };
        connections::serve(listener, pages, bounds, stop).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
