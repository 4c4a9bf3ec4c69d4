//! Publishes what the receiver has acknowledged, for other readers of the bus.
//!
//! Those who read it read what is: a report that finds no room, or no server, is counted and not published again.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use pipeline_core::Shutdown;
use tokio::sync::mpsc;

use super::Stream;
use crate::bus::jetstream::{BusError, Published};
use crate::bus::{Keep, Message, REPORTS, Subject};
use crate::shard::Acknowledged;
use crate::sharding::Sharding;

/// Reports that wait to be published.
pub(in crate::run) const WAITING: usize = 256;
/// Of these, on their way.
const FLYING: usize = 64;

/// Publishes until `stop`.
pub(in crate::run) async fn publish(
    stream: Arc<Stream>,
    sharding: Sharding,
    mut acknowledged: mpsc::Receiver<Acknowledged>,
    stop: Shutdown,
) {
    let mut flying = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(done) = flying.next() => {
                if !matches!(done, Ok(Published::Stored { .. } | Published::Duplicate)) {
                    stream.metrics.result_dropped();
                }
            }
            next = acknowledged.recv(), if flying.len() < FLYING => match next {
                Some(acknowledged) => flying.push(one(&stream, sharding, acknowledged)),
                None => return,
            },
        }
    }
}

async fn one(
    stream: &Stream,
    sharding: Sharding,
    Acknowledged { report, at }: Acknowledged,
) -> Result<Published, BusError> {
    let message = Message::of_report(&report, at);
    // Each report of one thing takes the place of the one before it.
    let subject = Subject::of(REPORTS, sharding.place(&report.key), &message, Keep::Newest);
    stream.jetstream.publish(&subject, &message).await
}
