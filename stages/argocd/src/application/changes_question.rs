//! With what it is asked which commits changed an application.

use serde_json::{Map, Value, json};
use stages_client::synced_sources;

use super::{Application, list, map};

/// Which paths change an application, where it says so itself.
const PATHS_ANNOTATION: &str = "argocd.argoproj.io/manifest-generate-paths";
const REVISIONS: [&str; 2] = ["revision", "revisions"];
/// By these a source of today is found among those of the history.
const PLACE: [&str; 4] = ["repoURL", "path", "chart", "ref"];

impl Application {
    /// As much of the object as its changes depend on, as JSON: what it is called, the paths and revisions of its sources, and none of
    /// what they are rendered with. `None` where something notes the changes with the application itself, or it stands between
    /// revisions: before the first sync, and while one is asked for or under way.
    pub(crate) fn changes_question(&self) -> Option<String> {
        let phase = self.operation.as_ref().map_or("", |operation| &operation.phase);
        if matches!(phase, "Running" | "Terminating")
            || self.requested.is_some()
            || self.sources.is_empty()
            || !self.was_compared()
            || !self.change_revisions().is_empty()
        {
            return None;
        }
        let metadata = map(self.object.get("metadata"));
        let mut named = part(metadata, &["name", "namespace"]);
        let annotations = metadata.and_then(|metadata| map(metadata.get("annotations")));
        named.insert("annotations".to_owned(), part(annotations, &[PATHS_ANNOTATION]).into());
        let spec = map(self.object.get("spec"))?;
        let mut of = part(Some(spec), &["project"]);
        // A file of values may be called by it.
        let destination = part(map(spec.get("destination")), &["namespace"]);
        if !destination.is_empty() {
            of.insert("destination".to_owned(), destination.into());
        }
        if synced_sources(self.object.get("spec")?).is_hydrated {
            of.insert("sourceHydrator".to_owned(), hydrator(map(spec.get("sourceHydrator"))));
        } else if self.multi_source {
            of.insert("sources".to_owned(), list(spec.get("sources")).map(source).collect());
        } else {
            of.insert("source".to_owned(), spec.get("source").map(source)?);
        }
        let status = map(self.object.get("status"));
        let of_status = |name: &str| status.and_then(|status| map(status.get(name)));
        let operation = of_status("operationState");
        let of_operation = |name: &str| operation.and_then(|operation| map(operation.get(name)));
        let asked = of_operation("operation").and_then(|operation| map(operation.get("sync")));
        let history = list(status.and_then(|status| status.get("history"))).filter_map(Value::as_object);
        let question = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": named,
            "spec": of,
            "status": {
                "sync": part(of_status("sync"), &["status", "revision", "revisions"]),
                "history": history.map(|entry| brought(Some(entry))).collect::<Vec<_>>(),
                "operationState": {
                    "phase": phase,
                    "syncResult": brought(of_operation("syncResult")),
                    "operation": {"sync": part(asked, &REVISIONS)},
                },
            },
        });
        Some(question.to_string())
    }
}

/// What a sync brought: revisions, and of which sources.
fn brought(of: Option<&Map<String, Value>>) -> Value {
    let mut told = part(of, &REVISIONS);
    let source = |source: &Value| Value::from(part(source.as_object(), &PLACE));
    let of = |name: &str| of.and_then(|of| of.get(name));
    told.extend(of("source").map(|one| ("source".to_owned(), source(one))));
    told.extend(of("sources").map(|_| ("sources".to_owned(), list(of("sources")).map(source).collect())));
    told.into()
}

/// A source, with what names paths of it. Values and patches that stand in an application itself are left out: they may be long, and
/// nobody else's business.
fn source(source: &Value) -> Value {
    let source = source.as_object();
    let tool = |name: &str| source.and_then(|source| map(source.get(name)));
    let mut told = part(source, &PLACE);
    told.extend(part(source, &["targetRevision"]));
    for (name, members) in
        [("helm", ["valueFiles", "fileParameters"].as_slice()), ("kustomize", &["components"])]
    {
        let settings = part(tool(name), members);
        if !settings.is_empty() {
            told.insert(name.to_owned(), settings.into());
        }
    }
    let patches = list(tool("kustomize").and_then(|kustomize| kustomize.get("patches")));
    let patches: Vec<Value> = patches
        .map(|patch| part(patch.as_object(), &["path"]))
        .filter(|patch| !patch.is_empty())
        .map(Value::from)
        .collect();
    if !patches.is_empty() {
        told.entry("kustomize").or_insert_with(|| json!({}))["patches"] = patches.into();
    }
    let jsonnet = tool("directory").and_then(|directory| map(directory.get("jsonnet")));
    let mut directory = part(jsonnet, &["libs"]);
    if !directory.is_empty() {
        directory = part(json!({"jsonnet": directory}).as_object(), &["jsonnet"]);
    } else if jsonnet.is_none_or(Map::is_empty) {
        // Of a directory with Jsonnet all files count.
        directory = part(tool("directory"), &["recurse", "include", "exclude"]);
    }
    if !directory.is_empty() {
        told.insert("directory".to_owned(), directory.into());
    }
    told.into()
}

/// Where a source hydrator writes: the directory, and the repository unless it is that of what it reads.
fn hydrator(of: Option<&Map<String, Value>>) -> Value {
    let side = |name: &str, members: &[&str]| part(of.and_then(|of| map(of.get(name))), members);
    json!({"drySource": side("drySource", &["repoURL"]), "syncSource": side("syncSource", &["repoURL", "path"])})
}

fn part(of: Option<&Map<String, Value>>, names: &[&str]) -> Map<String, Value> {
    let members = names.iter().filter_map(|name| Some(((*name).to_owned(), of?.get(*name)?.clone())));
    members.collect()
}

#[cfg(test)]
mod tests {
    use pipeline_redact::Redactor;
    use serde_json::{Value, json};

    use super::*;

    fn question(object: &Value) -> Option<Value> {
        let bytes = serde_json::to_vec(object).unwrap();
        let application = Application::read(&bytes, &Redactor::new(b"test")).unwrap();
        application.changes_question().map(|text| serde_json::from_str(&text).unwrap())
    }

    fn synced() -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "shop", "namespace": "argocd", "uid": "u", "labels": {"team": "a"},
                "annotations": {PATHS_ANNOTATION: "/apps/shop", "other": "x"}},
            "spec": {"project": "shop", "destination": {"namespace": "prod"}, "source": {
                "repoURL": "https://git.example.com/mono.git", "path": "apps/shop", "targetRevision": "main",
                "helm": {"valueFiles": ["prod.yaml"], "values": "a: b", "parameters": [{"name": "a", "value": "b"}]},
            }},
            "status": {
                "sync": {"status": "Synced", "revision": "b"},
                "health": {"status": "Healthy"},
                "history": [{"revision": "a", "id": 0, "deployedAt": "2026-01-01T00:00:00Z"}, {"revision": "b", "id": 1}],
                "operationState": {"phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z",
                    "operation": {"sync": {"revision": "b", "prune": true}}, "syncResult": {"revision": "b"}},
                "resources": [{"kind": "Service", "name": "s"}],
            },
        })
    }

    #[test]
    fn it_says_what_the_changes_of_an_application_depend_on_and_no_more() {
        assert_eq!(
            question(&synced()),
            Some(json!({
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Application",
                "metadata": {"name": "shop", "namespace": "argocd", "annotations": {PATHS_ANNOTATION: "/apps/shop"}},
                "spec": {"project": "shop", "destination": {"namespace": "prod"}, "source": {
                    "repoURL": "https://git.example.com/mono.git", "path": "apps/shop", "targetRevision": "main",
                    "helm": {"valueFiles": ["prod.yaml"]},
                }},
                "status": {
                    "sync": {"status": "Synced", "revision": "b"},
                    "history": [{"revision": "a"}, {"revision": "b"}],
                    "operationState": {"phase": "Succeeded", "syncResult": {"revision": "b"},
                        "operation": {"sync": {"revision": "b"}}},
                },
            }))
        );
        let mut unwell = synced();
        unwell["status"]["health"]["status"] = "Degraded".into();
        assert_eq!(question(&unwell), question(&synced()), "another health is no other question");
    }

    #[test]
    fn nobody_is_asked_where_it_is_noted_or_there_is_no_revision_to_speak_of() {
        let without = |change: fn(&mut Value)| {
            let mut object = synced();
            change(&mut object);
            question(&object)
        };
        assert_eq!(without(|object| object["status"]["operationState"]["phase"] = "Running".into()), None);
        assert_eq!(without(|object| object["operation"] = json!({"sync": {"revision": "c"}})), None);
        assert_eq!(without(|object| object["status"] = json!({})), None);
        assert_eq!(without(|object| object["spec"] = json!({"project": "shop"})), None);
        assert_eq!(
            without(|object| object["status"]["operationState"]["operation"]["sync"]["changeRevision"] =
                "a".into()),
            None
        );
        assert_eq!(
            without(|object| {
                object["metadata"]["annotations"] = json!({
                    "mrp-controller.argoproj.io/change-revision": "a",
                    "mrp-controller.argoproj.io/git-revision": "b",
                });
            }),
            None
        );
        let of_another = without(|object| {
            object["metadata"]["annotations"] = json!({
                "mrp-controller.argoproj.io/change-revision": "0",
                "mrp-controller.argoproj.io/git-revision": "a",
            });
        });
        assert!(of_another.is_some(), "a note of another revision does not count");
    }

    #[test]
    fn of_what_is_hydrated_it_is_asked_where_argo_cd_writes_it() {
        let mut object = synced();
        object["spec"] = json!({
            "project": "shop",
            "source": {"repoURL": "https://git.example.com/old.git", "path": "old"},
            "sources": [{"repoURL": "https://git.example.com/old.git", "path": "old"}],
            "sourceHydrator": {
                "drySource": {"repoURL": "https://git.example.com/mono.git", "path": "charts/shop", "targetRevision": "main",
                    "helm": {"values": "a: b"}},
                "syncSource": {"targetBranch": "environments/dev", "path": "shop"},
                "hydrateTo": {"targetBranch": "environments/dev-next"},
            },
        });
        let asked = question(&object).unwrap();
        assert_eq!(
            asked["spec"],
            json!({"project": "shop", "sourceHydrator": {
                "drySource": {"repoURL": "https://git.example.com/mono.git"}, "syncSource": {"path": "shop"},
            }})
        );
        assert_eq!(asked["status"]["history"], json!([{"revision": "a"}, {"revision": "b"}]));
    }

    #[test]
    fn libraries_of_jsonnet_are_paths_and_its_variables_are_not() {
        let mut object = synced();
        object["spec"]["source"]["directory"] = json!({"recurse": true, "jsonnet": {"libs": ["vendor"], "extVars": [{"name": "a", "value": "b"}]}});
        let asked = question(&object).unwrap();
        assert_eq!(asked["spec"]["source"]["directory"], json!({"jsonnet": {"libs": ["vendor"]}}));
    }

    #[test]
    fn which_files_of_a_directory_are_manifests_is_said_unless_it_has_jsonnet() {
        let mut object = synced();
        let some = json!({"recurse": true, "include": "*.yaml", "exclude": "a.yaml"});
        object["spec"]["source"]["directory"] = some.clone();
        assert_eq!(question(&object).unwrap()["spec"]["source"]["directory"], some);
        object["spec"]["source"]["directory"]["jsonnet"] = json!({"extVars": [{"name": "a", "value": "b"}]});
        assert_eq!(question(&object).unwrap()["spec"]["source"]["directory"], Value::Null);
    }

    #[test]
    fn files_of_patches_are_paths_and_patches_in_an_application_are_not() {
        let mut object = synced();
        object["spec"]["source"]["kustomize"] =
            json!({"patches": [{"patch": "p"}, {"path": "../p.yaml", "target": {"kind": "Pod"}}]});
        let asked = question(&object).unwrap();
        assert_eq!(asked["spec"]["source"]["kustomize"], json!({"patches": [{"path": "../p.yaml"}]}));
    }

    #[test]
    fn of_several_sources_each_stands_with_what_finds_it_in_the_history() {
        let mut object = synced();
        let source = |name: &str| json!({"repoURL": format!("https://git.example.com/{name}"), "path": "x", "kustomize": {"components": ["../c"], "patches": [{"patch": "p"}]}});
        object["spec"] = json!({"project": "shop", "sources": [source("a"), source("b")]});
        let brought = json!({"revisions": ["a1", "b1"], "sources": [source("a"), source("b")]});
        object["status"] = json!({
            "sync": {"status": "Synced", "revisions": ["a1", "b1"]},
            "history": [{"revision": "a0", "source": source("a")}, brought],
            "operationState": {"phase": "Succeeded", "syncResult": brought},
        });
        let asked = question(&object).unwrap();
        let told = json!({"repoURL": "https://git.example.com/b", "path": "x", "kustomize": {"components": ["../c"]}});
        assert_eq!(asked["spec"]["sources"][1], told);
        let place = |name: &str| json!({"repoURL": format!("https://git.example.com/{name}"), "path": "x"});
        let brought = json!({"revisions": ["a1", "b1"], "sources": [place("a"), place("b")]});
        let before = json!({"revision": "a0", "source": place("a")});
        assert_eq!(asked["status"]["history"], json!([before, brought]));
        assert_eq!(asked["status"]["operationState"]["syncResult"], brought);
    }
}
