//! What descriptions tell people to type and to set is there.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::files::{dashboards, root, rules, yaml};

/// Everything between backticks in the texts of panels and alerts.
fn quoted() -> BTreeSet<String> {
    let mut texts: Vec<String> = rules().into_iter().map(|rule| rule.annotations.description).collect();
    for dashboard in dashboards() {
        let panels = dashboard.panels().iter();
        texts.extend(panels.map(|panel| panel["description"].as_str().unwrap().to_owned()));
    }
    let mut quoted = BTreeSet::new();
    for text in texts {
        let parts: Vec<&str> = text.split('`').collect();
        assert!(parts.len() % 2 == 1, "a backtick is left open: {text}");
        quoted.extend(parts.into_iter().skip(1).step_by(2).map(str::to_owned));
    }
    quoted
}

#[test]
fn every_command_that_is_named_exists() {
    let mut seen = 0;
    for command in quoted() {
        let Some(rest) = command.strip_prefix("gitops-runtime ") else { continue };
        // APP stands for a name.
        let words = rest.split(' ').filter(|word| *word != "APP");
        let output =
            Command::new(env!("CARGO_BIN_EXE_gitops-runtime")).args(words).arg("--help").output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        seen += 1;
    }
    assert!(seen >= 5, "{seen} commands are named");
}

#[test]
fn every_setting_that_is_named_exists() {
    let settings: Value = yaml(&root().join("config/default.yaml"));
    let top = settings.as_object().unwrap();
    let mut seen = 0;
    for path in quoted() {
        let Some((first, _)) = path.split_once('.') else { continue };
        if top.contains_key(first) {
            let pointer = format!("/{}", path.replace('.', "/"));
            assert!(settings.pointer(&pointer).is_some(), "there is no setting {path}");
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen} settings are named");
}
