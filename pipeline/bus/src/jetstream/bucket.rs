//! Key-value buckets: what of the runtime's state is shared by its replicas, written by compare-and-set.
//!
//! takes: values under keys, and what the writer expects to stand there - gives: the sequence of each write, all that is
//! there, and its changes
//! calls: a stream `KV_<stream>_<name>` of a NATS server 2.11 or newer, in the shape of any other bucket of NATS - fails:
//! [`PutError::Conflict`] when something else stands there; [`BusError`] when the server is away or the bucket is gone
//!
//! A bucket's first sequence is the time at which it was made, in milliseconds since 1970: no sequence of a bucket that was
//! lost and made anew equals one of the old, or what somebody remembers of the old one would pass in the new one.

mod answer;
mod read;
mod watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use async_nats::{HeaderMap, header};
use bytes::Bytes;
use pipeline_core::Timestamp;

use super::publish::context;
use super::{BusError, Difference, Ensured, JetStream, ensure, shape};
use crate::SubjectError;

pub use answer::Writing;
pub use watch::{Change, Watch, Watched};

/// The name of the bucket of leases.
pub const LEASES: &str = "leases";

/// The name of the bucket of ledgers.
pub const LEDGER: &str = "ledger";

/// Bytes that the bucket of leases may take where an account wants that said: they are a few hundred of a shard and of a replica.
/// A server keeps them free, so that they are no more than that takes by far.
const SMALL_BYTES: i64 = 16 << 20;

/// Bytes of a key; a server's bound for a subject with all that belongs to it is 4,096.
const MAX_KEY: usize = 2_048;

/// Bytes of the headers of a write, at most: they name another key.
const HEADERS: usize = 2 * MAX_KEY;

const OPERATION: &str = "KV-Operation";
const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// One bucket; cheap to clone. Its writes do not wait for those of messages or of other buckets.
#[derive(Clone)]
pub struct Bucket {
    inner: Arc<Inner>,
}

struct Inner {
    bus: JetStream,
    context: jetstream::Context,
    stream: String,
    /// What all subjects begin with.
    prefix: String,
    /// Bytes that it may take, where an account wants that said.
    bound: i64,
}

/// What must stand in the bucket for a write to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect<'a> {
    /// Whatever does.
    Anything,
    /// The key's own last value or mark has this sequence; 0 for none.
    Last(u64),
    /// Another key's last value or mark has this sequence; 0 for none.
    Other {
        /// The other key.
        key: &'a str,
        /// Its sequence.
        sequence: u64,
    },
}

/// Why a write was not made, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum PutError {
    /// Something else than expected stands there: nothing was written.
    #[error("something else stands in the bucket than was expected")]
    Conflict,
    /// Anything else; after [`BusError::NoAnswer`] it may have been written.
    #[error(transparent)]
    Bus(#[from] BusError),
}

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Bytes,
    /// When it was written, counted by the bucket.
    pub sequence: u64,
}

/// A bucket as it stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketShow {
    /// The name of its stream.
    pub stream: String,
    /// Keys in it, marks of removed ones included.
    pub keys: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sequence of the newest write that ever was.
    pub last: u64,
}

impl JetStream {
    /// The bucket `name`, which consists of letters, digits, `-` and `_`; see [`LEASES`] and [`LEDGER`]. Nothing is asked
    /// of the server.
    #[must_use]
    pub fn bucket(&self, name: &str) -> Bucket {
        let own = self.inner.prefix.stream();
        let context = context(&self.inner.client, self.inner.config.access.timeout);
        let stream = format!("KV_{own}_{name}");
        let prefix = format!("$KV.{own}_{name}.");
        // A ledger has room for as much as the events of a source.
        let bound = match name {
            LEDGER => i64::try_from(self.inner.config.max_bytes).unwrap_or(i64::MAX),
            _ => SMALL_BYTES,
        };
        Bucket { inner: Arc::new(Inner { bus: self.clone(), context, stream, prefix, bound }) }
    }

    /// Which connection there is at this moment, counted since the start; `None` while there is none.
    #[must_use]
    pub fn connection(&self) -> Option<u64> {
        self.is_connected().then(|| self.inner.client.statistics().connects.load(Ordering::Relaxed))
    }
}

impl Bucket {
    /// Makes the bucket where it is absent, and says what differs where it is there; a difference is never changed. It was
    /// made if [`Ensured::created`] is not empty.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses.
    pub async fn ensure(&self) -> Result<Ensured, BusError> {
        self.walk(true).await
    }

    /// What is absent or differs. Changes nothing.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses.
    pub async fn check(&self) -> Result<Vec<Difference>, BusError> {
        Ok(self.walk(false).await?.differences)
    }

    async fn walk(&self, make: bool) -> Result<Ensured, BusError> {
        let Inner { bus, context, stream, prefix, bound } = &*self.inner;
        let first = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default();
        let should = shape::bucket(&bus.inner.config, stream, prefix, first);
        let mut found = Ensured::default();
        let what = format!("bucket {stream}");
        let should = (&should, Some(*bound));
        self.asked(Box::pin(ensure::settle(context, &what, should, make, &mut found))).await??;
        Ok(found)
    }

    /// What stands there; `None` when nothing does.
    ///
    /// # Errors
    /// [`BusError`], when the server is away or refuses.
    pub async fn show(&self) -> Result<Option<BucketShow>, BusError> {
        let found = self.asked(Box::pin(ensure::get(&self.inner.context, &self.inner.stream))).await??;
        Ok(found.map(|found| {
            let state = &found.cached_info().state;
            let (keys, bytes, last) = (state.messages, state.bytes, state.last_sequence);
            BucketShow { stream: self.inner.stream.clone(), keys, bytes, last }
        }))
    }

    /// Writes `value` under `key` and waits for the answer; returns the sequence that the write got.
    ///
    /// # Errors
    /// [`PutError`].
    pub async fn put(&self, key: &str, value: Bytes, expect: Expect<'_>) -> Result<u64, PutError> {
        self.send(key, value, expect).await?.answer().await
    }

    /// As [`Bucket::put`], whatever stands there; the value goes by itself after `ttl`, in whole seconds and at least one.
    /// Nobody who watches is told of that.
    ///
    /// # Errors
    /// [`PutError`].
    pub async fn put_for(&self, key: &str, value: Bytes, ttl: Duration) -> Result<u64, PutError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::NATS_MESSAGE_TTL, seconds(ttl));
        self.write(key, value, Expect::Anything, headers).await?.answer().await
    }

    /// Takes `key` away and waits for the answer; returns the sequence of the mark that stands in its place for a minute.
    ///
    /// # Errors
    /// [`PutError`].
    pub async fn remove(&self, key: &str, expect: Expect<'_>) -> Result<u64, PutError> {
        self.send_remove(key, expect).await?.answer().await
    }

    /// Bytes that one value may have: what the server takes of one message, but for the headers that go with it.
    #[must_use]
    pub fn room(&self) -> usize {
        self.inner.bus.inner.client.max_payload().saturating_sub(HEADERS)
    }

    /// Whether it is kept by several servers. They refuse a write that expects something of a key while another write that
    /// expects something of the same key is under way, with [`PutError::Conflict`]; one server takes both.
    #[must_use]
    pub fn is_copied(&self) -> bool {
        self.inner.bus.inner.config.replicas > 1
    }

    /// Begins what [`Bucket::put`] does; writes are made in the order in which `send` returned. Waits while 256 writes of
    /// this bucket are unanswered: whoever keeps as many [`Writing`]s and asks none of them waits for ever.
    ///
    /// # Errors
    /// [`BusError`]; nothing was written.
    pub async fn send(&self, key: &str, value: Bytes, expect: Expect<'_>) -> Result<Writing, BusError> {
        self.write(key, value, expect, HeaderMap::new()).await
    }

    /// Begins what [`Bucket::remove`] does, as [`Bucket::send`]. The mark stays for good, some hundred bytes for a name that
    /// comes no more: were it to go after a time, a server that is killed would show the value that it removed once more.
    ///
    /// # Errors
    /// [`BusError`]; nothing was written.
    pub async fn send_remove(&self, key: &str, expect: Expect<'_>) -> Result<Writing, BusError> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, "PURGE");
        headers.insert(header::NATS_ROLLUP, "sub");
        self.write(key, Bytes::new(), expect, headers).await
    }

    async fn write(
        &self,
        key: &str,
        value: Bytes,
        expect: Expect<'_>,
        mut headers: HeaderMap,
    ) -> Result<Writing, BusError> {
        let Inner { bus, context, .. } = &*self.inner;
        let subject = self.subject(key)?;
        match expect {
            Expect::Anything => {}
            Expect::Last(sequence) => {
                headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, sequence.to_string());
            }
            Expect::Other { key, sequence } => {
                headers.insert(header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, sequence.to_string());
                headers.insert(EXPECTED_SUBJECT, self.subject(key)?);
            }
        }
        let connection = bus.connection();
        bus.connected()?;
        let mut publish = PublishMessage::build().payload(value);
        if !headers.is_empty() {
            publish = publish.headers(headers);
        }
        match context.send_publish(subject, publish).await {
            Ok(answer) => Ok(Writing { answer, bucket: self.clone(), connection }),
            Err(error) if error.kind() == PublishErrorKind::TimedOut => Err(BusError::Away),
            Err(error) => Err(BusError::server(WRITING)(error.into())),
        }
    }

    /// What `key` holds, as the server that leads the bucket knows it.
    ///
    /// # Errors
    /// [`BusError`], [`BusError::Gone`] when there is no bucket.
    pub async fn get(&self, key: &str) -> Result<Option<(Bytes, u64)>, BusError> {
        let (value, sequence) = self.last(key).await?;
        Ok(value.map(|value| (value, sequence)))
    }

    /// As [`Bucket::get`], with the sequence of the mark where a value was removed; 0 where nothing ever stood.
    ///
    /// # Errors
    /// As [`Bucket::get`].
    pub async fn last(&self, key: &str) -> Result<(Option<Bytes>, u64), BusError> {
        let subject = self.subject(key)?;
        let stream = self.stream().await?;
        let found = match self.asked(Box::pin(stream.get_last_raw_message_by_subject(&subject))).await? {
            Ok(found) => found,
            Err(error) => {
                return match error.kind() {
                    RawMessageErrorKind::NoMessageFound => Ok((None, 0)),
                    RawMessageErrorKind::JetStream(told) => Err(self.refused(&told, error.into())),
                    _ => Err(self.unanswered(error.into())),
                };
            }
        };
        Ok(((!is_mark(Some(&found.headers))).then_some(found.payload), found.sequence))
    }

    /// Whether there is a connection at this moment.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.inner.bus.is_connected()
    }

    /// As [`JetStream::connection`].
    #[must_use]
    pub fn connection(&self) -> Option<u64> {
        self.inner.bus.connection()
    }

    async fn stream(&self) -> Result<Stream<()>, BusError> {
        let found = self.inner.context.get_stream_no_info(&self.inner.stream).await;
        found.map_err(|error| BusError::server(READING)(error.into()))
    }

    fn subject(&self, key: &str) -> Result<String, SubjectError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-/_=".contains(&byte);
        if key.len() > MAX_KEY {
            return Err(SubjectError::TooLong);
        }
        if !key.split('.').all(|part| !part.is_empty() && part.bytes().all(plain)) {
            return Err(SubjectError::Foreign);
        }
        Ok(format!("{}{key}", self.inner.prefix))
    }
}

const READING: &str = "reading a bucket of the bus";
const WRITING: &str = "writing to a bucket of the bus";

/// Whether these are the headers of what stands in the place of a removed value.
fn is_mark(headers: Option<&HeaderMap>) -> bool {
    let Some(headers) = headers else { return false };
    let removed = headers.get(OPERATION).is_some_and(|what| matches!(what.as_str(), "PURGE" | "DEL"));
    removed || headers.get(header::NATS_MARKER_REASON).is_some()
}

fn seconds(ttl: Duration) -> String {
    format!("{}s", ttl.as_millis().div_ceil(1_000).max(1))
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bucket").field("stream", &self.inner.stream).finish_non_exhaustive()
    }
}
