//! What was measured, as data: what a benchmark writes as JSON and tells in its table.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use crate::number::number;

/// The form of a file of results.
pub(super) const FORMAT: u32 = 1;

/// Everything that one command measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Results {
    /// [`FORMAT`].
    pub(super) format: u32,
    /// When the first run began.
    pub(super) when: Timestamp,
    /// Processor cores that reporter, simulators and driver shared.
    pub(super) cores: u32,
    /// One reporter in one scenario each, in the order they were run.
    pub(super) runs: Vec<Run>,
}

/// One reporter in one scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Run {
    /// The scenario's name.
    pub(super) scenario: String,
    /// What it is about, a sentence.
    pub(super) about: String,
    /// Who was measured: this product and its version, or the command line that was given.
    pub(super) reporter: String,
    /// The setting, as words: applications, resources, rate, latencies, and so on.
    pub(super) conditions: BTreeMap<String, String>,
    /// What it came to.
    pub(super) figures: Vec<Figure>,
    /// Whether what was reported was right.
    pub(super) correct: Correct,
    /// From the moment a change was due to the acknowledgement of its last report, at rising quantiles.
    pub(super) latencies: Vec<Latency>,
}

/// One figure, beside what it is measured against.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    /// What it is, e.g. `changes a second`.
    pub(super) what: String,
    /// Its unit; empty for a plain number.
    pub(super) unit: String,
    /// What was measured.
    pub(super) value: f64,
    /// The incumbent's, or another setting's in the same run.
    pub(super) beside: Option<Beside>,
    /// What it must be.
    pub(super) bound: Option<Bound>,
}

/// What a figure stands beside.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Beside {
    /// Whose figure it is, e.g. `incumbent, measured`.
    pub(super) whose: String,
    /// The figure, in the same unit.
    pub(super) value: f64,
}

/// What a figure must be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
}

impl Bound {
    /// Whether a value keeps to it.
    #[must_use]
    pub(super) fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// What was wrong with the reports; all of it must be 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Correct {
    /// Changes and applications that were never reported.
    pub(super) lost: u64,
    /// Reports that came twice, under the same key or another.
    pub(super) duplicated: u64,
    /// Reports of an older state after a newer one.
    pub(super) out_of_order: u64,
    /// Entities whose last report is not their last state.
    pub(super) wrong: u64,
}

impl Correct {
    /// Whether nothing was wrong.
    #[must_use]
    pub(super) fn holds(self) -> bool {
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Latency {
    /// From 0 to 1.
    pub(super) quantile: f64,
    /// At most so long.
    pub(super) milliseconds: f64,
}
