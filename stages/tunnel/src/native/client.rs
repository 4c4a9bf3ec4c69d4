//! The client's side of the native protocol.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use pipeline_core::Shutdown;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use yamux::Mode;

use super::server::Closing;
use super::{ALLOW, CLIENT, GENERATION, Note, PATH, PROBE, REACHED, TUNNEL, UNREACHED, VISIT, WAIT};
use crate::client::{ClientError, Event, Forwarding, closed};
use crate::dial::DialError;
use crate::mux::{Mux, MuxStream};
use crate::or_never::or_never;
use crate::ws::{Frames, Side, WebSocket};

/// How many streams the server may have open: more than a server is set to use.
const MAX_STREAMS: usize = 2_048;

fn headers(to: &Forwarding, token: HeaderValue) -> Result<HeaderMap, ClientError> {
    let text = |text: &str| HeaderValue::from_str(text).map_err(|_| ClientError::Header);
    let name = HeaderName::from_static;
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, token);
    headers.insert(name(TUNNEL), text(to.name.as_str())?);
    headers.insert(name(CLIENT), text(&to.id)?);
    headers.insert(name(GENERATION), HeaderValue::from(to.generation));
    if !to.allowed.is_empty() {
        headers.insert(name(ALLOW), text(&to.allowed)?);
    }
    if to.standby {
        // Well within the time that an answer may take.
        let wait = u64::try_from((to.times.handshake / 2).as_millis()).unwrap_or(u64::MAX);
        headers.insert(name(WAIT), HeaderValue::from(wait));
    }
    Ok(headers)
}

/// Serves one connection until it ends: `Ok` when it was closed as agreed.
pub(crate) async fn run(
    to: Arc<Forwarding>,
    events: mpsc::Sender<Event>,
    stop: Shutdown,
) -> Result<(), ClientError> {
    let times = to.times;
    let token = to.token.header("Bearer ").await.map_err(ClientError::Token)?;
    let asking = to.dial.upgrade(PATH, headers(&to, token)?);
    let answer = tokio::select! {
        answer = asking => answer,
        // Who waits beside a newer life ends with the wait.
        () = stop.cancelled() => return Ok(()),
    };
    let socket = WebSocket::new(answer.map_err(not_open)?, Side::Client, Frames::Binary);
    let (mux, mut accepted) = Mux::start(socket, Mode::Client, MAX_STREAMS);
    let _closing = Closing(mux.clone());
    let control = mux.open().await.map_err(|_| ClientError::Closed)?;
    let (mut reading, mut writing) = tokio::io::split(control);
    let mut note = Note::Hello;
    let mut heard = Instant::now();
    let mut ping = Instant::now() + times.ping;
    let mut is_stopping = false;
    let mut until = None;
    loop {
        timeout(times.silence, note.write(&mut writing))
            .await
            .map_err(|_| ClientError::Silent)?
            .map_err(|_| ClientError::Closed)?;
        // Waits for what gives the next note to write.
        note = loop {
            tokio::select! {
                stream = accepted.recv() => {
                    let Some(stream) = stream else { return closed(is_stopping) };
                    tokio::spawn(serve(to.clone(), stream));
                }
                byte = reading.read_u8() => {
                    let Ok(byte) = byte else { return closed(is_stopping) };
                    heard = Instant::now();
                    let note = Note::of(byte);
                    // What is under way goes on; the server closes when it is done.
                    is_stopping |= note == Some(Note::Superseded);
                    hear(note, &events).await?;
                }
                () = sleep_until(ping) => {
                    ping = Instant::now() + times.ping;
                    break Note::Ping;
                }
                () = sleep_until(heard + times.silence) => return Err(ClientError::Silent),
                () = stop.cancelled(), if until.is_none() => {
                    is_stopping = true;
                    until = Some(Instant::now() + to.grace);
                    break Note::Drain;
                }
                () = or_never(until.map(sleep_until)) => return Ok(()),
                () = mux.closed() => return closed(is_stopping),
            }
        };
    }
}

/// Why the tunnel is not open after a server was asked for it.
fn not_open(error: DialError) -> ClientError {
    match error {
        DialError::Refused { status: StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST, .. } => {
            ClientError::Refused(error)
        }
        DialError::Refused { status: StatusCode::GONE, .. } => ClientError::Superseded,
        error => ClientError::Dial(error),
    }
}

/// Tells what the server says; an error ends the connection.
async fn hear(note: Option<Note>, events: &mpsc::Sender<Event>) -> Result<(), ClientError> {
    let event = match note {
        Some(Note::Serving) => Event::Serving,
        Some(Note::Drain) => Event::Leaving,
        Some(Note::Superseded) => Event::Superseded,
        Some(Note::Taken) => return Err(ClientError::Taken),
        Some(Note::Revoked) => return Err(ClientError::Revoked),
        // A later version may say more.
        _ => return Ok(()),
    };
    drop(events.send(event).await);
    Ok(())
}

/// Does what the server opened a stream for: leads a visitor to the service, or answers a probe.
async fn serve(to: Arc<Forwarding>, mut stream: MuxStream) {
    let Ok(Ok(what)) = timeout(to.times.handshake, stream.read_u8()).await else { return };
    // The server opens no more than some streams that it has no sign of, and the service may take its time.
    if stream.write(&[]).await.is_err() {
        return;
    }
    match what {
        VISIT => to.lead(stream).await,
        PROBE => {
            let is_reached = to.connect().await.is_ok();
            to.probed(is_reached);
            let answer = if is_reached { REACHED } else { UNREACHED };
            if stream.write_u8(answer).await.is_ok() {
                drop(stream.shutdown().await);
            }
        }
        // A later version may ask for more.
        _ => {}
    }
}
