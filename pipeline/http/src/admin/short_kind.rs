//! Kinds as people write them: `rollout`, `Rollouts`, `rollouts.argoproj.io`.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use pipeline_core::Key;

use super::answer::{Refusal, failed};

/// What the keys call the kind that is meant by `given`, in capitals or not, of one or many, with or without its group.
/// `kinds` are those of the objects that are known.
///
/// # Errors
/// 404 when no object of such a kind is known, with the kinds that are.
pub(super) fn kind_of<'a>(given: &str, kinds: impl IntoIterator<Item = &'a Key>) -> Result<String, Refusal> {
    let kinds: BTreeSet<&str> = kinds.into_iter().map(Key::kind).filter(|kind| !kind.is_empty()).collect();
    let found = kinds.iter().find(|kind| is_same_kind(given, kind));
    found.map(|kind| (*kind).to_owned()).ok_or_else(|| {
        let why = format!("no object of the kind `{given}` is known");
        failed(StatusCode::NOT_FOUND, why).near(kinds.into_iter().map(str::to_owned).collect())
    })
}

/// Whether a kind as people write it is the one that keys call `kind`; both may be empty.
pub(super) fn is_same_kind(given: &str, kind: &str) -> bool {
    let given = given.to_lowercase();
    one(given.split('.').next().unwrap_or_default()) == one(kind)
}

/// The name of one such object. English plurals of kinds end in `s`, `es` or `ies`.
fn one(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y");
    }
    let stem = name.strip_suffix("es").filter(|stem| ["s", "x", "ch"].iter().any(|end| stem.ends_with(end)));
    let stem = stem.or_else(|| name.strip_suffix('s').filter(|stem| !stem.ends_with('s')));
    stem.unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_however_it_is_written() {
        let keys = ["rollout/shop/web", "ingresses//a", "policy/b/c", "configmaps/b/c", "shop/web"];
        let keys: Vec<Key> = keys.iter().map(|text| Key::parse(text).unwrap()).collect();
        for (given, kind) in [
            ("rollout", Some("rollout")),
            ("Rollouts", Some("rollout")),
            ("rollouts.argoproj.io", Some("rollout")),
            ("ingress", Some("ingresses")),
            ("policies", Some("policy")),
            ("configmap", Some("configmaps")),
            ("workflow", None),
            ("", None),
        ] {
            assert_eq!(kind_of(given, &keys).ok().as_deref(), kind, "{given}");
        }
        let refused = kind_of("workflow", &keys).unwrap_err().into_body();
        assert_eq!(refused.error, "no object of the kind `workflow` is known");
        assert_eq!(refused.near, ["configmaps", "ingresses", "policy", "rollout"]);
    }
}
