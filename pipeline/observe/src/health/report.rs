//! What health answers, and how it is written down.

use std::time::Duration;

use pipeline_core::Timestamp;
use serde_json::{Value, json};

use super::{Check, State};

/// One check's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub check: Check,
    /// How it stands.
    pub state: State,
    /// How long it has been seen to stand so.
    pub lasting: Duration,
    /// In words: numbers and names of shards, nothing a peer said.
    pub text: String,
}

/// All answers, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthReport {
    /// The worst of all checks.
    pub state: State,
    /// The first list is complete, every owned shard runs, and the ledger is open.
    pub ready: bool,
    /// What is missing for `ready`.
    pub missing: Vec<&'static str>,
    /// One for each of [`Check::ALL`].
    pub checks: Vec<Finding>,
}

impl HealthReport {
    /// One line: `ok`, or the state and what is wrong.
    #[must_use]
    pub fn line(&self) -> String {
        let wrong: Vec<String> = self
            .checks
            .iter()
            .filter(|finding| finding.state > State::Ok)
            .map(|finding| format!("{}: {}", finding.check.as_str(), finding.text))
            .collect();
        if wrong.is_empty() {
            "ok".to_owned()
        } else {
            format!("{}: {}", self.state.as_str(), wrong.join("; "))
        }
    }

    /// Every check: `{"state", "ready", "missing", "checks": [{"check", "state", "since", "seconds", "text"}]}`;
    /// `now` is the wall clock's time, for `since`.
    #[must_use]
    pub fn to_json(&self, now: Timestamp) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|finding| {
                let since = now.checked_sub(finding.lasting).unwrap_or(now);
                json!({
                    "check": finding.check,
                    "state": finding.state,
                    "since": since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                    "seconds": finding.lasting.as_secs(),
                    "text": finding.text,
                })
            })
            .collect();
        json!({ "state": self.state, "ready": self.ready, "missing": self.missing, "checks": checks })
    }
}
