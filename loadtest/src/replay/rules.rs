//! Deliberate differences: rules read from data, predicates from a closed set.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use super::predicates::{Predicate, Scene};
use loadtest_judge::diff::is_path;

/// The rules that belong to this program.
const RULES: &str = include_str!("../../replay-rules.yaml");

/// One deliberate difference.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) name: String,
    /// One path in a report; `report` for a report that only one side made.
    pub(super) path: String,
    pub(super) predicate: Predicate,
    pub(super) reason: String,
}

/// All rules, and how often each was used.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) rules: Vec<Rule>,
    pub(super) uses: HashMap<String, usize>,
}

impl Rules {
    pub(super) fn load() -> anyhow::Result<Self> {
        let rules: Vec<Rule> = serde_saphyr::from_str(RULES).context("read replay-rules.yaml")?;
        let mut uses = HashMap::new();
        for rule in &rules {
            if uses.insert(rule.name.clone(), 0).is_some() {
                bail!("read replay-rules.yaml: two rules are named {}", rule.name);
            }
            if rule.reason.trim().is_empty() {
                bail!("read replay-rules.yaml: rule {} gives no reason", rule.name);
            }
        }
        Ok(Self { rules, uses })
    }

    /// Whether a rule allows `ours` instead of `theirs` at `path`; counts its use.
    pub(super) fn allow(
        &mut self,
        path: &str,
        ours: Option<&Value>,
        theirs: Option<&Value>,
        scene: &Scene<'_>,
    ) -> bool {
        let allows =
            |rule: &&Rule| is_path(&rule.path, path) && rule.predicate.holds(path, ours, theirs, scene);
        let Some(rule) = self.rules.iter().find(allows) else { return false };
        *self.uses.entry(rule.name.clone()).or_default() += 1;
        true
    }
}
