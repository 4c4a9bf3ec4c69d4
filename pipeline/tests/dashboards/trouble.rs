//! A reporter whose peers fail in many ways while Prometheus looks on, so that every picture has something to show.

use std::path::Path;
use std::time::Duration;

use loadtest::reporter::Reporter;
use loadtest::sim::fault::{Fault, Rule};
use loadtest::sim::generate::{Fleet, Mix, Shape};
use loadtest::sim::kube::Collection;
use loadtest::sim::{Load, Setup, Simulation};
use pipeline_core::Key;
use serde_json::{Value, json};

use crate::acts::Acts;
use crate::clones::Clones;
use crate::kinds::Kinds;
use crate::platform::Platform;
use crate::prometheus::{Prometheus, now};
use crate::ways::Ways;

const APPLICATIONS: u32 = 80;

/// All of it, still running.
pub(crate) struct Trouble {
    pub(crate) prometheus: Prometheus,
    pub(crate) reporter: Reporter,
    pub(crate) ways: Ways,
    pub(crate) clones: Clones,
    pub(crate) acts: Acts,
    pub(crate) platform: Platform,
    pub(crate) kinds: Kinds,
    /// Seconds since 1970, before the first scrape.
    pub(crate) began: f64,
    _simulation: Simulation,
}

/// Generated applications, not in the cluster yet.
pub(crate) async fn simulation(applications: u32) -> Simulation {
    let shape = Shape {
        applications,
        resources: 2,
        application_bytes: 1_000,
        resource_bytes: 500,
        ..Shape::default()
    };
    let load = Load::Generated(shape);
    let argocd_latency = Duration::from_millis(10);
    Simulation::start(Setup { load, tls: [None; 3], argocd_latency, ..Setup::default() }).await.unwrap()
}

/// The reporter of a simulation.
pub(crate) async fn reporter(simulation: &Simulation, more: &Value) -> Reporter {
    let program = Path::new(env!("CARGO_BIN_EXE_gitops-runtime"));
    Reporter::start(program, simulation, more).await.unwrap()
}

fn status(status: u16) -> Rule {
    Rule::always(Fault::Status { status, retry_after: None })
}

impl Trouble {
    /// Makes it, and waits until Prometheus has seen all of it and the reporter rests again.
    pub(crate) async fn make() -> Self {
        let simulation = simulation(APPLICATIONS).await;
        let settings = json!({"argocd": {"timeout": "2s"}, "reporter": {
            "queue": {"events": 5},
            "lanes": {"concurrency": 2, "retry": {"min": "100ms", "max": "1s"}},
            "rateLimit": {"enabled": true, "bucket": 1, "learning": true},
            "digest": {"enabled": true, "interval": "1s"},
        }});
        let reporter = reporter(&simulation, &settings).await;
        let ways = Ways::start().await;
        let clones = Clones::start().await;
        let acts = Acts::start().await;
        let platform = Platform::start().await;
        let kinds = Kinds::start(&simulation).await;
        let began = now();
        let target = reporter.url().strip_prefix("http://").unwrap().to_owned();
        let roles = [clones.target, acts.target, platform.target, kinds.target];
        let prometheus = Prometheus::start(&target, &ways.targets, roles).await;
        // What a counter was before its first scrape is no increase.
        prometheus.until("count_over_time(gitops_runtime_ready[1m]) > 1 and gitops_runtime_ready == 1").await;

        let faults = simulation.argocd.faults();
        // In flight or waiting at any moment, until scrapes have met both.
        let tried = faults.add(status(503).on("managed_resources").of(&Fleet::name(1)));
        let hung = faults.add(Rule::always(Fault::Hang).on("managed_resources").of(&Fleet::name(2)));
        faults.add(status(429).on("resource_tree").times(3));
        // More often than a call is tried: what the tree says is incomplete.
        faults.add(status(503).on("resource_tree").of(&Fleet::name(4)).times(8));
        simulation.platform.faults().add(status(422).of(&Fleet::name(3)));
        let nameless = Key::new("argocd", "nameless").unwrap();
        simulation.kube.apply_text(Collection::Applications, &nameless, |_| "{\"spec\": 7}".into());
        simulation.populate().unwrap();
        prometheus.moved(&["events_in_flight", "events_waiting", "calls_in_flight"]).await;
        faults.remove(tried);
        faults.remove(hung);
        prometheus.moved(&["keys_incomplete", "keys_parked", "malformed_objects_total"]).await;
        let acknowledged = format!("sum(gitops_runtime_events_acked_total) >= {}", APPLICATIONS - 1);
        prometheus.until(&acknowledged).await;

        // The receiver is away, and holds some of what it did not answer.
        let away = simulation.platform.faults().add(status(503).after_effect());
        let mut chance = fastrand::Rng::with_seed(1);
        let mut change = |times: usize| {
            for _ in 0..times {
                simulation.change(Mix::default(), &mut chance).unwrap();
            }
        };
        change(60);
        let held = ["queue_bytes", "keys_dirty", "summaries", "shards_paused"];
        prometheus.moved(&held).await;
        prometheus.moved(&["ledger_in_doubt", "ledger_journal"]).await;
        prometheus.until("max(gitops_runtime_circuit_state) == 2").await;
        simulation.platform.faults().remove(away);
        prometheus.until("max(gitops_runtime_circuit_state) == 0").await;

        // The watch cannot be resumed.
        simulation.kube.down().await;
        change(20);
        simulation.kube.compact();
        simulation.kube.up().await.unwrap();
        prometheus.until("sum(gitops_runtime_lists_total) > 1").await;
        change(40);
        prometheus.moved(&["filtered_total", "dirty_reads_total", "rate_limited_learning_total"]).await;

        // Less than a second old, so that an alert has had its turn too.
        let held = ["events_queued", "events_waiting", "events_in_flight", "keys_dirty"]
            .map(|name| format!("sum(max_over_time(gitops_runtime_{name}[3s]))"))
            .join(" + ");
        prometheus.until(&format!("{held} == 0")).await;
        let visited =
            ["router_requests_total", "router_failures_total", "router_refused_total", "router_under_way"];
        prometheus.moved(&visited).await;
        prometheus.moved(&["tunnel_client_connections", "tunnel_client_visits_total"]).await;
        prometheus.moved(&["tunnel_server_tunnels", "tunnel_server_requests_total"]).await;
        prometheus.moved(&["git_cache_evictions_total", "git_walk_commits_total"]).await;
        prometheus.moved(&["git_fetch_failures_total", "git_fetched_bytes_total"]).await;
        prometheus.moved(&["app_proxy_operations_total", "app_proxy_refusals_total"]).await;
        prometheus.moved(&["app_proxy_streams", "app_proxy_streams_refused_total"]).await;
        prometheus.moved(&["app_proxy_audit_records_waiting", "app_proxy_audit_failures_total"]).await;
        prometheus.moved(&["app_proxy_audit_records_total"]).await;
        prometheus.moved(&["platform_kept_total", "platform_repeated_total", "platform_ignored_total"]).await;
        prometheus.moved(&["platform_requests_total", "platform_refused_total"]).await;
        prometheus.moved(&["kind_state", "kind_objects", "watch_gaps_total"]).await;
        Self { prometheus, reporter, ways, clones, acts, platform, kinds, began, _simulation: simulation }
    }
}
