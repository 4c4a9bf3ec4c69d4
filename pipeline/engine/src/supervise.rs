//! Keeps something running until it is told to stop.
//!
//! takes: a way to start it - gives: nothing until `stop`
//! fails: never; what returns early, returns an error, or panics is started again, later each time

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use pipeline_core::{Backoff, Reason, Shutdown, StageError};
use tokio::time::Instant;

/// Runs what `start` makes until `stop`, again and again. `broken` is told the reason of every end that was
/// not asked for; a run that lasted longer than the longest wait counts as a success.
pub async fn supervise<Run>(
    name: &'static str,
    backoff: Backoff,
    stop: &Shutdown,
    mut broken: impl FnMut(Reason),
    mut start: impl FnMut() -> Run,
) where
    Run: Future<Output = Result<(), StageError>>,
{
    let mut failures = 0;
    while !stop.is_cancelled() {
        let begun = Instant::now();
        let end = caught(start()).await;
        if stop.is_cancelled() {
            return;
        }
        if begun.elapsed() > backoff.max {
            failures = 0;
        }
        failures += 1;
        let after = match &end {
            Ok(Err(StageError::Retry { after, .. })) => *after,
            _ => None,
        };
        let wait = backoff.wait(failures, after, fastrand::u64(..));
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let reason = match &end {
            Ok(Ok(())) => {
                tracing::error!(
                    stage = name,
                    wait_ms,
                    "a stage ended without being asked, starting it again"
                );
                Reason::CutShort
            }
            Ok(Err(error)) => {
                let cause: &dyn std::error::Error = error;
                let reason = error.reason();
                tracing::warn!(
                    stage = name,
                    wait_ms,
                    reason = reason.as_str(),
                    error = cause,
                    "a stage failed, starting it again"
                );
                reason
            }
            Err(Panicked) => {
                tracing::error!(stage = name, wait_ms, "a stage panicked, starting it again");
                Reason::Malformed
            }
        };
        broken(reason);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Something panicked. What it said was printed by the panic hook, and may hold anything: it is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Runs `future`; a panic in it ends it alone.
pub(crate) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let unwound = |_: Box<dyn Any + Send>| Panicked;
    AssertUnwindSafe(future).catch_unwind().await.map_err(unwound)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use super::*;

    const RESTART: Backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(60) };

    #[tokio::test(start_paused = true)]
    async fn whatever_ends_is_started_again_later_each_time_until_stop() {
        let (stop, begun) = (Shutdown::new(), Instant::now());
        let (runs, starts, reasons) = (Cell::new(0), RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let start = || {
            runs.set(runs.get() + 1);
            starts.borrow_mut().push(begun.elapsed());
            let (run, stop) = (runs.get(), stop.clone());
            async move {
                match run {
                    1 => Err(StageError::retry(Reason::Unreachable, "no route")),
                    2 => Ok(()),
                    3 => panic!("a bug"),
                    4 => Err(StageError::reject(Reason::Forbidden, "no right")),
                    _ => {
                        stop.cancel();
                        Ok(())
                    }
                }
            }
        };
        supervise("test", RESTART, &stop, |reason| reasons.borrow_mut().push(reason), start).await;
        assert_eq!(runs.get(), 5);
        let expected = [Reason::Unreachable, Reason::CutShort, Reason::Malformed, Reason::Forbidden];
        assert_eq!(*reasons.borrow(), expected);
        let starts = starts.borrow();
        for (pair, full) in starts.windows(2).zip([1, 2, 4, 8]) {
            let (wait, full) = (pair[1] - pair[0], Duration::from_secs(full));
            assert!(wait >= full / 2 && wait <= full + Duration::from_millis(2), "{wait:?} of {full:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_lasted_starts_the_waits_anew() {
        let (stop, starts) = (Shutdown::new(), RefCell::new(Vec::new()));
        let start = || {
            starts.borrow_mut().push(Instant::now());
            if starts.borrow().len() == 6 {
                stop.cancel();
            }
            async {
                tokio::time::sleep(Duration::from_secs(120)).await;
                Err(StageError::retry(Reason::Timeout, "gone"))
            }
        };
        supervise("test", RESTART, &stop, drop, start).await;
        let starts = starts.borrow();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] <= Duration::from_millis(121_002)));
    }
}
