//! The number of series is known before the first application, and stays.

use std::collections::BTreeSet;
use std::time::Duration;

use loadtest::reporter::Reporter;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::prometheus::SOON;
use crate::trouble::{reporter, simulation};

/// Names and labels of what is exposed.
async fn series(reporter: &Reporter) -> BTreeSet<String> {
    let page = reporter.page("/metrics").await.unwrap();
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

/// The series with so many applications in the cluster, `reported` of which at least are reported.
async fn with(applications: u32, reported: f64) -> BTreeSet<String> {
    let simulation = simulation(applications).await;
    assert_eq!(simulation.populate().unwrap(), applications as usize);
    let reporter = reporter(&simulation, &json!({})).await;
    let deadline = Instant::now() + SOON;
    loop {
        let metrics = reporter.metrics().await.unwrap();
        let listed = metrics.sum("gitops_runtime_listed_objects", &[]);
        let acked = metrics.sum("gitops_runtime_events_acked_total", &[]);
        if listed >= f64::from(applications) && acked >= reported {
            break;
        }
        assert!(Instant::now() < deadline, "{listed} listed, {acked} reported");
        sleep(Duration::from_millis(50)).await;
    }
    let series = series(&reporter).await;
    reporter.stop().await.unwrap();
    series
}

#[tokio::test]
async fn a_thousand_applications_have_the_series_of_ten() {
    let few = with(10, 10.0).await;
    assert!((100..300).contains(&few.len()), "{} series", few.len());
    assert_eq!(with(1_000, 100.0).await, few);
}
