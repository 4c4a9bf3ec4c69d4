//! The number of series is known before the first application, and stays.

use std::collections::BTreeSet;

use loadtest::reporter::Reporter;
use loadtest::sim::wait_for;
use serde_json::json;

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
    let counted = async || {
        let metrics = reporter.metrics().await.unwrap();
        ["listed_objects", "events_acked_total"]
            .map(|name| metrics.sum(&format!("gitops_runtime_{name}"), &[]))
    };
    let are_there = |[listed, acked]: &[f64; 2]| *listed >= f64::from(applications) && *acked >= reported;
    wait_for("objects that are listed, and reported", counted, are_there).await;
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
