//! The server's side of the protocol of the frp family.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use pipeline_core::SecretString;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use yamux::Mode;

use super::carrier::Carrier;
use super::cipher::Encrypted;
use super::liveness::{Liveness, watched};
use super::messages::{Login, LoginAnswer, Message, NewWork, kind};
use super::work_connections::send_refusal;
use super::{VERSION, privilege_key};
use crate::io_errors::{invalid, late};
use crate::metrics::Refusal;
use crate::mux::{Mux, MuxStream};
use crate::native::server::{Closing, refuse};
use crate::proxy::{say, switched};
use crate::registry::Conflict;
use crate::server::Shared;
use crate::session::{Body, Io, Owner};
use crate::ws::{Frames, Side, WebSocket, accept_of};
use crate::{Name, Verdict};

/// How many work connections a client keeps waiting for visitors, whatever it asks for. No more are taken from a client which has no
/// tunnel yet: anybody may log in, and what is sent over one is kept until it is read.
pub(super) const POOL: usize = 5;
/// How many streams a client may open beside those of visitors.
const OWN_STREAMS: usize = 64;
/// The first byte of a multiplexer's frames, which is its version.
const MUX_VERSION: u8 = 0;
/// How many bytes a run id may have.
const MAX_RUN_ID: usize = 64;

/// Answers the upgrade of a client, which says only afterwards who it is.
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
        let Some(Ok(io)) = task.close.clone().run_until_cancelled_owned(upgraded).await else { return };
        match serve(Caller { shared: task, peer }, TokioIo::new(io), place).await {
            Ok(()) => {
                tracing::info!(peer = %peer.ip(), "a connection of a client of the frp family was closed");
            }
            Err(error) => {
                tracing::warn!(peer = %peer.ip(), %error, "a connection of a client of the frp family broke");
            }
        }
    });
    switched(&accept)
}

/// The streams of a client that has a multiplexer.
pub(super) struct Streams {
    pub(super) mux: Mux,
    pub(super) closing: Closing,
    pub(super) liveness: Arc<Liveness>,
    pub(super) accepted: mpsc::Receiver<MuxStream>,
}

/// The control connection of a client that has logged in.
pub(super) struct Connection {
    pub(super) caller: Caller,
    /// `None`: its work connections come by themselves.
    pub(super) streams: Option<Streams>,
    pub(super) control: Encrypted<Carrier>,
    pub(super) run_id: String,
    pub(super) pool: usize,
    /// Its place among those that have no tunnel yet.
    pub(super) login: Option<OwnedSemaphorePermit>,
}

/// The server, and the peer that is connected to it.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) shared: Arc<Shared>,
    pub(super) peer: SocketAddr,
}

impl Caller {
    /// Whether a token opens the tunnel, and nobody else has it.
    pub(super) async fn may(&self, name: &Name, token: &SecretString, owner: &Owner) -> Result<(), String> {
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

    /// Refuses a work connection that is of no client here.
    pub(super) async fn disown(&self, carrier: Carrier) {
        self.shared.refuse(Refusal::Protocol, "", self.peer);
        drop(timeout(self.shared.times.handshake, send_refusal(carrier)).await);
    }

    pub(super) fn conflict(&self, name: &Name, conflict: Conflict) -> String {
        refuse(&self.shared, conflict, name.as_str(), self.peer);
        // The words of the family: programs look for them.
        "router config conflict".to_owned()
    }
}

/// Serves one connection of a client until it ends: the one that everything goes over; or, of a client that has no multiplexer,
/// its control connection. A work connection of such a client is kept for a visitor.
async fn serve(caller: Caller, io: impl Io + 'static, login: OwnedSemaphorePermit) -> io::Result<()> {
    let within = caller.shared.times.handshake;
    let beginning = async {
        let carrier = Carrier::new(WebSocket::new(io, Side::Server, Frames::Text));
        let (first, mut carrier) = caller.shared.inner_tls.accept(carrier).await?;
        let mut streams = None;
        if first == MUX_VERSION {
            let (frames, liveness) = watched(carrier);
            let most = caller.shared.streams + OWN_STREAMS;
            // Anybody may connect, and what is sent over a stream is kept until it is read.
            let (mux, mut accepted) = Mux::keeping(frames, Mode::Server, most, POOL + 1);
            let closing = Closing(mux.clone());
            carrier = Carrier::new(accepted.recv().await.ok_or(io::ErrorKind::UnexpectedEof)?);
            streams = Some(Streams { mux, closing, liveness, accepted });
        }
        let message = Message::read(&mut carrier).await?;
        Ok::<_, io::Error>((carrier, message, streams))
    };
    let logging_in = async {
        let begun = timeout(within, beginning).await;
        let (control, message, streams) = begun.map_err(|_| late("the client did not log in in time"))??;
        match message.kind {
            kind::LOGIN => {
                Connection::begin(caller.clone(), control, &message, streams, login).await.map(Some)
            }
            kind::NEW_WORK if streams.is_none() => {
                let new: NewWork = message.content()?;
                match caller.shared.without_mux.get(&new.run_id) {
                    Some(connections) => connections.add(control).await,
                    None => caller.disown(control).await,
                }
                Ok(None)
            }
            _ => Err(invalid("the first message is no login")),
        }
    };
    match caller.shared.close.run_until_cancelled(logging_in).await.transpose()?.flatten() {
        Some(connection) => connection.run().await,
        None => Ok(()),
    }
}

impl Connection {
    /// Answers the login.
    async fn begin(
        caller: Caller,
        mut control: Carrier,
        message: &Message,
        streams: Option<Streams>,
        login: OwnedSemaphorePermit,
    ) -> io::Result<Self> {
        let said: Login = message.content()?;
        let is_word = said.run_id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let error = if said.privilege_key != privilege_key(said.timestamp) {
            "token in login doesn't match token from configuration"
        } else if said.run_id.len() > MAX_RUN_ID || !is_word {
            "a run id has letters and digits alone, and not too many"
        } else if !said.version.starts_with("0.") {
            "this version of the protocol is not spoken here"
        } else {
            ""
        };
        if !error.is_empty() {
            caller.shared.refuse(Refusal::Protocol, "", caller.peer);
            let answer =
                LoginAnswer { version: VERSION.to_owned(), run_id: String::new(), error: error.to_owned() };
            Message::write(&mut control, kind::LOGIN_ANSWER, &answer).await?;
            // It reads why before the connection ends.
            drop(timeout(caller.shared.times.handshake, Message::read(&mut control)).await);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, error));
        }
        let mut run_id = said.run_id;
        if run_id.is_empty() {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(io::Error::other)?;
            run_id = hex::encode(bytes);
        }
        let answer =
            LoginAnswer { version: VERSION.to_owned(), run_id: run_id.clone(), error: String::new() };
        Message::write(&mut control, kind::LOGIN_ANSWER, &answer).await?;
        let pool = usize::try_from(said.pool_count).unwrap_or(0).min(POOL);
        Ok(Self { caller, streams, control: Encrypted::new(control), run_id, pool, login: Some(login) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use http::HeaderMap;
    use pipeline_core::{Service as _, ServiceContext, Shutdown};
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::server::LOGINS;
    use crate::{Anybody, Dial, Networks, ServerConfig, Times};

    async fn server() -> (SocketAddr, Shutdown) {
        let config = ServerConfig {
            address: "127.0.0.1:0".parse().unwrap(),
            domain: "tunnels.example.com".to_owned(),
            tls: None,
            trusted: Networks::default(),
            streams: 256,
            connections: 1_000,
            drain_delay: Duration::ZERO,
            grace: Duration::ZERO,
            times: Times::default(),
        };
        let server = config.build(Arc::new(Anybody), &prometheus::Registry::new()).await.unwrap();
        let (address, stop) = (server.address(), Shutdown::new());
        tokio::spawn(Box::new(server).serve(ServiceContext::alone(stop.clone())));
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
            let new = NewWork { run_id: run_id.clone(), proof: None };
            Message::write(&mut work, kind::NEW_WORK, &new).await.unwrap();
            // What is not taken is reset, which ends the wait; what is taken waits for a visitor.
            ended.push(tokio::spawn(async move { work.read_u8().await.is_err() }));
        }
        for work in ended.split_off(POOL) {
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
}
