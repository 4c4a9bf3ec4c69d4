//! One connection of a tunnel, as the server has it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::client::conn::http1::SendRequest;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

use crate::lock::lock;
use crate::registry::Conflict;
use crate::visitors::Networks;

/// A body on its way to the service behind a tunnel.
pub(crate) type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// A stream of bytes in both directions.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// How many connections to the service one connection of a tunnel keeps for further requests.
const MAX_IDLE: usize = 32;
/// How long they are kept: most services close theirs after a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// Why a visitor could not be led through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LeadError {
    /// As many requests are under way as may be.
    #[error("as many requests are under way as may be")]
    Full,
    /// The connection of the tunnel is gone.
    #[error("the connection of the tunnel is gone")]
    Gone,
    /// The client did not answer in time.
    #[error("the client of the tunnel did not answer in time")]
    Late,
    /// The server that has the tunnel knows that its client does not let this visitor in.
    #[error("the client of the tunnel does not let this visitor in")]
    Refused,
}

/// Leads to the service behind a tunnel.
#[async_trait]
pub(crate) trait Lead: Send + Sync + fmt::Debug {
    /// Opens a stream to the service for a visitor.
    async fn lead(&self, visitor: SocketAddr) -> Result<Box<dyn Io>, LeadError>;

    /// Whether it goes through another server, which may end before the client does.
    fn is_passed_on(&self) -> bool {
        false
    }

    /// Tells the client that it has lost the tunnel: to a newer life of itself, or to another client. Waits for nothing: it is
    /// called with the registry locked.
    fn lose(&self, to: Conflict);
}

/// The client that a connection of a tunnel is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// What the client calls itself.
    pub(crate) client: String,
    /// Which of the client's lives it is: the greatest has the tunnel.
    pub(crate) generation: u64,
}

/// One connection of a tunnel, with the number of requests that are under way on it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) owner: Owner,
    pub(crate) lead: Box<dyn Lead>,
    /// Who may visit; empty: everybody.
    pub(crate) allowed: Networks,
    active: AtomicUsize,
    draining: AtomicBool,
    drained: Notify,
    idle: Mutex<Vec<(SendRequest<Body>, Instant)>>,
}

impl Session {
    pub(crate) fn new(id: u64, owner: Owner, lead: Box<dyn Lead>, allowed: Networks) -> Self {
        Self {
            id,
            owner,
            lead,
            allowed,
            active: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            drained: Notify::new(),
            idle: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Acquire)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Leads nobody new through it from now on. Called with the registry locked, as [`Session::begin`] is.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
        lock(&self.idle).clear();
        self.drained.notify_waiters();
    }

    /// Waits until it drains and nothing is under way any more.
    pub(crate) async fn drained(&self) {
        loop {
            let changed = self.drained.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_draining() && self.active() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Counts a request until what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Active {
        self.active.fetch_add(1, Ordering::AcqRel);
        Active(self.clone())
    }

    /// Takes a connection to the service that waits for a request, if there is one.
    pub(crate) fn idle(&self) -> Option<SendRequest<Body>> {
        let mut idle = lock(&self.idle);
        while let Some((sender, since)) = idle.pop() {
            if sender.is_ready() && since.elapsed() < IDLE_TIMEOUT {
                return Some(sender);
            }
        }
        None
    }

    /// Keeps a connection to the service for the next request.
    pub(crate) fn keep(&self, sender: SendRequest<Body>) {
        let mut idle = lock(&self.idle);
        idle.retain(|(sender, since)| !sender.is_closed() && since.elapsed() < IDLE_TIMEOUT);
        if idle.len() < MAX_IDLE && !self.is_draining() {
            idle.push((sender, Instant::now()));
        }
    }
}

/// A request that is under way on a connection.
#[derive(Debug)]
pub(crate) struct Active(Arc<Session>);

impl Active {
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if self.0.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.drained.notify_waiters();
        }
    }
}
