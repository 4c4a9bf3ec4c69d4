//! The streams of a server of others, for what they are to read there.
//!
//! takes: a subject, headers and a body - gives: that a stream has stored it
//! calls: a NATS server - fails: [`StreamError`]; while the server is away nothing is queued here, and it is tried for ever
//!
//! A message counts as delivered when a stream has it, and by nothing less. Plain NATS acknowledges nothing: what nobody is
//! subscribed to at the moment is dropped, and what was written to a connection that breaks is gone, and in neither case does
//! its publisher learn of it.

use std::error::Error as _;
use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{Client, Event, HeaderMap, ServerError};
use bytes::Bytes;
use tokio::sync::{broadcast, watch};
use tokio_util::task::AbortOnDropHandle;

use super::access::Files;
use super::events::ConnectionLog;
use super::publish::context;
use super::{Access, ConfigError, servers};
use crate::Refusal;

/// Refusals that may wait for whoever published.
const DENIALS: usize = 64;

/// A connection to a server of others; cheap to clone.
#[derive(Clone)]
pub struct Streams {
    inner: Arc<Inner>,
}

struct Inner {
    /// Nothing before the first connection.
    link: Arc<OnceLock<Link>>,
    timeout: Duration,
    heard: Arc<Heard>,
    said: Arc<ConnectionLog>,
    credentials: &'static str,
    /// Connects, and follows the files that say who asks; ends with this.
    _connecting: AbortOnDropHandle<()>,
}

/// A connection that stood once, and is made anew whenever it breaks.
struct Link {
    client: Client,
    context: jetstream::Context,
}

/// What the connection tells of rights.
struct Heard {
    /// Subjects that this user may not publish to, as they are refused.
    denied: broadcast::Sender<Arc<str>>,
    /// Answers may not be subscribed to, in this connection.
    no_inbox: AtomicBool,
    /// How often other credentials are in force, or the same ones after they were refused.
    changed: watch::Sender<u64>,
    /// How often of these somebody was told.
    told: AtomicU64,
}

/// Why there will be no connection. A server that is away or refuses is not among it: that is tried for ever.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The addresses of its servers.
    #[error("the addresses of a NATS server cannot be used")]
    Servers(#[source] ConfigError),
    /// A file of the credentials cannot be read, or holds none.
    #[error("reading the credentials of a NATS server failed")]
    Credentials(#[source] std::io::Error),
}

/// Why a message was not delivered.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// There is no connection at the moment; nothing was sent.
    #[error("the NATS server is not connected")]
    Away,
    /// There is none, since the server refuses who asks.
    #[error("the NATS server refuses the credentials ({0})")]
    Refused(&'static str),
    /// Whether it was stored is not known.
    #[error("no stream answered within {0:?}")]
    NoAnswer(Duration),
    /// Nobody takes the subject.
    #[error("no stream takes the subject")]
    NoStream,
    /// This user may not publish to the subject.
    #[error("the NATS server forbids to publish to the subject")]
    Denied,
    /// This user may not be answered.
    #[error("the NATS server forbids to subscribe to answers")]
    NoInbox,
    /// The stream, or the server's storage, is full.
    #[error("the stream takes no more ({})", .0.as_str())]
    Full(Refusal),
    /// The server or the stream takes no message that is so large.
    #[error("a message of {0} bytes is larger than the NATS server or the stream takes")]
    TooLarge(usize),
    /// The stream takes nothing: it is sealed, or follows another one.
    #[error("the stream refuses the message")]
    Server(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Streams {
    /// Begins to connect for `route`, and goes on for ever.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(access: Access, route: &str) -> Result<Self, OpenError> {
        let servers = servers(&access.urls).map_err(OpenError::Servers)?;
        let credentials = access.credentials.kind();
        let said = Arc::new(ConnectionLog::of_route(route, credentials));
        let heard = Arc::new(Heard {
            denied: broadcast::Sender::new(DENIALS),
            no_inbox: AtomicBool::new(false),
            changed: watch::Sender::new(0),
            told: AtomicU64::new(0),
        });
        let files = Files::of(&access).await.map_err(OpenError::Credentials)?;
        let (link, timeout) = (Arc::new(OnceLock::new()), access.timeout);
        let (linked, telling) = (Arc::clone(&link), Arc::clone(&said));
        let (hears, changes) = ((Arc::clone(&heard), Arc::clone(&said)), Arc::clone(&heard));
        let connecting = tokio::spawn(async move {
            let heard = move |event: &Event| hears.0.hear(event, &hears.1);
            let client = access.connect(&servers, &telling, heard).await;
            let context = context(&client, timeout);
            // Nobody else sets it.
            drop(linked.set(Link { client: client.clone(), context }));
            files.follow(&client, &access, &telling, || changes.has_changed()).await;
        });
        let inner = Inner {
            link,
            timeout,
            heard,
            said,
            credentials,
            _connecting: AbortOnDropHandle::new(connecting),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Publishes a message and waits until a stream has stored it. One whose header `Nats-Msg-Id` a stream has seen within its
    /// window of duplicates is stored already.
    ///
    /// # Errors
    /// [`StreamError`].
    pub async fn put(
        &self,
        subject: &str,
        headers: &[(&'static str, String)],
        body: Bytes,
    ) -> Result<(), StreamError> {
        let inner = &*self.inner;
        let link = inner.link.get().filter(|link| link.client.connection_state() == State::Connected);
        let Some(Link { client, context }) = link else {
            return Err(match inner.said.is_refused() {
                true => StreamError::Refused(inner.credentials),
                false => StreamError::Away,
            });
        };
        if inner.heard.no_inbox.swap(false, Ordering::Relaxed) {
            // What was refused is asked for by the next connection again, and by none before: a server may have changed its mind.
            // It fails when the client is closed.
            let _ = client.force_reconnect().await;
            return Err(StreamError::NoInbox);
        }
        let bytes = body.len();
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(*name, value.as_str());
        }
        let denied = inner.heard.denied.subscribe();
        let message = PublishMessage::build().payload(body).headers(all);
        let sent = context.send_publish(subject.to_owned(), message).await;
        let answer = sent.map_err(|error| inner.failed(error, bytes))?;
        let answer = tokio::select! {
            answer = answer.into_future() => answer,
            () = says(denied, subject) => return Err(StreamError::Denied),
        };
        answer.map(drop).map_err(|error| inner.failed(error, bytes))
    }

    /// Returns when other credentials are in force, or the same ones are taken again, than when it returned last; one waits at a
    /// time.
    pub async fn changed(&self) {
        let Heard { changed, told, .. } = &*self.inner.heard;
        let before = told.load(Ordering::Relaxed);
        let mut changes = changed.subscribe();
        // The sender lives as long as this.
        if let Ok(now) = changes.wait_for(|now| *now != before).await {
            told.store(*now, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl Inner {
    fn failed(&self, error: PublishError, bytes: usize) -> StreamError {
        match error.kind() {
            PublishErrorKind::StreamNotFound => return StreamError::NoStream,
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe => {
                // That answers are refused may have been told meanwhile.
                return match self.heard.no_inbox.load(Ordering::Relaxed) {
                    true => StreamError::NoInbox,
                    false => StreamError::NoAnswer(self.timeout),
                };
            }
            PublishErrorKind::MaxPayloadExceeded => return StreamError::TooLarge(bytes),
            _ => {}
        }
        match error.source().and_then(|source| source.downcast_ref::<jetstream::Error>()) {
            Some(told) if told.error_code() == ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM => {
                StreamError::TooLarge(bytes)
            }
            Some(told) => match Refusal::of(told) {
                Some(refusal) => StreamError::Full(refusal),
                None => StreamError::Server(error.into()),
            },
            None => StreamError::Server(error.into()),
        }
    }
}

impl Heard {
    fn hear(&self, event: &Event, said: &ConnectionLog) {
        match event {
            Event::Connected => {
                self.no_inbox.store(false, Ordering::Relaxed);
                if said.is_refused() {
                    self.has_changed();
                }
            }
            Event::ServerError(ServerError::Other(error)) => match denied(error) {
                Some(Denied::Publish(subject)) => {
                    // Nobody waits for it any more, where it fails.
                    let _ = self.denied.send(subject.into());
                }
                Some(Denied::Subscribe) => self.no_inbox.store(true, Ordering::Relaxed),
                None => {}
            },
            _ => {}
        }
    }

    fn has_changed(&self) {
        self.changed.send_modify(|changes| *changes += 1);
    }
}

/// Returns when it is told that `subject` is denied.
async fn says(mut denied: broadcast::Receiver<Arc<str>>, subject: &str) {
    use broadcast::error::RecvError;
    loop {
        match denied.recv().await {
            Ok(told) if &*told == subject => return,
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            // The answer comes, or its time is over.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// What a server's words deny.
#[derive(Debug, PartialEq, Eq)]
enum Denied<'a> {
    Publish(&'a str),
    Subscribe,
}

fn denied(text: &str) -> Option<Denied<'_>> {
    let rest = text.trim_matches('\'').strip_prefix("Permissions Violation for ")?;
    if rest.starts_with("Subscription to ") {
        return Some(Denied::Subscribe);
    }
    let subject = rest.strip_prefix("Publish to \"")?;
    subject.split('"').next().map(Denied::Publish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_denies_is_read_from_its_words() {
        let publish = "Permissions Violation for Publish to \"shop.rollout\"";
        assert_eq!(denied(publish), Some(Denied::Publish("shop.rollout")));
        assert_eq!(denied(&format!("'{publish}'")), Some(Denied::Publish("shop.rollout")));
        let inbox = "Permissions Violation for Subscription to \"_INBOX.abc.*\"";
        assert_eq!(denied(inbox), Some(Denied::Subscribe));
        for other in ["Maximum Payload Violation", "Permissions Violation for Publish", ""] {
            assert_eq!(denied(other), None, "{other}");
        }
    }
}
