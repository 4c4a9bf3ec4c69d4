//! CloudEvents in each mode are understood by the SDK that the project itself keeps, in another language.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use pipeline_core::Sink as _;
use serde_json::{Value, json};
use stages_report::cloudevents::Mode;

use crate::cloudevents::sink;
use crate::support::shipment;

/// The version that `.ci/setup` installs.
const SDK: &str = "cloudevents-2.2.0";

/// A receiver in Python; killed when it is dropped.
struct Receiver {
    child: Child,
    lines: Option<BufReader<ChildStdout>>,
    port: String,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cache = variable("LOADTEST_CACHE").or_else(|| Some(caches()?.join("gitops-runtime"))).unwrap();
    let python = cache.join(SDK).join("bin/python");
    assert!(python.is_file(), "there is no {}: run .ci/setup", python.display());
    python
}

impl Receiver {
    fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/report/receiver.py");
        let mut command = Command::new(python());
        command.arg(script).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut port = String::new();
        lines.read_line(&mut port).unwrap();
        Self { child, lines: Some(lines), port: port.trim().to_owned() }
    }

    /// What it understood, so many events.
    async fn understood(&mut self, count: usize) -> Vec<Value> {
        let mut lines = self.lines.take().unwrap();
        let read = tokio::task::spawn_blocking(move || {
            let mut line = || {
                let mut text = String::new();
                lines.read_line(&mut text).unwrap();
                serde_json::from_str(&text).unwrap()
            };
            let read: Vec<Value> = (0..count).map(|_| line()).collect();
            (lines, read)
        });
        let (lines, read) = read.await.unwrap();
        self.lines = Some(lines);
        read
    }
}

#[tokio::test]
async fn the_sdk_of_the_project_understands_every_mode() {
    let mut receiver = Receiver::start();
    let address = format!("http://127.0.0.1:{}", receiver.port);
    for mode in [Mode::Structured, Mode::Binary, Mode::Batched { events: 10, bytes: 1 << 20 }] {
        let some =
            [shipment(r#"{"object":{"a":"ü \"b\" 100%"}}"#, 1), shipment(r#"{"object":{"weight":1.5}}"#, 2)];
        let answers = sink(&address, mode).await.ship(&some).await;
        assert!(answers.iter().all(Result::is_ok), "{mode:?}");
        let mut understood = receiver.understood(2).await;
        understood.sort_by_key(|event| event["data"]["object"].get("weight").is_some());
        for (event, shipment) in understood.iter().zip(&some) {
            let data: Value = serde_json::from_slice(&shipment.report.body).unwrap();
            assert_eq!(event["data"], data, "{mode:?}");
            let expected = json!({
                "specversion": "1.0", "id": &*shipment.idempotency_key, "source": "/clusters/one",
                "type": "gitops-runtime.app.reported", "subject": "argocd/store", "datacontenttype": "application/json",
                "traceparent": stages_report::traceparent(shipment),
            });
            assert_eq!(event["attributes"], expected, "{mode:?}");
        }
    }
}
