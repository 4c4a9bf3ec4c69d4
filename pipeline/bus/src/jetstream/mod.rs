//! The bus on NATS JetStream (server 2.11 or newer): a stream of events and one of reports, one durable pull consumer a
//! shard or source.
//!
//! takes: [`Message`](super::Message)s to publish, durables to consume - gives: [`Published`](crate::Published), [`Deliveries`]
//! calls: a NATS server - fails: while it is away nothing is queued here, publishing says so at once, and consuming goes
//! on when it is back; what is gone or differs is said, never changed
//!
//! # What the stream's settings do
//! Retention is `interest`: a message stays until every durable whose filter it matches has acknowledged it, and one that
//! no durable matches is acknowledged to its publisher and dropped. So durables are made before the first publish.
//!
//! `max_msgs_per_subject: 1` with `discard: new` and **without** `discard_new_per_subject` was found on a real server
//! 2.15 to be what is wanted, and is the only combination that is:
//! - a second `.state` replaces the first, whether it was delivered or not; an acknowledgement of the replaced one is
//!   harmless, it is not redelivered, and it no longer counts against `max_ack_pending`;
//! - a full stream refuses (error 10077, "maximum bytes exceeded"), and drops nothing that it holds; a state that is no
//!   larger than the one it replaces is taken even then, a larger one is refused and the older one stays;
//! - what was refused leaves no trace in the window of duplicates: the same state may be published again;
//! - a state that a newer one has replaced still counts as a duplicate within the window, and so does what was dropped
//!   because nobody was interested: a durable that is made within that window misses it, however often it is repeated.
//!   So the id of a message says for which life of stream and durables it is: what is published for others is another.
//!
//! The stream of reports has these settings too, and a limit of its own: whoever reads reports, and does it slowly or not
//! any more, must not keep events from going on. When it refuses, its publisher takes the oldest away and counts them
//! (`discard`); of `discard: old` nobody would learn how many went, or that any did.
//!
//! With `discard_new_per_subject` the second state is refused ("maximum messages per subject exceeded", the same error
//! number) and the older one stays: a consumer that lags would report old states. A roll-up header replaces it there as
//! well, but each publisher must be allowed to roll up. With `discard: old` a full stream drops its oldest messages,
//! deletions and ends of operations among them.
//!
//! # What a publisher must know
//! The newest *published* state stays, not the newest version: whoever is not sure of a publish (no answer, refused) reads
//! the object again and publishes that, and never repeats an older state after a newer one.
//!
//! The client library's own log (target `async_nats`) is to be off: it says each refused attempt to connect as an error, for
//! ever, and speaks of subjects. What there is to say is said here, once.
//!
//! An acknowledged message may be lost with the power: the server writes it to its disk later. So a stream that is not as far as it
//! was counts as made anew. Who publishes finds that out, and tells all who read beside what is published from then on.
//!
//! Nothing is nak'd: a message that waits for its turn is kept in progress, or redelivered after `ack_wait`.

mod access;
mod aside;
mod bucket;
mod bus;
mod config;
mod connect;
mod consume;
mod credentials;
mod discard;
mod ensure;
mod events;
mod follow;
mod headers;
mod leases;
mod publish;
mod reached;
mod requests;
mod shape;
mod show;
mod streams;
mod tap;
mod trust;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::{BusError, Durable, Prefix};

pub use access::Access;
pub use bucket::{
    Bucket, BucketShow, Change, Entry, Expect, LEASES, LEDGER, PutError, Watch, Watched, Writing,
};
pub use config::{Config, ConfigError, Tls, servers};
pub use connect::{ConnectError, connect, connect_once};
pub use consume::{Deliveries, Delivery, Unread};
pub use credentials::{Credentials, Secret};
pub use ensure::{Difference, Ensured};
use ensure::{Lives, Standing};
pub use follow::Following;
pub use leases::LeaseBucket;
pub use publish::PendingAck;
use reached::{Reached, StreamPosition};
pub use show::{DurableShow, Show, StreamShow};
pub use streams::{OpenError, StreamError, Streams};
pub use tap::{Tap, Tapped};

/// A connection to the bus; cheap to clone.
#[derive(Clone)]
pub struct JetStream {
    inner: Arc<Inner>,
}

struct Inner {
    client: async_nats::Client,
    context: jetstream::Context,
    config: Config,
    prefix: Prefix,
    /// Kibibytes of what is sent and not answered.
    room: Arc<Semaphore>,
    /// In which this process publishes; 0 is none.
    epoch: AtomicU64,
    /// The highest epoch of a publisher that is known of.
    newest: AtomicU64,
    /// How often everything was made anew.
    made: watch::Sender<u64>,
    /// What is made then; one makes it at a time.
    making: Mutex<Making>,
    /// How far each stream of events is.
    reached: Reached,
    /// What tells what stands there from what stood there before; 0 where it is not known.
    life: AtomicU64,
    /// Follows the files that say who asks; ends with this.
    _following: Option<AbortOnDropHandle<()>>,
}

/// What this process needs of the server.
#[derive(Default)]
struct Making {
    durables: Vec<Durable>,
    /// When it was made that is there.
    lives: Lives,
}

impl BusError {
    fn server(act: &'static str) -> impl FnOnce(async_nats::Error) -> Self {
        move |source| Self::Server { act, source }
    }
}

impl JetStream {
    /// Whether there is a connection at this moment.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.inner.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Whether the server answers within `patience`: a connection that nobody has closed may lead nowhere.
    pub async fn answers(&self, patience: Duration) -> bool {
        let name = self.inner.prefix.stream_of(crate::REPORTS);
        let ask = ensure::get(&self.inner.context, &name);
        self.is_connected() && matches!(tokio::time::timeout(patience, ask).await, Ok(Ok(_)))
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch.load(Ordering::Relaxed)
    }

    fn life(&self) -> u64 {
        self.inner.life.load(Ordering::Relaxed)
    }

    /// Waits until what was handed over (acknowledgements above all) has been written to the connection, for the end of a
    /// process.
    ///
    /// # Errors
    /// [`BusError::NoAnswer`] after `patience`, or when there is no connection left.
    pub async fn flush(&self, patience: Duration) -> Result<(), BusError> {
        match tokio::time::timeout(patience, self.inner.client.flush()).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(BusError::NoAnswer),
        }
    }

    fn connected(&self) -> Result<(), BusError> {
        if self.is_connected() { Ok(()) } else { Err(BusError::Away) }
    }
}

impl std::fmt::Debug for JetStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JetStream").field("prefix", &self.inner.prefix).finish_non_exhaustive()
    }
}
