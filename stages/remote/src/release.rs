//! The objects of a Helm release, and what helm would change of them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::app::unified;
use crate::error::RemoteError;
use crate::resource::title_in;
use crate::show::{Screen, count, plain};

/// Shown in place of a value of a Secret.
const HIDDEN: &str = "(not shown)";
/// Shown in place of a value of a Secret that differs from the one before.
const ANOTHER: &str = "(not shown, another than before)";

/// The objects of a release, by their titles.
#[derive(Debug, Default)]
pub(crate) struct ReleaseObjects(BTreeMap<String, Value>);

impl ReleaseObjects {
    /// Reads the manifest that helm prints.
    pub(crate) fn read(manifest: &str) -> Result<Self, RemoteError> {
        let unread = |_| {
            RemoteError::Missing(
                "helm printed a manifest that cannot be read: see it with helm get manifest".into(),
            )
        };
        // Helm puts a comment above each object; where nothing follows it, the document is null.
        let all: Vec<Value> = serde_saphyr::from_multiple(manifest).map_err(unread)?;
        Ok(Self(all.into_iter().filter(Value::is_object).map(|one| (title(&one), one)).collect()))
    }

    /// Prints how these objects differ from `then`, and gives how many do.
    pub(crate) fn becomes(&self, then: &Self, screen: &Screen) -> Result<usize, RemoteError> {
        let mut differing = 0;
        let gone = self.0.keys().filter(|title| !then.0.contains_key(*title));
        for title in then.0.keys().chain(gone) {
            let mut sides = [self.0.get(title).cloned(), then.0.get(title).cloned()];
            hide(&mut sides);
            let [before, after] = sides.map(|side| side.map(|side| side.to_string()));
            if let Some(text) = unified(before.as_deref(), after.as_deref(), &plain(title), screen.colour) {
                differing += 1;
                screen.say(&text)?;
            }
        }
        match differing {
            0 => screen.note("nothing would be changed"),
            number => screen.note(&format!("{} would be changed", count(number, "object"))),
        }
        Ok(differing)
    }

    /// The objects that an uninstallation removes, and those that the chart keeps, a line each.
    pub(crate) fn removed(&self) -> String {
        let line = |(title, one): (&String, &Value)| {
            let policy =
                one.pointer("/metadata/annotations/helm.sh~1resource-policy").and_then(Value::as_str);
            let stays = if policy == Some("keep") { ", which stays" } else { "" };
            format!("  {}{stays}\n", plain(title))
        };
        self.0.iter().map(line).collect()
    }
}

fn title(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
    title_in(namespace, kind, name)
}

/// Puts words in the place of the values of a Secret: whoever looks at a terminal sees whether they differ, and nothing more.
fn hide(sides: &mut [Option<Value>; 2]) {
    if !sides.iter().flatten().any(|side| side["kind"] == "Secret") {
        return;
    }
    let [before, after] = sides;
    for part in ["data", "stringData"] {
        let had = before.as_ref().and_then(|side| side.get(part)).cloned().unwrap_or_default();
        for (side, is_after) in [(&mut *before, false), (&mut *after, true)] {
            let values = side.as_mut().and_then(|side| side.get_mut(part)).and_then(Value::as_object_mut);
            for (key, value) in values.into_iter().flatten() {
                let is_another = is_after && had.get(key).is_some_and(|had| had != value);
                *value = if is_another { ANOTHER } else { HIDDEN }.into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_of_a_secret_is_told_to_be_another_and_not_which() {
        let secret = |data: Value| Some(json!({"kind": "Secret", "data": data}));
        let mut sides =
            [secret(json!({"a": "1", "b": "2", "c": "3"})), secret(json!({"a": "1", "b": "4", "d": "5"}))];
        hide(&mut sides);
        let expected = [
            secret(json!({"a": HIDDEN, "b": HIDDEN, "c": HIDDEN})),
            secret(json!({"a": HIDDEN, "b": ANOTHER, "d": HIDDEN})),
        ];
        assert_eq!(sides, expected);
        let mut map = [Some(json!({"kind": "ConfigMap", "data": {"a": "1"}})), None];
        let before = map.clone();
        hide(&mut map);
        assert_eq!(map, before);
    }

    #[test]
    fn what_goes_with_a_release_is_told_from_what_stays() {
        let manifest = "---\n# Source: a.yaml\nkind: Deployment\nmetadata:\n  name: a\n  namespace: rt\n---\n# Source: b.yaml\n---\n\
                        kind: Secret\nmetadata:\n  name: b\n  annotations:\n    helm.sh/resource-policy: keep\n";
        let planned = ReleaseObjects::read(manifest).unwrap();
        assert_eq!(planned.removed(), "  Deployment/a in rt\n  Secret/b, which stays\n");
        assert_eq!(ReleaseObjects::read("").unwrap().removed(), "");
        assert!(ReleaseObjects::read("a: [").is_err());
    }
}
