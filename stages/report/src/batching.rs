//! Reports that share requests: those that are shipped while a request is under way wait for each other, and one of those who ship
//! them sends all.
//!
//! Whoever ships a report waits no longer than it may be under way: until its time is over, or its shard another's. A request
//! that somebody else sends is to end then too.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::{Either, join_all, select};
use futures::stream::{self, FuturesUnordered};
use pipeline_core::{Reason, Shipment, StageError};
use tokio::sync::{Notify, oneshot};

pub(crate) type ShipResult = Result<(), StageError>;

/// A sink that sends reports in batches.
pub(crate) trait SendsBatches: Sync {
    /// Sends a report alone, and counts it.
    fn send_alone(&self, shipment: &Shipment) -> impl Future<Output = ShipResult> + Send;

    /// Sends reports together: an answer for each; or nothing, where they are to be sent alone.
    fn send_batch(
        &self,
        shipments: &[Shipment],
    ) -> impl Future<Output = ControlFlow<(), Vec<ShipResult>>> + Send;

    /// Counts what became of a report of a batch.
    fn count(&self, answer: &ShipResult, took: Duration);
}

/// Which reports share a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchBounds {
    /// The most reports in one.
    pub(crate) reports: usize,
    /// The most bytes of payloads in one; a report that is larger goes alone.
    pub(crate) bytes: usize,
    /// How long a report waits for others while a request is under way; where none is, it never waits.
    pub(crate) linger: Duration,
    /// Requests at once for reports of a batch that are sent alone.
    pub(crate) alone: usize,
}

/// The reports that are about to be sent.
pub(crate) struct Batching {
    bounds: BatchBounds,
    queue: Mutex<Queue>,
    /// Told when no request is under way any more.
    idle: Notify,
}

/// A report that waits to be sent.
struct Waiting {
    shipment: Shipment,
    /// Closed when nobody waits for it any more.
    answer: oneshot::Sender<ShipResult>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// How many reports ever left the queue; the first that waits has this number.
    left: u64,
    /// Requests under way.
    under_way: usize,
}

/// Reports that are sent together, and where their answers go. Whoever drops it leaves them unanswered, and whoever waits for one
/// sends it again.
struct Load<'a> {
    batching: &'a Batching,
    shipments: Vec<Shipment>,
    answers: Vec<oneshot::Sender<ShipResult>>,
}

impl Batching {
    pub(crate) fn new(bounds: BatchBounds) -> Self {
        Self { bounds, queue: Mutex::default(), idle: Notify::new() }
    }

    /// Ships reports together with those that others ship meanwhile. Each caller waits for its own answers; one whose
    /// reports are still in the queue when the time has come sends the next batch, its own and others'.
    pub(crate) async fn ship(&self, sink: &impl SendsBatches, shipments: &[Shipment]) -> Vec<ShipResult> {
        let mut answers: Vec<Option<ShipResult>> = shipments.iter().map(|_| None).collect();
        loop {
            let open: Vec<usize> =
                (0..answers.len()).filter(|at| answers.get(*at).is_some_and(Option::is_none)).collect();
            if open.is_empty() {
                return answers.into_iter().flatten().collect();
            }
            let (coming, end) = self.join(open.iter().filter_map(|at| shipments.get(*at)));
            let come = pin!(join_all(coming));
            let come = match select(come, pin!(self.linger())).await {
                Either::Left((come, _)) => come,
                Either::Right(((), come)) => {
                    while let Some(load) = self.load(end) {
                        load.send(sink).await;
                    }
                    come.await
                }
            };
            for (at, answer) in open.into_iter().zip(come) {
                // One whose sender was given up before it was answered is sent again, under its key.
                if let Some(slot) = answers.get_mut(at) {
                    *slot = answer.ok();
                }
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts reports into the queue; where their answers come, and the number after the last of them.
    fn join<'a>(
        &self,
        shipments: impl Iterator<Item = &'a Shipment>,
    ) -> (Vec<oneshot::Receiver<ShipResult>>, u64) {
        let mut queue = self.queue();
        let answers = shipments.map(|shipment| {
            let (answer, answered) = oneshot::channel();
            queue.bytes += shipment.report.body.len();
            queue.waiting.push_back(Waiting { shipment: shipment.clone(), answer });
            answered
        });
        let answers = answers.collect();
        (answers, queue.left + queue.waiting.len() as u64)
    }

    /// Waits for others, where that may bring something: a request is under way, and there is room.
    async fn linger(&self) {
        let idle = self.idle.notified();
        {
            let queue = self.queue();
            let full = queue.waiting.len() >= self.bounds.reports || queue.bytes >= self.bounds.bytes;
            if queue.under_way == 0 || full {
                return;
            }
        }
        // Either of them will do.
        let _ = tokio::time::timeout(self.bounds.linger, idle).await;
    }

    /// The next reports to be sent together, unless those before number `end` have all left the queue.
    fn load(&self, end: u64) -> Option<Load<'_>> {
        let mut queue = self.queue();
        let (mut shipments, mut answers, mut bytes) = (Vec::new(), Vec::new(), 0);
        while queue.left < end || !answers.is_empty() {
            let next = queue.waiting.front().map(|waiting| waiting.shipment.report.body.len());
            let Some(size) = next else { break };
            let room = answers.len() < self.bounds.reports.max(1) && bytes + size <= self.bounds.bytes;
            if !answers.is_empty() && !room {
                break;
            }
            let Some(waiting) = queue.waiting.pop_front() else { break };
            queue.left += 1;
            queue.bytes = queue.bytes.saturating_sub(size);
            // Nobody waits for it any more: it is not sent.
            if !waiting.answer.is_closed() {
                bytes += size;
                shipments.push(waiting.shipment);
                answers.push(waiting.answer);
            }
        }
        if answers.is_empty() {
            return None;
        }
        queue.under_way += 1;
        Some(Load { batching: self, shipments, answers })
    }
}

impl Load<'_> {
    async fn send(mut self, sink: &impl SendsBatches) {
        let start = Instant::now();
        let sending = sink.send_batch(&self.shipments);
        let answers = match while_awaited(&mut self.answers, sending).await {
            Ok(ControlFlow::Continue(answers)) => answers,
            Ok(ControlFlow::Break(())) => return self.send_alone(sink).await,
            Err(error) => all(self.shipments.len(), error),
        };
        let took = start.elapsed();
        for (to, answer) in self.answers.drain(..).zip(answers) {
            sink.count(&answer, took);
            // Whoever waited may have gone.
            let _ = to.send(answer);
        }
    }

    async fn send_alone(mut self, sink: &impl SendsBatches) {
        let each = self.shipments.iter().zip(self.answers.drain(..));
        let posts: Vec<_> = each.map(|(shipment, answer)| alone(answer, sink.send_alone(shipment))).collect();
        stream::iter(posts).buffer_unordered(self.batching.bounds.alone).collect::<()>().await;
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        let mut queue = self.batching.queue();
        queue.under_way = queue.under_way.saturating_sub(1);
        if queue.under_way == 0 {
            self.batching.idle.notify_waiters();
        }
    }
}

/// Whoever waited for a report of a batch has gone.
#[derive(Debug, thiserror::Error)]
#[error("cannot send a batch of reports: the time of one of them was over")]
struct NotAwaited;

/// What `sending` the reports of a batch comes to: the failure of all, once nobody waits for one of them.
async fn while_awaited<T>(
    answers: &mut [oneshot::Sender<ShipResult>],
    sending: impl Future<Output = T>,
) -> Result<T, StageError> {
    let mut gone: FuturesUnordered<_> = answers.iter_mut().map(oneshot::Sender::closed).collect();
    tokio::select! {
        biased;
        Some(()) = gone.next() => Err(StageError::retry(Reason::Timeout, NotAwaited)),
        sent = sending => Ok(sent),
    }
}

/// Answers with what `sending` a report alone comes to, unless nobody waits for it any more.
async fn alone(mut answer: oneshot::Sender<ShipResult>, sending: impl Future<Output = ShipResult>) {
    tokio::select! {
        biased;
        () = answer.closed() => {}
        // Whoever waited may have gone.
        sent = sending => drop(answer.send(sent)),
    }
}

/// The same failure for every report of a batch: each is to be sent again.
pub(crate) fn all(reports: usize, error: StageError) -> Vec<ShipResult> {
    let (reason, source, after) = match error {
        StageError::Retry { reason, source, after } => (reason, source, after),
        StageError::Reject { reason, source } => (reason, source, None),
    };
    let source: Arc<dyn Error + Send + Sync> = source.into();
    let one = || Err(StageError::Retry { reason, source: Box::new(InBatch(source.clone())), after });
    (0..reports).map(|_| one()).collect()
}

/// A report that shared its request.
#[derive(Debug)]
struct InBatch(Arc<dyn Error + Send + Sync>);

impl fmt::Display for InBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for InBatch {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
