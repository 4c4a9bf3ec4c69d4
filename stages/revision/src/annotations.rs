//! The annotations of `argocd-monorepo-controller`, which say the same.

use serde_json::{Value, json};

const PREFIX: &str = "mrp-controller.argoproj.io";

/// The merge patch that writes a report's revisions to its application; `None` when something of it is not known: what stands
/// there already is better than nothing.
pub fn annotations(report: &Value) -> Option<Value> {
    let sources = report["sources"].as_array().filter(|sources| !sources.is_empty())?;
    let of = |name: &str| -> Option<Vec<&str>> {
        sources.iter().map(|source| source[name].as_str().filter(|revision| !revision.is_empty())).collect()
    };
    let (changed, synced) = (of("changeRevision")?, of("revision")?);
    Some(json!({"metadata": {"annotations": {
        format!("{PREFIX}/change-revision"): changed.first()?,
        format!("{PREFIX}/change-revisions"): json!(changed).to_string(),
        format!("{PREFIX}/git-revision"): synced.first()?,
        format!("{PREFIX}/git-revisions"): json!(synced).to_string(),
    }}}))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::annotations;

    #[test]
    fn four_annotations_say_what_a_report_says_and_none_when_something_is_not_known() {
        let mut report = json!({"sources": [
            {"revision": "c", "changeRevision": "a"},
            {"revision": "d", "changeRevision": "b"},
        ]});
        assert_eq!(
            annotations(&report).unwrap()["metadata"]["annotations"],
            json!({
                "mrp-controller.argoproj.io/change-revision": "a",
                "mrp-controller.argoproj.io/change-revisions": "[\"a\",\"b\"]",
                "mrp-controller.argoproj.io/git-revision": "c",
                "mrp-controller.argoproj.io/git-revisions": "[\"c\",\"d\"]",
            })
        );
        report["sources"][1]["changeRevision"] = Value::Null;
        assert_eq!(annotations(&report), None);
        assert_eq!(annotations(&json!({"deleted": true})), None);
    }
}
