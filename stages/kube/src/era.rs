//! Notices that the cluster's versions went back: its store was restored from a snapshot.
//!
//! What is read from the store, a list without a version, is never older than what was known before it was asked for: if it
//! is, the store was restored. Then another era begins ([`Version`]), everything is listed and handed over again, and what
//! was known of versions counts for nothing any more. It is looked for when a list comes, the first one and each survey with
//! the versions that the ledger remembers, of all shards, since of some of them nothing may have changed for long; and
//! whenever a watch is begun again, since a server whose store was restored has broken it. A store that has counted on
//! beyond all that was known is recognised by an object that has become older.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use pipeline_core::Version;
use tokio::sync::Notify;
use tracing::{error, warn};

/// The era that versions are of, and who waits for the next.
#[derive(Debug, Default)]
pub(crate) struct Era {
    now: AtomicU8,
    begun: Notify,
    /// It was said that no era is left.
    said: AtomicBool,
}

impl Era {
    pub(crate) fn now(&self) -> u8 {
        self.now.load(Ordering::Relaxed)
    }

    /// A version as the API server says it now.
    pub(crate) fn of(&self, version: Version) -> Version {
        version.in_era(self.now())
    }

    /// Somebody knows a version; returns whether it is of a later era.
    pub(crate) fn knows(&self, version: Version) -> bool {
        self.now.fetch_max(version.era(), Ordering::Relaxed) < version.era()
    }

    /// Whether `now`, as the store says it, is older than what was `known` before it was asked. No era follows the last.
    pub(crate) fn is_over(&self, now: Version, known: Version) -> bool {
        let went_back = known.era() == self.now() && now.number() != 0 && now.number() < known.number();
        let is_last = known.era() == Version::LAST_ERA;
        if went_back && is_last && !self.said.swap(true, Ordering::Relaxed) {
            let (now, known) = (now.number(), known.number());
            error!(
                known,
                now,
                "the versions of the cluster went back more often than can be counted: what is older than what is known is not \
                 reported; begin with a new ledger"
            );
        }
        went_back && !is_last
    }

    /// The versions went back from `known` to `now`. Whoever else noticed it as well has begun the era already.
    pub(crate) fn next(&self, now: Version, known: Version) {
        let (over, next) = (known.era(), known.era().saturating_add(1));
        if self.now.compare_exchange(over, next, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        let (now, known) = (now.number(), known.number());
        warn!(
            known,
            now,
            "the versions of the cluster went back, as after a restore of its store: everything is compared again"
        );
    }

    /// Tells the watch that another era began.
    pub(crate) fn tell(&self) {
        self.begun.notify_one();
    }

    /// Returns once another era began that the watch does not know of.
    pub(crate) async fn begun(&self) {
        self.begun.notified().await;
    }
}
