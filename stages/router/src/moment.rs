//! Moments that several tasks see: when something moved last, since when something waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A moment, or none, that several tasks may read and set.
#[derive(Debug)]
pub(crate) struct Moment {
    began: Instant,
    /// One more than the milliseconds from `began` to the moment; 0 for none.
    at: AtomicU64,
}

impl Moment {
    pub(crate) fn none() -> Self {
        Self { began: Instant::now(), at: AtomicU64::new(0) }
    }

    pub(crate) fn now() -> Self {
        Self { at: AtomicU64::new(1), ..Self::none() }
    }

    fn read(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// Sets the moment to now.
    pub(crate) fn touch(&self) {
        self.at.store(self.read(), Ordering::Relaxed);
    }

    /// Sets the moment to now, unless there is one already.
    pub(crate) fn begin(&self) {
        let _ = self.at.compare_exchange(0, self.read(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Sets the moment to none.
    pub(crate) fn clear(&self) {
        self.at.store(0, Ordering::Relaxed);
    }

    /// How long ago the moment is.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        let at = self.at.load(Ordering::Relaxed);
        (at > 0).then(|| Duration::from_millis(self.read().saturating_sub(at)))
    }

    /// What is left of `limit`, counted from the moment: `None` when it is over, all of it when there is no moment.
    pub(crate) fn left(&self, limit: Duration) -> Option<Duration> {
        limit.checked_sub(self.elapsed().unwrap_or_default()).filter(|left| !left.is_zero())
    }

    /// Waits until the moment is `limit` ago, however often it is set in the meantime.
    pub(crate) async fn stale(&self, limit: Duration) {
        while let Some(left) = self.left(limit) {
            sleep(left).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_moves_again_and_again_does_not_get_stale() {
        let moment = Moment::now();
        let moving = async {
            for _ in 0..9 {
                sleep(Duration::from_secs(9)).await;
                moment.touch();
            }
        };
        let began = Instant::now();
        tokio::join!(moving, moment.stale(Duration::from_secs(10)));
        assert_eq!(began.elapsed().as_secs(), 91);
        assert_eq!(Moment::none().elapsed(), None);
    }
}
