//! The difference between two manifests, as lines of YAML.

use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Manifests as YAML, without what the API server writes for itself.
pub(crate) fn yaml(manifest: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(manifest) else {
        return manifest.to_owned();
    };
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for own in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(own);
        }
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        annotations.map(|all| all.remove("kubectl.kubernetes.io/last-applied-configuration"));
    }
    serde_saphyr::to_string(&value).unwrap_or_else(|_| manifest.to_owned())
}

/// Both manifests line by line, with three lines around each change; `same` is what to say where there is none.
pub(crate) fn diff(before: &str, after: &str, same: &str) -> Markup {
    let (before, after) = (yaml(before), yaml(after));
    if before == after {
        return html! { p.mute.pad { (same) } };
    }
    // A manifest of a megabyte is compared more coarsely rather than late.
    let compared = TextDiff::configure().timeout(Duration::from_millis(500)).diff_lines(&before, &after);
    html! {
        table.diff aria-label="Differences" {
            @for (index, group) in compared.grouped_ops(3).iter().enumerate() {
                tbody {
                    @if index > 0 { tr.gap { td {} td {} td { "⋯" } } }
                    @for change in group.iter().flat_map(|op| compared.iter_changes(op)) {
                        @let (class, sign, said) = match change.tag() {
                            ChangeTag::Delete => ("gone", "-", "removed"),
                            ChangeTag::Insert => ("new", "+", "added"),
                            ChangeTag::Equal => ("same", " ", ""),
                        };
                        @let line = change.new_index().or(change.old_index()).map_or(0, |index| index + 1);
                        tr class=(class) {
                            td.line { (line) }
                            td.sign { span aria-hidden="true" { (sign) } span.hidden { (said) } }
                            td { (change.value().trim_end_matches('\n')) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_field_is_one_line_gone_and_one_new() {
        let before =
            r#"{"kind":"Deployment","metadata":{"name":"a","resourceVersion":"1"},"spec":{"replicas":2}}"#;
        let after =
            r#"{"kind":"Deployment","metadata":{"name":"a","resourceVersion":"9"},"spec":{"replicas":3}}"#;
        let markup = diff(before, after, "").into_string();
        assert_eq!(markup.matches("<tr class=\"gone\">").count(), 1, "{markup}");
        assert_eq!(markup.matches("<tr class=\"new\">").count(), 1, "{markup}");
        assert!(markup.contains("<td>  replicas: 3</td>"), "{markup}");
        assert!(!markup.contains("resourceVersion"), "{markup}");
    }

    #[test]
    fn what_only_the_api_server_changed_is_the_same() {
        let of = |version: u32| {
            format!(
                r#"{{"metadata":{{"name":"a","resourceVersion":"{version}","managedFields":[{version}]}}}}"#
            )
        };
        assert!(diff(&of(1), &of(2), "It is the same.").into_string().contains("It is the same."));
    }
}
