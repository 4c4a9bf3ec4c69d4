//! Reads a bucket: an ephemeral consumer that delivers what is there, then what changes.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::Message as Raw;
use async_nats::jetstream::consumer::pull::{self, MessagesErrorKind};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::stream::ConsumerErrorKind;
use bytes::Bytes;
use futures::StreamExt as _;

use super::{Bucket, Change, Entry, READING, is_mark};
use crate::BusError;

/// Messages that one request to the server asks for.
const BATCH: usize = 256;

/// Bytes that one request asks for, where the largest value is not larger.
const BATCH_BYTES: usize = 4 << 20;

/// After so long without a word it is asked whether there is anything left to list: a value that went by itself while it was
/// to be listed does not come.
const ASK: Duration = Duration::from_millis(300);

/// What has come of a list.
#[derive(Default)]
pub(super) struct Listing(HashMap<String, (Bytes, u64)>);

impl Listing {
    /// What was there may have changed while it was listed.
    pub(super) fn take(&mut self, change: Change) {
        match change.value {
            Some(value) => drop(self.0.insert(change.key, (value, change.sequence))),
            None => drop(self.0.remove(&change.key)),
        }
    }

    /// In the order of sequences.
    pub(super) fn entries(self) -> Vec<Entry> {
        let entry = |(key, (value, sequence))| Entry { key, value, sequence };
        let mut entries: Vec<Entry> = self.0.into_iter().map(entry).collect();
        entries.sort_unstable_by_key(|entry| entry.sequence);
        entries
    }
}

/// A consumer at work.
pub(super) struct Reader {
    consumer: Consumer<pull::Config>,
    stream: pull::Stream,
    /// Values and marks that were there when it began and have not come yet.
    left: u64,
    /// The last that came, counted by the consumer.
    seen: u64,
    /// The connection over which it was made.
    connection: u64,
    prefix: usize,
}

impl Bucket {
    /// All that keys matching `filters` hold, in the order of their sequences; filters are keys in which `*` stands for one
    /// part and `>` for all that follow, and no key matches two of them. `newest` is a sequence that is known to be among
    /// them: what is read from a server that does not have it yet is read again.
    ///
    /// # Errors
    /// [`BusError`]: [`BusError::NoAnswer`] when not all of it, or not `newest`, comes within `patience`.
    pub async fn load(
        &self,
        filters: &[String],
        newest: Option<u64>,
        patience: Duration,
    ) -> Result<Vec<Entry>, BusError> {
        let whole = async {
            loop {
                let entries = match self.listed(filters).await {
                    // Something was missed, as after a pause of the server or of this process.
                    Err(BusError::NoAnswer) => {
                        tokio::time::sleep(ASK).await;
                        continue;
                    }
                    entries => entries?,
                };
                let is_there = |newest| entries.last().is_some_and(|last: &Entry| last.sequence >= newest);
                if newest.is_none_or(is_there) {
                    return Ok(entries);
                }
                tokio::time::sleep(ASK).await;
            }
        };
        tokio::time::timeout(patience, whole).await.unwrap_or(Err(BusError::NoAnswer))
    }

    async fn listed(&self, filters: &[String]) -> Result<Vec<Entry>, BusError> {
        let mut reader = self.read(filters).await?;
        let mut listing = Listing::default();
        while !reader.is_listed() {
            if let Some(change) = reader.next(self).await? {
                listing.take(change);
            }
        }
        reader.end(self).await;
        Ok(listing.entries())
    }

    /// Begins to read.
    pub(super) async fn read(&self, filters: &[String]) -> Result<Reader, BusError> {
        let connection = self.connection().ok_or(BusError::Away)?;
        let filter_subjects = filters.iter().map(|filter| format!("{}{filter}", self.inner.prefix)).collect();
        let config = pull::Config {
            filter_subjects,
            deliver_policy: DeliverPolicy::LastPerSubject,
            ack_policy: AckPolicy::None,
            replay_policy: ReplayPolicy::Instant,
            inactive_threshold: Duration::from_secs(30),
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let stream = self.stream().await?;
        let consumer = match self.asked(Box::pin(stream.create_consumer(config))).await? {
            Ok(consumer) => consumer,
            Err(error) => {
                return Err(match error.kind() {
                    ConsumerErrorKind::TimedOut => BusError::NoAnswer,
                    ConsumerErrorKind::JetStream(told) => self.refused(&told, error.into()),
                    _ => self.unanswered(error.into()),
                });
            }
        };
        let most = self.inner.bus.inner.client.max_payload().saturating_mul(2);
        let messages = consumer
            .stream()
            .max_messages_per_batch(BATCH)
            // A request for fewer bytes than the largest message has would never be answered.
            .max_bytes_per_batch(BATCH_BYTES.max(most))
            .expires(Duration::from_secs(20))
            .heartbeat(Duration::from_secs(2))
            .messages();
        let stream = Box::pin(messages).await.map_err(|error| BusError::server(READING)(error.into()))?;
        let left = consumer.cached_info().num_pending;
        Ok(Reader { consumer, stream, left, seen: 0, connection, prefix: self.inner.prefix.len() })
    }
}

impl Reader {
    /// Whether all that was there when it began has come.
    pub(super) fn is_listed(&self) -> bool {
        self.left == 0
    }

    pub(super) fn connection(&self) -> u64 {
        self.connection
    }

    /// The next value or mark; `None` where something else happened and it is to be asked again. Cancellation-safe.
    ///
    /// # Errors
    /// [`BusError`] when something may have been missed: it is to be begun anew.
    pub(super) async fn next(&mut self, bucket: &Bucket) -> Result<Option<Change>, BusError> {
        let raw = match tokio::time::timeout(ASK, self.stream.next()).await {
            Ok(raw) => raw,
            Err(_) if bucket.connection() != Some(self.connection) => return Err(BusError::Away),
            Err(_) if self.left > 0 => return self.ask(bucket).await,
            Err(_) => return Ok(None),
        };
        match raw {
            Some(Ok(raw)) => self.take(&raw).map(Some),
            Some(Err(error)) if error.kind() == MessagesErrorKind::MissingHeartbeat => {
                Err(BusError::NoAnswer)
            }
            Some(Err(error)) => Err(BusError::server(READING)(error.into())),
            None => Err(BusError::NoAnswer),
        }
    }

    fn take(&mut self, raw: &Raw) -> Result<Change, BusError> {
        let info = raw.info().map_err(BusError::server(READING))?;
        if info.consumer_sequence != self.seen + 1 {
            return Err(BusError::NoAnswer);
        }
        self.seen += 1;
        self.left = self.left.saturating_sub(1).min(info.pending);
        let key = raw.subject.as_str().get(self.prefix..).unwrap_or_default().to_owned();
        let value = (!is_mark(raw.headers.as_ref())).then(|| raw.payload.clone());
        Ok(Change { key, value, sequence: info.stream_sequence })
    }

    /// Whether all that was there is gone or has come.
    async fn ask(&mut self, bucket: &Bucket) -> Result<Option<Change>, BusError> {
        let info = bucket
            .asked(Box::pin(self.consumer.get_info()))
            .await?
            .map_err(|error| BusError::server(READING)(error.into()))?;
        if info.num_pending == 0 && info.delivered.consumer_sequence == self.seen {
            self.left = 0;
        }
        Ok(None)
    }

    /// Tells the server that it may forget the consumer, which it does later by itself.
    async fn end(self, bucket: &Bucket) {
        let Self { consumer, stream, .. } = self;
        drop(stream);
        if let Ok(of) = bucket.stream().await
            && let Ok(Err(error)) =
                bucket.asked(Box::pin(of.delete_consumer(&consumer.cached_info().name))).await
        {
            tracing::debug!(%error, "a consumer of a bucket is left to lapse");
        }
    }
}
