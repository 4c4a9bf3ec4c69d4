//! Rules and their unit tests, by Prometheus' own tool.

use std::collections::BTreeSet;
use std::process::Command;

use crate::files::{rule_files, rules, unit_files, units};
use crate::prometheus::tool;

fn promtool(args: &[&str], files: &[std::path::PathBuf]) {
    let output = Command::new(tool("promtool")).args(args).args(files).output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(output.status.success(), "promtool {args:?}: {}", said.join("\n"));
}

#[test]
fn the_rules_are_rules() {
    promtool(&["check", "rules"], &rule_files());
}

#[test]
fn the_rules_fire_when_they_should_and_do_not_when_they_should_not() {
    promtool(&["test", "rules"], &unit_files());
}

#[test]
fn every_alert_is_tested_firing_and_not_firing() {
    let tested = |fires: bool| -> BTreeSet<String> {
        let checks = units().into_iter().flat_map(|unit| unit.promql_expr_test);
        checks.filter(|check| check.exp_samples.is_empty() != fires).map(|check| check.expr).collect()
    };
    let asked = |rule: &crate::files::Rule| {
        format!("count(ALERTS{{alertname=\"{}\", alertstate=\"firing\"}})", rule.alert)
    };
    let all: BTreeSet<String> = rules().iter().map(asked).collect();
    assert_eq!(tested(true), all, "firing");
    assert_eq!(tested(false), all, "not firing");
}

#[test]
fn every_alert_says_what_happened_how_bad_it_is_and_what_to_do() {
    let mut names = BTreeSet::new();
    for rule in rules() {
        let name = &rule.alert;
        assert!(name.starts_with("GitopsRuntime") && names.insert(name.clone()), "{name}");
        assert!(["critical", "warning"].contains(&rule.labels.severity.as_str()), "{name}");
        let (summary, description) = (&rule.annotations.summary, &rule.annotations.description);
        assert!((20..=100).contains(&summary.len()) && !summary.ends_with('.'), "{name}: {summary}");
        assert!(
            (100..=500).contains(&description.len()) && description.ends_with('.'),
            "{name}: {description}"
        );
    }
}
