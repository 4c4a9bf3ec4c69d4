//! What it costs to parse the JSON of watch events and to do nothing else: what any reader that looks at whole objects
//! pays before it decides anything.
//!
//! It is measured in this process after the changes were played, on the lines of a watch as the simulated API server
//! sends them: each is parsed into a [`serde_json::Value`] of its own, which is dropped, again and again. So it holds
//! neither a socket, nor TLS, nor the cutting into lines, nor a switch between threads; it finds its input in the
//! processor's caches, and memory comes from the system's allocator. What it stands beside holds all of these, and
//! everything else that the process did meanwhile.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::reporter::of_this_thread;
use crate::sim::Simulation;

/// Different events that are parsed.
const EVENTS: u32 = 500;
/// Parsed again and again until so much processor time is spent.
const LEAST: f64 = 0.5;
/// Given up after this, on a machine that gives no processor time.
const LONGEST: Duration = Duration::from_secs(60);

/// Processor seconds of one event, parsed into a [`serde_json::Value`].
///
/// # Errors
/// When there are no applications, or the kernel does not tell the time of a thread.
pub(super) async fn alone(simulation: &Simulation) -> anyhow::Result<f64> {
    let fleet = simulation.fleet.as_ref().context("the simulation generates no applications")?;
    let mut lines = Vec::new();
    for state in fleet.snapshot().iter().take(EVENTS as usize) {
        let mut line = b"{\"type\":\"MODIFIED\",\"object\":".to_vec();
        fleet.application(state, 1_000_000, &mut line);
        line.push(b'}');
        lines.push(line);
    }
    tokio::task::spawn_blocking(move || spent(&lines)).await.context("parse events")?
}

fn spent(lines: &[Vec<u8>]) -> anyhow::Result<f64> {
    let now = || of_this_thread().context("the kernel does not tell the processor time of a thread");
    let began = Instant::now();
    let before = now()?;
    let mut parsed = 0_u64;
    loop {
        for line in lines {
            let event: serde_json::Value = serde_json::from_slice(line).context("parse an event")?;
            parsed += u64::from(std::hint::black_box(&event).is_object());
        }
        let spent = now()? - before;
        if spent >= LEAST || began.elapsed() > LONGEST || parsed == 0 {
            return Ok(spent / parsed.max(1) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn parsing_takes_time_and_what_cannot_be_parsed_is_refused() {
        let spent = |line: &str| super::spent(&[line.as_bytes().to_vec()]);
        let seconds = spent("{\"a\":[1,2,3]}").unwrap();
        assert!(seconds > 0.0 && seconds < 0.01, "{seconds}");
        assert!(spent("{\"a\":").unwrap_err().to_string().starts_with("parse an event"));
    }
}
