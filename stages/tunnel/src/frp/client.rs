//! The client's side of the frp family, for a server that speaks nothing else.
//!
//! Nobody probes the service through the tunnel: the client checks it itself, from its own side alone.

use std::io;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use pipeline_core::{ExposeSecret as _, Shutdown};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::TaskTracker;
use yamux::Mode;

use super::carrier::Carrier;
use super::cipher::Encrypted;
use super::liveness::{Liveness, watched};
use super::messages::{
    CloseProxy, Login, LoginAnswer, Message, NewProxy, NewProxyAnswer, NewWork, Pong, Proof, StartWork, kind,
};
use super::packing::Packing;
use super::{PATH, SILENCE, VERSION};
use crate::client::{ClientError, Event, Forwarding, closed};
use crate::mux::Mux;
use crate::native::server::Closing;
use crate::or_never::or_never;
use crate::ws::{Frames, Side, WebSocket};

/// How many streams a connection may have, each of them a work connection.
const MAX_STREAMS: usize = 2_048;

/// How control and work connections are carried.
#[derive(Clone)]
enum Transport {
    /// Each is a stream.
    Streams(Mux, Arc<Liveness>),
    /// Each is a connection.
    Connections,
}

impl Transport {
    /// By way of `io`, if it is to carry everything.
    fn over(io: TokioIo<Upgraded>, is_without_mux: bool) -> (Self, Option<Carrier>) {
        let socket = WebSocket::new(io, Side::Client, Frames::Text);
        if is_without_mux {
            return (Self::Connections, Some(Carrier::new(socket)));
        }
        let (socket, liveness) = watched(socket);
        (Self::Streams(Mux::start(socket, Mode::Client, MAX_STREAMS).0, liveness), None)
    }

    fn mux(&self) -> Option<&Mux> {
        match self {
            Self::Streams(mux, _) => Some(mux),
            Self::Connections => None,
        }
    }

    fn liveness(&self) -> Option<&Liveness> {
        match self {
            Self::Streams(_, liveness) => Some(liveness),
            Self::Connections => None,
        }
    }

    /// Carries another.
    async fn open(&self, to: &Forwarding) -> Result<Carrier, ClientError> {
        match self {
            Self::Streams(mux, _) => mux.open().await.map(Carrier::new).map_err(|_| ClientError::Closed),
            Self::Connections => {
                let socket = WebSocket::new(upgraded(to).await?, Side::Client, Frames::Text);
                Ok(Carrier::new(socket))
            }
        }
    }
}

async fn upgraded(to: &Forwarding) -> Result<TokioIo<Upgraded>, ClientError> {
    let origin = HeaderValue::from_str(&to.dial.origin()).map_err(|_| ClientError::Header)?;
    let headers = HeaderMap::from_iter([(header::ORIGIN, origin)]);
    to.dial.upgrade(PATH, headers).await.map_err(ClientError::Dial)
}

/// Serves one connection until it ends: `Ok` when it was closed as agreed.
pub(crate) async fn run(
    to: Arc<Forwarding>,
    packing: Packing,
    events: mpsc::Sender<Event>,
    stop: Shutdown,
) -> Result<(), ClientError> {
    let token = to.token.read().await.map_err(ClientError::Token)?;
    let (transport, control) = Transport::over(upgraded(&to).await?, to.server_profile.is_without_mux());
    let _closing = transport.mux().cloned().map(Closing);
    let (control, run_id) = log_in(&to, &transport, control).await?;
    let proxy = NewProxy::of(to.name.as_str(), token.expose_secret(), &to.allowed, packing);
    let first = Message::bytes(kind::NEW_PROXY, &proxy).map_err(|_| ClientError::Header)?;
    let (tasks, visits) = (JoinSet::new(), TaskTracker::new());
    let connection = Connection { to, packing, events, transport, run_id, tasks, visits };
    connection.serve(Encrypted::new(control), first, stop).await
}

/// Logs in over a control connection, and gives it with the run id of the client.
async fn log_in(
    to: &Forwarding,
    transport: &Transport,
    control: Option<Carrier>,
) -> Result<(Carrier, String), ClientError> {
    let logging_in = async {
        let mut control = match control {
            Some(control) => control,
            None => transport.open(to).await.map_err(io::Error::other)?,
        };
        let Proof { privilege_key, timestamp } = Proof::now();
        let run_id = to.server_profile.run_id();
        let login = Login { version: VERSION.to_owned(), privilege_key, timestamp, run_id, pool_count: 1 };
        Message::write(&mut control, kind::LOGIN, &login).await?;
        let answer: LoginAnswer = Message::read(&mut control).await?.content()?;
        Ok::<_, io::Error>((control, answer))
    };
    let logged_in = timeout(to.times.handshake, logging_in).await.map_err(|_| ClientError::Silent)?;
    let (control, answer) = logged_in.map_err(|_| {
        to.server_profile.switch_mux();
        ClientError::Closed
    })?;
    granted(answer.error, ClientError::Login)?;
    to.server_profile.keep_run_id(&answer.run_id);
    Ok((control, answer.run_id))
}

/// A connection that has logged in.
struct Connection {
    to: Arc<Forwarding>,
    packing: Packing,
    events: mpsc::Sender<Event>,
    transport: Transport,
    run_id: String,
    tasks: JoinSet<()>,
    /// Visitors that are led to the service.
    visits: TaskTracker,
}

impl Connection {
    /// Sends the message `first`, and serves the connection until it ends.
    async fn serve(
        mut self,
        control: Encrypted<Carrier>,
        first: Vec<u8>,
        stop: Shutdown,
    ) -> Result<(), ClientError> {
        let times = self.to.times;
        let (reading, mut writing) = tokio::io::split(control);
        let (tell, mut told) = mpsc::channel(4);
        self.tasks.spawn(Message::tell_all(reading, tell));
        // Every thirty seconds, as the family does.
        let often = times.ping * 3 / 2;
        let (mut spoke, mut ping, mut look) = (Instant::now(), Instant::now() + often, Instant::now());
        let (mut bytes, mut until) = (first, None);
        loop {
            let written = async {
                writing.write_all(&bytes).await?;
                writing.flush().await
            };
            let written = timeout(times.handshake, written).await.map_err(|_| ClientError::Silent)?;
            written.map_err(|_| ClientError::Closed)?;
            // What is said next.
            bytes = loop {
                tokio::select! {
                    message = told.recv() => {
                        let Some(Ok(message)) = message else { return closed(until.is_some()) };
                        spoke = Instant::now();
                        self.hear(&message).await?;
                    }
                    Some(_) = self.tasks.join_next() => {}
                    () = sleep_until(look) => {
                        look = Instant::now() + times.ping;
                        self.transport.mux().into_iter().for_each(Mux::ping);
                        let to = self.to.clone();
                        self.tasks.spawn(async move { to.probed(to.connect().await.is_ok()) });
                    }
                    () = sleep_until(ping) => {
                        ping = Instant::now() + often;
                        break Message::bytes(kind::PING, &Proof::now()).map_err(|_| ClientError::Closed)?;
                    }
                    () = or_never(self.transport.liveness().map(|known| known.lost_after(times.silence))) => {
                        return Err(ClientError::Silent);
                    }
                    () = sleep_until(spoke + SILENCE) => return Err(ClientError::Silent),
                    () = stop.cancelled(), if until.is_none() => {
                        until = Some(Instant::now() + self.to.grace);
                        self.visits.close();
                        let close = CloseProxy { proxy_name: self.to.name.to_string() };
                        break Message::bytes(kind::CLOSE_PROXY, &close).map_err(|_| ClientError::Closed)?;
                    }
                    () = self.visits.wait(), if until.is_some() => return Ok(()),
                    () = or_never(until.map(sleep_until)) => return Ok(()),
                    () = or_never(self.transport.mux().map(Mux::closed)) => return closed(until.is_some()),
                }
            };
        }
    }

    /// Does what the server says.
    async fn hear(&mut self, message: &Message) -> Result<(), ClientError> {
        match message.kind {
            kind::NEW_PROXY_ANSWER => {
                let answer: NewProxyAnswer = message.content().map_err(|_| ClientError::Closed)?;
                granted(answer.error, ClientError::Proxy)?;
                drop(self.events.send(Event::Serving).await);
            }
            kind::WANT_WORK if self.tasks.len() < MAX_STREAMS => {
                let (transport, run_id) = (self.transport.clone(), self.run_id.clone());
                self.tasks.spawn(work(self.to.clone(), transport, run_id, self.packing, self.visits.clone()));
            }
            kind::PONG => {
                let pong: Pong = message.content().map_err(|_| ClientError::Closed)?;
                granted(pong.error, ClientError::Ping)?;
            }
            // What a later version may say.
            _ => {}
        }
        Ok(())
    }
}

/// Fails when an answer of the server names an error.
fn granted(error: String, refusal: fn(String) -> ClientError) -> Result<(), ClientError> {
    if error.is_empty() { Ok(()) } else { Err(refusal(error)) }
}

/// Opens a work connection, and waits until the server gives it to a visitor.
async fn started(to: &Forwarding, transport: &Transport, run_id: &str) -> Option<Carrier> {
    loop {
        let proof = to.server_profile.wants_proof().then(Proof::now);
        let has_proven = proof.is_some();
        let mut carrier = transport.open(to).await.ok()?;
        let new = NewWork { run_id: run_id.to_owned(), proof };
        Message::write(&mut carrier, kind::NEW_WORK, &new).await.ok()?;
        let message = Message::read(&mut carrier).await.ok()?;
        let start: StartWork =
            (message.kind == kind::START_WORK).then(|| message.content().ok()).flatten()?;
        if start.error.is_empty() {
            return Some(carrier);
        }
        tracing::warn!(error = start.error, "the server refused a work connection");
        if has_proven {
            return None;
        }
        to.server_profile.refused_without_proof();
    }
}

/// Serves a work connection: waits for a visitor, and leads them to the service.
async fn work(
    to: Arc<Forwarding>,
    transport: Transport,
    run_id: String,
    packing: Packing,
    visits: TaskTracker,
) {
    let Some(carrier) = started(&to, &transport, &run_id).await else { return };
    let _visit = visits.token();
    to.lead(packing.unpacked(carrier)).await;
}
