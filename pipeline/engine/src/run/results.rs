//! Publishes what the receiver has acknowledged, for other readers of the bus.
//!
//! Those who read it read what is: a report that finds no server is counted and not published again. One that finds no
//! room waits for its readers no more than for anybody: the oldest reports are discarded for it, and counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use pipeline_core::{EntityId, Shutdown, Uid};
use tokio::sync::mpsc;

use crate::shard::AckedReport;
use pipeline_bus::{Bus, BusError, Keep, Message, Published, REPORTS, Refusal};
use pipeline_observe::metrics::BusSeries;
use pipeline_ownership::sharding::Sharding;

/// Reports that wait to be published.
pub(super) const WAITING: usize = 256;
/// Of these, on their way.
const FLYING: usize = 64;

/// Publishes until `stop`, or until nothing is acknowledged any more and the last is published.
pub(super) async fn publish(
    bus: Arc<dyn Bus>,
    metrics: BusSeries,
    sharding: Sharding,
    mut acknowledged: mpsc::Receiver<AckedReport>,
    stop: Shutdown,
) {
    let mut flying = FuturesUnordered::new();
    // What found no room, by number. It goes once more before anything later does, so that the oldest are the first.
    let mut refused = BTreeMap::new();
    // The latest report of each thing that is not answered yet: no earlier one may follow it.
    let mut latest: HashMap<(Uid, EntityId), u64> = HashMap::new();
    let (mut number, mut open) = (0, true);
    while open || !flying.is_empty() || !refused.is_empty() {
        if flying.is_empty() && !refused.is_empty() {
            let made = tokio::select! {
                () = stop.cancelled() => return,
                made = make_room(&*bus, &metrics) => made,
            };
            for (number, report) in std::mem::take(&mut refused) {
                if made {
                    flying.push(one(&*bus, sharding, number, report));
                } else {
                    latest.remove(&thing(&report));
                    metrics.result_dropped();
                }
            }
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            Some((number, report, done)) = flying.next() => {
                let of = thing(&report);
                let is_latest = latest.get(&of) == Some(&number);
                match done {
                    Ok(Published::Refused(Refusal::Full)) => {
                        // Of an earlier one a later one takes the place.
                        if is_latest {
                            refused.insert(number, report);
                        }
                        continue;
                    }
                    Ok(Published::Stored { .. } | Published::Duplicate) => {}
                    Ok(Published::Refused(Refusal::Storage)) | Err(_) => metrics.result_dropped(),
                }
                if is_latest {
                    latest.remove(&of);
                }
            }
            next = acknowledged.recv(), if open && refused.is_empty() && flying.len() < FLYING => match next {
                Some(report) => {
                    number += 1;
                    latest.insert(thing(&report), number);
                    flying.push(one(&*bus, sharding, number, report));
                }
                None => open = false,
            },
        }
    }
}

/// What a report is about.
fn thing(AckedReport { report, .. }: &AckedReport) -> (Uid, EntityId) {
    (report.uid.clone(), report.entity)
}

async fn one(
    bus: &dyn Bus,
    sharding: Sharding,
    number: u64,
    acknowledged: AckedReport,
) -> (u64, AckedReport, Result<Published, BusError>) {
    let AckedReport { report, at } = &acknowledged;
    let message = Message::of_report(report, *at);
    // Each report of one thing takes the place of the one before it.
    let done = match bus.publish(REPORTS, sharding.place(&report.key), message, Keep::Newest).await {
        Ok(sent) => sent.await,
        Err(error) => Err(error),
    };
    (number, acknowledged, done)
}

/// Whether there is room for more.
async fn make_room(bus: &dyn Bus, metrics: &BusSeries) -> bool {
    match bus.discard_reports().await {
        Ok(None) => false,
        Ok(Some(discarded)) => {
            if metrics.results_discarded(discarded) {
                tracing::warn!(
                    "who reads the reports on the bus does not keep up: the oldest are discarded; `gitops-runtime bus \
                     show` names who"
                );
            }
            true
        }
        Err(error) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot discard reports of the bus");
            false
        }
    }
}
