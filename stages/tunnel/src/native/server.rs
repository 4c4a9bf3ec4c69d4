//! The server's side of the native protocol.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use pipeline_core::SecretString;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use yamux::Mode;

use super::{ALLOW, CLIENT, GENERATION, Note, PROBE, REACHED, TUNNEL, VISIT, WAIT};
use crate::io_errors::{invalid, late};
use crate::metrics::Refusal;
use crate::mux::{Mux, MuxStream, OpenError, is_end};
use crate::or_never::or_never;
use crate::proxy::{say, switched};
use crate::registry::Conflict;
use crate::server::Shared;
use crate::session::{Body, Io, Lead, LeadError, Owner, Session};
use crate::visitors::Networks;
use crate::ws::{Frames, Side, WebSocket, accept_of};
use crate::{Name, Verdict};

/// How many bytes the name may have that a client gives itself.
const MAX_CLIENT: usize = 128;
/// How often a newer life whose service is not there yet checks again whether it may take over.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);

/// What a client says in the headers of its upgrade: who it is, and which tunnel it asks for.
struct Hello {
    name: Name,
    owner: Owner,
    token: SecretString,
    allowed: Networks,
    /// How long it waits beside a newer life of it.
    waits: Duration,
}

/// The answer to an upgrade that lacks something.
fn malformed(what: &'static str) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, what.to_owned())
}

fn hello(headers: &HeaderMap) -> Result<Hello, (StatusCode, String)> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_websocket = text("upgrade").is_some_and(|kind| kind.eq_ignore_ascii_case("websocket"));
    if !is_websocket || text("sec-websocket-version") != Some("13") {
        return Err(malformed("a client of a tunnel upgrades to a WebSocket here"));
    }
    let name = text(TUNNEL).ok_or_else(|| malformed("the header tunnel-name is missing"))?;
    let name = Name::read(name).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let token = text("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let client = text(CLIENT).filter(|client| (1..=MAX_CLIENT).contains(&client.len()));
    let client = client.ok_or_else(|| malformed("the header tunnel-client is missing"))?.to_owned();
    let generation = text(GENERATION).and_then(|number| number.parse().ok());
    let generation = generation.ok_or_else(|| malformed("the header tunnel-generation is no number"))?;
    let allowed = Networks::read(text(ALLOW).unwrap_or_default())
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("tunnel-allow: {error}")))?;
    let waits = text(WAIT).map_or(Ok(0), str::parse);
    let waits = waits.map_err(|_| malformed("the header tunnel-wait is no number"))?;
    let waits = Duration::from_millis(waits);
    Ok(Hello { name, owner: Owner { client, generation }, token: token.into(), allowed, waits })
}

/// Answers the upgrade of a client; one that may not have the tunnel is told why.
pub(crate) async fn upgrade(
    shared: Arc<Shared>,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let key =
        request.headers().get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok()).map(accept_of);
    let (hello, accept) = match (hello(request.headers()), key) {
        (Ok(hello), Some(accept)) => (hello, accept),
        (Err((status, why)), _) => {
            shared.refuse(Refusal::Name, "", peer);
            return say(status, format!("{why}\n"));
        }
        (_, None) => return say(StatusCode::BAD_REQUEST, "the header sec-websocket-key is missing\n"),
    };
    let name = hello.name.as_str();
    match shared.credentials.check(&hello.name, &hello.token).await {
        Verdict::Opens => {}
        Verdict::Refused => {
            shared.refuse(Refusal::Credential, name, peer);
            return say(StatusCode::UNAUTHORIZED, format!("this token does not open {name}\n"));
        }
        Verdict::Unknown => {
            shared.refuse(Refusal::Credential, name, peer);
            return say(StatusCode::SERVICE_UNAVAILABLE, "the token cannot be checked now\n");
        }
    }
    if let Err(conflict) = may(&shared, &hello).await {
        // Whoever waits knows of its newer life, and asks again.
        if conflict != Conflict::Superseded || hello.waits.is_zero() {
            refuse(&shared, conflict, name, peer);
        }
        let status = match conflict {
            Conflict::Superseded => StatusCode::GONE,
            Conflict::Taken | Conflict::Many => StatusCode::CONFLICT,
        };
        return say(status, format!("{conflict}\n"));
    }
    if shared.leaving.is_cancelled() {
        return say(StatusCode::SERVICE_UNAVAILABLE, "this server is stopping\n");
    }
    let upgraded = hyper::upgrade::on(&mut request);
    let task = shared.clone();
    shared.tunnels.spawn(async move {
        let name = hello.name.clone();
        let Some(Ok(io)) = task.close.clone().run_until_cancelled_owned(upgraded).await else { return };
        match serve(&task, hello, TokioIo::new(io), peer).await {
            Ok(()) => {
                tracing::info!(tunnel = %name, peer = %peer.ip(), "a connection of a tunnel was closed");
            }
            Err(error) => {
                tracing::warn!(tunnel = %name, peer = %peer.ip(), %error, "a connection of a tunnel broke");
            }
        }
    });
    switched(&accept)
}

/// Whether the client may have the tunnel; one that waits is told so when the newer life of it is gone, or its time is up.
async fn may(shared: &Shared, hello: &Hello) -> Result<(), Conflict> {
    let mut changes = shared.registry.changes();
    let over = sleep(hello.waits.min(shared.times.handshake));
    tokio::pin!(over);
    loop {
        let verdict = shared.registry.may(&hello.name, &hello.owner);
        if verdict != Err(Conflict::Superseded) {
            return verdict;
        }
        tokio::select! {
            Ok(()) = changes.changed() => {}
            // Whoever stops says so.
            () = shared.leaving.cancelled() => return Ok(()),
            () = &mut over => return verdict,
        }
    }
}

pub(crate) fn refuse(shared: &Shared, conflict: Conflict, name: &str, peer: SocketAddr) {
    let why = match conflict {
        Conflict::Taken | Conflict::Many => Refusal::Taken,
        Conflict::Superseded => Refusal::Superseded,
    };
    shared.refuse(why, name, peer);
}

impl From<Conflict> for Note {
    fn from(conflict: Conflict) -> Self {
        match conflict {
            Conflict::Superseded => Self::Superseded,
            Conflict::Taken | Conflict::Many => Self::Taken,
        }
    }
}

/// Leads visitors over streams that the server opens.
struct Visits {
    mux: Mux,
    lost: mpsc::Sender<Conflict>,
    within: Duration,
}

impl fmt::Debug for Visits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Visits")
    }
}

#[async_trait]
impl Lead for Visits {
    async fn lead(&self, _: SocketAddr) -> Result<Box<dyn Io>, LeadError> {
        let opening = async {
            let mut stream = self.mux.open().await.map_err(|error| match error {
                OpenError::Full => LeadError::Full,
                OpenError::Closed => LeadError::Gone,
            })?;
            stream.write_all(&[VISIT]).await.map_err(|_| LeadError::Gone)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        };
        timeout(self.within, opening).await.unwrap_or(Err(LeadError::Late))
    }

    fn lose(&self, to: Conflict) {
        // A client that takes no note learns it when it connects again.
        let _ = self.lost.try_send(to);
    }
}

/// Asks through the tunnel whether the service can be reached. `None` when the client has as many streams that it did not
/// acknowledge as may be: what cannot be asked now is no sign that nobody is there.
async fn probe(mux: &Mux, within: Duration) -> io::Result<Option<bool>> {
    let Ok(opened) = timeout(within, mux.open_own()).await else { return Ok(None) };
    let mut stream = opened.map_err(io::Error::other)?;
    let asking = async {
        stream.write_all(&[PROBE]).await?;
        stream.flush().await?;
        Ok(Some(stream.read_u8().await? == REACHED))
    };
    timeout(within, asking).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

/// Serves one connection of a client until it ends.
async fn serve<S>(shared: &Arc<Shared>, hello: Hello, io: S, peer: SocketAddr) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let within = shared.times.handshake;
    let socket = WebSocket::new(io, Side::Server, Frames::Binary);
    let (mux, mut accepted) = Mux::start(socket, Mode::Server, shared.streams);
    // However this ends, the connection does.
    let _closing = Closing(mux.clone());
    let greeting = timeout(within, greeted(&mut accepted));
    let Some(greeting) = shared.close.run_until_cancelled(greeting).await else { return Ok(()) };
    let control = greeting.map_err(|_| io::ErrorKind::TimedOut)??;
    // All other streams are the server's: what else a client opens is refused, and takes no room here.
    drop(accepted);
    let (lose, lost) = mpsc::channel(4);
    let visits = Visits { mux: mux.clone(), lost: lose, within };
    let session =
        Session::new(shared.registry.number(), hello.owner.clone(), Box::new(visits), hello.allowed.clone());
    let session = Arc::new(session);
    let connection = Connection { shared, hello: &hello, peer, mux: &mux, session: &session };
    let ended = connection.run(control, lost).await;
    shared.registry.remove(&hello.name, &session);
    shared.metrics.tunnels.set(shared.registry.connected() as i64);
    ended
}

/// The client's first stream, which is for control, once its greeting has come.
async fn greeted(accepted: &mut mpsc::Receiver<MuxStream>) -> io::Result<MuxStream> {
    let mut control = accepted.recv().await.ok_or(io::ErrorKind::UnexpectedEof)?;
    match Note::of(control.read_u8().await?) {
        Some(Note::Hello) => Ok(control),
        _ => Err(invalid("the first note is no greeting")),
    }
}

/// A connection whose client has said who it is.
struct Connection<'a> {
    shared: &'a Shared,
    hello: &'a Hello,
    peer: SocketAddr,
    mux: &'a Mux,
    session: &'a Arc<Session>,
}

impl Connection<'_> {
    /// Serves it until it ends. What comes of `lost` is to whom the client has lost the tunnel.
    async fn run(&self, control: MuxStream, mut lost: mpsc::Receiver<Conflict>) -> io::Result<()> {
        let (shared, times) = (self.shared, self.shared.times);
        let (mut reading, mut writing) = tokio::io::split(control);
        let (reached, probing) = (self.reached(), self.keep_probing());
        let revoked = shared.revoked(&self.hello.name, &self.hello.token);
        tokio::pin!(reached, probing, revoked);
        let (mut is_serving, mut is_leaving) = (false, false);
        let (mut overdue, mut heard) = (None, Instant::now());
        loop {
            let note = tokio::select! {
                reached = &mut reached, if !is_serving => {
                    reached?;
                    is_serving = true;
                    self.join()
                }
                byte = reading.read_u8() => {
                    let note = match byte {
                        Err(error) if is_end(&error) => return Ok(()),
                        byte => Note::of(byte?),
                    };
                    heard = Instant::now();
                    match note {
                        Some(Note::Ping) => Note::Pong,
                        Some(Note::Drain) => {
                            is_serving = true;
                            shared.registry.drain(self.session);
                            continue;
                        }
                        // A later version may say more.
                        _ => continue,
                    }
                }
                () = sleep_until(heard + times.silence) => return Err(late("the client was not heard any more")),
                Some(conflict) = lost.recv() => {
                    overdue = Some(Instant::now() + times.drain);
                    self.given_up(conflict)
                }
                error = &mut probing => return Err(error),
                () = &mut revoked => {
                    shared.refuse(Refusal::Revoked, self.hello.name.as_str(), self.peer);
                    drop(self.tell(&mut writing, Note::Revoked).await);
                    return Ok(());
                }
                () = shared.leaving.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    Note::Drain
                }
                () = shared.close.cancelled() => return Ok(()),
                () = self.session.drained() => {
                    let Ok(conflict) = lost.try_recv() else { return Ok(()) };
                    overdue = Some(Instant::now());
                    self.given_up(conflict)
                }
                () = or_never(overdue.map(sleep_until)) => return Ok(()),
                () = self.mux.closed() => return Ok(()),
            };
            let Some(told) = self.tell(&mut writing, note).await else { return Ok(()) };
            told?;
        }
    }

    /// Ends when visitors may be led through: once the service was reached through this connection, or when there is no other anyway.
    async fn reached(&self) -> io::Result<()> {
        loop {
            let is_reached = probe(self.mux, self.shared.times.handshake).await?;
            if is_reached == Some(true) || self.shared.registry.is_free(&self.hello.name) {
                return Ok(());
            }
            sleep(RECHECK_INTERVAL).await;
        }
    }

    /// Probes the service now and then, until that fails.
    async fn keep_probing(&self) -> io::Error {
        loop {
            sleep(self.shared.times.ping).await;
            match probe(self.mux, self.shared.times.silence).await {
                Ok(Some(true)) => {}
                Ok(Some(false)) => {
                    tracing::warn!(tunnel = %self.hello.name, "the service behind the tunnel cannot be reached");
                }
                Ok(None) => {
                    tracing::warn!(tunnel = %self.hello.name, "a client of a tunnel does not take what it is asked");
                }
                Err(error) => return error,
            }
        }
    }

    /// Leads visitors through from now on, unless somebody else has got the tunnel meanwhile; gives the note that says which.
    fn join(&self) -> Note {
        let (shared, name) = (self.shared, &self.hello.name);
        match shared.registry.add(name, self.session.clone()) {
            Ok(()) => {
                shared.metrics.tunnels.set(shared.registry.connected() as i64);
                tracing::info!(tunnel = %name, peer = %self.peer.ip(), "a tunnel is served");
                Note::Serving
            }
            Err(conflict) => {
                refuse(shared, conflict, name.as_str(), self.peer);
                self.session.drain();
                conflict.into()
            }
        }
    }

    /// The note to a client that has lost its tunnel. That another client has the tunnel is logged as well.
    fn given_up(&self, conflict: Conflict) -> Note {
        if conflict == Conflict::Taken {
            refuse(self.shared, conflict, self.hello.name.as_str(), self.peer);
        }
        conflict.into()
    }

    /// Sends a note, which is one byte of a window that a client which reads never fills; `None` when tunnels are to be closed.
    async fn tell(&self, to: &mut WriteHalf<MuxStream>, note: Note) -> Option<io::Result<()>> {
        let written = timeout(self.shared.times.handshake, note.write(to));
        let written = self.shared.close.run_until_cancelled(written).await?;
        Some(written.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())))
    }
}

/// Closes a connection when it is dropped.
pub(crate) struct Closing(pub(crate) Mux);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    /// A client that acknowledges no stream and answers nothing: what it was asked comes out.
    fn silent_client(streams: usize) -> (Mux, mpsc::Receiver<MuxStream>) {
        let (near, far) = duplex(1 << 10);
        let (mux, _) = Mux::start(near, Mode::Server, streams);
        (mux, Mux::start(far, Mode::Client, streams).1)
    }

    async fn visit(mux: &Mux) -> MuxStream {
        let mut stream = mux.open().await.unwrap();
        stream.write_all(&[VISIT]).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn a_probe_that_cannot_be_opened_among_so_many_visits_is_no_sign_of_death() {
        let (mux, _client) = silent_client(300);
        let mut visits = Vec::new();
        // As many as may be without a sign that any was taken.
        for _ in 0..256 {
            visits.push(visit(&mux).await);
        }
        assert_eq!(probe(&mux, Duration::from_millis(50)).await.unwrap(), None);
        // Once there is room it is: nobody answers it.
        drop(visits);
        let probed = loop {
            match probe(&mux, Duration::from_millis(50)).await {
                Ok(None) => {}
                probed => break probed,
            }
        };
        assert!(probed.is_err());
    }

    #[tokio::test]
    async fn a_probe_has_a_place_when_visits_have_all_of_theirs() {
        let (mux, mut client) = silent_client(1);
        let _visit = visit(&mux).await;
        tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Some(mut stream) = client.recv().await {
                if stream.read_u8().await.unwrap() == PROBE {
                    stream.write_u8(REACHED).await.unwrap();
                }
                kept.push(stream);
            }
        });
        assert_eq!(probe(&mux, Duration::from_secs(20)).await.unwrap(), Some(true));
        assert_eq!(mux.open().await.unwrap_err(), OpenError::Full);
    }
}
