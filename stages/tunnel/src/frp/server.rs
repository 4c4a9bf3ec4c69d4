//! The server's side of the frp family.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use pipeline_core::SecretString;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use yamux::Mode;

use super::cipher::Encrypted;
use super::heard::{Heard, Hearing};
use super::messages::{
    Addresses, Bare, CloseProxy, Login, LoginAnswer, Message, NewProxy, NewProxyAnswer, kind,
};
use super::visits::Visits;
use super::works::Works;
use super::{VERSION, hex, privilege_key};
use crate::metrics::Refusal;
use crate::mux::{Mux, MuxStream};
use crate::native::server::{Closing, refuse};
use crate::proxy::{empty, say};
use crate::registry::Conflict;
use crate::server::Shared;
use crate::session::{Body, Owner, Session};
use crate::visitors::Networks;
use crate::ws::{Frames, Side, WebSocket, accept_of};
use crate::{Name, Verdict};

/// Work connections that wait for a visitor at most, whatever the client asks for. No more are taken from a client which has no
/// tunnel yet: anybody may log in, and what is sent over one is kept until it is read.
const POOL: i64 = 5;
/// Streams of a connection that a client opens beside those of visitors.
const OWN_STREAMS: usize = 64;
/// A client that says nothing for so long is gone: it pings every thirty seconds. One whose multiplexer answers pings is known to
/// be gone earlier.
const SILENCE: Duration = Duration::from_secs(90);
/// Bytes of a run id at most.
const RUN_ID: usize = 64;

/// Answers the upgrade of a client. Who it is it says afterwards.
pub(crate) fn upgrade(
    shared: &Arc<Shared>,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let key = request.headers().get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    let Some(accept) = key.map(accept_of) else {
        return say(StatusCode::BAD_REQUEST, "a client of a tunnel upgrades to a WebSocket here\n");
    };
    if shared.leaving.is_cancelled() {
        return say(StatusCode::SERVICE_UNAVAILABLE, "this server is stopping\n");
    }
    let Ok(place) = shared.logins.clone().try_acquire_owned() else {
        return say(
            StatusCode::SERVICE_UNAVAILABLE,
            "as many clients without a tunnel are here as may at a time\n",
        );
    };
    let upgraded = hyper::upgrade::on(&mut request);
    let task = shared.clone();
    shared.tunnels.spawn(async move {
        let Ok(io) = upgraded.await else { return };
        let ended = match Connection::begin(task, TokioIo::new(io), peer, place).await {
            Ok(connection) => connection.serve().await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => {
                tracing::info!(peer = %peer.ip(), "a connection of a client of the frp family was closed");
            }
            Err(error) => {
                tracing::warn!(peer = %peer.ip(), %error, "a connection of a client of the frp family broke");
            }
        }
    });
    let mut answer = Response::new(empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    answer
}

/// One client, which has logged in.
struct Connection {
    by: By,
    mux: Mux,
    _closing: Closing,
    heard: Arc<Heard>,
    accepted: mpsc::Receiver<MuxStream>,
    control: Encrypted<MuxStream>,
    run_id: String,
    pool: i64,
    /// Its place among those that have no tunnel yet.
    login: Option<OwnedSemaphorePermit>,
}

/// Who asks whom.
struct By {
    shared: Arc<Shared>,
    peer: SocketAddr,
}

impl By {
    /// Whether a token opens the tunnel, and nobody else has it.
    async fn may(&self, name: &Name, token: &SecretString, owner: &Owner) -> Result<(), String> {
        let refused = |why: String| {
            self.shared.refuse(Refusal::Credential, name.as_str(), self.peer);
            Err(why)
        };
        match self.shared.credentials.check(name, token).await {
            Verdict::Opens => {}
            Verdict::Refused => return refused(format!("this token does not open {name}")),
            Verdict::Unknown => return refused("the token cannot be checked now".to_owned()),
        }
        self.shared.registry.may(name, owner).map_err(|conflict| self.conflict(name, conflict))
    }

    fn conflict(&self, name: &Name, conflict: Conflict) -> String {
        refuse(&self.shared, conflict, name.as_str(), self.peer);
        // The words of the family: programs look for them.
        "router config conflict".to_owned()
    }
}

/// What a proxy asks for, if this server has it.
fn asked(proxy: &NewProxy) -> Result<(Name, SecretString, Networks), String> {
    let unsupported = [
        ("type of proxy but http", proxy.proxy_type != "http"),
        ("custom_domains", !proxy.custom_domains.is_empty()),
        ("locations but /", proxy.locations.iter().any(|location| location != "/")),
        ("group", !proxy.group.is_empty()),
        ("http_user", !proxy.http_user.is_empty() || !proxy.http_pwd.is_empty()),
        ("host_header_rewrite", !proxy.host_header_rewrite.is_empty()),
        ("headers", !proxy.headers.is_empty()),
        ("route_by_http_user", !proxy.route_by_http_user.is_empty()),
    ];
    if let Some((what, _)) = unsupported.iter().find(|(_, is_asked)| *is_asked) {
        return Err(format!("this server has no {what}"));
    }
    if proxy.proxy_name != proxy.subdomain {
        return Err("the name of the proxy must be its subdomain".to_owned());
    }
    let name = Name::read(&proxy.subdomain).map_err(|error| error.to_string())?;
    let token = proxy.metas.get("Authorization").map(String::as_str).unwrap_or_default();
    let allowed = proxy.ips_allow_list.as_ref().map(Addresses::text).unwrap_or_default();
    let allowed = Networks::read(&allowed).map_err(|error| format!("ips_allow_list: {error}"))?;
    Ok((name, token.into(), allowed))
}

/// What serves visitors.
struct Serving {
    name: Name,
    session: Arc<Session>,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Connection {
    /// Waits for the login, and answers it.
    async fn begin<S>(
        shared: Arc<Shared>,
        io: S,
        peer: SocketAddr,
        login: OwnedSemaphorePermit,
    ) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (socket, heard) = Hearing::new(WebSocket::new(io, Side::Server, Frames::Text));
        let (mux, mut accepted) = Mux::start(socket, Mode::Server, shared.streams + OWN_STREAMS);
        let closing = Closing(mux.clone());
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the client did not log in in time");
        let beginning = async {
            let mut control = accepted.recv().await.ok_or_else(|| heard.ended())?;
            let message = Message::read(&mut control).await?;
            Ok::<_, io::Error>((control, message))
        };
        let (mut control, message) = timeout(shared.times.handshake, beginning).await.map_err(late)??;
        let said: Login = match message.kind {
            kind::LOGIN => message.content()?,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "the first message is no login")),
        };
        let is_word = said.run_id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let error = if said.privilege_key != privilege_key(said.timestamp) {
            "token in login doesn't match token from configuration"
        } else if said.run_id.len() > RUN_ID || !is_word {
            "a run id has letters and digits alone, and not too many"
        } else if !said.version.starts_with("0.") {
            "this version of the protocol is not spoken here"
        } else {
            ""
        };
        if !error.is_empty() {
            shared.refuse(Refusal::Protocol, "", peer);
            let answer =
                LoginAnswer { version: VERSION.to_owned(), run_id: String::new(), error: error.to_owned() };
            Message::write(&mut control, kind::LOGIN_ANSWER, &answer).await?;
            // It reads why before the connection ends.
            drop(timeout(shared.times.handshake, Message::read(&mut control)).await);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, error));
        }
        let mut run_id = said.run_id;
        if run_id.is_empty() {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(io::Error::other)?;
            run_id = hex(&bytes);
        }
        let answer =
            LoginAnswer { version: VERSION.to_owned(), run_id: run_id.clone(), error: String::new() };
        Message::write(&mut control, kind::LOGIN_ANSWER, &answer).await?;
        let pool = said.pool_count.clamp(0, POOL);
        let by = By { shared, peer };
        let (control, login) = (Encrypted::new(control), Some(login));
        Ok(Self { by, mux, _closing: closing, heard, accepted, control, run_id, pool, login })
    }

    /// Serves it until it ends.
    async fn serve(self) -> io::Result<()> {
        let (by, mut serving) = (By { shared: self.by.shared.clone(), peer: self.by.peer }, None);
        let ended = self.run(&mut serving).await;
        if let Some(Serving { name, session, .. }) = serving {
            by.shared.registry.remove(&name, &session);
            by.shared.metrics.tunnels.set(by.shared.registry.connected() as i64);
        }
        ended
    }

    async fn run(mut self, serving: &mut Option<Serving>) -> io::Result<()> {
        let shared = self.by.shared.clone();
        let owner = Owner { client: format!("frp {}", self.run_id), generation: shared.registry.number() };
        let works = Arc::new(Works::new());
        let (want, mut wanted) = mpsc::channel(64);
        let (supersede, mut superseded) = mpsc::channel(1);
        let (mut reading, mut writing) = tokio::io::split(self.control);
        let (tell, mut told) = mpsc::channel(4);
        let mut tasks = JoinSet::new();
        // A message is read in pieces, and what of it was read is not to be lost when something else happens.
        tasks.spawn(async move {
            loop {
                let message = Message::read(&mut reading).await;
                let is_last = message.is_err();
                if tell.send(message).await.is_err() || is_last {
                    return;
                }
            }
        });
        for _ in 0..self.pool {
            Message::write(&mut writing, kind::WANT_WORK, &Bare {}).await?;
        }
        let (mut spoke, begun) = (Instant::now(), Instant::now());
        let mut ping = Instant::now() + shared.times.ping;
        let (mut overdue, mut is_leaving, mut early) = (None, false, 0);
        loop {
            // What is to be said next.
            let bytes = tokio::select! {
                message = told.recv() => {
                    let message = message.unwrap_or(Err(io::ErrorKind::UnexpectedEof.into()));
                    let message = match message {
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                        message => message?,
                    };
                    spoke = Instant::now();
                    match message.kind {
                        kind::PING => Message::bytes(kind::PONG, &Bare {})?,
                        kind::NEW_PROXY => {
                            let proxy: NewProxy = message.content()?;
                            let visits = Visits {
                                works: works.clone(),
                                want: want.clone(),
                                superseded: supersede.clone(),
                                places: Arc::new(Semaphore::new(shared.streams)),
                                within: shared.times.handshake,
                                proxy_name: proxy.proxy_name.clone(),
                                packing: proxy.packing(),
                            };
                            let added = match serving {
                                Some(_) => Err(format!("proxy name [{}] is already in use", proxy.proxy_name)),
                                None => add(&self.by, &proxy, &owner, visits).await,
                            };
                            let (remote_addr, error) = match added {
                                Ok(added) => {
                                    self.login = None;
                                    let at = format!("{}.{}:{}", added.name, shared.proxy.domain, shared.port);
                                    *serving = Some(added);
                                    (at, String::new())
                                }
                                Err(error) => (String::new(), error),
                            };
                            let proxy_name = proxy.proxy_name;
                            let answer = NewProxyAnswer { proxy_name, remote_addr, error };
                            Message::bytes(kind::NEW_PROXY_ANSWER, &answer)?
                        }
                        kind::CLOSE_PROXY => {
                            let close: CloseProxy = message.content()?;
                            let closed = serving.take_if(|serving| serving.name.as_str() == close.proxy_name);
                            if let Some(Serving { name, session, .. }) = closed {
                                shared.registry.remove(&name, &session);
                                shared.metrics.tunnels.set(shared.registry.connected() as i64);
                            }
                            continue;
                        }
                        // What a later version may say.
                        _ => continue,
                    }
                }
                stream = self.accepted.recv() => {
                    let Some(stream) = stream else { return Ok(()) };
                    if serving.is_none() {
                        early += 1;
                        if early > POOL { continue }
                    }
                    tasks.spawn(works.clone().offered(stream, self.run_id.clone(), shared.times.handshake));
                    continue;
                }
                Some(()) = wanted.recv() => Message::bytes(kind::WANT_WORK, &Bare {})?,
                Some(_) = tasks.join_next() => continue,
                () = sleep_until(ping) => {
                    ping = Instant::now() + shared.times.ping;
                    self.mux.ping();
                    continue;
                }
                () = self.heard.is_gone(shared.times.silence) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not answer any more"));
                }
                () = sleep_until(spoke + SILENCE) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the client was not heard any more"));
                }
                () = sleep_until(begun + SILENCE), if serving.is_none() => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the client has no tunnel"));
                }
                Some(()) = superseded.recv() => {
                    overdue = Some(Instant::now() + shared.times.drain);
                    continue;
                }
                is_revoked = over(serving) => {
                    if is_revoked {
                        let name = serving.as_ref().map_or("", |serving| serving.name.as_str());
                        shared.refuse(Refusal::Revoked, name, self.by.peer);
                    }
                    return Ok(());
                }
                () = shared.leaving.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    match serving {
                        // It is not told: it connects to another server when this closes.
                        Some(serving) => shared.registry.drain(&serving.session),
                        None => return Ok(()),
                    }
                    continue;
                }
                () = shared.close.cancelled() => return Ok(()),
                () = until(overdue) => return Ok(()),
                () = self.mux.closed() => return Ok(()),
            };
            let written = async {
                writing.write_all(&bytes).await?;
                writing.flush().await
            };
            timeout(shared.times.handshake, written).await.map_err(|_| io::ErrorKind::TimedOut)??;
        }
    }
}

/// Ends when nothing is led through any more and nothing is under way; or, with `true`, when the token does not open the tunnel
/// any more.
async fn over(serving: &mut Option<Serving>) -> bool {
    let Some(serving) = serving else { return std::future::pending().await };
    tokio::select! {
        () = serving.session.drained() => false,
        () = &mut serving.revoked => true,
    }
}

/// Opens the tunnel that a client asks for; why not, in words for it.
async fn add(by: &By, proxy: &NewProxy, owner: &Owner, visits: Visits) -> Result<Serving, String> {
    let (name, token, allowed) = asked(proxy).inspect_err(|_| {
        by.shared.refuse(Refusal::Name, "", by.peer);
    })?;
    by.may(&name, &token, owner).await?;
    let session = Session::new(by.shared.registry.number(), owner.clone(), Box::new(visits), allowed);
    let session = Arc::new(session);
    by.shared.registry.add(&name, session.clone()).map_err(|conflict| by.conflict(&name, conflict))?;
    by.shared.metrics.tunnels.set(by.shared.registry.connected() as i64);
    tracing::warn!(
        tunnel = %name,
        peer = %by.peer.ip(),
        "a tunnel of the frp family is served, which is weaker: TLS alone protects its token, and nothing is probed"
    );
    let (shared, of) = (by.shared.clone(), name.clone());
    let revoked = Box::pin(async move { shared.revoked(&of, &token).await });
    Ok(Serving { name, session, revoked })
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::HeaderMap;
    use pipeline_core::{Given, Service as _, Shutdown};
    use tokio::io::AsyncReadExt as _;

    use super::super::messages::NewWork;
    use super::*;
    use crate::server::LOGINS;
    use crate::{Anybody, Dial, ServerConfig, Times};

    async fn server() -> (SocketAddr, Shutdown) {
        let config = ServerConfig {
            address: "127.0.0.1:0".parse().unwrap(),
            domain: "tunnels.example.com".to_owned(),
            tls: None,
            trusted: Networks::default(),
            streams: 256,
            connections: 1_000,
            grace: Duration::ZERO,
            times: Times::default(),
        };
        let server = config.build(Arc::new(Anybody), &prometheus::Registry::new()).await.unwrap();
        let (address, stop) = (server.address(), Shutdown::new());
        tokio::spawn(Box::new(server).serve(Given::alone(stop.clone())));
        (address, stop)
    }

    /// Logs in with a token that everybody knows, and asks for no tunnel.
    async fn logged_in(address: SocketAddr) -> Result<(Mux, MuxStream, String), String> {
        let url = format!("http://{address}").parse().unwrap();
        let dial = Dial::new(&url, None, Duration::from_secs(60)).unwrap();
        let io =
            dial.upgrade(super::super::PATH, HeaderMap::new()).await.map_err(|error| error.to_string())?;
        let (mux, _) = Mux::start(WebSocket::new(io, Side::Client, Frames::Text), Mode::Client, 64);
        let mut control = mux.open().await.unwrap();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let timestamp = i64::try_from(now).unwrap();
        let login = Login {
            version: VERSION.to_owned(),
            privilege_key: privilege_key(timestamp),
            timestamp,
            ..Login::default()
        };
        Message::write(&mut control, kind::LOGIN, &login).await.unwrap();
        let answer: LoginAnswer = Message::read(&mut control).await.unwrap().content().unwrap();
        assert_eq!(answer.error, "");
        Ok((mux, control, answer.run_id))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_client_that_has_no_tunnel_keeps_a_few_work_connections_and_no_more() {
        let (address, stop) = server().await;
        let (mux, _control, run_id) = logged_in(address).await.unwrap();
        let mut ended = Vec::new();
        for _ in 0..20 {
            let mut work = mux.open().await.unwrap();
            let new = NewWork { run_id: run_id.clone() };
            Message::write(&mut work, kind::NEW_WORK, &new).await.unwrap();
            // What is not taken is reset, which ends the wait; what is taken waits for a visitor.
            ended.push(tokio::spawn(async move { work.read_u8().await.is_err() }));
        }
        for work in ended.split_off(usize::try_from(POOL).unwrap()) {
            assert!(timeout(Duration::from_secs(60), work).await.expect("it is not kept").unwrap());
        }
        assert!(ended.iter().all(|work| !work.is_finished()), "the first are kept");
        stop.cancel();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn so_many_clients_without_a_tunnel_are_kept_and_no_more() {
        let (address, stop) = server().await;
        let mut kept = Vec::new();
        for _ in 0..LOGINS {
            kept.push(logged_in(address).await.unwrap());
        }
        let refused = format!(
            "{address} refused the tunnel with 503 Service Unavailable: as many clients without a tunnel are here as may at a time"
        );
        assert_eq!(logged_in(address).await.map(|_| ()).unwrap_err(), refused);
        stop.cancel();
    }

    #[test]
    fn the_key_of_a_login_is_that_of_the_family() {
        assert_eq!(privilege_key(1_795_421_065), "51571184e1a6a1fd304941e28480194d");
    }

    #[test]
    fn what_this_server_does_not_have_is_refused_by_name() {
        let ask = |change: &dyn Fn(&mut NewProxy)| {
            let mut proxy = NewProxy {
                proxy_name: "a-b".to_owned(),
                proxy_type: "http".to_owned(),
                subdomain: "a-b".to_owned(),
                locations: vec!["/".to_owned()],
                ..NewProxy::default()
            };
            change(&mut proxy);
            asked(&proxy).map(|(name, ..)| name.to_string())
        };
        assert_eq!(ask(&|_| {}).unwrap(), "a-b");
        let refused = |why: &str, change: &dyn Fn(&mut NewProxy)| assert_eq!(ask(change).unwrap_err(), why);
        refused("this server has no type of proxy but http", &|proxy| proxy.proxy_type = "tcp".to_owned());
        refused("this server has no custom_domains", &|proxy| {
            proxy.custom_domains.push("x.example".to_owned());
        });
        refused("this server has no locations but /", &|proxy| proxy.locations.push("/x".to_owned()));
        refused("this server has no group", &|proxy| proxy.group = "g".to_owned());
        refused("this server has no http_user", &|proxy| proxy.http_pwd = "p".to_owned());
        refused("this server has no host_header_rewrite", &|proxy| {
            proxy.host_header_rewrite = "h".to_owned();
        });
        refused("this server has no headers", &|proxy| {
            drop(proxy.headers.insert("a".to_owned(), "b".to_owned()));
        });
        refused("this server has no route_by_http_user", &|proxy| proxy.route_by_http_user = "u".to_owned());
        refused("the name of the proxy must be its subdomain", &|proxy| proxy.proxy_name = "c-d".to_owned());
        refused("ips_allow_list: 'x' is neither an address nor a network such as 10.0.0.0/8", &|proxy| {
            proxy.ips_allow_list = Some(Addresses::List(vec!["10.0.0.1".to_owned(), "x".to_owned()]));
        });
    }
}
