//! The program as a child process of a test, and what a test asks of it.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadtest::process::{Process, Start};
pub(crate) use loadtest::reporter::merge;
use loadtest::reporter::{Metrics, Status};
use loadtest::sim::platform::{Keep, Totals};
use loadtest::sim::{Load, PATIENCE, Setup, Simulation, generate::Shape, local_client, wait_for};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_gitops-runtime");
/// How long anything may take before a test gives up, or, of work in many pieces, the next piece; far above what it
/// takes.
pub(crate) const SOON: Duration = PATIENCE;
/// How long work in many pieces may take on a machine that is busy with other things.
const LATER: Duration = Duration::from_secs(600);
/// A connection that has waited for longer is not asked over: the server closes it in its time, perhaps while it is asked.
const IDLE: Duration = Duration::from_secs(1);
/// How often a page or a log is looked at while a condition is waited for: each look is work for the program as well.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A running program.
pub(crate) struct Runtime {
    process: Process,
    url: String,
    client: reqwest::Client,
}

impl Runtime {
    /// Starts the reporter against the simulators, with `more` over their settings.
    pub(crate) async fn start(simulation: &Simulation, more: &Value) -> Self {
        Self::launch(start(simulation, more)).await
    }

    /// Starts what `start` says and waits until it works.
    pub(crate) async fn launch(start: Start) -> Self {
        let runtime = Self::serving(start).await;
        runtime.says("reporting").await;
        runtime
    }

    /// Starts what `start` says and waits until it serves, which it does before it works.
    pub(crate) async fn serving(start: Start) -> Self {
        let mut process = Process::start(&start).unwrap();
        let address = process.address(SOON).await.unwrap();
        let client = local_client().timeout(SOON).pool_idle_timeout(IDLE).build().unwrap();
        Self { process, url: format!("http://{address}"), client }
    }

    /// Where it answers.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Status and text of one of its pages.
    pub(crate) async fn page(&self, path: &str) -> (u16, String) {
        let answer = match self.client.get(format!("{}{path}", self.url)).send().await {
            Ok(answer) => answer,
            Err(error) => panic!("{path}: {error}; the end of the log:\n{}", self.end_of_log()),
        };
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Waits until one of its pages answers as `is_it` wants it; gives status and text.
    pub(crate) async fn answers(&self, path: &str, is_it: impl Fn(u16, &str) -> bool) -> (u16, String) {
        wait_for(path, async || self.page(path).await, |(status, text)| is_it(*status, text)).await
    }

    /// What it says of its shards.
    pub(crate) async fn status(&self) -> Status {
        let (status, text) = self.page("/status").await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// What it counts.
    pub(crate) async fn metrics(&self) -> Metrics {
        Metrics::read(&self.page("/metrics").await.1)
    }

    /// One sum of what it counts.
    pub(crate) async fn counted(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.metrics().await.sum(name, labels)
    }

    /// Waits until its status is as `done` wants it, for as long as events come in and go out.
    pub(crate) async fn until(&self, what: &str, done: impl Fn(&Status) -> bool) -> Status {
        let mut patience = Patience::new();
        loop {
            let status = self.status().await;
            if done(&status) {
                return status;
            }
            assert!(
                patience.lasts(moved(&status)),
                "waited for {what} in vain: {status:?}\n{}",
                self.end_of_log()
            );
            sleep(LOOK).await;
        }
    }

    /// Waits until it has taken in so many events and holds nothing any more.
    pub(crate) async fn idle(&self, observed: u64) -> Status {
        let what = format!("{observed} events to be done with");
        self.until(&what, |status| status.total.observed >= observed && status.total.idle()).await
    }

    /// Waits for a sum of what it counts.
    pub(crate) async fn counts(&self, name: &str, labels: &[(&str, &str)], at_least: f64) {
        let deadline = Instant::now() + SOON;
        loop {
            let now = self.counted(name, labels).await;
            if now >= at_least {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{name}{labels:?} is {now}, not {at_least}; the end of the log:\n{}",
                self.end_of_log()
            );
            sleep(LOOK).await;
        }
    }

    /// Its log lines.
    pub(crate) fn log(&self) -> Vec<Line> {
        self.process.lines().all().iter().map(|line| Line::read(line)).collect()
    }

    /// How many of its log lines have this message.
    pub(crate) fn said(&self, message: &str) -> usize {
        self.log().iter().filter(|line| line.message == message).count()
    }

    /// Waits for a line with this message.
    pub(crate) async fn says(&self, message: &str) -> Line {
        self.logs(&format!("the message {message:?}"), |line| line.message == message).await
    }

    /// Waits for a log line.
    pub(crate) async fn logs(&self, what: &str, is_it: impl Fn(&Line) -> bool) -> Line {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(line) = self.log().into_iter().find(&is_it) {
                return line;
            }
            assert!(Instant::now() < deadline, "waited for {what} in vain; the log:\n{}", self.end_of_log());
            sleep(LOOK).await;
        }
    }

    /// Asks it to stop, and asserts that it ends well and in time; gives its log.
    pub(crate) async fn stop(self) -> Vec<Line> {
        let lines = self.process.lines().clone();
        let status = self.process.stop(SOON).await.unwrap();
        let log = lines.all();
        assert_eq!(status.code(), Some(0), "{}", log.join("\n"));
        log.iter().map(|line| Line::read(line)).collect()
    }

    /// Kills it without a warning.
    pub(crate) async fn kill(self) {
        self.process.kill().await.unwrap();
    }

    /// The process itself.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    fn end_of_log(&self) -> String {
        let mut lines = self.process.lines().all();
        lines.split_off(lines.len().saturating_sub(20)).join("\n")
    }
}

/// A client of what runs on this machine.
pub(crate) fn http_client() -> reqwest::Client {
    local_client().timeout(SOON).build().unwrap()
}

/// How the reporter is started against the simulators.
pub(crate) fn start(simulation: &Simulation, more: &Value) -> Start {
    let mut settings = json!({
        "serve": {"address": "127.0.0.1:0", "metricsAddress": ""},
        "reporter": {"lanes": {"retry": {"min": "100ms"}}},
    });
    merge(&mut settings, more);
    Start {
        program: PathBuf::from(PROGRAM),
        args: vec!["reporter".into()],
        env: simulation.environment(&settings).unwrap(),
        directory: simulation.directory().to_path_buf(),
    }
}

/// One line of the log.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Its level, as it is written.
    pub(crate) level: String,
    /// Its constant text.
    pub(crate) message: String,
    /// Its data.
    pub(crate) fields: Value,
}

impl Line {
    /// Reads a line; one that is no JSON is all message.
    pub(crate) fn read(line: &str) -> Self {
        let json: Value = serde_json::from_str(line).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match json.get("fields") {
            Some(fields) => Self {
                level: text(&json["level"]),
                message: text(&fields["message"]),
                fields: fields.clone(),
            },
            None => Self { level: String::new(), message: line.to_owned(), fields: Value::Null },
        }
    }

    /// One of its data as text.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields[name].as_str().unwrap_or_default()
    }
}

/// Generated applications with so many resources each, in the cluster.
pub(crate) async fn fleet(applications: u32, resources: u32, more: impl FnOnce(&mut Setup)) -> Simulation {
    let shape =
        Shape { applications, resources, application_bytes: 1_000, resource_bytes: 500, ..Shape::default() };
    let mut setup = Setup {
        load: Load::Generated(shape),
        tls: [None; 3],
        keep: Keep { last: true, reports: 0 },
        ..Setup::default()
    };
    more(&mut setup);
    let simulation = Simulation::start(setup).await.unwrap();
    assert_eq!(simulation.populate().unwrap(), applications as usize);
    simulation
}

/// Waits until the platform has taken so many different reports, for as long as some come.
pub(crate) async fn taken(simulation: &Simulation, reports: u64) -> Totals {
    let mut patience = Patience::new();
    loop {
        let before = simulation.platform.totals().taken;
        let more = |totals: &Totals| totals.taken >= reports || totals.taken > before;
        match simulation.platform.wait_until(SOON, more).await {
            Ok(totals) if totals.taken >= reports => return totals,
            Ok(totals) => {
                assert!(patience.lasts(totals.taken), "waited for {reports} reports in vain: {totals:?}");
            }
            Err(error) => panic!("waited for {reports} reports in vain: {error:#}"),
        }
    }
}

/// How long work in many pieces is waited for: a machine that is busy makes it slow, only a standstill is a failure.
pub(crate) struct Patience {
    moved: u64,
    next: Instant,
    last: Instant,
}

impl Patience {
    /// The work begins now.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { moved: 0, next: now + SOON, last: now + LATER }
    }

    /// Whether it is worth waiting on, with so many pieces done.
    pub(crate) fn lasts(&mut self, moved: u64) -> bool {
        let now = Instant::now();
        if moved > self.moved {
            (self.moved, self.next) = (moved, now + SOON);
        }
        now < self.next.min(self.last)
    }
}

/// Events that came in and that went out.
pub(crate) fn moved(status: &Status) -> u64 {
    let total = &status.total;
    total.observed + total.acked + total.coalesced + total.filtered + total.parked
}

/// Waits until something is so that nobody tells of.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    wait_for(what, async || is_so(), |is_so| *is_so).await;
}

/// The object of a report's payload.
pub(crate) fn object(payload: &[u8]) -> Value {
    use base64::Engine as _;
    let payload: Value = serde_json::from_slice(payload).unwrap();
    let object = payload["object"].as_str().unwrap();
    let object = base64::engine::general_purpose::STANDARD.decode(object).unwrap();
    serde_json::from_slice(&object).unwrap()
}

/// Writes a file as a mounted secret is replaced: beside, then moved into place.
pub(crate) fn replace(path: &Path, content: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, content).unwrap();
    std::fs::rename(beside, path).unwrap();
}

/// Asserts on a value that is shown when it is not as it should be.
pub(crate) fn ensure<T: Debug>(value: T, what: &str, is_right: impl FnOnce(&T) -> bool) -> T {
    assert!(is_right(&value), "{what}: {value:#?}");
    value
}
