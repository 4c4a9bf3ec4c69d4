//! The commands that run the real binary, in small.

use std::path::PathBuf;
use std::time::Duration;

use loadtest::bench::{self, Rate, overload};
use loadtest::sim::generate::Line;
use loadtest::{demo, process};

async fn program() -> anyhow::Result<Option<PathBuf>> {
    process::binary().await.map(Some)
}

async fn demo_args(recordings: &str, out: PathBuf) -> anyhow::Result<demo::Args> {
    Ok(demo::Args {
        recordings: recordings.to_owned(),
        speed: 60.0,
        out: Some(out),
        keep_running: false,
        no_fault: false,
        queue: None,
        patience: 90,
        program: program().await?,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_with_an_outage_reports_everything() {
    let folder = tempfile::tempdir().unwrap();
    let args = demo_args("incumbent-2.12", folder.path().join("out")).await.unwrap();
    let outcome = demo::demo(&args).await.unwrap().unwrap();
    assert!(outcome.is_good(), "{}\n{}", outcome.text(), outcome.line());
    assert_eq!(outcome.applications, (13, 13));
    assert!(outcome.retried > 0, "the outage was not noticed: {}", outcome.text());
    let stream = std::fs::read_to_string(folder.path().join("out/reports.ndjson")).unwrap();
    assert_eq!(stream.lines().count() as u64, outcome.reports);
    let first: serde_json::Value = serde_json::from_str(stream.lines().next().unwrap()).unwrap();
    assert!(first["data"]["object"].is_string() && first["key"].is_string(), "{first}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demo_of_argo_cd_3_reports_everything() {
    let folder = tempfile::tempdir().unwrap();
    let mut args = demo_args("argocd-3.2", folder.path().to_path_buf()).await.unwrap();
    args.no_fault = true;
    args.speed = 0.0;
    let outcome = demo::demo(&args).await.unwrap().unwrap();
    assert!(outcome.is_good(), "{}\n{}", outcome.text(), outcome.line());
    assert_eq!((outcome.applications, outcome.retried), ((13, 13), 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bench_measures_and_finds_nothing_lost() {
    let measured = bench::measure(&bench::Args {
        apps: 20,
        resources: 4,
        argocd_latency: Duration::from_millis(20),
        platform_latency: Duration::from_millis(5),
        seconds: 2,
        rate: Rate::Max,
        outstanding: 8,
        line: Line::V3,
        seed: 1,
        json: true,
        enforce: false,
        program: program().await.unwrap(),
    })
    .await
    .unwrap();
    let json = measured.json();
    assert!(measured.is_correct(), "{json:#}");
    for key in ["lost", "duplicated", "out_of_order", "wrong"] {
        assert_eq!(json[key], 0, "{key}: {json:#}");
    }
    for key in ["changes_per_second", "argocd_calls_per_change", "p50_ms", "p99_ms", "rss_bytes"] {
        assert!(json[key].as_f64().unwrap() > 0.0, "{key}: {json:#}");
    }
    let calls = json["argocd_calls_per_change"].as_f64().unwrap();
    assert!((2.0..=3.0).contains(&calls), "{json:#}");
    // No report is acknowledged sooner than its peers answer: two rounds of calls, two of reports.
    assert!(json["p50_ms"].as_f64().unwrap() >= 30.0, "{json:#}");
    assert_eq!(json["cold_start"]["reported"], 20);
    assert!(measured.table().contains("lost 0, duplicated 0, out of order 0, wrong at the end 0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overload_loses_nothing_and_every_event_is_accounted_for() {
    let found = overload::overload(&overload::Args {
        apps: 120,
        resources: 2,
        shards: 2,
        queue: 20,
        argocd_latency: Duration::from_millis(20),
        platform_latency: Duration::from_millis(5),
        line: Line::V3,
        json: false,
        program: program().await.unwrap(),
    })
    .await
    .unwrap();
    assert!(found.is_good(), "{found:?}");
    assert_eq!((found.applications, found.reported), (120, 120));
    assert!(found.total.overflowed > 0 && found.reads > 0, "the queues were never full: {found:?}");
}
