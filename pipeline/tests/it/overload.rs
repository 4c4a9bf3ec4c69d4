//! More applications at once than the queues hold: none is lost, and the books balance at every moment.

use std::time::Duration;

use loadtest::reporter::{Figures, Metrics};
use loadtest::sim::fault::{Fault, Rule};
use serde_json::json;
use tokio::time::sleep;

use crate::runtime::{Patience, Runtime, fleet, moved};

const APPLICATIONS: u32 = 1_000;
/// An application and its one resource.
const REPORTS: u64 = 2 * APPLICATIONS as u64;
/// Events that may wait.
const QUEUE: u64 = 100;
/// A page of the list: it waits for the shards only between two.
const PAGE: u32 = 250;
/// Looks at the books at least, before anything leaves.
const SAMPLES: usize = 20;

/// What a scrape says of one shard.
fn figures(metrics: &Metrics, shard: u32) -> Figures {
    let name = shard.to_string();
    let of = |family: &str| metrics.sum(&format!("gitops_runtime_{family}"), &[("shard", &name)]) as u64;
    Figures {
        shard,
        observed: of("events_observed_total"),
        acked: of("events_acked_total"),
        coalesced: of("events_coalesced_total"),
        filtered: of("events_filtered_total"),
        parked: of("events_parked_total"),
        queued: of("events_queued"),
        waiting: of("events_waiting"),
        in_flight: of("events_in_flight"),
        ..Figures::default()
    }
}

#[tokio::test]
async fn one_shard_with_a_queue_of_100_takes_1000_applications_at_once() {
    let simulation = fleet(APPLICATIONS, 1, |_| {}).await;
    // Nothing leaves the queue until it has overflowed.
    let refused = Rule::always(Fault::Status { status: 503, retry_after: None });
    let refused = simulation.platform.faults().add(refused);
    let more = json!({"reporter": {
        "sharding": {"shards": 1}, "queue": {"events": QUEUE},
        "lanes": {"retry": {"min": "100ms", "max": "1s"}}, "sink": {"platform": {"gzipLevel": 0}},
    }, "kubernetes": {"pageSize": PAGE}});
    let runtime = Runtime::start(&simulation, &more).await;
    let mut patience = Patience::new();
    let mut samples = 0;
    let total = loop {
        let status = runtime.status().await;
        for shard in &status.shards {
            assert_eq!(shard.balance(), 0, "/status, sample {samples}: {shard:?}");
            assert!(shard.queued + shard.waiting <= QUEUE, "sample {samples}: {shard:?}");
        }
        let figures = figures(&runtime.metrics().await, 0);
        assert_eq!(figures.balance(), 0, "/metrics, sample {samples}: {figures:?}");
        samples += 1;
        if status.total.overflowed > 0 && samples >= SAMPLES {
            simulation.platform.faults().remove(refused);
        }
        if simulation.platform.totals().taken == REPORTS && status.total.idle() {
            break status.total;
        }
        assert!(
            patience.lasts(moved(&status)),
            "{:?} after {samples} samples: {:?}",
            simulation.platform.totals(),
            status
        );
        sleep(Duration::from_millis(50)).await;
    };
    runtime.stop().await;
    let totals = simulation.platform.totals();
    assert_eq!((totals.applications, totals.resources), (1_000, 1_000), "{totals:?}");
    assert_eq!((totals.taken, totals.duplicates, totals.out_of_order), (REPORTS, 0, 0));
    assert_eq!(simulation.platform.last().len() as u64, REPORTS);
    assert_eq!(total.parked, 0);
    assert_eq!(total.observed, total.acked + total.coalesced + total.filtered, "{total:?}");
    assert!(total.overflowed > 0 && total.reads > 0, "what did not fit was read again: {total:?}");
}
