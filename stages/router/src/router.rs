//! The router: listens, and hands each connection on.
//!
//! takes: settings - gives: a service that answers until it is told to stop; no service behind it need be there
//! calls: DNS and the services, once somebody asks for them - fails: an address that cannot be listened on, a
//! certificate that is none

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use pipeline_core::{Places, Service, ServiceContext, Shutdown, StageError, async_trait};
use prometheus::Registry;
use stages_client::{CertificateError, GaugeGuard, OwnCertificate};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::config::{Limits, Proxied, RouterConfig};
use crate::connection::{Front, converse};
use crate::forwarded::Arrival;
use crate::metrics::RouterMetrics;
use crate::names::{Names, NamesError};
use crate::probe;
use crate::proxy::{Backend, Proxy};
use crate::upstream::{Pool, Upstream, UpstreamError};

/// How long the loop pauses after a failed accept, such as for want of file descriptors, so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// How often the certificate's files are read again, so that a renewed one is served.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(60);
/// How long connections that were cut off have to be gone.
const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(2);

/// Why there is no router.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Somebody listens there, or it is no address of this host.
    #[error(
        "cannot listen on {address}; stop the process that listens there, or change router.listen (--listen)"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The certificate cannot be served.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Names cannot be resolved.
    #[error(transparent)]
    Names(#[from] NamesError),
    /// The address or the authorities of a service cannot be used.
    #[error("take the settings of {route}")]
    Upstream {
        /// The path that leads to the service.
        route: &'static str,
        /// What is wrong.
        source: UpstreamError,
    },
    /// The origin cannot stand in a header.
    #[error("the origin in router.appProxy.corsOrigin is none")]
    Origin,
}

/// A router that listens and does not answer yet.
pub struct Router {
    listener: TcpListener,
    address: SocketAddr,
    front: Front,
    certificate: Option<Arc<OwnCertificate>>,
    config: RouterConfig,
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Router").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RouterConfig {
    /// Listens on the address, and connects to nobody yet.
    ///
    /// # Errors
    /// [`BuildError`], with what to do about it.
    pub async fn build(self, registry: &Registry) -> Result<Router, BuildError> {
        let proxy = Arc::new(self.proxy(registry)?);
        let certificate = self.certificate.clone().map(OwnCertificate::open).transpose()?;
        let front = Front::new(&self, proxy, certificate.as_ref());
        let refused = |source| BuildError::Listen { address: self.listen, source };
        let listener = TcpListener::bind(self.listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Router { listener, address, front, certificate, config: self })
    }

    fn proxy(&self, registry: &Registry) -> Result<Proxy, BuildError> {
        let of = |proxied: &Option<Proxied>, route| {
            let backend = |proxied: &Proxied| Ok(backend(Some(Upstream::new(proxied)?), proxied.limits));
            let backend = proxied.as_ref().map(backend).transpose();
            backend.map_err(|source| BuildError::Upstream { route, source })
        };
        Ok(Proxy {
            app_proxy: of(&self.app_proxy, "/app-proxy")?,
            workflows: of(&self.workflows, "/workflows/")?,
            events: backend(None, self.webhooks.limits),
            webhooks: self.webhooks.clone(),
            cors_origin: HeaderValue::from_str(&self.cors_origin).map_err(|_| BuildError::Origin)?,
            trusted: self.trusted.clone(),
            names: Names::new(self.names.clone())?,
            pool: Pool::new(self.connect_timeout),
            metrics: RouterMetrics::new(registry),
            log: self.access_log,
            probes: Arc::new(Semaphore::new(probe::PLACES)),
            connect_timeout: self.connect_timeout,
            write_timeout: self.write_timeout,
            draining: Shutdown::new(),
            cut: Shutdown::new(),
            upgraded: TaskTracker::new(),
        })
    }
}

fn backend(upstream: Option<Upstream>, limits: Limits) -> Backend {
    let places = Arc::new(Semaphore::new(limits.requests.min(Semaphore::MAX_PERMITS)));
    Backend { upstream, limits, places }
}

impl Router {
    /// The address that it listens on, with the port that it has when the settings say 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[async_trait]
impl Service for Router {
    fn name(&self) -> &'static str {
        "router"
    }

    async fn serve(self: Box<Self>, ServiceContext { stop, .. }: ServiceContext) -> Result<(), StageError> {
        let Self { listener, address, front, certificate, config } = *self;
        let (front, closing, tasks) = (Arc::new(front), Shutdown::new(), TaskTracker::new());
        let proxy = front.proxy.clone();
        let accepting = async {
            let places = Places::new(config.connections);
            loop {
                let (stream, peer) = accept(&listener).await;
                let place = places.take().await;
                let arrival = Arrival { peer, port: address.port(), tls: front.tls.is_some() };
                let count = GaugeGuard::new(&proxy.metrics.connections);
                let conversation = converse(front.clone(), stream, arrival, place, closing.clone());
                tasks.spawn(async move {
                    conversation.await;
                    drop(count);
                });
            }
        };
        let renewing = async {
            match certificate {
                Some(certificate) => certificate.renew(RENEWAL_INTERVAL).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = async { stop.cancelled().await; proxy.draining.cancel(); sleep(config.drain_delay).await } => {}
            () = accepting => {}
            () = renewing => {}
        }
        drop(listener);
        closing.cancel();
        tasks.close();
        proxy.upgraded.close();
        let ended = async { tokio::join!(tasks.wait(), proxy.upgraded.wait()) };
        if timeout(config.grace, ended).await.is_err() {
            tracing::info!("cutting off what has outlived its grace");
        }
        proxy.cut.cancel();
        let _ = timeout(CUT_OFF_TIMEOUT, async { tokio::join!(tasks.wait(), proxy.upgraded.wait()) }).await;
        Ok(())
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                let gone = [ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset, ErrorKind::Interrupted];
                if !gone.contains(&error.kind()) {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}
