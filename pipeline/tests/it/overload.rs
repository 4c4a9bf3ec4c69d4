//! More applications at once than the queues hold: none is lost, and the books balance at every moment.

use std::time::Duration;

use loadtest::reporter::{Figures, Metrics};
use loadtest::sim::fault::{Fault, Rule};
use serde_json::json;
use tokio::time::sleep;

use crate::runtime::{Patience, Runtime, fleet, moved};

const APPLICATIONS: u32 = 2_500;
/// An application and its one resource.
const REPORTS: u64 = 2 * APPLICATIONS as u64;
/// A page of the list: it waits for the shards only between two.
const PAGE: u32 = 500;
/// Looks at the books at least.
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

async fn overload(shards: u32, queue: u64) -> Figures {
    let simulation = fleet(APPLICATIONS, 1, |_| {}).await;
    // Whoever comes first waits, so that the rest of the list finds its shard busy.
    let first = Rule::always(Fault::Delay { ms: 2_000 }).on("managed_resources");
    simulation.argocd.faults().add(first.times(16 * u64::from(shards)));
    let more = json!({"reporter": {
        "sharding": {"shards": shards}, "queue": {"events": queue}, "sink": {"platform": {"gzipLevel": 0}},
    }, "kubernetes": {"pageSize": PAGE}});
    let runtime = Runtime::start(&simulation, &more).await;
    let mut patience = Patience::new();
    let mut samples = 0;
    let mut busy = 0;
    let total = loop {
        let status = runtime.status().await;
        assert_eq!(status.shards.len(), shards as usize);
        for shard in &status.shards {
            assert_eq!(shard.balance(), 0, "/status, sample {samples}: {shard:?}");
            assert!(shard.queued + shard.waiting <= queue, "sample {samples}: {shard:?}");
        }
        let metrics = runtime.metrics().await;
        for shard in 0..shards {
            let figures = figures(&metrics, shard);
            assert_eq!(figures.balance(), 0, "/metrics, sample {samples}: {figures:?}");
        }
        samples += 1;
        busy += usize::from(!status.total.idle());
        if simulation.platform.totals().taken == REPORTS && status.total.idle() {
            break status.total;
        }
        sleep(Duration::from_millis(50)).await;
        assert!(
            patience.lasts(moved(&status)),
            "{:?} after {samples} samples: {:?}",
            simulation.platform.totals(),
            status
        );
    };
    assert!(busy >= SAMPLES, "only {busy} of {samples} samples under load");
    runtime.stop().await;
    let totals = simulation.platform.totals();
    assert_eq!((totals.applications, totals.resources), (2_500, 2_500), "{totals:?}");
    assert_eq!((totals.posts, totals.duplicates, totals.out_of_order), (REPORTS, 0, 0));
    assert_eq!(simulation.platform.last().len() as u64, REPORTS);
    assert_eq!(total.parked, 0);
    assert_eq!(total.observed, total.acked + total.coalesced + total.filtered, "{total:?}");
    total
}

#[tokio::test]
async fn five_shards_take_2500_applications_at_once() {
    let total = overload(5, 1_000).await;
    assert_eq!((total.acked, total.overflowed), (2_500, 0), "{total:?}");
}

#[tokio::test]
async fn one_shard_with_a_queue_of_100_takes_2500_applications_at_once() {
    let total = overload(1, 100).await;
    // Each of five pages is five times what the queue holds.
    assert!(total.overflowed >= 1_000, "the queue was hardly ever full: {total:?}");
    assert!(total.reads >= 1_000, "little was read again: {total:?}");
}
