//! How hard Argo CD is asked: never more calls at once than may be, and never more in a second.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::runtime::{Runtime, fleet, taken};

fn lanes(argocd: &Value) -> Value {
    json!({"argocd": argocd, "reporter": {"lanes": {"concurrency": 20}}})
}

#[tokio::test]
async fn no_more_calls_stand_open_than_may() {
    let simulation = fleet(40, 1, |setup| setup.argocd_latency = Duration::from_millis(20)).await;
    let runtime = Runtime::start(&simulation, &lanes(&json!({"concurrency": 3, "minConcurrency": 1}))).await;
    let totals = taken(&simulation, 80).await;
    assert_eq!((totals.wrong(), totals.taken), (Vec::new(), 80));
    let most = simulation.argocd.traffic().peak();
    assert!((1..=3).contains(&most), "{most} calls stood open at once");
    runtime.stop().await;
}

#[tokio::test]
async fn the_budget_of_calls_in_a_second_holds() {
    let simulation = fleet(20, 1, |_| {}).await;
    let begun = Instant::now();
    let runtime = Runtime::start(&simulation, &lanes(&json!({"requestsPerSecond": 20}))).await;
    let totals = taken(&simulation, 40).await;
    let (took, calls) = (begun.elapsed(), simulation.argocd.calls());
    assert_eq!((totals.wrong(), totals.taken), (Vec::new(), 40));
    assert!(calls >= 40, "{calls}");
    assert!(calls as f64 <= 20.0 * (took.as_secs_f64() + 1.0), "{calls} calls in {took:?}");
    runtime.stop().await;
}
