//! GraphQL over a WebSocket, in both protocols that clients speak: `graphql-transport-ws`, and the one that was before it,
//! `graphql-ws`. Who asks is known before anything is; each operation passes the dispatcher as one that came over a POST does.
//!
//! What is done upon a message stands here, since `async_graphql::http::WebSocket` begins any number of operations, replaces one by
//! another of its id, quotes what it cannot read, and ends with one code whatever is wrong.
//!
//! takes: an upgraded connection, and the token of its head or of the message `connection_init` - gives: answers as they come -
//! calls: the platform, about the token - fails: with a close code of the protocol; a client that reads or says nothing is left

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_graphql::Response;
use async_graphql::http::{ALL_WEBSOCKET_PROTOCOLS, ClientMessage, WebSocketProtocols as Protocols};
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use futures::stream::once;
use futures::{Stream, StreamExt as _};
use pipeline_core::{SecretString, Shutdown};
use serde_json::{Value, json};
use stages_client::bearer_token;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, interval_at, sleep_until, timeout};
use tokio_stream::StreamMap;

use crate::dispatcher::{Caller, Dispatcher};
use crate::query_text::read_query;
use crate::schema::Schema;
use crate::strangers::Stranger;

/// How long a socket may be open before its owner is known.
const INIT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a ping is sent, so that no proxy on the way takes the socket for dead.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// How long a client may send nothing, not even a pong, or take nothing, before the socket is dropped.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a socket may be open; another one may be opened then.
const MAX_DURATION: Duration = Duration::from_secs(3 * 3_600);
/// How long the client's close frame is waited for.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The most operations of a socket that are under way at a time.
const MAX_OPERATIONS: usize = 32;
/// The bytes of a socket's read buffer.
const READ_BUFFER: usize = 8 << 10;
/// The most bytes of the reason of a close frame.
const MAX_REASON: usize = 120;

/// The close reason where there is no place for another socket.
pub(crate) const FULL: &str = "too many sockets are open: close one, or try again later";
/// The close reason of a stranger whose place is given to another.
const DISPLACED: &str =
    "too many wait here who do not say who they are: open another one, and say it at once";

/// The operations of a socket that are under way, by their ids: each gives answers, and then `None`.
type RunningOperations = StreamMap<String, Pin<Box<dyn Stream<Item = Option<Response>> + Send>>>;
/// The code and the reason of a close frame.
type CloseReason = (u16, String);

/// The message that an operation was not begun.
fn error_message(protocol: Protocols, id: &str, message: &str, code: &str) -> Value {
    let error = json!({"message": message, "extensions": {"code": code}});
    let payload = if protocol == Protocols::GraphQLWS { json!([error]) } else { error };
    json!({"id": id, "type": "error", "payload": payload})
}

/// The message with an answer to an operation, or that there is no further one.
fn answer_message(protocol: Protocols, id: &str, answer: Option<Response>) -> Value {
    match (answer, protocol) {
        (Some(answer), Protocols::GraphQLWS) => json!({"id": id, "type": "next", "payload": answer}),
        (Some(answer), Protocols::SubscriptionsTransportWS) => {
            json!({"id": id, "type": "data", "payload": answer})
        }
        (None, _) => json!({"id": id, "type": "complete"}),
    }
}

/// The token in the payload of `connection_init`: under the name of a header, or among `headers`.
fn token(payload: &Value) -> Option<SecretString> {
    let is_one =
        |name: &str| ["authorization", "x-access-token"].iter().any(|one| name.eq_ignore_ascii_case(one));
    let within = |all: &Value| {
        let mut all = all.as_object()?.iter();
        let token = all.find_map(|(name, value)| bearer_token(value.as_str().filter(|_| is_one(name))?));
        token.map(SecretString::from)
    };
    within(payload).or_else(|| within(payload.get("headers")?))
}

/// The beginning of a reason, as long as a close frame holds.
fn short(text: &str) -> String {
    let ends = (0..=MAX_REASON.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..ends.unwrap_or(0)).unwrap_or_default().to_owned()
}

/// Whoever opened a socket, and the place that they take.
pub(crate) enum SocketOwner {
    /// Nobody has sent a token yet.
    Stranger(Stranger),
    /// A token was sent, and the platform is asked about it.
    Checking { _place: OwnedSemaphorePermit },
    /// The platform knows them.
    Known { caller: Caller, _place: OwnedSemaphorePermit },
}

/// A socket, from its first message to its last.
pub(crate) struct SocketSession {
    pub(crate) schema: Schema,
    pub(crate) dispatcher: Dispatcher,
    /// The token of the request that was upgraded.
    pub(crate) token: Option<SecretString>,
    pub(crate) stop: Shutdown,
    /// Places for those whom the platform is asked about.
    pub(crate) checking: Arc<Semaphore>,
    /// Places for those who are known.
    pub(crate) sockets: Arc<Semaphore>,
    pub(crate) who: SocketOwner,
}

/// Chooses the protocol, and bounds messages to `longest` bytes; `None`: the client offers no protocol that is known.
pub(crate) fn agreed(upgrade: WebSocketUpgrade, longest: usize) -> Option<(Protocols, WebSocketUpgrade)> {
    let upgrade = upgrade.protocols(ALL_WEBSOCKET_PROTOCOLS);
    let protocol = upgrade.selected_protocol()?.to_str().ok()?.parse().ok()?;
    Some((protocol, upgrade.max_message_size(longest).max_frame_size(longest).read_buffer_size(READ_BUFFER)))
}

impl SocketOwner {
    /// Waits until a stranger's place is given to another; for ever where a token was sent.
    async fn displaced(&self) {
        match self {
            Self::Stranger(stranger) => stranger.displaced().await,
            Self::Checking { .. } | Self::Known { .. } => std::future::pending().await,
        }
    }

    fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Stranger(_) | Self::Checking { .. } => None,
            Self::Known { caller, .. } => Some(caller),
        }
    }
}

impl SocketSession {
    /// Answers what is asked on the socket, until either side closes it.
    pub(crate) async fn run(mut self, protocol: Protocols, mut socket: WebSocket) {
        let Some((code, reason)) = self.talk(protocol, &mut socket).await else { return };
        let frame = CloseFrame { code, reason: short(&reason).into() };
        let goodbye = async {
            socket.send(Message::Close(Some(frame))).await.ok()?;
            while socket.next().await?.is_ok() {}
            Some(())
        };
        // A client that sends no close frame is dropped, and a stranger at once where others wait for the place.
        tokio::select! {
            biased;
            _ = timeout(CLOSE_TIMEOUT, goodbye) => {}
            () = self.who.displaced() => {}
        }
    }

    /// Answers what is asked, and gives how the socket is to be closed; `None`: the client is gone.
    async fn talk(&mut self, protocol: Protocols, socket: &mut WebSocket) -> Option<CloseReason> {
        let mut running = RunningOperations::new();
        let (begun, mut heard) = (Instant::now(), Instant::now());
        let mut beat = interval_at(begun + PING_INTERVAL, PING_INTERVAL);
        loop {
            let says = tokio::select! {
                () = self.stop.cancelled() => return Some((close_code::AWAY, "the app proxy stops".to_owned())),
                () = sleep_until(begun + INIT_TIMEOUT), if self.who.caller().is_none() => {
                    return Some((4408, "nobody said who they are".to_owned()));
                }
                () = self.who.displaced() => return Some((close_code::AGAIN, DISPLACED.to_owned())),
                () = sleep_until(begun + MAX_DURATION) => {
                    return Some((close_code::AWAY, "open another one".to_owned()));
                }
                _ = beat.tick() => {
                    if heard.elapsed() > IDLE_TIMEOUT {
                        return None;
                    }
                    Message::Ping(Vec::new().into())
                }
                Some((id, answer)) = running.next(), if !running.is_empty() => {
                    if answer.is_none() {
                        running.remove(&id);
                    }
                    Message::text(answer_message(protocol, &id, answer).to_string())
                }
                said = socket.next() => {
                    heard = Instant::now();
                    let text = match said?.ok()? {
                        Message::Text(text) => text,
                        Message::Binary(_) => return Some((4400, "a message is a text of JSON".to_owned())),
                        _ => continue,
                    };
                    match self.hear(protocol, text.as_str(), &mut running).await {
                        Ok(Some(answer)) => Message::text(answer.to_string()),
                        Ok(None) => continue,
                        Err(ended) => return Some(ended),
                    }
                }
            };
            tokio::select! {
                sent = timeout(IDLE_TIMEOUT, socket.send(says)) => sent.ok()?.ok()?,
                () = self.who.displaced() => return None,
            }
        }
    }

    /// Takes a message in, and gives what is answered to it at once.
    async fn hear(
        &mut self,
        protocol: Protocols,
        text: &str,
        running: &mut RunningOperations,
    ) -> Result<Option<Value>, CloseReason> {
        // The error of the parser is not told: it may quote a token.
        let said = ClientMessage::from_bytes(text)
            .map_err(|_| (4400, "this is no message of the protocol".to_owned()))?;
        match (said, self.who.caller().cloned()) {
            (ClientMessage::ConnectionInit { .. }, Some(_)) => {
                Err((4429, "whoever asks said so before".to_owned()))
            }
            (ClientMessage::ConnectionInit { payload }, None) => {
                let caller = Caller(payload.as_ref().and_then(token).or_else(|| self.token.clone()));
                let full = |_| (close_code::AGAIN, FULL.to_owned());
                // While the platform is asked, the place of a stranger is free for another.
                let _place = self.checking.clone().try_acquire_owned().map_err(full)?;
                self.who = SocketOwner::Checking { _place };
                self.dispatcher.knows(&caller).await.map_err(|error| match error.code() {
                    "UNAUTHENTICATED" => (4403, error.to_string()),
                    // The platform may be away for a while.
                    _ => (close_code::AGAIN, error.to_string()),
                })?;
                let _place = self.sockets.clone().try_acquire_owned().map_err(full)?;
                self.who = SocketOwner::Known { caller, _place };
                Ok(Some(json!({"type": "connection_ack"})))
            }
            (ClientMessage::Ping { .. }, _) => Ok(Some(json!({"type": "pong"}))),
            (ClientMessage::Pong { .. }, _) => Ok(None),
            (ClientMessage::Stop { id }, _) => {
                running.remove(&id);
                Ok(None)
            }
            (ClientMessage::ConnectionTerminate, _) => Err((close_code::NORMAL, String::new())),
            (ClientMessage::Start { .. }, None) => {
                Err((4401, "say who you are first, in connection_init".to_owned()))
            }
            (ClientMessage::Start { id, .. }, Some(_)) if running.contains_key(&id) => {
                Err((4409, "an operation of that id is under way".to_owned()))
            }
            (ClientMessage::Start { id, .. }, Some(_)) if running.len() >= MAX_OPERATIONS => {
                let message = format!("at most {MAX_OPERATIONS} operations of a socket may be under way");
                Ok(Some(error_message(protocol, &id, &message, "BUSY")))
            }
            (ClientMessage::Start { id, mut payload }, Some(caller)) => {
                if let Err(why) = read_query(&mut payload) {
                    return Ok(Some(error_message(protocol, &id, &why, "BAD_REQUEST")));
                }
                let answers = self.schema.execute_stream(payload.data(caller));
                running.insert(id, Box::pin(answers.map(Some).chain(once(async { None }))));
                Ok(None)
            }
        }
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
