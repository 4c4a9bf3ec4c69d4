//! What is counted: operations and how they end, refusals by why, peers, streams, and records for the audit log.

use std::time::Duration;

use axum::body::Bytes;
use prometheus::TextEncoder;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::operations::asked;
use crate::support::{Running, SOON, soon};

const TREE: &str = "{ resourceTree(application: APP) { nodes { name } } }";
const SYNC: &str = "mutation { syncApplication(application: APP) { metadata { name } } }";

fn page(running: &Running) -> String {
    TextEncoder::new().encode_to_string(&running.registry.gather()).unwrap()
}

/// A series, by what stands before its value.
fn value(running: &Running, series: &str) -> u64 {
    let page = page(running);
    let wanted = format!("gitops_runtime_app_proxy_{series} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&wanted));
    line.unwrap_or_else(|| panic!("there is no {series}:\n{page}")).parse().unwrap()
}

fn operations(running: &Running, kind: &str, operation: &str, outcome: &str) -> u64 {
    let labels = format!("kind=\"{kind}\",operation=\"{operation}\",outcome=\"{outcome}\"");
    value(running, &format!("operations_total{{{labels}}}"))
}

fn refusals(running: &Running, reason: &str) -> u64 {
    value(running, &format!("refusals_total{{reason=\"{reason}\"}}"))
}

fn calls(running: &Running, outcome: &str, peer: &str) -> u64 {
    value(running, &format!("peer_seconds_count{{outcome=\"{outcome}\",peer=\"{peer}\"}}"))
}

/// Waits until a series has a value.
async fn until(running: &Running, series: &str, wanted: u64) {
    let deadline = Instant::now() + SOON;
    while value(running, series) != wanted {
        assert!(Instant::now() < deadline, "{series} is {}, not {wanted}", value(running, series));
        sleep(Duration::from_millis(20)).await;
    }
}

/// The series that are exposed, without their values.
fn series(running: &Running) -> Vec<String> {
    let page = page(running);
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
}

#[tokio::test]
async fn operations_are_counted_by_how_they_end_and_refusals_by_why_and_nobody_is_named() {
    let running = Running::start().await;
    let first = series(&running);
    let (tree, sync) = (asked(TREE), asked(SYNC));

    running.data(&running.admin, &tree).await;
    running.data(&running.admin, &sync).await;
    assert_eq!(operations(&running, "read", "resourceTree", "done"), 1);
    assert_eq!(operations(&running, "act", "syncApplication", "done"), 1);

    // Whoever may not, each for a reason of its own.
    running.refused(&running.member, &sync).await;
    running.allow("SYNC", "gitopsApplications", "elsewhere").await;
    running.refused(&running.member, &sync).await;
    running.refused(&running.reads, &sync).await;
    running.refused("nobody's", &sync).await;
    running.refused(&running.runtime, &sync).await;
    running.refused(&running.member, r#"mutation { removeGitIntegration(name: "own") }"#).await;
    let other = sync.replace("namespace: \"argocd\"", "runtime: \"other\", namespace: \"argocd\"");
    running.refused(&running.admin, &other).await;
    let url = format!("{}/api/graphql", running.url);
    let nameless = running.client.post(url).json(&json!({"query": sync})).send().await.unwrap();
    assert_eq!(nameless.status(), 401);
    for (reason, count) in [
        ("no_rule", 1),
        ("another_subject", 1),
        ("reads_only", 1),
        ("unknown", 2),
        ("admins_only", 1),
        ("another_runtime", 1),
        ("no_credentials", 1),
        ("unregistered", 0),
        ("platform_away", 0),
        ("platform_refuses", 0),
        ("other", 0),
    ] {
        assert_eq!(refusals(&running, reason), count, "{reason}");
    }
    // What somebody whom nobody knows asks for is not read: it is no operation.
    assert_eq!(operations(&running, "act", "syncApplication", "refused"), 4);
    assert_eq!(operations(&running, "act", "removeGitIntegration", "refused"), 1);

    *running.argocd.broken.lock().unwrap() = Some((500, "canary".to_owned()));
    running.refused(&running.admin, &sync).await;
    assert_eq!(operations(&running, "act", "syncApplication", "failed"), 1);
    assert_eq!(operations(&running, "act", "syncApplication", "done"), 1);

    // What was done, what failed and who was refused is written; of whom nobody knows there is no record.
    until(&running, "audit_records_total{outcome=\"written\"}", 7).await;
    until(&running, "audit_records_waiting", 0).await;
    assert_eq!(value(&running, "audit_records_total{outcome=\"lost\"}"), 0);
    assert_eq!(value(&running, "audit_failures_total"), 0);

    let last = series(&running);
    assert_eq!(last, first, "every series is there from the start");
    assert!(last.len() < 500, "{} series", last.len());
    let named = ["ada", "lin", "shop", "prod", "elsewhere", "127.0.0.1", "canary"];
    for name in named {
        assert!(!last.iter().any(|series| series.contains(&format!("\"{name}\""))), "{name}");
    }
}

#[tokio::test]
async fn peers_are_counted_by_how_they_answer() {
    // Nothing but what is asked for here calls anybody after the first look at the runtime, which ends with its clusters.
    let running = Running::made(Duration::ZERO, |mut config| {
        config.limits.heartbeat = Duration::from_secs(86_400);
        config
    })
    .await;
    let told = async || running.store.told_clusters(Some("prod"), 1).await.unwrap();
    soon(told, |told| !told.is_empty()).await;
    let (argocd, kubernetes) =
        (calls(&running, "answered", "argocd"), calls(&running, "answered", "kubernetes"));
    assert!(argocd > 0 && kubernetes > 0 && calls(&running, "answered", "platform") > 0);
    running.data(&running.admin, &asked(TREE)).await;
    assert_eq!(calls(&running, "answered", "argocd"), argocd + 1);
    running.data(&running.admin, &asked("{ rollout(application: APP, rollout: WEB) { phase } }")).await;
    assert!(calls(&running, "answered", "kubernetes") > kubernetes);
    running.data(&running.admin, "{ sealingCertificate { pem } }").await;
    assert_eq!(calls(&running, "answered", "sealed_secrets"), 1);
    running.register().await;
    let token = r#"mutation { registerToGitIntegration(args: {token: "nobody-s"}) { name } }"#;
    running.refused(&running.admin, token).await;
    assert_eq!(calls(&running, "refused", "git"), 1);

    let before = calls(&running, "failed", "argocd");
    for (status, outcome) in [(503, "failed"), (403, "refused"), (404, "answered")] {
        let before = calls(&running, outcome, "argocd");
        *running.argocd.broken.lock().unwrap() = Some((status, "no".to_owned()));
        running.refused(&running.admin, &asked(TREE)).await;
        assert_eq!(calls(&running, outcome, "argocd"), before + 1, "{status}");
    }
    assert_eq!(calls(&running, "failed", "argocd"), before + 1);
    assert_eq!(calls(&running, "answered", "workflows"), 0);
}

#[tokio::test]
async fn streams_are_counted_while_they_are_open_and_one_too_many_is_refused() {
    let running = Running::start().await;
    // Each holds its place until whoever follows it leaves.
    running.argocd.holds();
    let query = asked(
        r#"subscription { applicationLogs(application: APP, podName: "web-1",
            resource: {kind: "Pod", namespace: "default", name: "web-1"}, options: {follow: true}) { data { content } error } }"#,
    );
    let url = format!("{}/api/graphql", running.url);
    let follow = async || {
        let asked = running.client.post(&url).header("authorization", &running.admin);
        let mut answer =
            asked.header("accept", "text/event-stream").json(&json!({"query": query})).send().await.unwrap();
        let first: Bytes = answer.chunk().await.unwrap().unwrap();
        (answer, String::from_utf8_lossy(&first).into_owned())
    };
    assert_eq!((value(&running, "streams"), value(&running, "streams_limit")), (0, 2));
    let (one, first) = follow().await;
    assert!(first.contains("first"), "{first}");
    let (two, _) = follow().await;
    assert_eq!((value(&running, "streams"), value(&running, "streams_refused_total")), (2, 0));
    let (_, third) = follow().await;
    assert!(third.contains("too many logs are followed: end one, or try again later"), "{third}");
    assert_eq!((value(&running, "streams"), value(&running, "streams_refused_total")), (2, 1));
    drop((one, two));
    until(&running, "streams", 0).await;
    assert_eq!(operations(&running, "act", "applicationLogs", "done"), 2);
}

#[tokio::test]
async fn records_that_the_platform_does_not_take_wait_and_are_counted_as_lost_when_the_process_ends() {
    let running = Running::remembering(Duration::from_secs(86_400)).await;
    let sync = asked(SYNC);
    running.data(&running.admin, &sync).await;
    until(&running, "audit_records_total{outcome=\"written\"}", 1).await;
    running.platform.abort();
    // Whether they may is remembered.
    let failures = value(&running, "audit_failures_total");
    let deadline = Instant::now() + SOON;
    while value(&running, "audit_failures_total") == failures {
        running.data(&running.admin, &sync).await;
        assert!(Instant::now() < deadline, "the platform still answers");
        sleep(Duration::from_millis(20)).await;
    }
    assert!(value(&running, "audit_records_waiting") > 0);
    let written = value(&running, "audit_records_total{outcome=\"written\"}");
    let done = operations(&running, "act", "syncApplication", "done");
    running.stop.cancel();
    until(&running, "audit_records_waiting", 0).await;
    assert_eq!(value(&running, "audit_records_total{outcome=\"written\"}"), written);
    assert_eq!(value(&running, "audit_records_total{outcome=\"lost\"}"), done - written);
    // A connection that is open may be answered a little longer.
    let tree = asked(TREE);
    while refusals(&running, "platform_away") == 0 {
        running.refused("another", &tree).await;
        assert!(Instant::now() < deadline, "the platform still answers");
    }
}
