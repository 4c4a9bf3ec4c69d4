//! What was found, for people, programs, and code scanners.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;

use crate::finding::{Finding, Severity, Unmeasured};
use crate::rules::CODES;

/// So many that nobody looked at for one reason stand in one line.
const MANY: usize = 5;

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
    /// For code scanners: SARIF 2.1.0.
    Sarif,
}

/// Everything that was found at once, in the order of files and lines.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What was not looked at.
    pub unmeasured: Vec<Unmeasured>,
}

impl Report {
    /// Whether something does not work.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// The report as text.
    #[must_use]
    pub fn write(&self, format: Format) -> String {
        match format {
            Format::Table => self.table(),
            Format::Json => pretty(&json!(self)),
            Format::Sarif => pretty(&self.sarif()),
        }
    }

    /// The worst first, a line each, in so many bytes at most: for the last words of a container.
    #[must_use]
    pub fn brief(&self, most: usize) -> String {
        let mut text = self.summary();
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        for finding in findings.into_iter().filter(|finding| finding.severity > Severity::Note) {
            let path = if finding.path.is_empty() { about(finding.code) } else { finding.path.as_str() };
            let line = format!(
                "{} {} {path}: found {}, wanted {}; {}\n",
                finding.severity.name(),
                finding.code,
                finding.found,
                finding.wanted,
                finding.todo
            );
            if text.len() + line.len() > most {
                break;
            }
            text.push_str(&line);
        }
        text
    }

    fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a text cannot fail.
        for finding in &self.findings {
            let place = match &finding.file {
                // What is wrong with a cluster or a peer is at no value.
                _ if finding.path.is_empty() && finding.code != "GR0001" => about(finding.code).to_owned(),
                Some(file) if finding.line > 0 => format!("{file}:{}: {}", finding.line, finding.path),
                Some(file) => format!("{file}: {}", finding.path),
                None => format!("not given: {}", finding.path),
            };
            let _ = writeln!(text, "{} {} {place}", finding.severity.name(), finding.code);
            let _ = writeln!(text, "    found  {}", finding.found);
            if finding.severity == Severity::Note {
                continue;
            }
            let meant =
                finding.meant.as_ref().map(|meant| format!("; did you mean '{meant}'?")).unwrap_or_default();
            let _ = writeln!(text, "    wanted {}{meant}", finding.wanted);
            let _ = writeln!(text, "    do     {}", finding.todo);
        }
        let mut told = BTreeSet::new();
        for unmeasured in &self.unmeasured {
            let why = unmeasured.why.as_str();
            let alike: Vec<&str> =
                self.unmeasured.iter().filter(|other| other.why == why).map(|other| other.code).collect();
            if alike.len() < MANY {
                let _ = writeln!(text, "not measured {}: {} ({why})", unmeasured.code, unmeasured.what);
            } else if told.insert(why) {
                let _ = writeln!(text, "not measured {} ({why})", alike.join(", "));
            }
        }
        text.push_str(&self.summary());
        text
    }

    /// How many of each there are, in a line.
    fn summary(&self) -> String {
        let many = |severity: Severity| match self.count(severity) {
            1 => format!("1 {}", severity.name()),
            count => format!("{count} {}s", severity.name()),
        };
        let (errors, warnings) = (many(Severity::Error), many(Severity::Warning));
        format!("{errors}, {warnings}, {} not measured\n", self.unmeasured.len())
    }

    fn sarif(&self) -> serde_json::Value {
        let rules: Vec<_> = CODES
            .iter()
            .map(|(code, text)| json!({"id": code, "shortDescription": {"text": text}}))
            .collect();
        let results: Vec<_> = self.findings.iter().map(result).collect();
        let notes: Vec<_> = self
            .unmeasured
            .iter()
            .map(|unmeasured| {
                json!({
                    "level": "note",
                    "descriptor": {"id": unmeasured.code},
                    "message": {"text": format!("not measured: {} ({})", unmeasured.what, unmeasured.why)},
                })
            })
            .collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {
                    "name": "gitops-runtime",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                }},
                "invocations": [{"executionSuccessful": true, "toolExecutionNotifications": notes}],
                "results": results,
            }],
        })
    }
}

/// What a code is about.
pub(crate) fn about(code: &str) -> &'static str {
    CODES.iter().find(|(known, _)| *known == code).map_or("", |(_, what)| what)
}

fn result(finding: &Finding) -> serde_json::Value {
    let level = finding.severity.name();
    // What is wrong with a cluster or a peer is at no value.
    let place = if finding.path.is_empty() { about(finding.code) } else { finding.path.as_str() };
    let mut message = format!("{place}: found {}", finding.found);
    // Writing to a text cannot fail.
    if finding.severity > Severity::Note {
        let _ = write!(message, ", wanted {}", finding.wanted);
        if let Some(meant) = &finding.meant {
            let _ = write!(message, " (did you mean '{meant}'?)");
        }
        let _ = write!(message, "; {}", finding.todo);
    }
    let mut result = json!({
        "ruleId": finding.code,
        "level": level,
        "message": {"text": message},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": place}]}],
    });
    // Scanners refuse a result without a place in a file.
    if let Some(file) = &finding.file {
        result["locations"][0]["physicalLocation"] = json!({
            "artifactLocation": {"uri": uri(file)},
            "region": {"startLine": finding.line.max(1)},
        });
    }
    result
}

/// A name of a file as a reference, such as that of a release, which has a space.
fn uri(name: &str) -> String {
    let is_plain = |c: &u8| c.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=".contains(c);
    name.bytes().fold(String::new(), |mut text, c| {
        if is_plain(&c) {
            text.push(c.into());
        } else {
            // Writing to a text cannot fail.
            let _ = write!(text, "%{c:02X}");
        }
        text
    })
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}
