//! A runtime, and one that was just added.

use jiff::Timestamp;
use stages_platform_store::{HeardRole, RefusedReports};

/// A runtime.
#[derive(Debug, Clone)]
pub struct RuntimeRow {
    /// Its name.
    pub name: String,
    /// Its version, once it said so.
    pub version: Option<String>,
    /// How many applications it reports.
    pub applications: u64,
    /// How many of them are healthy.
    pub healthy: u64,
    /// When its reporter was last heard of, if only that it lives; `None`: it never was.
    pub heard: Option<Timestamp>,
    /// Of when its last report is; `None`: it never sent one.
    pub last_report: Option<Timestamp>,
    /// How long its last report was on the way, in milliseconds.
    pub lag: Option<u64>,
    /// Its reporter has been silent for twenty minutes.
    pub silent: bool,
    /// Its roles that say of themselves that they live.
    pub roles: Vec<HeardRole>,
    /// What of its requests was not taken, the most often first.
    pub refused: Vec<RefusedReports>,
    /// What it last said is wrong with it.
    pub problems: Vec<RuntimeProblem>,
}

/// Something that a runtime says is wrong with it.
#[derive(Debug, Clone)]
pub struct RuntimeProblem {
    /// An error; else a warning.
    pub error: bool,
    /// What it is about.
    pub title: String,
    /// What was said.
    pub message: String,
    /// What to do.
    pub suggestion: String,
    /// Since when it says so without a break, where that is known.
    pub since: Option<Timestamp>,
    /// When it said so last.
    pub seen: Option<Timestamp>,
}

/// What came of adding a runtime.
#[derive(Debug, Clone)]
pub enum Added {
    /// It was added; its token is shown once.
    Token(String),
    /// It could not be, and why.
    Refused(String),
}
