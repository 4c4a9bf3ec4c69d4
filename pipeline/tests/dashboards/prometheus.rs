//! A real Prometheus as a child process, and its HTTP API.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loadtest::sim::{PATIENCE, local_client};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::files::rule_files;

/// How long anything may take before a test gives up; far above what it takes.
pub(crate) const SOON: Duration = PATIENCE;
/// How often something is looked at while it is waited for.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// Lines of its log that are kept for a message.
const KEPT_LINES: usize = 20;

/// A running Prometheus; it ends with this.
pub(crate) struct Prometheus {
    _child: Child,
    url: String,
    client: reqwest::Client,
    log: Arc<Mutex<VecDeque<String>>>,
    _directory: TempDir,
}

/// A program that `.ci/setup` installs.
pub(crate) fn tool(name: &str) -> PathBuf {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|path| path.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("there is no {name}: run .ci/setup"))
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

impl Prometheus {
    /// Starts it on a free port, with the alert rules; it scrapes `target` (`host:port`) every second, the ways in, a source
    /// server, an app proxy, a platform and a reporter of other kinds.
    pub(crate) async fn start(
        target: &str,
        ways: &[SocketAddr],
        [source_server, app_proxy, platform, kinds]: [SocketAddr; 4],
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": rule_files(),
            "scrape_configs": [
                {"job_name": "event-reporter", "static_configs": [{"targets": [target]}]},
                {"job_name": "ways-in", "static_configs": [{"targets": ways}]},
                {"job_name": "source-server", "static_configs": [{"targets": [source_server]}]},
                {"job_name": "app-proxy", "static_configs": [{"targets": [app_proxy]}]},
                {"job_name": "platform", "static_configs": [{"targets": [platform]}]},
                {"job_name": "resource-reporter", "static_configs": [{"targets": [kinds]}]},
            ],
        });
        let file = directory.path().join("prometheus.yaml");
        // JSON is YAML.
        std::fs::write(&file, config.to_string()).unwrap();
        let mut child = Command::new(tool("setpriv"))
            .args(["--pdeathsig", "KILL", "--"])
            .arg(tool("prometheus"))
            .arg("--web.listen-address=127.0.0.1:0")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (found, mut address) = tokio::sync::watch::channel(None);
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let keep = log.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains("msg=\"Listening on\"") {
                    found.send_replace(field(&line, "address"));
                }
                let mut kept = keep.lock().unwrap();
                kept.push_back(line);
                if kept.len() > KEPT_LINES {
                    kept.pop_front();
                }
            }
        });
        let client = local_client().timeout(SOON).build().unwrap();
        let listens = tokio::time::timeout(SOON, address.wait_for(Option::is_some)).await;
        let url = match listens {
            Ok(Ok(address)) => format!("http://{}", address.as_deref().unwrap()),
            _ => panic!("prometheus does not listen; the end of its log:\n{:#?}", log.lock().unwrap()),
        };
        Self { _child: child, url, client, log, _directory: directory }
    }

    /// The data of an answer; a query that is refused fails the test with what is said of it.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let (mut answer, deadline) = (self.ask(path, query).await, Instant::now() + SOON);
        // It listens before it is ready.
        while answer.is_none() {
            assert!(Instant::now() < deadline, "prometheus is not ready: {:#?}", self.log.lock().unwrap());
            sleep(LOOK).await;
            answer = self.ask(path, query).await;
        }
        let answer = answer.unwrap();
        assert_eq!(answer["status"], "success", "{path} {query:?}: {}", answer["error"]);
        answer["data"].clone()
    }

    async fn ask(&self, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        let answer = self.client.get(format!("{}/api/v1/{path}", self.url)).query(query).send().await;
        let answer =
            answer.unwrap_or_else(|error| panic!("{path}: {error}\n{:#?}", self.log.lock().unwrap()));
        if answer.status() == 503 {
            return None;
        }
        Some(answer.json().await.unwrap())
    }

    /// The series of an expression now.
    pub(crate) async fn query(&self, expr: &str) -> Vec<Value> {
        list(&self.get("query", &[("query", expr)]).await["result"])
    }

    /// The series of an expression as it was at a time, in seconds since 1970: what asks back from there finds the same, however
    /// late it is asked.
    pub(crate) async fn query_at(&self, expr: &str, at: f64) -> Vec<Value> {
        list(&self.get("query", &[("query", expr), ("time", &at.to_string())]).await["result"])
    }

    /// The series of an expression second by second.
    pub(crate) async fn query_range(&self, expr: &str, from: f64, to: f64) -> Vec<Value> {
        let (from, to) = (from.to_string(), to.to_string());
        let query = [("query", expr), ("start", &from), ("end", &to), ("step", "1")];
        list(&self.get("query_range", &query).await["result"])
    }

    /// Waits until each of these metrics of the program has been more than 0 in some series.
    pub(crate) async fn moved(&self, names: &[&str]) {
        for name in names {
            self.until(&format!("max(max_over_time(gitops_runtime_{name}[10m])) > 0")).await;
        }
    }

    /// Waits until an expression gives a series.
    pub(crate) async fn until(&self, expr: &str) {
        let deadline = Instant::now() + SOON;
        while self.query(expr).await.is_empty() {
            assert!(Instant::now() < deadline, "waited for {expr} in vain");
            sleep(LOOK).await;
        }
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().expect("a list of series").clone()
}

/// `name=value` of a log line.
fn field(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("{name}="))?;
    rest.split_whitespace().next().map(|value| value.trim_matches('"').to_owned())
}
