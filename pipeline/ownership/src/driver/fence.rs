//! For how long an owner may send, readable by whoever sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::LeaseTerm;

/// One owner's leave to send for one shard: its epoch, and a deadline that moves with each renewal of the lease.
///
/// It is asked from any thread, at any time, and nothing has to run for the answer to be right: where the driver is held
/// up, or gone, the deadline comes all the same. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct Fence {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    epoch: u64,
    /// When the clock of the lease stood at nothing.
    began: Instant,
    post_timeout: Duration,
    /// Nanoseconds since `began` when the lease ends; 0: it has ended.
    until: AtomicU64,
}

impl Fence {
    pub(super) fn new(epoch: u64, began: Instant, post_timeout: Duration) -> Self {
        Self { shared: Arc::new(Shared { epoch, began, post_timeout, until: AtomicU64::new(0) }) }
    }

    /// The epoch, which each report carries.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.shared.epoch
    }

    /// How long sending a report may take.
    #[must_use]
    pub fn post_timeout(&self) -> Duration {
        self.shared.post_timeout
    }

    /// [`LeaseTerm::may_send`] now, for a report: it ends, by an answer or by its time-out, before the lease does.
    #[must_use]
    pub fn may_send(&self) -> bool {
        let Shared { epoch, began, post_timeout, until } = &*self.shared;
        let until = Duration::from_nanos(until.load(Ordering::Acquire));
        LeaseTerm { epoch: *epoch, until }.may_send(began.elapsed(), *post_timeout)
    }

    /// When the lease ends, on the clock of the machine.
    #[cfg(test)]
    pub(super) fn until(&self) -> Duration {
        Duration::from_nanos(self.shared.until.load(Ordering::Acquire))
    }

    /// The lease was renewed.
    pub(super) fn extend(&self, until: Duration) {
        self.shared.until.store(u64::try_from(until.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// The lease is lost, or its shard has stopped.
    pub(super) fn close(&self) {
        self.shared.until.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_report_may_be_begun_until_it_could_outlast_the_lease() {
        let fence = Fence::new(7, Instant::now(), Duration::from_secs(3));
        assert!(!fence.may_send(), "nothing is granted yet");
        fence.extend(Duration::from_secs(10));
        let elsewhere = fence.clone();
        tokio::time::advance(Duration::from_nanos(6_999_999_999)).await;
        assert!(fence.may_send() && elsewhere.may_send());
        tokio::time::advance(Duration::from_nanos(1)).await;
        assert!(!fence.may_send() && !elsewhere.may_send());
        fence.extend(Duration::from_secs(12));
        assert!(elsewhere.may_send());
        fence.close();
        assert!(!elsewhere.may_send());
        assert_eq!(elsewhere.epoch(), 7);
    }

    #[test]
    fn it_can_be_asked_on_a_thread_that_knows_no_runtime() {
        let fence = Fence::new(7, Instant::now(), Duration::ZERO);
        fence.extend(Duration::from_secs(3_600));
        assert!(std::thread::spawn(move || fence.may_send()).join().unwrap());
    }
}
