//! Whose turn it is to have something compared: of each runtime one comparison at a time, however many it asks for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::refusal::Refusal;

/// By runtime.
#[derive(Debug)]
pub(crate) struct Turns {
    in_line: usize,
    of: Mutex<HashMap<i64, Line>>,
}

/// The line of one runtime.
#[derive(Debug, Clone)]
struct Line {
    places: Arc<Semaphore>,
    first: Arc<Semaphore>,
}

/// The turn of a comparison, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _first: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Turns {
    /// Of so many comparisons of a runtime that are under way or wait.
    pub(crate) fn new(in_line: usize) -> Self {
        Self { in_line, of: Mutex::default() }
    }

    /// Waits for the turn of a runtime's comparison, in the order in which they came; where too many wait, it is refused.
    pub(crate) async fn take(&self, runtime: i64) -> Result<Turn, Refusal> {
        let line = {
            let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
            let places = || Arc::new(Semaphore::new(self.in_line));
            let new = || Line { places: places(), first: Arc::new(Semaphore::new(1)) };
            of.entry(runtime).or_insert_with(new).clone()
        };
        let many = |_| Refusal::ManyComparisons(self.in_line);
        let place = line.places.try_acquire_owned().map_err(many)?;
        // It is never closed.
        let first = line.first.acquire_owned().await.map_err(|_| Refusal::Busy)?;
        Ok(Turn { _first: first, _place: place })
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_runtime_has_one_comparison_at_a_time_and_another_does_not_wait_for_it() {
        let turns = Turns::new(5);
        let first = turns.take(1).await.unwrap();
        let mut waiting = (1..5).map(|_| Box::pin(turns.take(1))).collect::<Vec<_>>();
        for one in &mut waiting {
            assert!(progress(one.as_mut()).await.is_pending());
        }
        assert_eq!(turns.take(1).await.unwrap_err(), Refusal::ManyComparisons(5));
        turns.take(2).await.unwrap();
        // One that goes away leaves its place to another.
        drop(waiting.pop());
        let mut last = Box::pin(turns.take(1));
        assert!(progress(last.as_mut()).await.is_pending());
        drop(first);
        for one in waiting {
            drop(one.await.unwrap());
        }
        last.await.unwrap();
    }

    /// How far something has come.
    async fn progress<T>(one: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        let mut one = Some(one);
        std::future::poll_fn(|context| Poll::Ready(one.take().unwrap().poll(context))).await
    }
}
