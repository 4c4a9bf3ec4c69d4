//! How hard Argo CD is asked: as many calls at once as it works on, and never more in a second than it may be.

use std::time::{Duration, Instant};

use loadtest::sim::{Capacity, Worked};
use serde_json::{Value, json};

use crate::runtime::{Runtime, fleet, taken};

const APPLICATIONS: u32 = 150;
/// An application and its one resource.
const REPORTS: u64 = 2 * APPLICATIONS as u64;

/// So many calls the simulated Argo CD works on at once: more than the least that the limit falls to.
const WORKERS: usize = 6;

fn lanes(argocd: &Value) -> Value {
    json!({"argocd": argocd, "reporter": {"lanes": {"concurrency": 20}}})
}

/// What Argo CD had to do for the second half of the applications, and the limit at the end.
async fn at_the_knee(argocd: &Value) -> (Worked, f64) {
    let simulation = fleet(APPLICATIONS, 1, |_| {}).await;
    let service = Duration::from_millis(60);
    simulation.argocd.set_capacity(Some(Capacity { workers: WORKERS, service }));
    let runtime = Runtime::start(&simulation, &lanes(argocd)).await;
    taken(&simulation, REPORTS / 2).await;
    let _ = simulation.argocd.worked();
    let totals = taken(&simulation, REPORTS).await;
    let worked = simulation.argocd.worked();
    assert_eq!((totals.wrong(), totals.taken), (Vec::new(), REPORTS));
    let limit = runtime.counted("gitops_runtime_call_limit", &[("peer", "argocd")]).await;
    let waits = runtime.counted("gitops_runtime_call_wait_seconds_total", &[("wait", "slot")]).await;
    assert!(waits > 0.0);
    runtime.stop().await;
    (worked, limit)
}

#[tokio::test]
async fn an_argo_cd_at_its_limit_has_a_short_queue() {
    let settings = [json!({"concurrency": 60}), json!({"concurrency": 60, "minConcurrency": 60})];
    let ((learnt, moved), (fixed, stayed)) =
        tokio::join!(Box::pin(at_the_knee(&settings[0])), Box::pin(at_the_knee(&settings[1])));
    println!("learnt: {learnt:?}\nfixed: {fixed:?}");
    assert!(fixed.queue >= 30 && learnt.queue <= fixed.queue / 2, "learnt: {learnt:?}, fixed: {fixed:?}");
    assert!(stayed == 60.0 && (4.0..60.0).contains(&moved), "learnt: {moved}, fixed: {stayed}");
    // How busy they are in time is the machine's affair as well.
    assert!(learnt.most >= WORKERS, "as many are asked as work: {learnt:?}");
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
    let waits = runtime.counted("gitops_runtime_call_wait_seconds_total", &[("wait", "budget")]).await;
    assert!(waits > 0.0);
    runtime.stop().await;
}
