//! Feeds one shard with what its durable delivers.
//!
//! takes: messages - gives: events, and applications that are to be read again
//! calls: the server - fails: never; what is no message, or one of a newer format, is counted, kept aside and acknowledged

use std::sync::Arc;

use bytes::Bytes;
use pipeline_core::{Cause, Change, Event, Shutdown, Timestamp};
use tokio::sync::mpsc;

use super::{AGAIN, Stream, is_gone};
use crate::shard::{Delivered, Taken};
use pipeline_bus::jetstream::{Acker, BusError, Deliveries, Delivery, Unread};
use pipeline_bus::{DecodeError, Message, Payload, durable};
use pipeline_observe::metrics::Unreadable;

/// Feeds `shard` until `stop`.
pub(in crate::run) async fn feed(
    stream: Arc<Stream>,
    shard: u32,
    out: mpsc::Sender<Delivered>,
    stop: Shutdown,
) {
    while !stop.is_cancelled() {
        let seen = stream.made();
        let end = match stream.jetstream.consume(&durable(shard), stop.clone()) {
            Ok(mut deliveries) => pass_on(&stream, &mut deliveries, &out).await,
            Err(error) => Some(error),
        };
        let Some(error) = end else { return };
        let work = async {
            if is_gone(&error) {
                stream.remake(seen).await;
            } else {
                tracing::warn!(
                    shard,
                    error = &error as &dyn std::error::Error,
                    "cannot consume from the bus"
                );
                tokio::time::sleep(AGAIN).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = work => {}
        }
    }
}

/// Passes on until the shard or the deliveries end; gives why, if that was not asked for.
async fn pass_on(
    stream: &Stream,
    deliveries: &mut Deliveries,
    out: &mpsc::Sender<Delivered>,
) -> Option<BusError> {
    while let Some(next) = deliveries.next().await {
        let delivery = match next {
            Ok(delivery) => delivery,
            Err(error) => return Some(error),
        };
        if let Some(delivered) = read(stream, delivery).await
            && out.send(delivered).await.is_err()
        {
            return None;
        }
    }
    None
}

/// What a delivery says; nothing, where it says nothing that can be read.
async fn read(stream: &Stream, delivery: Delivery) -> Option<Delivered> {
    let Delivery { message, sequence, epoch, redelivered, unread, acker, .. } = delivery;
    stream.metrics.delivered();
    let acker = Arc::new(acker);
    let message = match message {
        Ok(message) => message,
        Err(error) => {
            return set_aside(stream, sequence, (unread?, error), acker).await;
        }
    };
    let whole = matches!(message.payload, Payload::Change { .. } | Payload::Deleted { .. });
    let event = Box::new(event(message));
    // One that was delivered before, to this process or the shard's former owner, or that a former watcher sent late, may be
    // of a life that is over and forgotten: the cluster knows.
    let late = redelivered || epoch < stream.newest_epoch(epoch);
    let what = if whole && !late { Taken::Event(event) } else { Taken::Again(event) };
    Some(Delivered { what, acker })
}

/// The event of a message; one without its body where that was too large for the bus.
fn event(message: Message) -> Event {
    message.into_event().unwrap_or_else(|message| {
        let Message { key, uid, version, observed, trace, fact, coalesced, .. } = *message;
        let change = Change::Applied { body: Bytes::new() };
        let cause = Cause::Watch;
        Event { key, uid, version, change, cause, observed, fact, coalesced, trace }
    })
}

/// Keeps a message aside. Where its headers name an application that is read again: whatever it said, the cluster says it
/// too.
async fn set_aside(
    stream: &Stream,
    sequence: u64,
    (unread, why): (Unread, DecodeError),
    acker: Arc<Acker>,
) -> Option<Delivered> {
    if let Err(error) = stream.jetstream.set_aside(sequence, unread.bytes).await {
        let error: &dyn std::error::Error = &error;
        tracing::debug!(sequence, error, "cannot keep a message aside: it comes again");
        return None;
    }
    let reason = match why {
        DecodeError::Newer { .. } => Unreadable::Newer,
        DecodeError::Garbage(_) => Unreadable::Garbage,
    };
    if stream.metrics.unreadable(reason) {
        tracing::warn!(
            sequence, %why,
            "a message of the bus cannot be read: it is kept aside, as are those to come"
        );
    }
    match unread.of {
        Some((key, uid, version)) => {
            let observed = Timestamp::now();
            let (payload, trace) = (Payload::Overlarge { about: None }, 0);
            let message =
                Message { key, uid, version, observed, trace, fact: None, coalesced: Vec::new(), payload };
            Some(Delivered { what: Taken::Again(Box::new(event(message))), acker })
        }
        None => {
            // A lost acknowledgement brings it again, and it is kept aside once.
            let _ = acker.ack().await;
            None
        }
    }
}
