//! Prints what each gzip level costs, on real reports.
//!
//! `cargo run --release -p stages-report --example gzip-levels -- FILE...`, where each line of a file is a report as
//! the sink `file` writes it: an object whose member `data` is the payload.
#![expect(clippy::print_stdout, reason = "the answer of a command")]

use std::collections::HashMap;
use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::value::RawValue;

/// What the sink compresses with.
#[path = "../src/zip.rs"]
mod zip;

/// The fastest of so many rounds counts: what else the machine does only slows them down.
const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    let mut bodies = Vec::new();
    for path in std::env::args().skip(1) {
        for line in std::fs::read_to_string(path)?.lines() {
            let members: HashMap<String, Box<RawValue>> = serde_json::from_str(line)?;
            // Lines of another kind, such as digests, are no reports.
            bodies
                .extend(members.get("data").map(|data| Bytes::from(format!("{{\"data\":{}}}", data.get()))));
        }
    }
    if bodies.is_empty() {
        return Err(
            "no reports: name files with one JSON object a line, whose member `data` is a payload".into()
        );
    }
    let whole: usize = bodies.iter().map(Bytes::len).sum();
    println!("{} reports, {} bytes each", bodies.len(), whole / bodies.len());
    println!("level | bytes each | of whole | CPU us each");
    for level in 0..=9 {
        let (mut fastest, mut zipped) = (Duration::MAX, 0);
        let zip = zip::Zip::new(level);
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            zipped = 0;
            for body in &bodies {
                zipped += zip.gzipped(std::slice::from_ref(body))?.len();
            }
            fastest = fastest.min(begun.elapsed());
        }
        println!(
            "{level:5} | {:10} | {:6.1} % | {:11.1}",
            zipped / bodies.len(),
            100.0 * zipped as f64 / whole as f64,
            fastest.as_secs_f64() * 1e6 / bodies.len() as f64
        );
    }
    Ok(())
}
