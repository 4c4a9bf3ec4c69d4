//! Answers questions about a running engine, and does what a person asks of it: HTTP/1.1 and JSON on a Unix socket,
//! and, by choice, on a TCP address.
//!
//! takes: a running engine ([`Answering`]) - gives: the answers of [`wire`], which `gitops-runtime distribution`,
//! `explain`, `parked`, `replay`, `status`, `tail`, `top` and `verify` ask for
//! calls: the engine and its ledger - fails: a socket or an address that cannot be listened on, before anything runs;
//! a client that is slow or sends too much is answered or cut off
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/status` | as `/status` of [`crate::serve`] |
//! | `GET /v1/explain/{namespace}/{name}?kind=rollout` | [`wire::Explained`]; 404 with near names |
//! | `GET /v1/parked` | [`wire::ParkedList`] |
//! | `GET /v1/parked/{namespace}/{name}` | [`wire::Parked`]; 404 when it is not parked |
//! | `POST /v1/parked/{namespace}/{name}/replay` | 204: the application is read again; 404 when it is not parked |
//! | `DELETE /v1/parked/{namespace}/{name}` | 204: it is given up; 404 when it is not parked |
//! | `POST /v1/replay` of [`wire::Replay`] | [`wire::Replayed`] |
//! | `POST /v1/verify` of [`pipeline_engine::verify::VerifyOptions`] | [`pipeline_engine::verify::Verified`]; 409 while another one runs |
//! | `GET /v1/verify` | [`pipeline_engine::verify::Progress`] of the one that runs, or null |
//! | `GET /v1/top?limit=20` | [`wire::Top`]: of each list so many applications, 1 to 100 |
//! | `GET /v1/namespace` | [`wire::OwnNamespace`]: of what is named without one, and what is counted |
//! | `GET /v1/applications` | [`wire::Applications`]: all that are known, with the number of their resources |
//! | `GET /v1/tail?app=a,ns/b&shard=0,1&step=acked` | [`wire::Line`]s without end, as they happen |
//!
//! All but the status are of the first route. Below `/v1/routes/{route}` the same is answered of that route of the resource
//! reporter, the first one being `default`; of one that there is not, 404 with those that there are.
//!
//! Anything else is answered with [`wire::Failed`]. The Unix socket is open to the process's user (mode 0600) and
//! needs no token. Over TCP each request needs the token, if there is one; without one, see [`Secret`]'s module: only
//! programs on this host are answered, so an address that others reach must not be listened on without a token.

mod answer;
mod guard;
mod near;
mod routes;
mod short_kind;
mod socket;
mod tail;
pub mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use pipeline_core::{Service, ServiceContext, Shutdown, StageError, async_trait};
use tokio::net::TcpListener;

pub use self::guard::Secret;
use self::socket::Claimed;
pub use self::socket::{SocketError, fits};
use crate::serve::connections::{self, Bounds};
use crate::serve::{FOLLOWED, Keys, ServeError, listen};
use pipeline_engine::run::Handle;
use pipeline_ledger::Ledger;
use pipeline_observe::health::Health;
use pipeline_ownership::sharding::Sharding;

/// How long an answer may take, except those that take the longer the more applications there are.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The bounds of a connection of a client.
const BOUNDS: Bounds = Bounds {
    head_timeout: Duration::from_secs(10),
    connection_age: FOLLOWED,
    answer_age: Duration::ZERO,
    grace: Duration::from_secs(2),
    connections: 32,
};
/// How many of these connections may listen to steps, so that others always find a place.
const LISTENERS: usize = 16;

/// What the admin server answers from.
#[derive(Clone)]
pub struct Answering {
    /// The engine.
    pub handle: Handle,
    /// The ledger of what was acknowledged.
    pub ledger: Ledger,
    /// The health, for the status.
    pub health: Health,
    /// Which shard an application belongs to.
    pub sharding: Sharding,
    /// Applications that are known, for those of which nothing was acknowledged yet.
    pub keys: Keys,
    /// The namespace of an object that is named without one.
    pub namespace: String,
    /// The role of the process, for the refusal of a route that it does not have.
    pub role: &'static str,
    /// What the reporter counts, for whoever prints its numbers.
    pub counts: wire::Counted,
    /// The routes beside the first.
    pub routes: Vec<RouteAnswering>,
}

/// What the admin server answers from for a route beside the first.
#[derive(Clone)]
pub struct RouteAnswering {
    /// The name of the route.
    pub name: Arc<str>,
    /// The engine.
    pub handle: Handle,
    /// The ledger of what was acknowledged.
    pub ledger: Ledger,
    /// The health, for the status.
    pub health: Health,
}

/// A server that listens and does not serve yet.
pub struct Admin {
    listening: Listening,
    pages: Router,
    closing: Shutdown,
}

/// Where a server listens.
enum Listening {
    Socket(Claimed),
    Address(TcpListener, SocketAddr),
}

impl Admin {
    /// Listens on the Unix socket `path`. A socket that a dead process left there is replaced.
    ///
    /// # Errors
    /// [`SocketError`] when another process answers there, or no socket can be made.
    pub async fn on_socket(path: &Path, answering: Answering) -> Result<Self, SocketError> {
        let claimed = socket::claim(path).await?;
        tracing::info!(path = %claimed.file.path().display(), "the admin socket is open");
        let (pages, closing) = pages(&answering);
        Ok(Self { listening: Listening::Socket(claimed), pages, closing })
    }

    /// Listens on `address` (`host:port`), for whoever sends the token; without one, for programs on this host.
    ///
    /// # Errors
    /// [`ServeError`] when it cannot be listened on.
    pub async fn on_address(
        address: &str,
        secret: Option<Secret>,
        answering: Answering,
    ) -> Result<Self, ServeError> {
        let (listener, address) = listen(address, "admin.address", None).await?;
        tracing::info!(%address, token = secret.is_some(), "the admin address is open");
        let (pages, closing) = pages(&answering);
        let pages = pages.layer(from_fn_with_state(secret, guard::guard));
        Ok(Self { listening: Listening::Address(listener, address), pages, closing })
    }

    /// The TCP address with its true port, if it is one.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match self.listening {
            Listening::Address(_, address) => Some(address),
            Listening::Socket(_) => None,
        }
    }
}

fn pages(answering: &Answering) -> (Router, Shutdown) {
    let closing = Shutdown::new();
    (routes::router(answering, &closing, LISTENERS, REQUEST_TIMEOUT), closing)
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin").field("address", &self.address()).finish_non_exhaustive()
    }
}

#[async_trait]
impl Service for Admin {
    fn name(&self) -> &'static str {
        "admin"
    }

    async fn serve(self: Box<Self>, ServiceContext { stop, .. }: ServiceContext) -> Result<(), StageError> {
        let Self { listening, pages, closing } = *self;
        let ending = async {
            stop.cancelled().await;
            // Streams without end end here.
            closing.cancel();
        };
        match listening {
            Listening::Socket(Claimed { listener, file }) => {
                tokio::join!(connections::serve(listener, pages, BOUNDS, stop.clone()), ending);
                drop(file);
            }
            Listening::Address(listener, _) => {
                tokio::join!(connections::serve(listener, pages, BOUNDS, stop.clone()), ending);
            }
        }
        Ok(())
    }
}
