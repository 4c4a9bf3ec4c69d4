//! Writes lines on a thread of its own, several shipments at a time.
//!
//! Disks and pipes block; the runtime's threads must not. What waits while one batch is written goes with
//! the next, so that one flush or fsync serves many.

use std::io;
use std::sync::Arc;
use std::thread;

use pipeline_core::{Reason, Shipment, StageError};
use tokio::sync::{mpsc, oneshot};

use crate::envelope;

/// Batches that wait for the thread at most; who comes later waits for room.
const QUEUE: usize = 64;
/// Bytes that are written before they are flushed and answered.
const GROUP: usize = 4 * 1024 * 1024;

/// Where lines go.
pub(crate) trait Output: Send + 'static {
    /// What failed, as in "cannot {act}".
    const ACT: &'static str;

    /// Appends whole lines, all or none of them.
    fn append(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Makes what was appended last.
    fn commit(&mut self) -> io::Result<()>;

    /// Looks at what a failure means beyond the lines that failed.
    fn failed(&mut self, error: &io::Error) -> Reason;
}

/// Lines that could not be written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot {act}")]
pub(crate) struct WriteError {
    act: &'static str,
    reason: Reason,
    source: Arc<io::Error>,
}

/// The thread that wrote is gone.
#[derive(Debug, thiserror::Error)]
#[error("cannot {0}: the writer has stopped")]
struct Gone(&'static str);

struct Batch {
    lines: Vec<u8>,
    done: oneshot::Sender<Result<(), WriteError>>,
}

/// The way to the thread; it ends when this is dropped and all is written.
#[derive(Debug)]
pub(crate) struct Lines {
    queue: mpsc::Sender<Batch>,
    act: &'static str,
}

impl Lines {
    /// Starts the thread `name` that writes to `output`.
    pub(crate) fn start<O: Output>(name: &str, output: O) -> io::Result<Self> {
        let (queue, batches) = mpsc::channel(QUEUE);
        thread::Builder::new().name(name.to_owned()).spawn(move || write(output, batches))?;
        Ok(Self { queue, act: O::ACT })
    }

    /// Writes one line per shipment. A call that is given up may have written: the idempotency key tells
    /// repeated lines apart.
    pub(crate) async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        if shipments.is_empty() {
            return Vec::new();
        }
        let size = shipments.iter().map(|shipment| shipment.report.body.len() + 256).sum();
        let mut lines = Vec::with_capacity(size);
        for shipment in shipments {
            envelope::line(&mut lines, shipment);
        }
        let outcome = self.write(lines).await;
        shipments.iter().map(|_| self.answer(&outcome)).collect()
    }

    /// Writes whole lines that are no reports.
    pub(crate) async fn append(&self, lines: Vec<u8>) -> Result<(), StageError> {
        let outcome = self.write(lines).await;
        self.answer(&outcome)
    }

    /// `None` when the thread is gone.
    async fn write(&self, lines: Vec<u8>) -> Option<Result<(), WriteError>> {
        let (done, written) = oneshot::channel();
        self.queue.send(Batch { lines, done }).await.ok()?;
        written.await.ok()
    }

    fn answer(&self, outcome: &Option<Result<(), WriteError>>) -> Result<(), StageError> {
        match outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(StageError::retry(error.reason, error.clone())),
            None => Err(StageError::retry(Reason::Stopping, Gone(self.act))),
        }
    }
}

fn write<O: Output>(mut output: O, mut batches: mpsc::Receiver<Batch>) {
    while let Some(first) = batches.blocking_recv() {
        let mut waiting = Vec::new();
        let mut size = 0;
        let mut next = Some(first);
        while let Some(Batch { lines, done }) = next.take() {
            size += lines.len();
            match output.append(&lines) {
                Ok(()) => waiting.push(done),
                Err(error) => answer(done, Err(failure(&mut output, error))),
            }
            if size < GROUP {
                next = batches.try_recv().ok();
            }
        }
        if waiting.is_empty() {
            continue;
        }
        let outcome = output.commit().map_err(|error| failure(&mut output, error));
        for done in waiting {
            answer(done, outcome.clone());
        }
    }
}

fn failure<O: Output>(output: &mut O, error: io::Error) -> WriteError {
    let reason = output.failed(&error);
    WriteError { act: O::ACT, reason, source: Arc::new(error) }
}

fn answer(done: oneshot::Sender<Result<(), WriteError>>, outcome: Result<(), WriteError>) {
    // Whoever asked may have given up; the lines are written all the same.
    drop(done.send(outcome));
}
