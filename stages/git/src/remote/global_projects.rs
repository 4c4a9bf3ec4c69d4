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
    yaml::parse(text).unwrap_or_else(|why| {
        tracing::warn!(why, "globalProjects of argocd-cm cannot be read: they count for no project");
        Vec::new()
    })
}

impl GlobalProject {
    /// Whether it counts for a project with these labels; `None` where its selector cannot be followed.
    pub(super) fn takes(&self, labels: &Value) -> Option<bool> {
        let Some(selector) = &self.selector else { return Some(true) };
        let label = |key: &str| labels[key].as_str();
        let mut taken = true;
        for (key, value) in &selector.match_labels {
            if !is_key(key) || !is_value(value) {
                return None;
            }
            taken &= label(key) == Some(value);
        }
        for Expression { key, operator, values } in &selector.match_expressions {
            if !is_key(key) || !values.iter().all(|value| is_value(value)) {
                return None;
            }
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

/// Whether Kubernetes takes a key of a label: a name, which may stand behind a domain and `/`.
fn is_key(key: &str) -> bool {
    let is_part = |part: &str| {
        is_name(part) && part.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    match key.split_once('/') {
        Some((domain, name)) => domain.len() <= 253 && domain.split('.').all(is_part) && is_name(name),
        None => is_name(key),
    }
}

/// Whether it takes a value, which may be empty.
fn is_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn is_name(text: &str) -> bool {
    let ends = text.bytes().next().into_iter().chain(text.bytes().last());
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && ends.into_iter().all(|byte| byte.is_ascii_alphanumeric())
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
    fn a_selector_of_labels_that_kubernetes_would_refuse_cannot_be_followed() {
        let followed = |selector: &serde_json::Value| {
            let list = json!([{"projectName": "base", "labelSelector": selector}]).to_string();
            read(&list)[0].takes(&json!({"team": "shop"})).is_some()
        };
        let (most, long) = ("x".repeat(63), "x".repeat(64));
        for key in ["team", "a", "example.com/team", "a-b.c0/T_e.a-m", &most, &format!("a/{most}")] {
            assert!(followed(&json!({"matchLabels": {key: "shop"}})), "{key}");
            assert!(followed(&json!({"matchExpressions": [{"key": key, "operator": "Exists"}]})), "{key}");
        }
        let far = format!("{}/team", ["x"; 128].join("."));
        for key in [
            "",
            "/",
            "team/",
            "/team",
            "a/b/c",
            "-team",
            "team-",
            "te am",
            "Example.com/team",
            "a_b/team",
            "a..b/team",
            "-a.b/team",
            "té",
            &long,
            &format!("a/{long}"),
            &far,
        ] {
            assert!(!followed(&json!({"matchLabels": {key: "shop"}})), "{key}");
            assert!(!followed(&json!({"matchExpressions": [{"key": key, "operator": "Exists"}]})), "{key}");
        }
        for (value, is_followed) in [
            ("", true),
            ("Sh_o.p-1", true),
            (&*most, true),
            (&*long, false),
            ("shop/web", false),
            (".shop", false),
            ("shop_", false),
            ("sh op", false),
        ] {
            assert_eq!(followed(&json!({"matchLabels": {"team": value}})), is_followed, "{value}");
            let expression = json!({"key": "team", "operator": "NotIn", "values": ["other", value]});
            assert_eq!(followed(&json!({"matchExpressions": [expression]})), is_followed, "{value}");
        }
    }

    #[test]
    fn what_is_no_such_list_names_none() {
        for text in ["", " \n", "a: b", "- ["] {
            assert!(read(text).is_empty(), "{text:?}");
        }
    }
}
