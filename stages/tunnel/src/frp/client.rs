//! The client's side of the frp family, for a server that speaks nothing else.
//!
//! Nobody asks through the tunnel whether the service is reached: the client looks itself, from its own side alone.

use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue, header};
use pipeline_core::{ExposeSecret as _, Shutdown};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::TaskTracker;
use yamux::Mode;

use super::cipher::Encrypted;
use super::heard::Hearing;
use super::messages::{
    Bare, CloseProxy, Login, LoginAnswer, Message, NewProxy, NewProxyAnswer, NewWork, StartWork, kind,
};
use super::packing::Packing;
use super::{PATH, VERSION, privilege_key};
use crate::client::{ClientError, Event, Forwarding};
use crate::metrics::Visit;
use crate::mux::Mux;
use crate::native::server::Closing;
use crate::relay::relay;
use crate::ws::{Frames, Side, WebSocket};

/// Streams of a connection at most: work connections.
const STREAMS: usize = 2_048;
/// How often it says that it is there.
const PING: Duration = Duration::from_secs(30);
/// A server that says nothing for so long is gone. One whose multiplexer answers pings is known to be gone earlier.
const SILENCE: Duration = Duration::from_secs(90);

/// One connection, until it ends: `Ok` when it was closed as agreed.
pub(crate) async fn run(
    to: Arc<Forwarding>,
    packing: Packing,
    events: mpsc::Sender<Event>,
    stop: Shutdown,
) -> Result<(), ClientError> {
    let times = to.times;
    let token = to.token.read().await.map_err(ClientError::Token)?;
    let origin = HeaderValue::from_str(&to.dial.origin()).map_err(|_| ClientError::Header)?;
    let headers = HeaderMap::from_iter([(header::ORIGIN, origin)]);
    let io = to.dial.upgrade(PATH, headers).await.map_err(ClientError::Dial)?;
    let (socket, heard) = Hearing::new(WebSocket::new(io, Side::Client, Frames::Text));
    let (mux, _) = Mux::start(socket, Mode::Client, STREAMS);
    let _closing = Closing(mux.clone());
    let logging_in = async {
        let mut control = mux.open().await.map_err(io::Error::other)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let timestamp = i64::try_from(now).unwrap_or_default();
        let login = Login {
            version: VERSION.to_owned(),
            privilege_key: privilege_key(timestamp),
            timestamp,
            run_id: to.run_id.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            pool_count: 1,
        };
        Message::write(&mut control, kind::LOGIN, &login).await?;
        let answer: LoginAnswer = Message::read(&mut control).await?.content()?;
        Ok::<_, io::Error>((control, answer))
    };
    let (control, answer) = timeout(times.handshake, logging_in)
        .await
        .map_err(|_| ClientError::Silent)?
        .map_err(|_| ClientError::Closed)?;
    if !answer.error.is_empty() {
        return Err(ClientError::Login(answer.error));
    }
    to.run_id.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&answer.run_id);
    let (mut reading, mut writing) = tokio::io::split(Encrypted::new(control));
    let (tell, mut told) = mpsc::channel(4);
    let (mut tasks, visits) = (JoinSet::new(), TaskTracker::new());
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
    let proxy = NewProxy::of(to.name.as_str(), token.expose_secret(), &to.allowed, packing);
    let mut bytes = Message::bytes(kind::NEW_PROXY, &proxy).map_err(|_| ClientError::Header)?;
    let (mut spoke, mut ping, mut look) = (Instant::now(), Instant::now() + PING, Instant::now());
    let mut until = None;
    loop {
        let written = async {
            writing.write_all(&bytes).await?;
            writing.flush().await
        };
        timeout(times.handshake, written)
            .await
            .map_err(|_| ClientError::Silent)?
            .map_err(|_| ClientError::Closed)?;
        // What is said next.
        bytes = loop {
            tokio::select! {
                message = told.recv() => {
                    let Some(Ok(message)) = message else { return closed(until.is_some()) };
                    spoke = Instant::now();
                    match message.kind {
                        kind::NEW_PROXY_ANSWER => {
                            let answer: NewProxyAnswer = message.content().map_err(|_| ClientError::Closed)?;
                            if !answer.error.is_empty() {
                                return Err(ClientError::Proxy(answer.error));
                            }
                            drop(events.send(Event::Serving).await);
                        }
                        kind::WANT_WORK => {
                            let (mux, run_id) = (mux.clone(), answer.run_id.clone());
                            tasks.spawn(work(to.clone(), mux, run_id, packing, visits.clone()));
                        }
                        // A pong, or what a later version may say.
                        _ => {}
                    }
                }
                Some(_) = tasks.join_next() => {}
                () = sleep_until(look) => {
                    look = Instant::now() + times.ping;
                    mux.ping();
                    let to = to.clone();
                    tasks.spawn(async move { to.probed(to.connect().await.is_ok()) });
                }
                () = sleep_until(ping) => {
                    ping = Instant::now() + PING;
                    break Message::bytes(kind::PING, &Bare {}).map_err(|_| ClientError::Closed)?;
                }
                () = heard.is_gone(times.silence) => return Err(ClientError::Silent),
                () = sleep_until(spoke + SILENCE) => return Err(ClientError::Silent),
                () = stop.cancelled(), if until.is_none() => {
                    until = Some(Instant::now() + to.grace);
                    visits.close();
                    let close = CloseProxy { proxy_name: to.name.to_string() };
                    break Message::bytes(kind::CLOSE_PROXY, &close).map_err(|_| ClientError::Closed)?;
                }
                () = visits.wait(), if until.is_some() => return Ok(()),
                () = sleep_until(until.unwrap_or(spoke)), if until.is_some() => return Ok(()),
                () = mux.closed() => return closed(until.is_some()),
            }
        };
    }
}

fn closed(is_agreed: bool) -> Result<(), ClientError> {
    if is_agreed { Ok(()) } else { Err(ClientError::Closed) }
}

/// A work connection: it waits for a visitor, and leads them to the service.
async fn work(to: Arc<Forwarding>, mux: Mux, run_id: String, packing: Packing, visits: TaskTracker) {
    let Ok(mut stream) = mux.open().await else { return };
    if Message::write(&mut stream, kind::NEW_WORK, &NewWork { run_id }).await.is_err() {
        return;
    }
    let Ok(message) = Message::read(&mut stream).await else { return };
    let _visit = visits.token();
    let start: Option<StartWork> =
        (message.kind == kind::START_WORK).then(|| message.content().ok()).flatten();
    match start {
        Some(start) if start.error.is_empty() => {}
        _ => return,
    }
    match to.connect().await {
        Ok(mut service) => {
            to.metrics.visited(Visit::Led);
            if let Err(error) = relay(&mut packing.unpacked(stream), &mut service).await {
                tracing::debug!(%error, "a visitor's connection was cut off");
            }
        }
        Err(error) => {
            to.metrics.visited(Visit::Unreachable);
            tracing::warn!(%error, "the service cannot be reached");
        }
    }
}
