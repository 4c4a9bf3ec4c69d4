//! Answers messages of the bus, once what came of them is in the ledger.
//!
//! takes: messages that shards are done with, or work on - gives: acknowledgements - calls: the ledger, the server
//! fails: a message whose answer is lost is delivered again, and found to be known

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::mpsc;

use crate::shard::BusAnswer;
use pipeline_bus::{Acker, Bus};
use pipeline_ledger::Ledger;
use pipeline_observe::metrics::Metrics;

/// So long answers are gathered, for one commit of them all.
const GATHER: Duration = Duration::from_millis(20);
/// Acknowledgements that are handed to the connection at a time.
const TOGETHER: usize = 256;
/// At the end, what was handed over is written within this time.
const LAST: Duration = Duration::from_secs(2);

/// Answers until no shard is left that could ask for it.
pub(super) async fn answer(
    bus: Arc<dyn Bus>,
    metrics: Metrics,
    ledger: Ledger,
    mut asked: mpsc::UnboundedReceiver<BusAnswer>,
) {
    while let Some(first) = asked.recv().await {
        tokio::time::sleep(GATHER).await;
        let (mut done, mut busy) = (Vec::new(), Vec::new());
        let mut sort = |answer| match answer {
            BusAnswer::Done(shard, ackers) => done.extend(ackers.into_iter().map(|acker| (shard, acker))),
            BusAnswer::Busy(ackers) => busy.extend(ackers),
        };
        sort(first);
        while let Ok(next) = asked.try_recv() {
            sort(next);
        }
        if !busy.is_empty() {
            // In a task of their own: they must not wait for the ledger. Without a connection they are delivered again.
            tokio::spawn(async move {
                for some in busy.chunks(TOGETHER) {
                    join_all(some.iter().map(|acker| acker.progress())).await;
                }
            });
        }
        if !done.is_empty() {
            acknowledge(&metrics, &ledger, &done).await;
        }
    }
    if let Err(error) = bus.flush(LAST).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "the last acknowledgements may be lost");
    }
}

/// What was acknowledged to the server stands nowhere but in the ledger.
async fn acknowledge(metrics: &Metrics, ledger: &Ledger, done: &[(u32, Arc<dyn Acker>)]) {
    if let Err(error) = ledger.flush().await {
        let error: &dyn std::error::Error = &error;
        tracing::debug!(error, messages = done.len(), "the ledger is not written: these come again");
        return;
    }
    // Of a shard that was lost meanwhile nothing was written.
    let held = ledger.is_in_bucket().then(|| ledger.owned());
    let done = done.iter().filter(|(shard, _)| held.as_ref().is_none_or(|held| held.contains(shard)));
    let done: Vec<&dyn Acker> = done.map(|(_, acker)| &**acker).collect();
    for some in done.chunks(TOGETHER) {
        let answers = join_all(some.iter().map(|acker| acker.ack())).await;
        let taken = answers.iter().filter(|answer| answer.is_ok()).count();
        metrics.bus().acknowledged(taken);
        if taken == 0 {
            // There is no connection: all that is left would wait as long.
            return;
        }
    }
}
