//! Watches a bucket, for ever: all that is there, then each change, and all again whenever something may have been missed.

use std::time::Duration;

use bytes::Bytes;

use super::read::{Listing, Reader};
use super::{Bucket, Entry};
use crate::BusError;

/// Pauses between two attempts to watch.
const PAUSE: Duration = Duration::from_millis(200);

/// A key that was written or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: String,
    /// Its value; `None` when it was removed.
    pub value: Option<Bytes>,
    /// When, counted by the bucket.
    pub sequence: u64,
}

/// What a [`Watch`] tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// All that is there: it takes the place of what was told before.
    Listed {
        /// What there is, in the order of sequences.
        entries: Vec<Entry>,
        /// The connection over which it is watched from now on; see [`Bucket::connection`].
        connection: u64,
    },
    /// One change.
    Changed(Change),
    /// Something may happen unseen from now on, and until all is listed again. Said once, at most half a second after the
    /// connection was lost.
    Interrupted,
    /// There is no such bucket: it was lost or never made. Said at each attempt, five a second at most.
    Gone,
}

/// What happens in a bucket. A value that goes by itself ([`Bucket::put_for`]) is not told.
pub struct Watch {
    bucket: Bucket,
    filters: Vec<String>,
    open: Option<Reader>,
    /// What has come of a list that is not whole yet.
    listing: Option<Listing>,
    failed: bool,
}

impl Bucket {
    /// What happens to keys matching `filters`, which are as those of [`Bucket::load`]. For buckets whose matching values fit
    /// into memory. Nothing is asked of the server before the first [`Watch::next`].
    #[must_use]
    pub fn watch(&self, filters: &[String]) -> Watch {
        Watch { bucket: self.clone(), filters: filters.to_vec(), open: None, listing: None, failed: false }
    }
}

impl Watch {
    /// What happens next; it never ends, and what fails is tried again. Cancellation-safe.
    pub async fn next(&mut self) -> Watched {
        loop {
            if std::mem::take(&mut self.failed) {
                tokio::time::sleep(PAUSE).await;
            }
            let Some(reader) = &mut self.open else {
                match self.bucket.read(&self.filters).await {
                    Ok(reader) => (self.open, self.listing) = (Some(reader), Some(Listing::default())),
                    Err(error) => {
                        self.failed = true;
                        self.say(&error);
                        if matches!(error, BusError::Gone { .. }) {
                            return Watched::Gone;
                        }
                    }
                }
                continue;
            };
            if reader.is_listed()
                && let Some(listing) = self.listing.take()
            {
                return Watched::Listed { entries: listing.entries(), connection: reader.connection() };
            }
            match (reader.next(&self.bucket).await, &mut self.listing) {
                (Ok(None), _) => {}
                (Ok(Some(change)), None) => return Watched::Changed(change),
                (Ok(Some(change)), Some(listing)) => listing.take(change),
                (Err(error), _) => {
                    self.say(&error);
                    (self.open, self.failed) = (None, true);
                    if self.listing.take().is_none() {
                        return Watched::Interrupted;
                    }
                }
            }
        }
    }

    fn say(&self, error: &BusError) {
        tracing::debug!(
            stream = self.bucket.inner.stream,
            error = error as &dyn std::error::Error,
            "watching a bucket waits"
        );
    }
}
