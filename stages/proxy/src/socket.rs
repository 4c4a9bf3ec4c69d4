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
/// Bytes that are read at a time.
const READ: usize = 8 << 10;
/// Bytes of a goodbye's reason.
const REASON: usize = 120;

/// What whoever is known and has no place is told.
pub(crate) const FULL: &str = "too many sockets are open: close one, or try again later";
/// What a stranger is told whose place is given to another.
const DISPLACED: &str =
    "too many wait here who do not say who they are: open another one, and say it at once";

/// What is under way on one, by its id: answers, and then that there is no further one.
type RunningOperations = StreamMap<String, Pin<Box<dyn Stream<Item = Option<Response>> + Send>>>;
/// How one ends: a code, and why.
type CloseReason = (u16, String);

/// Says of an operation that it was not begun.
fn refused(protocol: Protocols, id: &str, message: &str, code: &str) -> Value {
    let error = json!({"message": message, "extensions": {"code": code}});
    let payload = if protocol == Protocols::GraphQLWS { json!([error]) } else { error };
    json!({"id": id, "type": "error", "payload": payload})
}

/// Says an answer to an operation, or that there is no further one.
fn told(protocol: Protocols, id: &str, answer: Option<Response>) -> Value {
    match (answer, protocol) {
        (Some(answer), Protocols::GraphQLWS) => json!({"id": id, "type": "next", "payload": answer}),
        (Some(answer), Protocols::SubscriptionsTransportWS) => {
            json!({"id": id, "type": "data", "payload": answer})
        }
        (None, _) => json!({"id": id, "type": "complete"}),
    }
}

/// The token of the message that introduces somebody: as a header is called, or among `headers`.
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

/// So much of a reason as a goodbye holds.
fn short(text: &str) -> String {
    let ends = (0..=REASON.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..ends.unwrap_or(0)).unwrap_or_default().to_owned()
}

/// Whoever is at a socket.
pub(crate) enum SocketOwner {
    /// They have not said yet who they are.
    Stranger(Stranger),
    /// They have said it, and the platform is asked.
    Asked { _place: OwnedSemaphorePermit },
    /// The platform knows them, and theirs is one of the places, for as long as they are here.
    Known { caller: Caller, _place: OwnedSemaphorePermit },
}

/// A socket, from its first message to its last.
pub(crate) struct SocketSession {
    pub(crate) schema: Schema,
    pub(crate) dispatcher: Dispatcher,
    /// Of the head.
    pub(crate) token: Option<SecretString>,
    pub(crate) stop: Shutdown,
    /// Places for those whom the platform is asked about.
    pub(crate) asked: Arc<Semaphore>,
    /// Places for those who are known.
    pub(crate) sockets: Arc<Semaphore>,
    pub(crate) who: SocketOwner,
}

/// Chooses how messages are called, and the most that one may be long; `None`: by no name that is offered.
pub(crate) fn agreed(upgrade: WebSocketUpgrade, longest: usize) -> Option<(Protocols, WebSocketUpgrade)> {
    let upgrade = upgrade.protocols(ALL_WEBSOCKET_PROTOCOLS);
    let protocol = upgrade.selected_protocol()?.to_str().ok()?.parse().ok()?;
    Some((protocol, upgrade.max_message_size(longest).max_frame_size(longest).read_buffer_size(READ)))
}

impl SocketOwner {
    /// When a stranger's place is given to another; never that of one who has said who they are.
    async fn displaced(&self) {
        match self {
            Self::Stranger(stranger) => stranger.displaced().await,
            Self::Asked { .. } | Self::Known { .. } => std::future::pending().await,
        }
    }

    fn caller(&self) -> Option<&Caller> {
        match self {
            Self::Stranger(_) | Self::Asked { .. } => None,
            Self::Known { caller, .. } => Some(caller),
        }
    }
}

impl SocketSession {
    /// Answers whatever is asked on it, until either side ends it.
    pub(crate) async fn run(mut self, protocol: Protocols, mut socket: WebSocket) {
        let Some((code, reason)) = self.talk(protocol, &mut socket).await else { return };
        let frame = CloseFrame { code, reason: short(&reason).into() };
        let goodbye = async {
            socket.send(Message::Close(Some(frame))).await.ok()?;
            while socket.next().await?.is_ok() {}
            Some(())
        };
        // Whoever does not say goodbye as well is left, and a stranger at once where others wait for the place.
        tokio::select! {
            biased;
            _ = timeout(GOODBYE, goodbye) => {}
            () = self.who.displaced() => {}
        }
    }

    /// `None`: nobody is left to say goodbye to.
    async fn talk(&mut self, protocol: Protocols, socket: &mut WebSocket) -> Option<CloseReason> {
        let mut running = RunningOperations::new();
        let (begun, mut heard) = (Instant::now(), Instant::now());
        let mut beat = interval_at(begun + BEAT, BEAT);
        loop {
            let says = tokio::select! {
                () = self.stop.cancelled() => return Some((close_code::AWAY, "the app proxy stops".to_owned())),
                () = sleep_until(begun + INTRODUCED), if self.who.caller().is_none() => {
                    return Some((4408, "nobody said who they are".to_owned()));
                }
                () = self.who.displaced() => return Some((close_code::AGAIN, DISPLACED.to_owned())),
                () = sleep_until(begun + LONGEST) => {
                    return Some((close_code::AWAY, "open another one".to_owned()));
                }
                _ = beat.tick() => {
                    if heard.elapsed() > GONE {
                        return None;
                    }
                    Message::Ping(Vec::new().into())
                }
                Some((id, answer)) = running.next(), if !running.is_empty() => {
                    if answer.is_none() {
                        running.remove(&id);
                    }
                    Message::text(told(protocol, &id, answer).to_string())
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
                sent = timeout(GONE, socket.send(says)) => sent.ok()?.ok()?,
                () = self.who.displaced() => return None,
            }
        }
    }

    /// What is answered to a message at once.
    async fn hear(
        &mut self,
        protocol: Protocols,
        text: &str,
        running: &mut RunningOperations,
    ) -> Result<Option<Value>, CloseReason> {
        // What is wrong with a text is not told: a token may stand there.
        let said = ClientMessage::from_bytes(text)
            .map_err(|_| (4400, "this is no message of the protocol".to_owned()))?;
        match (said, self.who.caller().cloned()) {
            (ClientMessage::ConnectionInit { .. }, Some(_)) => {
                Err((4429, "whoever asks said so before".to_owned()))
            }
            (ClientMessage::ConnectionInit { payload }, None) => {
                let caller = Caller(payload.as_ref().and_then(token).or_else(|| self.token.clone()));
                let full = |_| (close_code::AGAIN, FULL.to_owned());
                // However long that takes, it is no stranger any more.
                let _place = self.asked.clone().try_acquire_owned().map_err(full)?;
                self.who = SocketOwner::Asked { _place };
                self.dispatcher.knows(&caller).await.map_err(|error| match error.code() {
                    "UNAUTHENTICATED" => (4403, error.to_string()),
                    // The platform is away, say.
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
            (ClientMessage::Start { id, .. }, Some(_)) if running.len() >= OPERATIONS => {
                let message = format!("at most {OPERATIONS} operations of a socket may be under way");
                Ok(Some(refused(protocol, &id, &message, "BUSY")))
            }
            (ClientMessage::Start { id, mut payload }, Some(caller)) => {
                if let Err(why) = read_query(&mut payload) {
                    return Ok(Some(refused(protocol, &id, &why, "BAD_REQUEST")));
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
