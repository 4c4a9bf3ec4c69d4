//! What an Argo CD Application is compared with and synced to: what the revisions in its `status` are of.
//!
//! takes: an Application's `spec` - gives: its sources, in their order - fails: never
//!
//! Where a source hydrator writes manifests to a branch, that branch is what is synced, and not what they are made from.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::manifest_sources;

/// The sources that an Application is synced to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncedSources<'a> {
    /// Each as `spec.source` has it; of several also what is no object, for it has a place among the revisions.
    pub all: Vec<Cow<'a, Value>>,
    /// Its status has a list of revisions; else it has one.
    pub are_several: bool,
    /// It is a branch that Argo CD writes manifests to.
    pub is_hydrated: bool,
}

/// The sources that an Application of this `spec` is synced to.
#[must_use]
pub fn synced_sources(spec: &Value) -> SyncedSources<'_> {
    let hydrated = hydrated(&spec["sourceHydrator"]).map(Cow::Owned);
    let is_hydrated = hydrated.is_some();
    let several: Vec<_> = spec["sources"].as_array().into_iter().flatten().map(Cow::Borrowed).collect();
    let are_several = !is_hydrated && !several.is_empty();
    let single = Some(&spec["source"]).filter(|source| source.is_object()).map(Cow::Borrowed);
    SyncedSources { all: manifest_sources(several, hydrated, single), are_several, is_hydrated }
}

/// The branch that a source hydrator writes to, or somebody brings there what it wrote to another. Argo CD before 3.5 knows no
/// repository of its own for it.
fn hydrated(hydrator: &Value) -> Option<Value> {
    let (dry, synced) = (&hydrator["drySource"], &hydrator["syncSource"]);
    let own = Some(&synced["repoURL"]).filter(|own| own.as_str().is_some_and(|own| !own.is_empty()));
    dry.is_object().then(|| {
        json!({
            "repoURL": own.unwrap_or(&dry["repoURL"]),
            "path": synced["path"],
            "targetRevision": synced["targetBranch"],
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::synced_sources;

    #[test]
    fn what_is_hydrated_is_synced_to_its_branch_and_all_else_to_what_it_names() {
        let source = |name: &str| json!({"repoURL": format!("https://git.example.com/{name}"), "path": name});
        let dry =
            json!({"repoURL": "https://git.example.com/dry", "path": "charts/web", "targetRevision": "main"});
        let synced = json!({"targetBranch": "environments/dev", "path": "web"});
        let branch = json!({"repoURL": "https://git.example.com/dry", "path": "web", "targetRevision": "environments/dev"});
        let mut elsewhere = synced.clone();
        elsewhere["repoURL"] = "https://git.example.com/wet".into();
        let mut branch_elsewhere = branch.clone();
        branch_elsewhere["repoURL"] = "https://git.example.com/wet".into();
        let hydrator = json!({"drySource": dry, "syncSource": synced, "hydrateTo": {"targetBranch": "next"}});
        for (spec, all, are_several, is_hydrated) in [
            (json!({"sourceHydrator": hydrator}), vec![branch.clone()], false, true),
            (
                json!({"sourceHydrator": hydrator, "source": source("a"), "sources": [source("a"), source("b")]}),
                vec![branch],
                false,
                true,
            ),
            (
                json!({"sourceHydrator": {"drySource": dry, "syncSource": elsewhere}}),
                vec![branch_elsewhere],
                false,
                true,
            ),
            (
                json!({"source": source("a"), "sources": [source("a"), null, source("b")]}),
                vec![source("a"), Value::Null, source("b")],
                true,
                false,
            ),
            (json!({"source": source("a"), "sources": []}), vec![source("a")], false, false),
            (
                json!({"source": source("a"), "sourceHydrator": {"drySource": 7}}),
                vec![source("a")],
                false,
                false,
            ),
            (json!({"source": "odd", "sources": "odd", "sourceHydrator": "odd"}), vec![], false, false),
            (json!("odd"), vec![], false, false),
        ] {
            let found = synced_sources(&spec);
            assert_eq!(found.all.iter().map(|source| (**source).clone()).collect::<Vec<_>>(), all, "{spec}");
            assert_eq!((found.are_several, found.is_hydrated), (are_several, is_hydrated), "{spec}");
        }
    }
}
