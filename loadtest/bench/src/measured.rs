//! What was measured, as data: what a benchmark writes as JSON, and what its page and a comparison are made of.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::number::number;

/// The form of a file of results; a file of another form is refused.
pub const FORMAT: u32 = 1;

/// Everything that one command measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`FORMAT`].
    pub format: u32,
    /// When the first run began.
    pub when: Timestamp,
    /// Processor cores that reporter, simulators and driver shared.
    pub cores: u32,
    /// One reporter in one scenario each, in the order they were run.
    pub runs: Vec<Run>,
}

/// One reporter in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The scenario's name.
    pub scenario: String,
    /// What it is about, a sentence.
    pub about: String,
    /// Who was measured: this product and its version, or the command line that was given.
    pub reporter: String,
    /// The setting, as words: applications, resources, rate, latencies, and so on.
    pub conditions: BTreeMap<String, String>,
    /// What it came to.
    pub figures: Vec<Figure>,
    /// Whether what was reported was right.
    pub correct: Correct,
    /// From the moment a change was due to the acknowledgement of its last report, at rising quantiles.
    pub latencies: Vec<Latency>,
    /// How it went, about one sample a second.
    pub curve: Vec<Sample>,
}

/// One figure, beside what it is measured against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is, e.g. `changes a second`.
    pub what: String,
    /// Its unit; empty for a plain number.
    pub unit: String,
    /// What was measured.
    pub value: f64,
    /// The incumbent's, or another setting's in the same run.
    pub beside: Option<Beside>,
    /// What it must be.
    pub bound: Option<Bound>,
}

/// What a figure stands beside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Whose figure it is, e.g. `incumbent, measured`.
    pub whose: String,
    /// The figure, in the same unit.
    pub value: f64,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
}

impl Bound {
    /// Whether a value keeps to it.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// What was wrong with the reports; all of it must be 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correct {
    /// Changes and applications that were never reported.
    pub lost: u64,
    /// Reports that came twice, under the same key or another.
    pub duplicated: u64,
    /// Reports of an older state after a newer one.
    pub out_of_order: u64,
    /// Entities whose last report is not their last state.
    pub wrong: u64,
}

impl Correct {
    /// Whether nothing was wrong.
    #[must_use]
    pub fn holds(self) -> bool {
        self == Self::default()
    }
}

impl fmt::Display for Correct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, duplicated, out_of_order, wrong } = *self;
        let counts =
            [(lost, "lost"), (duplicated, "duplicated"), (out_of_order, "out of order"), (wrong, "wrong")];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> =
            told.map(|(count, what)| format!("{} {what}", number(*count as f64))).collect();
        f.write_str(if told.is_empty() { "correct" } else { "" })?;
        f.write_str(&told.join(", "))
    }
}

/// One point of the distribution of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// From 0 to 1.
    pub quantile: f64,
    /// At most so long.
    pub milliseconds: f64,
}

/// One moment of a run; what a reporter does not tell of itself is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the run began.
    pub seconds: f64,
    /// Changes acknowledged a second, since the sample before.
    pub changes: f64,
    /// Events queued, waiting and in flight.
    pub queue: Option<u64>,
    /// Resident memory in bytes.
    pub resident: u64,
    /// Processor cores used, since the sample before.
    pub cores: f64,
    /// Calls to Argo CD for each change, since the sample before.
    pub calls: Option<f64>,
    /// The 99th percentile of the changes acknowledged since the sample before, in milliseconds.
    pub p99: Option<f64>,
}
