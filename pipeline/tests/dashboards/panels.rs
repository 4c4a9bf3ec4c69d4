//! Every question of every panel has an answer.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::files::{Dashboard, dashboards, rules};
use crate::prometheus::{LOOK, Prometheus, SOON, now};
use crate::promql::{name, selectors};
use crate::trouble::Trouble;
use crate::variables::{Variables, all_of, fill, label_values, of_range};

/// What need not move in this test, and why.
const STILL: &[(&str, &str)] = &[
    ("gitops_runtime_call_wait_seconds_total", "no limit is reached"),
    ("gitops_runtime_calls_waiting", "no limit is reached"),
    ("gitops_runtime_git_commit_retries_total", "nobody commits here"),
    ("gitops_runtime_git_commits_total", "nobody commits here"),
    ("gitops_runtime_git_fetches_waiting", "few are fetched at a time"),
    ("gitops_runtime_git_walk_failures_total", "every history is whole"),
    ("gitops_runtime_ledger_errors_total", "the disk is well"),
    ("gitops_runtime_ledger_failing", "the disk is well"),
    ("gitops_runtime_ledger_flight_errors_total", "the disk is well"),
    ("gitops_runtime_ledger_journal_refused_total", "its bound is far"),
    ("gitops_runtime_ledger_waiting", "a commit comes before a scrape does"),
    ("gitops_runtime_parked_dropped_total", "its bound is far"),
    ("gitops_runtime_rate_limited_total", "the limit learns"),
    ("gitops_runtime_stale_events_total", "nothing is delivered again"),
    ("gitops_runtime_platform_commit_failures_total", "the disk is well"),
    ("gitops_runtime_router_retries_total", "what is away is away at once"),
    ("gitops_runtime_summaries_dropped_total", "its bound is far"),
    ("gitops_runtime_tunnel_client_failures_total", "the tunnel's server is well"),
    ("gitops_runtime_tunnel_server_refused_total", "everybody may"),
];

/// A dashboard's variables with all their values chosen, as Grafana asks for them.
async fn variables(prometheus: &Prometheus, dashboard: &Dashboard, range: u64) -> Variables {
    let mut known = of_range(range);
    for variable in dashboard.variables().iter().filter(|variable| variable["type"] == "query") {
        let own = variable["name"].as_str().unwrap();
        let (selector, label) = label_values(variable["query"]["query"].as_str().unwrap());
        let selector = fill(selector, &known);
        let values = prometheus.get(&format!("label/{label}/values"), &[("match[]", &selector)]).await;
        let values: Vec<String> = serde_json::from_value(values).unwrap();
        assert!(!values.is_empty(), "{}: ${own} has no values", dashboard.name);
        let chosen = variable["allValue"].as_str().map_or_else(|| all_of(&values), str::to_owned);
        known.insert(own.to_owned(), chosen);
    }
    known
}

/// Whether a series has a number that can be drawn.
fn is_drawn(series: &Value) -> bool {
    let one = series.get("value").into_iter();
    let mut points = series["values"].as_array().into_iter().flatten().chain(one);
    points.any(|point| point[1].as_str().unwrap().parse::<f64>().unwrap().is_finite())
}

/// A moment at which everybody was scraped just before. A page that comes late empties all that is asked for at one moment.
async fn scraped(prometheus: &Prometheus) -> f64 {
    let all = "min(min_over_time(up[5s])) == 1 and min(count_over_time(up[5s])) >= 4";
    loop {
        let moment = now();
        if !prometheus.query_at(all, moment).await.is_empty() {
            return moment;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What a series was last.
fn ever(selector: &str, range: u64) -> String {
    format!("last_over_time({selector}[{range}s])")
}

#[tokio::test]
async fn no_panel_is_empty_and_every_alert_can_be_judged() {
    let trouble = Trouble::make().await;
    let prometheus = &trouble.prometheus;
    let ended = scraped(prometheus).await;
    let range = (ended - trouble.began).ceil() as u64;
    let mut named: BTreeSet<String> = BTreeSet::new();
    let mut empty = Vec::new();
    for dashboard in dashboards() {
        let variables = variables(prometheus, &dashboard, range).await;
        for target in dashboard.targets() {
            let expr = fill(target.expr, &variables);
            let series = match target.instant {
                true => prometheus.query_at(&expr, ended).await,
                false => prometheus.query_range(&expr, trouble.began, ended).await,
            };
            if !series.iter().any(is_drawn) {
                empty.push(format!("{}: {expr}", target.place));
            }
            // A part of a sum without series makes no hole: each is asked for alone.
            for selector in selectors(&expr) {
                named.insert(name(selector).to_owned());
                if prometheus.query_at(&ever(selector, range), ended).await.is_empty() {
                    empty.push(format!("{}: {selector}", target.place));
                }
            }
        }
    }
    for rule in rules() {
        // Most give nothing, and should: it is enough that they are understood.
        prometheus.query(&rule.expr).await;
        for selector in selectors(&rule.expr) {
            named.insert(name(selector).to_owned());
            if prometheus.query_at(&ever(selector, range), ended).await.is_empty() {
                empty.push(format!("{}: {selector}", rule.alert));
            }
        }
    }
    assert!(empty.is_empty(), "these show nothing: {empty:#?}");

    let page = trouble.reporter.page("/metrics").await.unwrap()
        + &trouble.ways.pages().await
        + &trouble.clones.page().await
        + &trouble.acts.page().await
        + &trouble.platform.page().await
        + &trouble.kinds.page().await;
    let exposed: BTreeSet<&str> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let missing: Vec<_> = named.iter().filter(|name| !exposed.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "named and not exposed: {missing:?}");

    let mut flat = Vec::new();
    for name in named.iter().filter(|name| !STILL.iter().any(|(still, _)| still == name)) {
        let moved = format!("max(max_over_time({name}[{range}s])) > 0");
        if prometheus.query_at(&moved, ended).await.is_empty() {
            flat.push(name);
        }
    }
    assert!(flat.is_empty(), "these never moved: {flat:?}");

    judged(prometheus).await;
    trouble.reporter.stop().await.unwrap();
    trouble.ways.end().await;
    trouble.clones.end().await;
    trouble.acts.end().await;
    trouble.platform.end().await;
    trouble.kinds.end().await;
}

/// Prometheus itself has evaluated every rule, and written what the two that are due say.
async fn judged(prometheus: &Prometheus) {
    // What was unreadable is not forgiven within the test, and what is parked is not reported again.
    prometheus.until("ALERTS{alertname=\"GitopsRuntimeMalformed\", alertstate=\"firing\"}").await;
    prometheus.until("ALERTS{alertname=\"GitopsRuntimeParked\", alertstate=~\"pending|firing\"}").await;
    let groups = prometheus.get("rules", &[]).await;
    let evaluated: Vec<&Value> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    assert_eq!(evaluated.len(), rules().len());
    for rule in evaluated {
        assert_eq!(rule["health"], "ok", "{rule:#}");
    }
    let parked = "Applications of event-reporter that were refused for good: 1";
    let mut alerts = String::new();
    let told = async {
        // A page that comes late takes an alert away that waits, until the next one.
        while !alerts.contains(parked) {
            alerts = prometheus.get("alerts", &[]).await.to_string();
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(SOON, told).await.expect("what was refused is told");
    for broken in ["<error", "<no value>"] {
        assert!(!alerts.contains(broken), "{alerts}");
    }
}
