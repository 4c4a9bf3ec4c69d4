//! Several events in one request: what comes while one is under way shares the next. A request ends, and its events are sent
//! again later, when nobody waits for one of them any more.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures::future::join_all;
use pipeline_core::{Reason, Shipment, StageError};
use tokio::sync::oneshot;

use super::{BATCHED, CloudEvents, event};
use crate::in_batch::{Waiting, all, answer_alone, while_awaited};

/// The events that wait for a request.
#[derive(Default)]
pub(super) struct Batches {
    waiting: Mutex<VecDeque<Waiting>>,
    /// Whoever has it sends what waits.
    sending: tokio::sync::Mutex<()>,
}

/// Whoever was sending ended before its answer came.
#[derive(Debug, thiserror::Error)]
#[error("cannot send a cloudevent: its batch was given up")]
struct GivenUp;

impl Batches {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next ones that somebody waits for, within the bounds of a request: at least one where there is any.
    fn take(&self, (events, bytes): (usize, usize)) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        let (mut taken, mut size) = (Vec::new(), 0);
        while let Some(next) = waiting.front() {
            if next.answer.is_closed() {
                waiting.pop_front();
                continue;
            }
            size += next.shipment.report.body.len();
            if !taken.is_empty() && (taken.len() >= events || size > bytes) {
                break;
            }
            taken.extend(waiting.pop_front());
        }
        taken
    }
}

impl CloudEvents {
    pub(super) async fn ship_together(
        &self,
        shipments: &[Shipment],
        bounds: (usize, usize),
    ) -> Vec<Result<(), StageError>> {
        let joined = shipments.iter().map(|shipment| {
            let (answer, answered) = oneshot::channel();
            self.batches.waiting().push_back(Waiting { shipment: shipment.clone(), answer });
            answered
        });
        let joined: Vec<_> = joined.collect();
        let mut answers = std::pin::pin!(join_all(joined));
        let given_up = |_| Err(StageError::retry(Reason::Stopping, GivenUp));
        let answers = loop {
            tokio::select! {
                biased;
                answers = &mut answers => break answers,
                _sending = self.batches.sending.lock() => {
                    let batch = self.batches.take(bounds);
                    if batch.is_empty() {
                        // Another has just sent them; their answers are there.
                        break answers.await;
                    }
                    self.send(batch).await;
                }
            }
        };
        answers.into_iter().map(|answer| answer.unwrap_or_else(given_up)).collect()
    }

    /// Sends a batch and answers each of its events.
    async fn send(&self, mut batch: Vec<Waiting>) {
        let start = Instant::now();
        let events: Vec<Bytes> =
            batch.iter().map(|waiting| event::structured(&waiting.shipment, &self.source)).collect();
        let body = [b"[", &*events.join(&b","[..]), b"]"].concat();
        let request = self.request(BATCHED, Vec::new(), body.into());
        let sent = while_awaited(&mut batch, request).await;
        match sent.and_then(|sent| sent.map_err(|error| self.classified(error))) {
            Ok(()) => batch.into_iter().for_each(|waiting| self.answer(waiting, Ok(()), start)),
            Err(error) if error.is_retry() => {
                let answers = all(batch.len(), error);
                batch
                    .into_iter()
                    .zip(answers)
                    .for_each(|(waiting, answer)| self.answer(waiting, answer, start));
            }
            Err(_) if batch.len() > 1 => {
                let posts = batch.into_iter().map(|Waiting { shipment, answer }| async move {
                    answer_alone(answer, self.post(&shipment)).await;
                });
                join_all(posts).await;
            }
            Err(error) => {
                if let Some(waiting) = batch.into_iter().next() {
                    self.answer(waiting, Err(error), start);
                }
            }
        }
    }

    fn answer(&self, waiting: Waiting, answer: Result<(), StageError>, start: Instant) {
        self.count(&answer, start);
        // Whoever waited may be gone.
        let _ = waiting.answer.send(answer);
    }
}
