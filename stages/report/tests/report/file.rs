//! Lines in files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pipeline_core::{Reason, Sink as _, StageError};
use stages_report::file::{Config, File};

use crate::support::shipment;

fn sink(path: &Path) -> File {
    Config { path: path.to_owned() }.build().unwrap()
}

async fn ship(sink: &File, body: &str) -> Result<(), StageError> {
    sink.ship(&[shipment(body, 0)]).await.remove(0)
}

/// The `data` of every line, each of which must be JSON and end in a line break.
fn data(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    text.lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["data"].to_string())
        .collect()
}

#[tokio::test]
async fn a_line_holds_key_trace_and_payload() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    let sink = sink(&path);
    assert_eq!(sink.name(), "file");
    let shipment = shipment("{ \"b\":1,\n\"a\":\"\\n\" }", 0);
    assert!(matches!(sink.ship(std::slice::from_ref(&shipment)).await[..], [Ok(())]));
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        format!(
            "{{\"idempotencyKey\":\"{key}\",\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-{span}-01\",\
             \"application\":\"argocd/store\",\"kind\":\"app\",\"data\":{{ \"b\":1, \"a\":\"\\n\" }}}}\n",
            key = shipment.idempotency_key,
            span = shipment.idempotency_key.get(..16).unwrap(),
        )
    );
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640 & !umask());
    assert!(sink.ship(&[]).await.is_empty());
}

fn umask() -> u32 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("probe");
    fs::write(&path, "").unwrap();
    0o666 & !fs::metadata(path).unwrap().permissions().mode()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_are_all_there_in_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    let sink = std::sync::Arc::new(sink(&path));
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let sink = sink.clone();
            tokio::spawn(async move {
                let pair = [shipment(&format!("{number}"), 0), shipment(&format!("[{number}]"), 1)];
                assert!(sink.ship(&pair).await.iter().all(Result::is_ok));
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut found = data(&path);
    found.sort();
    let mut expected: Vec<String> =
        (0..200).flat_map(|number| [format!("{number}"), format!("[{number}]")]).collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_restart_appends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    for number in ["1", "2"] {
        let sink = sink_when_free(&path).await;
        ship(&sink, number).await.unwrap();
    }
    assert_eq!(data(&path), ["1", "2"]);
}

/// The thread of a sink that was dropped lets go of its file a moment later.
async fn sink_when_free(path: &Path) -> File {
    loop {
        match (Config { path: path.to_owned() }).build() {
            Ok(sink) => return sink,
            Err(stages_report::file::ConfigError::Taken { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_line_that_a_crash_cut_short_stays_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    fs::write(&path, "{\"data\":1}\n{\"da").unwrap();
    let sink = sink(&path);
    ship(&sink, "2").await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1], "{\"da");
    assert!(lines[2].ends_with("\"data\":2}"));
}

#[tokio::test]
async fn a_file_that_is_moved_removed_or_truncated_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    let old = folder.path().join("reports.1");
    let sink = sink(&path);
    ship(&sink, "1").await.unwrap();
    fs::rename(&path, &old).unwrap();
    ship(&sink, "2").await.unwrap();
    assert_eq!((data(&old), data(&path)), (vec!["1".to_owned()], vec!["2".to_owned()]));
    fs::remove_file(&path).unwrap();
    ship(&sink, "3").await.unwrap();
    assert_eq!(data(&path), ["3"]);
    fs::write(&path, "").unwrap();
    ship(&sink, "4").await.unwrap();
    assert_eq!(data(&path), ["4"]);
}

#[tokio::test]
async fn a_second_writer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    let _first = sink(&path);
    let refused = Config { path: path.clone() }.build().unwrap_err().to_string();
    assert_eq!(
        refused,
        format!("another process writes to the report file {}: give each its own", path.display())
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_is_refused() {
    let refused = Config { path: "/no/such/folder/x".into() }.build().unwrap_err().to_string();
    assert_eq!(refused, "cannot open the report file /no/such/folder/x");
}

#[tokio::test]
async fn a_full_disk_retries_each_report_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.jsonl");
    // The device that is always full.
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let sink = sink(&path);
    let answers = sink.ship(&[shipment("1", 0), shipment("2", 1)]).await;
    assert_eq!(answers.len(), 2);
    for answer in answers {
        let error = answer.unwrap_err();
        assert_eq!((error.is_retry(), error.reason()), (true, Reason::Io));
        assert_eq!(error.to_string(), "cannot write to the report file");
        let StageError::Retry { source, .. } = error else { panic!("not a retry") };
        assert_eq!(source.source().unwrap().to_string(), "No space left on device (os error 28)");
    }
    fs::remove_file(&path).unwrap();
    ship(&sink, "3").await.unwrap();
    assert_eq!(data(&path), ["3"]);
}

#[tokio::test]
async fn a_folder_that_vanishes_retries_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    let path = below.join("reports.jsonl");
    let sink = sink(&path);
    fs::remove_dir_all(&below).unwrap();
    assert_eq!(ship(&sink, "1").await.unwrap_err().reason(), Reason::Io);
    fs::create_dir(&below).unwrap();
    ship(&sink, "2").await.unwrap();
    assert_eq!(data(&path), ["2"]);
}
