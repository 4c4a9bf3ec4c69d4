//! A bus that does not answer, from the start or later: health and metrics are served all the same and say so, and the
//! process ends when it is told to.

use loadtest::nats::NatsServer;
use loadtest::proxy::{Network, Proxy};
use loadtest::sim::Simulation;
use loadtest::sim::fault::{Fault, Rule};
use serde_json::{Value, json};

use crate::runtime::{Runtime, fleet, start, taken};

const APPLICATIONS: u32 = 20;
/// Reports when each application and its resource are reported once.
const ONCE: u64 = 40;

fn on(url: &str, more: &Value) -> Value {
    let mut settings = json!({"bus": {"url": url}});
    crate::runtime::merge(&mut settings, more);
    settings
}

/// A process that says that it waits for the bus.
async fn waiting(simulation: &Simulation, settings: &Value) -> Runtime {
    let runtime = Runtime::serving(start(simulation, settings)).await;
    let (status, text) = runtime.page("/healthz").await;
    assert_eq!(status, 200, "a restart would not help: {text}");
    let said = text.starts_with("degraded: bus: not ready for ") && text.ends_with("before it is\n");
    assert!(said, "{text}");
    let (status, text) = runtime.page("/readyz").await;
    assert_eq!(status, 503);
    assert!(text.starts_with("not ready: the bus is not ready yet; "), "{text}");
    assert_eq!(runtime.counted("gitops_runtime_health_state", &[("check", "bus")]).await, 1.0);
    assert!(!runtime.status().await.ready);
    runtime
}

#[tokio::test]
async fn a_process_without_a_bus_serves_health_and_ends_when_it_is_told_to() {
    let simulation = fleet(1, 1, |_| {}).await;
    // Bound, so that nobody else is given the port, and not listening.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = taken.local_addr().unwrap();
    let runtime = waiting(&simulation, &on(&format!("nats://{closed}"), &json!({}))).await;
    runtime.stop().await;
}

#[tokio::test]
async fn a_bus_that_says_nothing_is_waited_for_and_when_it_falls_silent_again_that_is_said() {
    let server = NatsServer::start().await.unwrap();
    let proxy = Proxy::start(server.address()).await.unwrap();
    let settings = on(&format!("nats://{}", proxy.address()), &json!({}));
    let simulation = fleet(APPLICATIONS, 1, |_| {}).await;
    proxy.set(Network::Silent);
    waiting(&simulation, &settings).await.stop().await;

    let runtime = waiting(&simulation, &settings).await;
    proxy.set(Network::Whole);
    taken(&simulation, ONCE).await;
    runtime.answers("/readyz", |status, _| status == 200).await;
    runtime.answers("/healthz", |status, text| (status, text) == (200, "ok\n")).await;

    proxy.set(Network::Silent);
    let (status, _) = runtime.answers("/healthz", |_, text| text.contains("bus: no connection for ")).await;
    assert_eq!(status, 200, "a restart would not help");
    let (_, text) = runtime.answers("/readyz", |status, _| status == 503).await;
    assert!(text.contains("the bus does not answer"), "{text}");
    runtime.stop().await;
}

/// Reports hang when the server is killed, and right after it the process is told to stop.
async fn killed(more: &Value) {
    let server = NatsServer::start().await.unwrap();
    let simulation = fleet(APPLICATIONS, 1, |_| {}).await;
    let settings = on(&server.url(), more);
    simulation.platform.faults().add(Rule::always(Fault::Hang));
    let runtime = Runtime::start(&simulation, &settings).await;
    runtime.until("reports in flight", |status| status.total.in_flight > 0).await;
    server.kill().await.unwrap();
    runtime.stop().await;

    server.restart().await.unwrap();
    simulation.platform.faults().clear();
    let again = Runtime::start(&simulation, &settings).await;
    taken(&simulation, ONCE).await;
    again.stop().await;
}

#[tokio::test]
async fn sigterm_while_the_bus_is_away_ends_a_replica() {
    killed(&json!({})).await;
}

#[tokio::test]
async fn sigterm_while_the_bus_is_away_ends_a_process_with_shards_of_its_own() {
    killed(&json!({"reporter": {"sharding": {"shard": "all"}, "ledger": {"storage": "bucket"}}})).await;
}
