//! Follows what another pipeline publishes: by a durable of one process alone, from the moment on at which it was made.
//!
//! The server takes it away when nobody asks it for anything any more: whoever was killed leaves no interest behind for which the
//! stream would fill up until it refuses its publisher, and begins anew, with a durable of its own, when it comes back.

use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};

use pipeline_core::Shutdown;

use super::{BusError, Deliveries, Durable, DurableShow, JetStream, bus, ensure, shape};
use crate::bus::Delivered;
use crate::{durables, token};

/// A durable that nobody has asked for so long is taken away: well after a first list, during which nobody asks, has come to its end.
const KEPT: Duration = Duration::from_secs(600);

/// What is published since it was begun.
pub struct Following {
    bus: JetStream,
    stream: String,
    durable: String,
    deliveries: Deliveries,
}

impl JetStream {
    /// Follows what `source` publishes, as one of `group`, until `stop`. What is published after this returned is delivered.
    ///
    /// # Errors
    /// [`BusError::Gone`] when there is no stream, where nobody publishes; else [`BusError`], when the server is away or refuses.
    pub async fn follow(&self, group: &str, source: &str, stop: Shutdown) -> Result<Following, BusError> {
        let inner = &self.inner;
        self.connected()?;
        let group = format!("{}{:016x}", of_one(group), fastrand::u64(..));
        let durable = Durable { group, source: source.to_owned(), shard: None };
        let name = inner.prefix.stream_of(source);
        let Some(stream) = ensure::get(&inner.context, &name).await? else {
            return Err(BusError::Gone { what: format!("stream {name}") });
        };
        let should = pull::Config {
            deliver_policy: DeliverPolicy::New,
            inactive_threshold: KEPT,
            ..shape::durable(&inner.config, &inner.prefix, &durable)?
        };
        ensure::create(&stream, should).await?;
        let deliveries = self.consume(&durable, stop)?;
        Ok(Following { bus: self.clone(), stream: name, durable: durable.name()?, deliveries })
    }

    /// Whether one of `group` follows what `source` publishes at this moment.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses.
    pub async fn is_followed(&self, group: &str, source: &str) -> Result<bool, BusError> {
        let begins = token(&of_one(group))?;
        let is_of_group = |shown: &DurableShow| shown.name.starts_with(&begins) && shown.waiting > 0;
        Ok(self.durables_of(source).await?.iter().any(is_of_group))
    }

    /// Whether each of these shards of what `source` publishes is consumed by one of `group` at this moment.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses.
    pub async fn are_consumed(&self, group: &str, source: &str, shards: u32) -> Result<bool, BusError> {
        let shown = self.durables_of(source).await?;
        for durable in durables(group, source, shards) {
            let name = durable.name()?;
            if !shown.iter().any(|shown| shown.name == name && shown.waiting > 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn durables_of(&self, source: &str) -> Result<Vec<DurableShow>, BusError> {
        self.connected()?;
        let mut durables = Vec::new();
        self.show_stream(self.inner.prefix.stream_of(source), &mut durables).await?;
        Ok(durables)
    }
}

/// What the groups of single processes of one begin with.
fn of_one(group: &str) -> String {
    format!("{group}-")
}

impl Following {
    /// What comes next; `None` when the runtime stops. Cancellation-safe: what was not taken is delivered again.
    ///
    /// # Errors
    /// [`BusError::Gone`], where stream or durable are, and [`BusError::LostEnd`]: something may have been missed.
    pub async fn next(&mut self) -> Result<Option<Vec<Delivered>>, BusError> {
        match self.deliveries.next().await {
            None => Ok(None),
            Some(Err(error)) => Err(error),
            Some(Ok(delivery)) => {
                if self.bus.hear(&self.stream, &delivery) {
                    return Err(BusError::LostEnd { stream: self.stream.clone() });
                }
                Ok(Some(bus::read(&self.bus, delivery).await))
            }
        }
    }

    /// Takes the durable away, if the server answers; else that goes by itself.
    pub async fn end(self) {
        let Self { bus, stream, durable, deliveries } = self;
        drop(deliveries);
        if bus.is_connected()
            && let Ok(Some(stream)) = ensure::get(&bus.inner.context, &stream).await
            && let Err(error) = stream.delete_consumer(&durable).await
        {
            tracing::debug!(durable, %error, "a durable is left to go by itself");
        }
    }
}
