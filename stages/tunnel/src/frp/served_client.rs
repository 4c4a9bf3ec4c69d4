//! A client of the frp family that has logged in: what it asks for, and what it is told, until its control connection ends.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::SILENCE;
use super::carrier::Carrier;
use super::cipher::Encrypted;
use super::messages::{Bare, CloseProxy, Message, NewProxy, NewProxyAnswer, NewWork, kind};
use super::proxies::{MOST, Proxies, Proxy};
use super::requested_tunnel::requested_tunnel;
use super::server::{Caller, Connection, POOL, Streams};
use super::visits::Visits;
use super::work_connections::WorkConnections;
use crate::Name;
use crate::io_errors::late;
use crate::metrics::Refusal;
use crate::mux::{Mux, MuxStream, is_end};
use crate::or_never::or_never;
use crate::registry::Conflict;
use crate::session::{Owner, Session};

impl Connection {
    /// Serves it until it ends.
    pub(super) async fn run(self) -> io::Result<()> {
        let Self { caller, streams, control, run_id, pool, login } = self;
        let (shared, connections) = (caller.shared.clone(), Arc::new(WorkConnections::new()));
        if streams.is_none() {
            shared.without_mux.register(&run_id, &connections);
        }
        let (want, wanted) = mpsc::channel(64);
        // All of its tunnels may be lost at once.
        let (lose, lost) = mpsc::channel(MOST);
        let client = ServedClient {
            owner: Owner { client: format!("frp {run_id}"), generation: shared.registry.life() },
            run_id: run_id.clone(),
            connections: connections.clone(),
            proxies: Proxies::new(shared.clone()),
            mux: streams.as_ref().map(|streams| streams.mux.clone()),
            want,
            lose,
            caller,
            login,
        };
        let ended = client.serve(streams, control, pool, wanted, lost).await;
        connections.end();
        shared.without_mux.remove(&run_id, &connections);
        ended
    }
}

/// A client that has logged in, while its control connection is served.
struct ServedClient {
    caller: Caller,
    owner: Owner,
    run_id: String,
    connections: Arc<WorkConnections>,
    proxies: Proxies,
    /// `None`: its work connections come by themselves.
    mux: Option<Mux>,
    /// Where another work connection is asked of it.
    want: mpsc::Sender<()>,
    /// Where it is told that it has lost a tunnel, and to whom.
    lose: mpsc::Sender<(Name, Conflict)>,
    /// Its place among those that have no tunnel yet.
    login: Option<OwnedSemaphorePermit>,
}

impl ServedClient {
    async fn serve(
        mut self,
        streams: Option<Streams>,
        control: Encrypted<Carrier>,
        pool: usize,
        mut wanted: mpsc::Receiver<()>,
        mut lost: mpsc::Receiver<(Name, Conflict)>,
    ) -> io::Result<()> {
        let shared = self.caller.shared.clone();
        let (liveness, mut accepted, _closing) = match streams {
            Some(streams) => (Some(streams.liveness), Some(streams.accepted), Some(streams.closing)),
            None => (None, None, None),
        };
        let (reading, mut writing) = tokio::io::split(control);
        let (tell, mut told) = mpsc::channel(4);
        let mut tasks = JoinSet::new();
        tasks.spawn(Message::tell_all(reading, tell));
        for _ in 0..pool {
            Message::write(&mut writing, kind::WANT_WORK, &Bare {}).await?;
        }
        let (mut spoke, begun) = (Instant::now(), Instant::now());
        let mut ping = Instant::now() + shared.times.ping;
        let (mut overdue, mut is_leaving, mut early) = (None, false, 0);
        loop {
            let has_none = self.proxies.is_empty();
            // What is to be said next.
            let bytes = tokio::select! {
                message = told.recv() => {
                    let message = match message.unwrap_or(Err(io::ErrorKind::UnexpectedEof.into())) {
                        Err(error) if is_end(&error) => return Ok(()),
                        message => message?,
                    };
                    spoke = Instant::now();
                    let answering = self.answer(&message);
                    let Some(answer) = shared.close.run_until_cancelled(answering).await else { return Ok(()) };
                    let Some(bytes) = answer? else { continue };
                    bytes
                }
                stream = or_never(accepted.as_mut().map(mpsc::Receiver::recv)) => {
                    let Some(stream) = stream else { return Ok(()) };
                    if has_none {
                        early += 1;
                        if early > POOL { continue }
                    }
                    let (caller, connections) = (self.caller.clone(), self.connections.clone());
                    tasks.spawn(offered(caller, stream, connections, self.run_id.clone()));
                    continue;
                }
                Some(()) = wanted.recv() => Message::bytes(kind::WANT_WORK, &Bare {})?,
                Some(_) = tasks.join_next() => continue,
                () = sleep_until(ping) => {
                    ping = Instant::now() + shared.times.ping;
                    self.mux.iter().for_each(Mux::ping);
                    continue;
                }
                () = or_never(liveness.as_ref().map(|liveness| liveness.lost_after(shared.times.silence))) => {
                    return Err(late("the client does not answer any more"));
                }
                () = sleep_until(spoke + SILENCE) => return Err(late("the client was not heard any more")),
                () = sleep_until(begun + SILENCE), if has_none => return Err(late("the client has no tunnel")),
                Some((name, conflict)) = lost.recv() => {
                    // Its newer life has taken over, which is nothing to be told of; another client is.
                    if conflict == Conflict::Taken {
                        shared.refuse(Refusal::Taken, name.as_str(), self.caller.peer);
                    }
                    overdue = Some(Instant::now() + shared.times.drain);
                    continue;
                }
                revoked = self.proxies.over() => {
                    if let Some(name) = revoked {
                        shared.refuse(Refusal::Revoked, name.as_str(), self.caller.peer);
                    }
                    return Ok(());
                }
                () = shared.leaving.cancelled(), if !is_leaving => {
                    if has_none { return Ok(()) }
                    // It is not told: it connects to another server when this closes.
                    is_leaving = true;
                    self.proxies.drain();
                    continue;
                }
                () = shared.close.cancelled() => return Ok(()),
                () = or_never(overdue.map(sleep_until)) => return Ok(()),
                () = or_never(self.mux.as_ref().map(Mux::closed)) => return Ok(()),
            };
            let written = async {
                writing.write_all(&bytes).await?;
                writing.flush().await
            };
            let written = timeout(shared.times.handshake, written);
            let Some(written) = shared.close.run_until_cancelled(written).await else { return Ok(()) };
            written.map_err(|_| io::ErrorKind::TimedOut)??;
        }
    }

    /// What a message is answered with, if anything.
    async fn answer(&mut self, message: &Message) -> io::Result<Option<Vec<u8>>> {
        match message.kind {
            kind::PING => Message::bytes(kind::PONG, &Bare {}).map(Some),
            kind::NEW_PROXY => {
                let proxy: NewProxy = message.content()?;
                let (remote_addr, error) = match self.open(&proxy).await {
                    Ok(address) => (address, String::new()),
                    Err(error) => (String::new(), error),
                };
                let answer = NewProxyAnswer { proxy_name: proxy.proxy_name, remote_addr, error };
                Message::bytes(kind::NEW_PROXY_ANSWER, &answer).map(Some)
            }
            kind::CLOSE_PROXY => {
                let close: CloseProxy = message.content()?;
                self.proxies.close(&close.proxy_name);
                Ok(None)
            }
            // What a later version may say.
            _ => Ok(None),
        }
    }

    /// Opens the tunnel that the client asks for, and says where it is visited; or says why not, in words that the client shows.
    async fn open(&mut self, proxy: &NewProxy) -> Result<String, String> {
        let caller = &self.caller;
        let (name, token, allowed) = requested_tunnel(proxy).inspect_err(|_| {
            caller.shared.refuse(Refusal::Name, "", caller.peer);
        })?;
        caller.may(&name, &token, &self.owner).await?;
        if let Some(conflict) = self.proxies.conflict(&proxy.proxy_name, &name, &self.owner.client) {
            caller.shared.refuse(Refusal::Taken, name.as_str(), caller.peer);
            return Err(conflict);
        }
        let shared = caller.shared.clone();
        let visits = Box::new(self.visits(name.clone(), proxy));
        let session = Arc::new(Session::new(shared.registry.number(), self.owner.clone(), visits, allowed));
        let added = shared.registry.add(&name, session.clone());
        added.map_err(|conflict| caller.conflict(&name, conflict))?;
        shared.metrics.tunnels.set(shared.registry.connected() as i64);
        tracing::warn!(
            tunnel = %name,
            peer = %caller.peer.ip(),
            "a tunnel of the frp family is served, which is weaker: TLS alone protects its token, and nothing is probed"
        );
        self.login = None;
        self.connections.open();
        self.mux.iter().for_each(Mux::keep_all);
        if self.mux.is_none() {
            shared.without_mux.register(&self.run_id, &self.connections);
        }
        let address = format!("{name}.{}:{}", shared.proxy.domain, shared.port);
        let of = name.clone();
        let revoked = Box::pin(async move { shared.revoked(&of, &token).await });
        self.proxies.add(Proxy { called: proxy.proxy_name.clone(), name, session, revoked });
        Ok(address)
    }

    fn visits(&self, name: Name, proxy: &NewProxy) -> Visits {
        let shared = &self.caller.shared;
        Visits {
            name,
            connections: self.connections.clone(),
            want: self.want.clone(),
            lost: self.lose.clone(),
            places: Arc::new(Semaphore::new(shared.streams)),
            within: shared.times.handshake,
            proxy_name: proxy.proxy_name.clone(),
            packing: proxy.packing(),
        }
    }
}

/// Takes a stream that a client opened, if it is a work connection of its own.
async fn offered(caller: Caller, stream: MuxStream, connections: Arc<WorkConnections>, run_id: String) {
    let mut carrier = Carrier::new(stream);
    let read = timeout(caller.shared.times.handshake, Message::read(&mut carrier)).await;
    let Ok(Ok(message)) = read else { return };
    let new: Option<NewWork> = (message.kind == kind::NEW_WORK).then(|| message.content().ok()).flatten();
    match new {
        Some(new) if new.run_id == run_id => connections.add(carrier).await,
        _ => caller.disown(carrier).await,
    }
}
