//! An engine whose watch and shards are connected by NATS JetStream instead of memory.
//!
//! The watch, where this process runs it, goes into the [`publisher`]; each shard that this process owns is [`fed`](feed) by a
//! durable of its own; its [`answers`] go back to the server once the ledger is written; what the receiver acknowledged is
//! [published](results) for other readers. A server that lost its storage is made anew ([`Stream::remake`]), and whoever
//! watches lists and publishes everything again.

pub(super) mod answers;
mod dirty;
pub(super) mod feed;
pub(super) mod publisher;
pub(super) mod results;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, watch};

use pipeline_bus::durables;
use pipeline_bus::jetstream::{BusError, JetStream};
use pipeline_observe::metrics::BusSeries;

/// Between tries to make what is not there.
const AGAIN: Duration = Duration::from_secs(1);

/// The stream that an engine works on.
pub(super) struct Stream {
    pub(super) jetstream: JetStream,
    pub(super) metrics: BusSeries,
    shards: NonZeroU32,
    /// How often everything was made anew.
    made: watch::Sender<u64>,
    /// One makes it at a time.
    making: Mutex<()>,
    /// The highest epoch of a watcher that is known.
    newest: AtomicU64,
}

impl Stream {
    pub(super) fn new(jetstream: JetStream, shards: NonZeroU32, metrics: BusSeries) -> Arc<Self> {
        Arc::new(Self {
            jetstream,
            metrics,
            shards,
            made: watch::channel(0).0,
            making: Mutex::new(()),
            newest: AtomicU64::new(0),
        })
    }

    /// Makes what is absent, trying until the server answers, and says what differs.
    pub(super) async fn ensure(&self) {
        loop {
            match self.jetstream.ensure(&durables(self.shards.get())).await {
                Ok(ensured) => {
                    for difference in &ensured.differences {
                        tracing::warn!(%difference, "the bus is not as the settings say; nobody changes it but you");
                    }
                    return;
                }
                Err(error) => {
                    not_yet(&error);
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    /// Which making it is now: to be asked before something is tried that may find it gone.
    pub(super) fn made(&self) -> u64 {
        *self.made.borrow()
    }

    /// The highest epoch of a watcher that is known, with this one.
    pub(super) fn newest_epoch(&self, epoch: u64) -> u64 {
        self.newest.fetch_max(epoch, Ordering::Relaxed).max(epoch)
    }

    /// Tells of each making.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.made.subscribe()
    }

    /// Something found the stream, or a durable of it, gone after making `seen`.
    pub(super) async fn remake(&self, seen: u64) {
        let _making = self.making.lock().await;
        if self.made() != seen {
            return;
        }
        self.ensure().await;
        tracing::warn!(
            "the bus lost its stream, and it was made anew: everything is listed and published again"
        );
        self.made.send_modify(|made| *made += 1);
    }
}

/// Whether the stream, or what is asked of it, is not there.
pub(super) fn is_gone(error: &BusError) -> bool {
    matches!(error, BusError::Gone { .. })
}

fn not_yet(error: &(dyn std::error::Error + 'static)) {
    tracing::debug!(error, "cannot look at the bus yet");
}
