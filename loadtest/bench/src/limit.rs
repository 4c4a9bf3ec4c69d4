//! The limit: what reading and writing the bytes costs whoever does nothing else.
//!
//! Of an event, its JSON is parsed: what any reader that looks at whole objects pays before it decides anything. Of a
//! change, the JSON of its event and of Argo CD's two answers is parsed, and the two manifests that its two reports carry
//! are encoded and compressed as the reports are (base64, then gzip, level 4). Of a change of an object that is reported as it is,
//! the JSON of its event is parsed, and its report compressed.
//!
//! It is measured in this process after the changes were played, on the bytes that the simulated peers send, each parsed
//! into a [`serde_json::Value`] of its own, which is dropped, again and again. So it holds neither a socket, nor TLS, nor
//! the cutting into lines, nor a switch between threads; it finds its input in the processor's caches, and memory comes
//! from the system's allocator. What it stands beside holds all of these, and everything else that the process did
//! meanwhile.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use loadtest_sim::Simulation;
use loadtest_sim::generate::{AppState, Fleet};
use loadtest_sim::reporter::of_this_thread;

/// Different applications whose bytes are taken.
const APPLICATIONS: usize = 500;
/// Done again and again until so much processor time is spent.
const LEAST: f64 = 0.5;
/// Given up after this, on a machine that gives no processor time.
const LONGEST: Duration = Duration::from_secs(60);
/// As the reporter compresses by default.
const LEVEL: u32 = 4;

/// What is read and written for one thing.
#[derive(Default)]
struct Bytes {
    /// JSON texts that are parsed.
    read: Vec<Vec<u8>>,
    /// Manifests that are encoded and compressed, each in a report of its own.
    written: Vec<Vec<u8>>,
    /// Reports that are compressed as they are.
    reports: Vec<Vec<u8>>,
}

/// What a run's processor time is laid beside, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    /// Of one event that brings nothing new.
    Event(f64),
    /// Of one change.
    Change(f64),
}

/// Processor seconds of one event.
pub(super) async fn of_an_event(simulation: &Simulation) -> anyhow::Result<Limit> {
    let bytes =
        |fleet: &Fleet, state: &AppState| Bytes { read: vec![event(fleet, state)], ..Bytes::default() };
    alone(simulation, bytes).await.map(Limit::Event)
}

/// Processor seconds of one change.
pub(super) async fn of_a_change(simulation: &Simulation) -> anyhow::Result<Limit> {
    let bytes = |fleet: &Fleet, state: &AppState| {
        let managed = fleet.managed_resources(state);
        let resources = state.resources.len().max(1);
        let one = managed.get(..managed.len() / resources).unwrap_or_default().to_vec();
        let mut application = Vec::new();
        fleet.application(state, 1_000_000, &mut application);
        Bytes {
            read: vec![event(fleet, state), managed, fleet.resource_tree(state)],
            written: vec![application, one],
            ..Bytes::default()
        }
    };
    alone(simulation, bytes).await.map(Limit::Change)
}

/// Processor seconds of one change of objects that are reported as they are: of each its event, and its report.
pub(super) async fn of_objects(all: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> anyhow::Result<f64> {
    let bytes = |(event, report)| Bytes { read: vec![event], reports: vec![report], ..Bytes::default() };
    let all: Vec<Bytes> = all.into_iter().map(bytes).collect();
    tokio::task::spawn_blocking(move || spent(&all)).await.context("parse and compress")?
}

/// A line of a watch.
fn event(fleet: &Fleet, state: &AppState) -> Vec<u8> {
    let mut line = b"{\"type\":\"MODIFIED\",\"object\":".to_vec();
    fleet.application(state, 1_000_000, &mut line);
    line.push(b'}');
    line
}

async fn alone(simulation: &Simulation, bytes: impl Fn(&Fleet, &AppState) -> Bytes) -> anyhow::Result<f64> {
    let fleet = simulation.fleet.as_ref().context("the simulation generates no applications")?;
    let all: Vec<Bytes> =
        fleet.snapshot().iter().take(APPLICATIONS).map(|state| bytes(fleet, state)).collect();
    tokio::task::spawn_blocking(move || spent(&all)).await.context("parse and compress")?
}

fn spent(all: &[Bytes]) -> anyhow::Result<f64> {
    let now = || of_this_thread().context("the kernel does not tell the processor time of a thread");
    let began = Instant::now();
    let before = now()?;
    let mut done = 0_u64;
    loop {
        for bytes in all {
            for text in &bytes.read {
                let value: serde_json::Value = serde_json::from_slice(text).context("parse")?;
                std::hint::black_box(&value);
            }
            for manifest in &bytes.written {
                compress(STANDARD.encode(manifest).as_bytes())?;
            }
            for report in &bytes.reports {
                compress(report)?;
            }
            done += 1;
        }
        let spent = now()? - before;
        if spent >= LEAST || began.elapsed() > LONGEST || done == 0 {
            return Ok(spent / done.max(1) as f64);
        }
    }
}

fn compress(text: &[u8]) -> anyhow::Result<()> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
    gzip.write_all(text).context("compress")?;
    std::hint::black_box(gzip.finish().context("compress")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(read: &str, written: &str) -> anyhow::Result<f64> {
        spent(&[Bytes {
            read: vec![read.into()],
            written: vec![written.into()],
            reports: vec![written.into()],
        }])
    }

    #[test]
    fn parsing_and_compressing_take_time_and_what_cannot_be_parsed_is_refused() {
        let seconds = of("{\"a\":[1,2,3]}", "a manifest").unwrap();
        assert!(seconds > 0.0, "{seconds}");
        assert!(of("{\"a\":", "").unwrap_err().to_string().starts_with("parse"));
    }
}
