//! Argo CD's `globalProjects`: AppProjects whose rules count for every AppProject that a selector of labels takes.
//!
//! They stand as YAML in the ConfigMap `argocd-cm`, as a list of `projectName` and `labelSelector`. It is read as Argo CD does: a
//! list that cannot be read names none, a project is not its own global one, and the first entry that cannot be followed is the
//! last that is looked at.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::yaml;

/// One entry of the list.
#[derive(Debug, Deserialize)]
pub(super) struct GlobalProject {
    /// Whose rules count.
    #[serde(rename = "projectName", default)]
    pub(super) project: String,
    #[serde(rename = "labelSelector", default)]
    selector: Option<Selector>,
}

/// As Kubernetes selects by labels; empty takes everything.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Expression>,
}

#[derive(Debug, Deserialize)]
struct Expression {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Debug, Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    /// None that Kubernetes knows.
    #[serde(other)]
    Unknown,
}

/// Reads the list.
pub(super) fn read(text: &str) -> Vec<GlobalProject> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    yaml::parse_as(text).unwrap_or_else(|why| {
        tracing::warn!(why, "globalProjects of argocd-cm cannot be read: they count for no project");
        Vec::new()
    })
}

impl GlobalProject {
    /// Whether it counts for a project with these labels; `None` where its selector cannot be followed.
    pub(super) fn takes(&self, labels: &Value) -> Option<bool> {
        let Some(selector) = &self.selector else { return Some(true) };
        let label = |key: &str| labels[key].as_str();
        let mut taken = selector.match_labels.iter().all(|(key, value)| label(key) == Some(value));
        for Expression { key, operator, values } in &selector.match_expressions {
            let is_one = label(key).is_some_and(|value| values.iter().any(|one| one == value));
            taken &= match operator {
                Operator::In if !values.is_empty() => is_one,
                Operator::NotIn if !values.is_empty() => !is_one,
                Operator::Exists if values.is_empty() => label(key).is_some(),
                Operator::DoesNotExist if values.is_empty() => label(key).is_none(),
                _ => return None,
            };
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn a_global_project_counts_where_its_selector_takes_the_labels() {
        let list = "
- {projectName: all}
- {labelSelector: }
- projectName: team
  labelSelector: {matchLabels: {team: shop}, matchExpressions: [{key: stage, operator: In, values: [prod, test]}]}
- {projectName: others, labelSelector: {matchExpressions: [{key: team, operator: NotIn, values: [shop]}]}}
- {projectName: any, labelSelector: {matchExpressions: [{key: team, operator: Exists}]}}
- {projectName: none, labelSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}
- {projectName: odd, labelSelector: {matchExpressions: [{key: team, operator: Like, values: [shop]}]}}
- {projectName: empty, labelSelector: {matchExpressions: [{key: team, operator: In}]}}
";
        let all = read(list);
        let taken = |labels: serde_json::Value| -> Vec<&str> {
            let taken = all.iter().filter(|of| of.takes(&labels) == Some(true));
            taken.map(|of| of.project.as_str()).collect()
        };
        assert_eq!(taken(json!({"team": "shop", "stage": "prod"})), ["all", "", "team", "any"]);
        assert_eq!(taken(json!({"team": "shop"})), ["all", "", "any"]);
        assert_eq!(taken(json!({"team": "web", "stage": "prod"})), ["all", "", "others", "any"]);
        assert_eq!(taken(json!(null)), ["all", "", "others", "none"]);
        let followed = |name: &str| all.iter().find(|of| of.project == name).unwrap().takes(&json!(null));
        assert_eq!((followed("odd"), followed("empty")), (None, None));
    }

    #[test]
    fn what_is_no_such_list_names_none() {
        for text in ["", " \n", "a: b", "- ["] {
            assert!(read(text).is_empty(), "{text:?}");
        }
    }
}
