//! The proxies of one client: each a tunnel, over the same work connections.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use crate::Name;
use crate::lock::lock;
use crate::server::Shared;
use crate::session::Session;

/// How many proxies one client may have.
pub(super) const MOST: usize = 16;

/// The names that the clients of a server give their proxies: for each, the client and the number of its connection.
#[derive(Default)]
pub(crate) struct ProxyNames(Mutex<HashMap<String, (String, u64)>>);

impl ProxyNames {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, (String, u64)>> {
        lock(&self.0)
    }

    /// Whether another client has a proxy of this name. A proxy that is named as its tunnel is needs no check, as a tunnel is of one
    /// client alone.
    fn is_taken(&self, called: &str, name: &Name, client: &str) -> bool {
        called != name.as_str() && self.lock().get(called).is_some_and(|(other, _)| other != client)
    }
}

/// A proxy that serves visitors.
pub(super) struct Proxy {
    /// What the client calls it.
    pub(super) called: String,
    pub(super) name: Name,
    pub(super) session: Arc<Session>,
    /// Ends when the token does not open the tunnel any more.
    pub(super) revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Ends when a proxy does, with the number of its connection and whether its token was revoked.
type Over = Pin<Box<dyn Future<Output = (u64, bool)> + Send>>;

/// The proxies of one client. They serve nobody once this is dropped.
pub(super) struct Proxies {
    shared: Arc<Shared>,
    all: Vec<(String, Name, Arc<Session>)>,
    over: FuturesUnordered<Over>,
}

impl Proxies {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, all: Vec::new(), over: FuturesUnordered::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Why the client cannot have this one beside those that it has, in the words of the family.
    pub(super) fn conflict(&self, called: &str, name: &Name, client: &str) -> Option<String> {
        if self.all.iter().any(|(_, other, _)| other == name) {
            return Some("router config conflict".to_owned());
        }
        let is_own = self.all.iter().any(|(other, ..)| other == called);
        if is_own || self.shared.proxy_names.is_taken(called, name, client) {
            return Some(format!("proxy name [{called}] is already in use"));
        }
        (self.all.len() >= MOST).then(|| format!("a client has at most {MOST} proxies here"))
    }

    pub(super) fn add(&mut self, proxy: Proxy) {
        let (session, mut revoked) = (proxy.session.clone(), proxy.revoked);
        self.over.push(Box::pin(async move {
            let is_revoked = tokio::select! {
                () = session.drained() => false,
                () = &mut revoked => true,
            };
            (session.id, is_revoked)
        }));
        let by = (proxy.session.owner.client.clone(), proxy.session.id);
        self.shared.proxy_names.lock().insert(proxy.called.clone(), by);
        self.all.push((proxy.called, proxy.name, proxy.session));
    }

    fn remove(&mut self, at: usize) {
        let (called, name, session) = self.all.swap_remove(at);
        {
            let mut all = self.shared.proxy_names.lock();
            if all.get(&called).is_some_and(|(_, id)| *id == session.id) {
                all.remove(&called);
            }
        }
        self.shared.registry.remove(&name, &session);
        self.shared.metrics.tunnels.set(self.shared.registry.connected() as i64);
    }

    /// Ends the proxy that the client calls so.
    pub(super) fn close(&mut self, called: &str) {
        if let Some(at) = self.all.iter().position(|(other, ..)| other == called) {
            self.remove(at);
        }
    }

    /// Nothing new is led through any of them.
    pub(super) fn drain(&self) {
        self.all.iter().for_each(|(_, _, session)| self.shared.registry.drain(session));
    }

    /// Ends when nothing is led through any of them any more and nothing is under way; or with the name of one whose token does
    /// not open it any more.
    pub(super) async fn over(&mut self) -> Option<Name> {
        while let Some((id, is_revoked)) = self.over.next().await {
            // One that the client closed is none any more.
            let Some(at) = self.all.iter().position(|(_, _, session)| session.id == id) else { continue };
            if is_revoked {
                return Some(self.all[at].1.clone());
            }
            self.remove(at);
            if self.all.is_empty() {
                return None;
            }
        }
        std::future::pending().await
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        while !self.all.is_empty() {
            self.remove(0);
        }
    }
}
