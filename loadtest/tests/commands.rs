//! `loadtest demo` with the real binary.

use std::path::PathBuf;

use loadtest::demo;
use loadtest_sim::process;

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
        patience: 300,
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
