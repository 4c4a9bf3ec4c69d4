//! The cases of the redaction's own tests, each put into an application of its own, wherever it may come in.

use std::fs;
use std::path::Path;

use loadtest::sim::Simulation;
use loadtest::sim::argocd::Kind;
use loadtest::sim::kube::Collection;
use serde_json::{Value, json};

use crate::runtime::merge;
use crate::told::{REVISION, application, managed, thing, tree};
use loadtest::canary::{FIRST, fill};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pipeline/redact/tests/cases/redact");

/// One shape of a secret.
pub(super) struct Shape {
    /// Of the application that carries it.
    pub(super) name: String,
    form: Form,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// An Application.
    Application,
    /// The manifest of another object, or what is to be one.
    Manifest,
    /// What stands in Git.
    Git,
    /// A message.
    Message,
}

/// Every shape, with canaries filled in.
pub(super) fn all() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for entry in fs::read_dir(CASES).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().replace('_', "-");
        let (form, text) = read(&path);
        shapes.push(Shape { name, form, text: fill(&text, &FIRST) });
    }
    shapes.sort_by(|left, right| left.name.cmp(&right.name));
    shapes
}

fn read(case: &Path) -> (Form, String) {
    for (file, form) in [("in.json", Form::Manifest), ("in.yaml", Form::Git), ("in.txt", Form::Message)] {
        if let Ok(text) = fs::read_to_string(case.join(file)) {
            let object: Value = serde_json::from_str(&text).unwrap_or_default();
            let form = match form {
                Form::Manifest if object["kind"] == "Application" => Form::Application,
                // A patch: it stands in Git, and is no object's state.
                Form::Manifest if object.is_array() && object[0]["op"].is_string() => Form::Git,
                form => form,
            };
            return (form, text);
        }
    }
    panic!("{} holds no case", case.display())
}

impl Shape {
    /// Puts the application into the cluster, and what Argo CD says of it into Argo CD.
    pub(super) fn put(&self, simulation: &Simulation) {
        let plain = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "thing", "namespace": "shop"},
        });
        let (mut object, mut compiled, mut raw, mut message) = (plain.clone(), plain.to_string(), "", "fine");
        match self.form {
            Form::Manifest => {
                object = serde_json::from_str(&self.text).unwrap_or_default();
                (compiled, raw) = (self.text.clone(), &self.text);
            }
            Form::Git => raw = &self.text,
            Form::Message => message = &self.text,
            Form::Application => {}
        }
        let text = |pointer: &str, or: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .unwrap_or(or)
                .to_owned()
        };
        let api_version = text("/apiVersion", "v1");
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let resource = json!({
            "group": group, "version": version, "kind": text("/kind", "ConfigMap"),
            "namespace": text("/metadata/namespace", "shop"), "name": text("/metadata/name", "thing"),
        });
        let mut own_state = application(&self.name, &resource);
        if self.form == Form::Application {
            let mut own: Value = serde_json::from_str(&self.text).unwrap();
            own["metadata"]["name"] = json!(self.name);
            own["metadata"]["namespace"] = json!("argocd");
            merge(&mut own_state, &own);
            self.put_child(simulation, &own);
        }
        if self.form == Form::Message {
            let message = &self.text;
            let result = json!({
                "group": group, "version": version, "kind": "ConfigMap", "namespace": "shop", "name": "thing",
                "status": "SyncFailed", "syncPhase": "Sync", "message": message,
            });
            merge(
                &mut own_state["status"],
                &json!({
                    "health": {"status": "Degraded", "message": message},
                    "conditions": [{"type": "ComparisonError", "message": message}],
                    "operationState": {
                        "phase": "Failed", "message": message, "startedAt": "2026-01-01T00:00:00Z",
                        "finishedAt": "2026-01-01T00:00:01Z",
                        "operation": {"sync": {"revision": REVISION}, "info": [{"name": "why", "value": message}]},
                        "syncResult": {"revision": REVISION, "resources": [result]},
                    },
                }),
            );
            own_state["status"]["resources"][0]["health"]["message"] = json!(message);
        }
        simulation.kube.apply(Collection::Applications, own_state).unwrap();
        let answer = |kind, body: &Value| simulation.argocd.set(kind, &self.name, 200, body.to_string());
        answer(Kind::ManagedResources, &managed(&resource, &compiled, &compiled));
        answer(Kind::ResourceTree, &tree(&resource, message));
        // A manifest without an identity belongs to no resource; then what is in Git comes with a plain one.
        let listed = if self.form == Form::Manifest && object["metadata"]["name"].is_string() {
            compiled.clone()
        } else {
            json!({
                "apiVersion": api_version, "kind": resource["kind"],
                "metadata": {"name": resource["name"], "namespace": resource["namespace"]},
            })
            .to_string()
        };
        let versions =
            json!({"appVersion": "1.0", "dependencies": {"deps": raw, "lock": raw, "requirements": raw}});
        answer(
            Kind::Manifests,
            &json!({
                "manifests": [{"compiledManifest": listed, "rawManifest": raw, "path": "shop/thing.yaml"}],
                "revision": REVISION, "sourceType": "Directory", "applicationVersions": versions,
            }),
        );
        answer(Kind::Resource, &json!({"manifest": compiled}));
        let commit = json!({
            "author": "A <a@example.com>", "date": "2026-01-01T00:00:00Z", "message": message, "tags": ["v1"],
        });
        answer(Kind::RevisionMetadata, &commit);
    }

    /// The same Application as a child of one that is like it: its manifest comes from the parent.
    fn put_child(&self, simulation: &Simulation, own: &Value) {
        let (parent, name) = (format!("{}-parent", self.name), format!("{}-child", self.name));
        let resource = json!({
            "group": "argoproj.io", "version": "v1alpha1", "kind": "Application", "namespace": "argocd", "name": name,
        });
        let mut child = application(&name, &thing());
        merge(&mut child, own);
        child["metadata"]["name"] = json!(name);
        let id = format!("{parent}:argoproj.io/Application:argocd/{name}");
        child["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!(id);
        let mut above = application(&parent, &resource);
        merge(&mut above, own);
        above["metadata"]["name"] = json!(parent);
        let compiled = child.to_string();
        simulation.kube.apply(Collection::Applications, child).unwrap();
        simulation.argocd.set(Kind::Application, &parent, 200, above.to_string());
        let answers = [
            (Kind::ManagedResources, managed(&resource, &compiled, &compiled)),
            (Kind::ResourceTree, tree(&resource, "fine")),
            (
                Kind::Manifests,
                json!({"manifests": [{"compiledManifest": compiled, "rawManifest": compiled, "path": "x"}]}),
            ),
        ];
        for (kind, body) in answers {
            simulation.argocd.set(kind, &parent, 200, body.to_string());
        }
    }
}
