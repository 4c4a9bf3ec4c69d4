//! Listens to what is published, without a trace on the server: no durable, no interest, no acknowledgement.

use async_nats::Subscriber;
use futures::StreamExt as _;

use super::{BusError, JetStream, ensure};
use crate::{DecodeError, Message, Prefix, REPORTS, Subject, SubjectError, decode};

/// What is published from now on. While the connection is lost, and where this process reads more slowly than messages
/// come, some are missed: nobody keeps them for a listener.
pub struct Tap {
    messages: Subscriber,
    prefix: Prefix,
}

/// One message that was published.
#[derive(Debug)]
pub struct Tapped {
    /// Where, without the prefix; `None` where nobody of us publishes.
    pub subject: Option<Subject>,
    /// The message, or why its bytes are none.
    pub message: Result<Message, DecodeError>,
    /// Its bytes, headers included.
    pub size: usize,
}

impl JetStream {
    /// Listens to one source or all, and to one shard or all; without either also to subjects below the prefix where
    /// nobody of us publishes. What is published after this returned is heard.
    ///
    /// # Errors
    /// [`BusError::Gone`], when there is no stream, where nobody publishes; else [`BusError`], when the server is away or
    /// refuses.
    pub async fn tap(&self, source: Option<&str>, shard: Option<u32>) -> Result<Tap, BusError> {
        let inner = &self.inner;
        self.connected()?;
        let filter = filter(&inner.prefix, source, shard)?;
        let messages = inner
            .client
            .subscribe(filter)
            .await
            .map_err(|error| BusError::server("listening to the bus")(error.into()))?;
        // The server reads what a connection says in its order: once it answers, it has heard of the subscription.
        let name = inner.prefix.stream_of(source.unwrap_or(REPORTS));
        match ensure::get(&inner.context, &name).await? {
            Some(_) => Ok(Tap { messages, prefix: inner.prefix.clone() }),
            None => Err(BusError::Gone { what: format!("stream {name}") }),
        }
    }
}

impl Tap {
    /// The next message; `None` when the connection is closed for good. Cancellation-safe.
    pub async fn next(&mut self) -> Option<Tapped> {
        let raw = self.messages.next().await?;
        let subject = Subject::parse(&self.prefix, raw.subject.as_str()).ok();
        Some(Tapped { subject, message: decode(&raw.payload), size: raw.length })
    }
}

fn filter(prefix: &Prefix, source: Option<&str>, shard: Option<u32>) -> Result<String, SubjectError> {
    match (source, shard) {
        (Some(source), shard) => prefix.filter(source, shard),
        (None, Some(shard)) => Ok(format!("{}.*.{shard}.>", prefix.as_str())),
        (None, None) => Ok(prefix.all()),
    }
}
