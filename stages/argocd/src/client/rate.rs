//! A hard bound on the calls of a second.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::Semaphore;

/// The runtime's clock, so that waiting and counting go by the same one.
#[derive(Debug, Clone, Copy)]
struct RuntimeClock;

impl Clock for RuntimeClock {
    type Instant = Instant;

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// Lets so many calls pass in any second, in the order in which they came.
pub(super) struct CallRate {
    rate: RateLimiter<NotKeyed, InMemoryState, RuntimeClock, NoOpMiddleware<Instant>>,
    /// The first of the queue has it; the others wait for it in order.
    turn: Semaphore,
}

impl CallRate {
    /// At most `calls` begin in any second.
    pub(super) fn new(calls: NonZeroU32) -> Self {
        // A timer wakes up a millisecond late or more; some calls at once make that good. What begins at once is
        // taken off the steady rate, so that not even the first second sees more than `calls`.
        let at_once = NonZeroU32::new(calls.get() / 50 + 1).unwrap_or(NonZeroU32::MIN);
        let steady = calls.get() - at_once.get() + 1;
        let each = Duration::from_secs(1) / steady;
        let quota = Quota::with_period(each).unwrap_or_else(|| Quota::per_second(calls));
        Self {
            rate: RateLimiter::direct_with_clock(quota.allow_burst(at_once), RuntimeClock),
            turn: Semaphore::new(1),
        }
    }

    /// Waits for its turn, and then until the rate allows one more; how long that took, if it took any time.
    /// Whoever drops this leaves the queue.
    pub(super) async fn take(&self) -> Option<Duration> {
        let begun = tokio::time::Instant::now();
        let mut waited = false;
        let turn = match self.turn.try_acquire() {
            Ok(turn) => Some(turn),
            Err(_) => {
                waited = true;
                // Never closed; if it were, the order alone would be lost.
                self.turn.acquire().await.ok()
            }
        };
        while let Err(early) = self.rate.check() {
            waited = true;
            tokio::time::sleep(early.wait_time_from(RuntimeClock.now())).await;
        }
        drop(turn);
        waited.then(|| begun.elapsed())
    }
}

impl std::fmt::Debug for CallRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CallRate")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;
    use tokio::time::{Instant, timeout};

    use super::*;

    /// When each of `calls` passed, in microseconds, all having come at once.
    async fn passed(per_second: u32, calls: usize) -> Vec<u128> {
        let rate = CallRate::new(NonZeroU32::new(per_second).unwrap());
        let begun = Instant::now();
        let mut passed = Vec::new();
        for _ in 0..calls {
            rate.take().await;
            passed.push(begun.elapsed().as_micros());
        }
        passed
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn no_second_sees_more_than_the_budget_and_nearly_all_of_it_is_used(
            per_second in 1u32..2_000, seconds in 1usize..3,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            let passed = runtime.block_on(passed(per_second, per_second as usize * seconds + 7));
            for (from, next) in passed.iter().zip(passed.iter().skip(per_second as usize)) {
                prop_assert!(*next >= from + 1_000_000, "{per_second} and one more from {from} us to {next} us");
            }
            let took = *passed.last().unwrap() as f64 / 1e6;
            let used = (passed.len() - 1) as f64 / took / f64::from(per_second);
            prop_assert!(used >= 0.9, "{used} of {per_second} a second");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_first_passes_first_and_who_leaves_holds_up_nobody() {
        let rate = Arc::new(CallRate::new(NonZeroU32::new(10).unwrap()));
        assert_eq!(rate.take().await, None, "the first need not wait");
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for n in 0..20 {
            let (rate, order) = (rate.clone(), order.clone());
            // Every third gives up before its turn comes.
            let patience = if n % 3 == 2 { Duration::from_millis(1) } else { Duration::from_secs(60) };
            tasks.push(tokio::spawn(async move {
                if timeout(patience, rate.take()).await.is_ok() {
                    order.lock().unwrap().push(n);
                }
            }));
            tokio::task::yield_now().await;
        }
        for task in tasks {
            task.await.unwrap();
        }
        let patient: Vec<i32> = (0..20).filter(|n| n % 3 != 2).collect();
        assert_eq!(*order.lock().unwrap(), patient);
    }
}
