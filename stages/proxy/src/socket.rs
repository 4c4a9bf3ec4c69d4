//! GraphQL over a WebSocket, in both protocols that clients speak: `graphql-transport-ws`, and the one that was before it,
//! `graphql-ws`. Who asks is known before anything is; each operation passes the desk as one that came over a POST does.
//!
//! takes: an upgraded connection, and the token of its head or of the message `connection_init` - gives: answers as they come -
//! calls: the platform, about the token - fails: with a close code of the protocol; a client that reads or says nothing is left

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use async_graphql::{Request, Response};
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::IntoResponse as _;
use futures::stream::{AbortHandle, SelectAll, abortable, once};
use futures::{SinkExt as _, Stream, StreamExt as _};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use pipeline_core::{SecretString, Shutdown};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, interval_at, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use crate::desk::{Caller, Desk};
use crate::routes::given;
use crate::schema::Schema;

/// Whoever opened one says so soon who they are.
const INTRODUCED: Duration = Duration::from_secs(10);
/// How often something is said, so that nobody between takes it for dead.
const BEAT: Duration = Duration::from_secs(15);
/// Who says nothing for so long, not even that it lives, is gone; and so is who takes nothing.
const GONE: Duration = Duration::from_secs(60);
/// One ends after so long, and may be opened again.
const LONGEST: Duration = Duration::from_secs(3 * 3_600);
/// How long the other side's goodbye is waited for.
const GOODBYE: Duration = Duration::from_secs(2);
/// Operations of a socket that are under way at a time.
const OPERATIONS: usize = 32;
/// Bytes of a goodbye's reason.
const REASON: usize = 120;

type Socket = WebSocketStream<TokioIo<Upgraded>>;
type Told = Pin<Box<dyn Stream<Item = (String, Option<Response>)> + Send>>;

/// How messages are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// `graphql-transport-ws`.
    Transport,
    /// `graphql-ws`, as `subscriptions-transport-ws` has it.
    Former,
}

/// Whoever wants a socket, as far as its head says.
#[derive(Debug)]
pub(crate) struct Wanted {
    protocol: Protocol,
    accept: HeaderValue,
}

/// What clients say.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Said {
    ConnectionInit {
        #[serde(default)]
        payload: Value,
    },
    Ping,
    Pong,
    #[serde(alias = "start")]
    Subscribe {
        id: String,
        payload: Box<Request>,
    },
    #[serde(alias = "stop")]
    Complete {
        id: String,
    },
    ConnectionTerminate,
}

/// How one ends: a code, and why.
type Ended = (u16, String);

impl Protocol {
    const fn name(self) -> &'static str {
        match self {
            Self::Transport => "graphql-transport-ws",
            Self::Former => "graphql-ws",
        }
    }

    const fn next(self) -> &'static str {
        match self {
            Self::Transport => "next",
            Self::Former => "data",
        }
    }

    /// Says of an operation that it was not begun.
    fn refused(self, id: &str, message: &str, code: &str) -> Value {
        let error = json!({"message": message, "extensions": {"code": code}});
        let payload = if self == Self::Transport { json!([error]) } else { error };
        json!({"id": id, "type": "error", "payload": payload})
    }
}

impl Wanted {
    /// Reads the head of whoever wants one; `None`: no socket is wanted.
    ///
    /// # Errors
    /// Why it can be none.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Result<Self, &'static str>> {
        let wants = headers.get(UPGRADE).and_then(|name| name.to_str().ok());
        wants.filter(|name| name.eq_ignore_ascii_case("websocket"))?;
        let key = headers.get(SEC_WEBSOCKET_KEY);
        let is_spoken = headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
        let names = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|names| names.to_str().ok());
        let mut names = names.flat_map(|names| names.split(',')).map(str::trim);
        let protocol = names.find_map(|name| {
            let all = [Protocol::Transport, Protocol::Former];
            all.into_iter().find(|protocol| protocol.name() == name)
        });
        Some(match (key.filter(|_| is_spoken), protocol) {
            (None, _) => Err("this is no WebSocket of version 13"),
            (Some(_), None) => Err("the protocols here are graphql-transport-ws and graphql-ws"),
            (Some(key), Some(protocol)) => HeaderValue::from_str(&derive_accept_key(key.as_bytes()))
                .map(|accept| Self { protocol, accept })
                .map_err(|_| "this is no WebSocket of version 13"),
        })
    }

    /// What it is answered.
    pub(crate) fn answer(&self) -> axum::response::Response {
        let headers = [
            (CONNECTION, HeaderValue::from_static("upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(self.protocol.name())),
            (SEC_WEBSOCKET_ACCEPT, self.accept.clone()),
        ];
        (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
    }
}

/// The token of the message that introduces somebody: as a header is called, or among `headers`.
fn token(payload: &Value) -> Option<SecretString> {
    let is_one =
        |name: &str| ["authorization", "x-access-token"].iter().any(|one| name.eq_ignore_ascii_case(one));
    let within = |all: &Value| {
        let mut all = all.as_object()?.iter();
        all.find_map(|(name, value)| given(value.as_str().filter(|_| is_one(name))?))
    };
    within(payload).or_else(|| within(payload.get("headers")?))
}

/// So much of a reason as a goodbye holds.
fn short(text: &str) -> String {
    let ends = (0..=REASON.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..ends.unwrap_or(0)).unwrap_or_default().to_owned()
}

/// A socket, from its first message to its last.
pub(crate) struct Session {
    pub(crate) schema: Schema,
    pub(crate) desk: Desk,
    /// Of the head.
    pub(crate) token: Option<SecretString>,
    /// The most that a message may be long.
    pub(crate) longest: usize,
    pub(crate) stop: Shutdown,
    /// Its place among all sockets.
    pub(crate) place: OwnedSemaphorePermit,
}

/// What is under way on one.
#[derive(Default)]
struct Running {
    answers: SelectAll<Told>,
    open: HashMap<String, AbortHandle>,
}

impl Session {
    /// Answers whatever is asked on it, until either side ends it.
    pub(crate) async fn run(self, wanted: Wanted, upgraded: OnUpgrade) {
        let Ok(upgraded) = upgraded.await else { return };
        let mut limits = WebSocketConfig::default();
        (limits.max_message_size, limits.max_frame_size) = (Some(self.longest), Some(self.longest));
        limits.read_buffer_size = 8 << 10;
        let mut socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(limits)).await;
        let Some((code, reason)) = self.talk(wanted.protocol, &mut socket).await else { return };
        let frame = CloseFrame { code: code.into(), reason: short(&reason).into() };
        let goodbye = async {
            socket.close(Some(frame)).await.ok()?;
            while socket.next().await?.is_ok() {}
            Some(())
        };
        // Whoever does not say goodbye as well is left.
        let _ = timeout(GOODBYE, goodbye).await;
        drop(self.place);
    }

    /// `None`: nobody is left to say goodbye to.
    async fn talk(&self, protocol: Protocol, socket: &mut Socket) -> Option<Ended> {
        let (mut caller, mut running) = (None, Running::default());
        let (begun, mut heard) = (Instant::now(), Instant::now());
        let mut beat = interval_at(begun + BEAT, BEAT);
        loop {
            let told = tokio::select! {
                () = self.stop.cancelled() => return Some((1001, "the app proxy stops".to_owned())),
                () = sleep_until(begun + INTRODUCED), if caller.is_none() => {
                    return Some((4408, "nobody said who they are".to_owned()));
                }
                () = sleep_until(begun + LONGEST) => return Some((1001, "open another one".to_owned())),
                _ = beat.tick() => {
                    if heard.elapsed() > GONE {
                        return None;
                    }
                    Some(Message::Ping(Vec::new().into()))
                }
                Some((id, answer)) = running.answers.next(), if !running.answers.is_empty() => {
                    Some(running.told(protocol, &id, answer))
                }
                said = socket.next() => {
                    heard = Instant::now();
                    match said?.ok()? {
                        Message::Text(text) => match self.hear(protocol, text.as_str(), &mut caller, &mut running).await {
                            Ok(answer) => answer.map(|answer| Message::text(answer.to_string())),
                            Err(ended) => return Some(ended),
                        },
                        Message::Binary(_) => return Some((4400, "a message is a text of JSON".to_owned())),
                        _ => None,
                    }
                }
            };
            if let Some(told) = told {
                timeout(GONE, socket.send(told)).await.ok()?.ok()?;
            }
        }
    }

    /// What is answered to a message at once.
    async fn hear(
        &self,
        protocol: Protocol,
        text: &str,
        caller: &mut Option<Caller>,
        running: &mut Running,
    ) -> Result<Option<Value>, Ended> {
        // What is wrong with a text is not told: a token may stand there.
        let said: Said = serde_json::from_str(text)
            .map_err(|_| (4400, "this is no message of the protocol".to_owned()))?;
        match (said, caller.clone()) {
            (Said::ConnectionInit { .. }, Some(_)) => Err((4429, "whoever asks said so before".to_owned())),
            (Said::ConnectionInit { payload }, None) => {
                let known = Caller(token(&payload).or_else(|| self.token.clone()));
                match self.desk.knows(&known).await {
                    Ok(()) => *caller = Some(known),
                    Err(error) if error.code() == "UNAUTHENTICATED" => return Err((4403, error.to_string())),
                    // The platform is away, say.
                    Err(error) => return Err((1013, error.to_string())),
                }
                Ok(Some(json!({"type": "connection_ack"})))
            }
            (Said::Ping, _) => Ok(Some(json!({"type": "pong"}))),
            (Said::Pong, _) => Ok(None),
            (Said::Complete { id }, _) => {
                if let Some(under_way) = running.open.remove(&id) {
                    under_way.abort();
                }
                Ok(None)
            }
            (Said::ConnectionTerminate, _) => Err((1000, String::new())),
            (Said::Subscribe { .. }, None) => {
                Err((4401, "say who you are first, in connection_init".to_owned()))
            }
            (Said::Subscribe { id, .. }, Some(_)) if running.open.contains_key(&id) => {
                Err((4409, "an operation of that id is under way".to_owned()))
            }
            (Said::Subscribe { id, .. }, Some(_)) if running.open.len() >= OPERATIONS => {
                let message = format!("at most {OPERATIONS} operations of a socket may be under way");
                Ok(Some(protocol.refused(&id, &message, "BUSY")))
            }
            (Said::Subscribe { id, payload }, Some(caller)) => {
                // What a parser says of a document quotes it.
                if let Err(error) = async_graphql::parser::parse_query(&payload.query) {
                    let at = error.positions().next();
                    return Ok(Some(protocol.refused(&id, &crate::routes::unread(at), "BAD_REQUEST")));
                }
                let answers = self.schema.execute_stream((*payload).data(caller));
                running.begin(id, answers);
                Ok(None)
            }
        }
    }
}

impl Running {
    fn begin(&mut self, id: String, answers: impl Stream<Item = Response> + Send + 'static) {
        let answers = answers.map(Some).chain(once(async { None }));
        let (answers, handle) = abortable(answers);
        self.open.insert(id.clone(), handle);
        self.answers.push(Box::pin(answers.map(move |answer| (id.clone(), answer))));
    }

    /// An answer, or that there is no further one.
    fn told(&mut self, protocol: Protocol, id: &str, answer: Option<Response>) -> Message {
        let told = match answer {
            Some(answer) => json!({"id": id, "type": protocol.next(), "payload": answer}),
            None => {
                self.open.remove(id);
                json!({"id": id, "type": "complete"})
            }
        };
        Message::text(told.to_string())
    }
}

#[cfg(test)]
mod tests {
    use pipeline_core::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_token_stands_where_clients_put_it() {
        let of = |payload: Value| token(&payload).map(|token| token.expose_secret().to_owned());
        for payload in [
            json!({"authorization": "k"}),
            json!({"Authorization": "Bearer k", "other": 1}),
            json!({"x-access-token": "k"}),
            json!({"headers": {"Authorization": " bearer  k "}}),
        ] {
            assert_eq!(of(payload.clone()).as_deref(), Some("k"), "{payload}");
        }
        for payload in [json!(null), json!({"authorization": ""}), json!({"authorization": 1}), json!(["k"])]
        {
            assert_eq!(of(payload.clone()), None, "{payload}");
        }
    }

    #[test]
    fn a_reason_is_as_long_as_a_goodbye_may_say() {
        assert_eq!(short("why"), "why");
        assert_eq!(short(&"é".repeat(100)), "é".repeat(60));
    }
}
