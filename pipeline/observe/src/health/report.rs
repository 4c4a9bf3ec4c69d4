//! What health answers, and how it is written down.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::Timestamp;
use serde_json::{Value, json};

use super::{Check, State};

/// One check's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The route that it is of; `None` where it is the process's, or its first route's.
    pub route: Option<Arc<str>>,
    /// What was checked.
    pub check: Check,
    /// How it stands.
    pub state: State,
    /// How long it has been seen to stand so.
    pub lasting: Duration,
    /// The finding in words, with figures and numbers of shards, but with nothing that a peer said.
    pub text: String,
}

/// All answers, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthReport {
    /// The worst of all checks.
    pub state: State,
    /// Whether the first list is complete, every owned shard runs, and the ledger is open.
    pub ready: bool,
    /// What is missing for `ready`.
    pub missing: Vec<&'static str>,
    /// One for each of [`Check::ALL`], and of each further route one for each that is a route's own.
    pub checks: Vec<Finding>,
}

impl HealthReport {
    /// Keeps only what is a route's own: its lanes, its sink and its ledger.
    #[must_use]
    pub fn of_route(self) -> Self {
        let own = |finding: &Finding| matches!(finding.check, Check::Lanes | Check::Sink | Check::Ledger);
        let checks: Vec<Finding> = self.checks.into_iter().filter(own).collect();
        let state = checks.iter().map(|finding| finding.state).max().unwrap_or(State::Ok);
        Self { state, checks, ..self }
    }

    /// Adds what is a route's own in the reports of further routes, each under its name.
    #[must_use]
    pub fn with_routes(mut self, routes: impl IntoIterator<Item = (Arc<str>, Self)>) -> Self {
        for (name, report) in routes {
            let Self { state, missing, checks, .. } = report.of_route();
            self.state = self.state.max(state);
            let new: Vec<_> = missing.into_iter().filter(|text| !self.missing.contains(text)).collect();
            self.missing.extend(new);
            self.checks
                .extend(checks.into_iter().map(|finding| Finding { route: Some(name.clone()), ..finding }));
        }
        self.ready = self.missing.is_empty();
        self
    }

    /// One line: `ok`, or the state and what is wrong.
    #[must_use]
    pub fn line(&self) -> String {
        let wrong: Vec<String> = self
            .checks
            .iter()
            .filter(|finding| finding.state > State::Ok)
            .map(|finding| match &finding.route {
                Some(route) => format!("route {route}: {}: {}", finding.check.as_str(), finding.text),
                None => format!("{}: {}", finding.check.as_str(), finding.text),
            })
            .collect();
        if wrong.is_empty() {
            "ok".to_owned()
        } else {
            format!("{}: {}", self.state.as_str(), wrong.join("; "))
        }
    }

    /// Every check: `{"state", "ready", "missing", "checks": [{"check", "state", "since", "seconds", "text"}]}`, and
    /// `"route"` of what is a further route's; `now` is the wall clock's time, for `since`.
    #[must_use]
    pub fn to_json(&self, now: Timestamp) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|finding| {
                let since = now.checked_sub(finding.lasting).unwrap_or(now);
                let mut told = json!({
                    "check": finding.check,
                    "state": finding.state,
                    "since": since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                    "seconds": finding.lasting.as_secs(),
                    "text": finding.text,
                });
                if let Some(route) = &finding.route {
                    told["route"] = json!(**route);
                }
                told
            })
            .collect();
        json!({ "state": self.state, "ready": self.ready, "missing": self.missing, "checks": checks })
    }
}
