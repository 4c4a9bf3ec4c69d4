//! Which connections serve which tunnel, on one server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::Name;
use crate::lock::lock;
use crate::session::{Active, Owner, Session};
use crate::visitors::Networks;

/// How long a tunnel whose last connection is gone is expected back.
const EXPECTED_FOR: Duration = Duration::from_secs(60);

/// Why a connection does not get a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Conflict {
    /// Another client has it.
    #[error("another client has this tunnel; a runtime has one client")]
    Taken,
    /// A newer life of the same client has it.
    #[error("a newer client with the same id has taken this tunnel over")]
    Superseded,
    /// The client has as many connections as it may.
    #[error("a tunnel has at most {MAX_CONNECTIONS} connections")]
    Many,
}

/// How many connections one tunnel may have, beside those that drain.
const MAX_CONNECTIONS: usize = 8;

/// What is known of a tunnel that a visitor asks for.
#[derive(Debug)]
pub(crate) enum Route {
    /// A connection to use.
    Through(Active),
    /// Nobody serves the tunnel now, but it was connected until shortly before.
    Expected,
    /// Nobody serves the tunnel.
    Unknown,
}

#[derive(Debug)]
struct Tunnel {
    sessions: Vec<Arc<Session>>,
    left: Instant,
}

impl Tunnel {
    fn new() -> Self {
        Self { sessions: Vec::new(), left: Instant::now() }
    }
}

/// Which connections serve which tunnel.
#[derive(Debug)]
pub(crate) struct Registry {
    tunnels: Mutex<HashMap<Name, Tunnel>>,
    /// The tunnels that other servers behind the same name have.
    remotes: Mutex<HashMap<Name, Vec<Arc<Session>>>>,
    changed: watch::Sender<()>,
    next: AtomicU64,
    /// The life of a client that was given last.
    life: AtomicU64,
    /// Until this moment any tunnel may have been connected to the server that was here before.
    young: Instant,
}

impl Registry {
    /// Makes an empty registry, of a server that clients are expected to find within `young`.
    pub(crate) fn new(young: Duration) -> Self {
        Self {
            tunnels: Mutex::default(),
            remotes: Mutex::default(),
            changed: watch::Sender::new(()),
            next: AtomicU64::new(1),
            life: AtomicU64::new(0),
            young: Instant::now() + young,
        }
    }

    fn tunnels(&self) -> MutexGuard<'_, HashMap<Name, Tunnel>> {
        lock(&self.tunnels)
    }

    /// A number for the next connection.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The life of a client that says none of itself: later than any before, here and on other servers whose clocks are right.
    pub(crate) fn life(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        let later = |before: u64| now.max(before.saturating_add(1));
        let before = self.life.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |life| Some(later(life)));
        later(before.unwrap_or_default())
    }

    /// Whether `owner` may have the tunnel.
    pub(crate) fn may(&self, name: &Name, owner: &Owner) -> Result<(), Conflict> {
        self.may_elsewhere(name, owner)?;
        may(self.tunnels().get(name), owner)
    }

    /// Whether `owner` may have the tunnel, as far as other servers have it.
    fn may_elsewhere(&self, name: &Name, owner: &Owner) -> Result<(), Conflict> {
        for session in self.remotes().get(name).into_iter().flatten() {
            if session.owner.client != owner.client {
                return Err(Conflict::Taken);
            }
            if session.owner.generation > owner.generation {
                return Err(Conflict::Superseded);
            }
        }
        Ok(())
    }

    fn remotes(&self) -> MutexGuard<'_, HashMap<Name, Vec<Arc<Session>>>> {
        lock(&self.remotes)
    }

    /// Takes the tunnels that other servers have. A newer life of a client that connected to one of them takes a tunnel over; of two clients
    /// that connected while the servers could not tell each other, the one that began earlier keeps it, on all of them.
    pub(crate) fn elsewhere(&self, remotes: HashMap<Name, Vec<Arc<Session>>>) {
        let left = |name: &&Name| !remotes.contains_key(*name);
        let left: Vec<Name> = self.remotes().keys().filter(left).cloned().collect();
        let mut tunnels = self.tunnels();
        forget(&mut tunnels);
        // It is expected here as well, once its client has found another server.
        for name in left {
            tunnels.entry(name).or_insert_with(Tunnel::new).left = Instant::now();
        }
        for (name, sessions) in &remotes {
            for (here, there) in tunnels
                .get(name)
                .into_iter()
                .flat_map(|tunnel| &tunnel.sessions)
                .flat_map(|here| sessions.iter().map(move |there| (here, there)))
            {
                if let Some(conflict) = lost(&here.owner, &there.owner).filter(|_| !here.is_draining()) {
                    here.lead.lose(conflict);
                    here.drain();
                }
            }
        }
        drop(tunnels);
        let before = std::mem::replace(&mut *self.remotes(), remotes);
        let remotes = self.remotes();
        let kept = |name: &Name, session: &Arc<Session>| {
            remotes.get(name).is_some_and(|kept| kept.iter().any(|other| other.id == session.id))
        };
        let gone = before.iter().flat_map(|(name, sessions)| sessions.iter().map(move |one| (name, one)));
        let gone: Vec<&Arc<Session>> =
            gone.filter(|(name, session)| !kept(name, session)).map(|(_, session)| session).collect();
        let is_changed =
            !gone.is_empty() || before.values().flatten().count() != remotes.values().flatten().count();
        gone.iter().for_each(|session| session.drain());
        drop(remotes);
        if is_changed {
            self.changed.send_replace(());
        }
    }

    /// The tunnels that are served here: whose they are, and who may visit.
    pub(crate) fn here(&self) -> HashMap<Name, (Owner, Networks)> {
        let newest = |tunnel: &Tunnel| {
            let serving = tunnel.sessions.iter().filter(|session| !session.is_draining());
            let newest = serving.max_by_key(|session| session.owner.generation)?;
            Some((newest.owner.clone(), newest.allowed.clone()))
        };
        let tunnels = self.tunnels();
        tunnels.iter().filter_map(|(name, tunnel)| Some((name.clone(), newest(tunnel)?))).collect()
    }

    /// Adds a connection; those of older lives of the same client are drained, and told.
    pub(crate) fn add(&self, name: &Name, session: Arc<Session>) -> Result<(), Conflict> {
        {
            let mut tunnels = self.tunnels();
            forget(&mut tunnels);
            may(tunnels.get(name), &session.owner)?;
            self.may_elsewhere(name, &session.owner)?;
            let tunnel = tunnels.entry(name.clone()).or_insert_with(Tunnel::new);
            for before in &tunnel.sessions {
                if before.owner.generation < session.owner.generation && !before.is_draining() {
                    // The note waits in the connection before that may find itself drained, and close.
                    before.lead.lose(Conflict::Superseded);
                    before.drain();
                }
            }
            tunnel.sessions.push(session);
        }
        self.changed.send_replace(());
        Ok(())
    }

    /// Leads nobody new through a connection.
    pub(crate) fn drain(&self, session: &Session) {
        {
            let _held = self.tunnels();
            session.drain();
        }
        self.changed.send_replace(());
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&self, name: &Name, session: &Session) {
        if let Some(tunnel) = self.tunnels().get_mut(name) {
            tunnel.sessions.retain(|other| other.id != session.id);
            tunnel.left = Instant::now();
            session.drain();
        }
        self.changed.send_replace(());
    }

    /// The connection of the tunnel that has least to do, but for those in `tried`: one to this server, else by way of
    /// another.
    pub(crate) fn route(&self, name: &Name, tried: &[u64]) -> Route {
        let here = self.among(name, tried);
        if matches!(here, Route::Through(_)) {
            return here;
        }
        let remotes = self.remotes();
        let others = remotes.get(name).into_iter().flatten();
        let usable = others.filter(|session| !session.is_draining() && !tried.contains(&session.id));
        match usable.min_by_key(|session| session.active()) {
            Some(session) => Route::Through(session.begin()),
            None if remotes.get(name).is_some_and(|sessions| !sessions.is_empty()) => Route::Expected,
            None => here,
        }
    }

    /// The connection to this server that has least to do.
    pub(crate) fn local(&self, name: &Name) -> Route {
        self.among(name, &[])
    }

    fn among(&self, name: &Name, tried: &[u64]) -> Route {
        let tunnels = self.tunnels();
        let Some(tunnel) = tunnels.get(name) else {
            return if Instant::now() < self.young { Route::Expected } else { Route::Unknown };
        };
        let usable =
            tunnel.sessions.iter().filter(|session| !session.is_draining() && !tried.contains(&session.id));
        match usable.min_by_key(|session| session.active()) {
            Some(session) => Route::Through(session.begin()),
            None if !tunnel.sessions.is_empty() || tunnel.left.elapsed() < EXPECTED_FOR => Route::Expected,
            None => Route::Unknown,
        }
    }

    /// Whether nobody else leads visitors of this tunnel through.
    pub(crate) fn is_free(&self, name: &Name) -> bool {
        if self.remotes().contains_key(name) {
            return false;
        }
        self.tunnels()
            .get(name)
            .is_none_or(|tunnel| tunnel.sessions.iter().all(|session| session.is_draining()))
    }

    /// Notifies of every change of the registry.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// How many tunnels are connected.
    pub(crate) fn connected(&self) -> usize {
        self.tunnels().values().filter(|tunnel| !tunnel.sessions.is_empty()).count()
    }
}

/// Whether the owner of a tunnel here has lost it to the one that another server tells of.
fn lost(here: &Owner, there: &Owner) -> Option<Conflict> {
    if here.client == there.client {
        return (there.generation > here.generation).then_some(Conflict::Superseded);
    }
    // What each server can tell alike: when they began, and where that is one moment, their names.
    let is_later = (here.generation, &here.client) > (there.generation, &there.client);
    is_later.then_some(Conflict::Taken)
}

/// Forgets tunnels that are not expected any more.
fn forget(tunnels: &mut HashMap<Name, Tunnel>) {
    tunnels.retain(|_, tunnel| !tunnel.sessions.is_empty() || tunnel.left.elapsed() < EXPECTED_FOR);
}

fn may(tunnel: Option<&Tunnel>, owner: &Owner) -> Result<(), Conflict> {
    for session in tunnel.iter().flat_map(|tunnel| &tunnel.sessions) {
        if session.owner.client != owner.client {
            // Who drains on their own has given the tunnel up.
            if !session.is_draining() {
                return Err(Conflict::Taken);
            }
        } else if session.owner.generation > owner.generation {
            return Err(Conflict::Superseded);
        }
    }
    let same = |session: &&Arc<Session>| session.owner == *owner && !session.is_draining();
    let count = tunnel.map_or(0, |tunnel| tunnel.sessions.iter().filter(same).count());
    if count < MAX_CONNECTIONS { Ok(()) } else { Err(Conflict::Many) }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use async_trait::async_trait;

    use super::*;
    use crate::session::{Io, Lead, LeadError};

    #[derive(Debug)]
    struct Nowhere;

    #[async_trait]
    impl Lead for Nowhere {
        async fn lead(&self, _: SocketAddr) -> Result<Box<dyn Io>, LeadError> {
            Err(LeadError::Gone)
        }

        fn lose(&self, _: Conflict) {}
    }

    /// Remembers why its client lost the tunnel.
    #[derive(Debug)]
    struct Losing(Arc<Mutex<Option<Conflict>>>);

    #[async_trait]
    impl Lead for Losing {
        async fn lead(&self, _: SocketAddr) -> Result<Box<dyn Io>, LeadError> {
            Err(LeadError::Gone)
        }

        fn lose(&self, to: Conflict) {
            *self.0.lock().unwrap() = Some(to);
        }
    }

    fn remote(owner: &Owner) -> Arc<Session> {
        Arc::new(Session::new(9, owner.clone(), Box::new(Nowhere), Networks::default()))
    }

    #[test]
    fn of_two_clients_that_two_servers_let_in_at_once_the_earlier_alone_keeps_the_tunnel() {
        let name = Name::read("shop-web").unwrap();
        let owners = [("second", 2), ("first", 1)]
            .map(|(client, generation)| Owner { client: client.to_owned(), generation });
        let servers = owners.clone().map(|owner| {
            let (registry, lost) = (Registry::new(Duration::ZERO), Arc::new(Mutex::new(None)));
            let session = Session::new(1, owner, Box::new(Losing(lost.clone())), Networks::default());
            registry.add(&name, Arc::new(session)).unwrap();
            (registry, lost)
        });
        for (at, (registry, _)) in servers.iter().enumerate() {
            registry.elsewhere(HashMap::from([(name.clone(), vec![remote(&owners[1 - at])])]));
        }
        let lost = servers.each_ref().map(|(_, lost)| *lost.lock().unwrap());
        assert_eq!(lost, [Some(Conflict::Taken), None]);
        assert!(matches!(servers[0].0.local(&name), Route::Expected), "nobody is led to the later one");
        assert!(matches!(servers[1].0.local(&name), Route::Through(_)));
    }

    #[test]
    fn a_connection_whose_tunnel_another_server_told_of_meanwhile_does_not_get_it() {
        let (registry, name) = (Registry::new(Duration::ZERO), Name::read("shop-web").unwrap());
        let there = Owner { client: "there".to_owned(), generation: 1 };
        registry.elsewhere(HashMap::from([(name.clone(), vec![remote(&there)])]));
        let here = Owner { client: "here".to_owned(), generation: 2 };
        assert_eq!(registry.add(&name, remote(&here)), Err(Conflict::Taken));
    }

    #[test]
    fn a_tunnel_that_another_server_had_until_shortly_before_is_expected() {
        let (registry, name) = (Registry::new(Duration::ZERO), Name::read("shop-web").unwrap());
        let owner = Owner { client: "one".to_owned(), generation: 1 };
        let session = Arc::new(Session::new(1, owner, Box::new(Nowhere), Networks::default()));
        registry.elsewhere(HashMap::from([(name.clone(), vec![session])]));
        assert!(matches!(registry.route(&name, &[]), Route::Through(_)));
        registry.elsewhere(HashMap::new());
        assert!(matches!(registry.route(&name, &[]), Route::Expected));
        assert!(matches!(registry.route(&Name::read("shop-other").unwrap(), &[]), Route::Unknown));
    }

    #[test]
    fn a_life_is_later_than_those_before_on_another_server_that_had_many() {
        let (busy, quiet) = (Registry::new(Duration::ZERO), Registry::new(Duration::ZERO));
        let lives: Vec<u64> = (0..3).map(|_| busy.life()).collect();
        assert!(lives.is_sorted_by(|earlier, later| earlier < later), "{lives:?}");
        // A few milliseconds later, which a client needs to connect anew.
        std::thread::sleep(Duration::from_millis(20));
        assert!(quiet.life() > lives[2]);
    }
}
