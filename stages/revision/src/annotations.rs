//! The annotations of `argocd-monorepo-controller`, which say the same.

use serde_json::{Value, json};

const PREFIX: &str = "mrp-controller.argoproj.io";

fn revision<'a>(source: &'a Value, name: &str) -> Option<&'a str> {
    source[name].as_str().filter(|revision| !revision.is_empty())
}

/// The commit that changed each source last, and the revision that this is of; `None` of a source of which either is not known.
fn revisions(report: &Value) -> Vec<Option<(&str, &str)>> {
    let sources = report["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    sources
        .iter()
        .map(|source| revision(source, "changeRevision").zip(revision(source, "revision")))
        .collect()
}

/// Whether some sources of a report are known and others are not, which keep what stands at the application.
pub fn keeps_some(report: &Value) -> bool {
    let all = revisions(report);
    all.iter().any(Option::is_some) && all.iter().any(Option::is_none)
}

/// The merge patch that writes a report's revisions to its application, whose annotations are `standing`; `None` when nothing is
/// known. A source of which nothing is known keeps both of its revisions, as one is of the other; it is empty where it has none.
pub fn annotations(report: &Value, standing: &Value) -> Option<Value> {
    let all = revisions(report);
    if all.iter().all(Option::is_none) {
        return None;
    }
    let kept = |name: &str| -> Vec<String> {
        let text = standing[format!("{PREFIX}/{name}")].as_str().unwrap_or_default();
        let kept: Vec<String> = serde_json::from_str(text).unwrap_or_default();
        if kept.len() == all.len() { kept } else { vec![String::new(); all.len()] }
    };
    let (mut changed, mut synced) = (kept("change-revisions"), kept("git-revisions"));
    for ((known, changed), synced) in all.into_iter().zip(&mut changed).zip(&mut synced) {
        if let Some((change_revision, revision)) = known {
            change_revision.clone_into(changed);
            revision.clone_into(synced);
        }
    }
    let mut patch = json!({
        format!("{PREFIX}/change-revisions"): json!(changed).to_string(),
        format!("{PREFIX}/git-revisions"): json!(synced).to_string(),
    });
    for (name, list) in [("change-revision", &changed), ("git-revision", &synced)] {
        if let Some(first) = list.first().filter(|first| !first.is_empty()) {
            patch[format!("{PREFIX}/{name}")] = first.as_str().into();
        }
    }
    Some(json!({"metadata": {"annotations": patch}}))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{annotations, keeps_some};

    #[test]
    fn four_annotations_say_what_a_report_says_and_none_when_nothing_is_known() {
        let mut report = json!({"sources": [
            {"revision": "c", "changeRevision": "a"},
            {"revision": "d", "changeRevision": "b"},
        ]});
        assert!(!keeps_some(&report));
        assert_eq!(
            annotations(&report, &Value::Null).unwrap()["metadata"]["annotations"],
            json!({
                "mrp-controller.argoproj.io/change-revision": "a",
                "mrp-controller.argoproj.io/change-revisions": "[\"a\",\"b\"]",
                "mrp-controller.argoproj.io/git-revision": "c",
                "mrp-controller.argoproj.io/git-revisions": "[\"c\",\"d\"]",
            })
        );
        for source in [0, 1] {
            report["sources"][source]["changeRevision"] = Value::Null;
        }
        assert!(!keeps_some(&report));
        assert_eq!(annotations(&report, &Value::Null), None);
        assert_eq!(annotations(&json!({"deleted": true}), &Value::Null), None);
    }

    #[test]
    fn a_source_of_which_nothing_is_known_keeps_what_stands_there_and_holds_up_no_other() {
        let written = |report: &Value, standing: &Value| {
            let all = annotations(report, standing).unwrap()["metadata"]["annotations"].take();
            let of = |name: &str| all[format!("mrp-controller.argoproj.io/{name}")].clone();
            ["change-revision", "change-revisions", "git-revision", "git-revisions"].map(of)
        };
        let second = json!({"sources": [
            {"revision": "c", "changeRevision": "a"}, {"revision": "d", "error": "it is away"},
        ]});
        let first = json!({"sources": [
            {"revision": "c", "error": "it is away"}, {"revision": "d", "changeRevision": "b"},
        ]});
        assert!(keeps_some(&second) && keeps_some(&first));
        let standing = json!({
            "mrp-controller.argoproj.io/change-revision": "1", "mrp-controller.argoproj.io/change-revisions": "[\"1\",\"2\"]",
            "mrp-controller.argoproj.io/git-revision": "3", "mrp-controller.argoproj.io/git-revisions": "[\"3\",\"4\"]",
        });
        assert_eq!(written(&second, &standing), ["a", r#"["a","2"]"#, "c", r#"["c","4"]"#]);
        assert_eq!(written(&first, &standing), ["1", r#"["1","b"]"#, "3", r#"["3","d"]"#]);
        // Of an application with one source less than now, which source was which is not known.
        let fewer = json!({
            "mrp-controller.argoproj.io/change-revisions": "[\"1\"]", "mrp-controller.argoproj.io/git-revisions": "[\"3\"]",
        });
        assert_eq!(written(&second, &fewer), ["a", r#"["a",""]"#, "c", r#"["c",""]"#]);
        // The first source is said by itself only where it is known.
        let nothing = written(&first, &Value::Null);
        assert_eq!(nothing, [Value::Null, r#"["","b"]"#.into(), Value::Null, r#"["","d"]"#.into()]);
    }
}
