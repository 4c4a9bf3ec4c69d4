//! The pages: health, readiness, metrics, and where applications are.

use loadtest::sim::fault::{Fault, Rule};
use serde_json::{Value, json};

use crate::runtime::{Runtime, fleet, taken};

#[tokio::test]
async fn metrics_of_applications_are_few_and_nameless() {
    let simulation = fleet(100, 1, |_| {}).await;
    let settings = json!({"reporter": {"sink": {"platform": {"gzipLevel": 0}}}});
    let runtime = Runtime::start(&simulation, &settings).await;
    taken(&simulation, 200).await;
    runtime.idle(100).await;
    let (status, text) = runtime.page("/metrics").await;
    assert_eq!(status, 200);
    let series = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
    assert!((100..300).contains(&series), "{series} series");
    for part in ["app-0", "argocd/", "127.0.0.1", "application=", "codefresh"] {
        let found = text.lines().find(|line| !line.starts_with('#') && line.contains(part));
        assert_eq!(found, None, "{part} in a series");
    }
    let metrics = runtime.metrics().await;
    let sum = |name: &str, labels: &[(&str, &str)]| metrics.sum(&format!("gitops_runtime_{name}"), labels);
    assert_eq!(sum("reports_total", &[("kind", "app"), ("result", "acknowledged")]), 100.0);
    assert_eq!(sum("reports_total", &[("kind", "resource"), ("result", "acknowledged")]), 100.0);
    assert_eq!(sum("events_acked_total", &[]), 100.0);
    assert_eq!(sum("ledger_records", &[]), 100.0);
    assert_eq!(sum("listed_objects", &[]), 100.0);
    assert_eq!(sum("calls_total", &[("call", "report"), ("outcome", "ok")]), 200.0);
    let asked = simulation.argocd.calls() as f64;
    let counted = sum("calls_total", &[("peer", "argocd")])
        - sum("calls_total", &[("call", "settings")])
        - sum("calls_total", &[("peer", "argocd"), ("outcome", "cached")]);
    assert_eq!(counted, asked, "calls that were counted, and that came");

    let (status, text) = runtime.page("/app-distribution?shardings=jump:6,fnv-modulo").await;
    assert_eq!(status, 200, "{text}");
    let page: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&String> = page.as_object().unwrap().keys().collect();
    assert_eq!(names, ["default", "fnv-modulo", "jump:6"]);
    for (name, shards) in [("default", 5), ("fnv-modulo", 5), ("jump:6", 6)] {
        let distribution = page[name]["distribution"].as_object().unwrap();
        assert_eq!(distribution.len(), shards, "{name}");
        assert_eq!(distribution.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), 100);
        assert!(distribution.values().all(|count| count.as_u64() > Some(5)), "{name}: {distribution:?}");
        assert_eq!(page[name]["apps"].as_object().unwrap().len(), 100);
    }
    for (shard, count) in page["default"]["distribution"].as_object().unwrap() {
        let own = sum("events_acked_total", &[("shard", shard)]);
        assert_eq!(Some(own), count.as_f64(), "shard {shard} reports what is said to be in it");
    }
    let (status, text) = runtime.page("/app-distribution?shardings=modulo").await;
    let unknown = "`modulo` is no sharding: `default`, `jump`, `jump:N`, `fnv-modulo` or `fnv-modulo:N` with N at least 1\n";
    assert_eq!((status, text.as_str()), (400, unknown));
    runtime.stop().await;
}

#[tokio::test]
async fn the_incumbents_metrics_come_with_their_switch() {
    let simulation = fleet(3, 1, |_| {}).await;
    let runtime = Runtime::start(&simulation, &json!({"metrics": {"compat": true}})).await;
    taken(&simulation, 6).await;
    runtime.idle(3).await;
    let metrics = runtime.metrics().await;
    let of = |name: &str, labels: &[(&str, &str)]| {
        metrics.sum(&format!("codefresh_event_reporter_{name}"), labels)
    };
    for name in ["app-00000", "app-00001", "app-00002"] {
        assert_eq!(
            of("enqueued_events_total", &[("application", name), ("error_in_learning_mode", "false")]),
            1.0
        );
        let processed = [("application", name), ("metric_event_type", "app")];
        assert_eq!(of("event_processing_duration_count", &processed), 1.0);
    }
    assert_eq!(
        metrics.values("codefresh_event_reporter_queue_size", "reporter_shard"),
        ["0", "1", "2", "3", "4"]
    );
    runtime.stop().await;
}

#[tokio::test]
async fn health_and_readiness_tell_how_it_goes() {
    let simulation = fleet(10, 1, |_| {}).await;
    let refuse = || Rule::always(Fault::Status { status: 503, retry_after: None });
    let no_list = simulation.kube.faults().add(refuse().on("list"));
    let runtime = Runtime::start(&simulation, &json!({})).await;
    let (status, text) = runtime.page("/readyz").await;
    assert_eq!(status, 503);
    assert!(text.starts_with("not ready: "), "{text}");
    assert!(!runtime.status().await.ready);
    runtime.says("the watch broke and is begun again").await;
    simulation.kube.faults().remove(no_list);
    taken(&simulation, 20).await;
    runtime.idle(10).await;
    assert_eq!(runtime.page("/readyz").await, (200, "ready\n".to_owned()));
    assert_eq!(runtime.page("/healthz").await, (200, "ok\n".to_owned()));
    let full = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let (status, text) = runtime.page("/healthz?full=true").await;
    let page = full(&text);
    assert_eq!((status, &page["state"], &page["ready"]), (200, &json!("ok"), &json!(true)), "{page:#}");
    let checks: Vec<&str> =
        page["checks"].as_array().unwrap().iter().map(|check| check["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["source", "lanes", "sink", "ledger", "settings", "argocd", "bus"]);

    // The receiver is away: that shows, and is no reason to be restarted.
    simulation.platform.faults().add(refuse());
    let mut chance = fastrand::Rng::with_seed(1);
    for _ in 0..40 {
        simulation.change(loadtest::sim::generate::Mix::default(), &mut chance).unwrap();
    }
    runtime.until("the circuit to open", |status| status.circuit.state == "open").await;
    let (status, _) = runtime.answers("/healthz", |_, text| text.starts_with("degraded: sink: ")).await;
    assert_eq!(status, 200);
    let page = full(&runtime.page("/healthz?full=true").await.1);
    let sink = page["checks"].as_array().unwrap().iter().find(|check| check["check"] == "sink").unwrap();
    assert_eq!((&page["state"], &sink["state"]), (&json!("degraded"), &json!("degraded")), "{page:#}");
    assert_eq!(runtime.page("/readyz").await.0, 200);
    simulation.platform.faults().clear();
    runtime.says("the sink takes reports again").await;
    runtime.idle(50).await;
    runtime.answers("/healthz", |status, text| (status, text) == (200, "ok\n")).await;
    assert_eq!(runtime.page("/nowhere").await, (404, "no such page: / lists them\n".to_owned()));
    runtime.stop().await;
}
