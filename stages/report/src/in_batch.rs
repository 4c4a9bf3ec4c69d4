//! What is sent for others: a report that waits for a request, which another may send, and one failure of a request that
//! several reports shared.
//!
//! Whoever ships a report waits no longer than it may be under way: until its time is over, or its shard another's. A request
//! that somebody else sends is to end then too.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use pipeline_core::{Reason, Shipment, StageError};
use tokio::sync::oneshot;

type ShipResult = Result<(), StageError>;

/// A report that waits to be sent.
pub(crate) struct Waiting {
    pub(crate) shipment: Shipment,
    /// Closed when nobody waits for it any more.
    pub(crate) answer: oneshot::Sender<ShipResult>,
}

/// Whoever waited for a report of a batch has gone.
#[derive(Debug, thiserror::Error)]
#[error("cannot send a batch of reports: the time of one of them was over")]
struct NotAwaited;

/// What `sending` the reports of a batch comes to: the failure of all, once nobody waits for one of them.
pub(crate) async fn while_awaited<T>(
    batch: &mut [Waiting],
    sending: impl Future<Output = T>,
) -> Result<T, StageError> {
    let mut gone: FuturesUnordered<_> = batch.iter_mut().map(|waiting| waiting.answer.closed()).collect();
    tokio::select! {
        biased;
        Some(()) = gone.next() => Err(StageError::retry(Reason::Timeout, NotAwaited)),
        sent = sending => Ok(sent),
    }
}

/// Answers with what `sending` a report alone comes to, unless nobody waits for it any more.
pub(crate) async fn answer_alone(
    mut answer: oneshot::Sender<ShipResult>,
    sending: impl Future<Output = ShipResult>,
) {
    tokio::select! {
        biased;
        () = answer.closed() => {}
        // Whoever waited may have gone.
        sent = sending => drop(answer.send(sent)),
    }
}

/// The same failure for every report of a batch: each is to be sent again.
pub(crate) fn all(reports: usize, error: StageError) -> Vec<Result<(), StageError>> {
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
