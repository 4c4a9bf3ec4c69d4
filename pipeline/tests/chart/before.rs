//! Upgrades: what a cluster refuses to change is what it was in every version of the chart that was released before.
//!
//! Those stand in `before/` as `helm package` made them. `UPDATE=1` packages the chart as it is where its version is not
//! there yet.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::helm::{ROOT, chart, objects_of, package, values};

/// Fewer files of values than this, and nothing is compared.
const AT_LEAST: usize = 5;

fn archives() -> Vec<PathBuf> {
    let folder = Path::new(ROOT).join("pipeline/tests/chart/before");
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        package(&chart(), &folder);
    }
    let mut archives: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "tgz"))
        .collect();
    archives.sort();
    assert!(!archives.is_empty(), "there is no version before (UPDATE=1 packages this one)");
    archives
}

/// What no API server lets anybody change of an object.
fn immutable(object: &Value) -> Value {
    let spec = &object["spec"];
    match object["kind"].as_str().unwrap() {
        "Deployment" => json!({"selector": spec["selector"]}),
        "StatefulSet" => json!({
            "selector": spec["selector"],
            "serviceName": spec["serviceName"],
            "podManagementPolicy": spec["podManagementPolicy"],
            "volumeClaimTemplates": claims(spec),
        }),
        // A hook's is deleted before the next one is made.
        "Job" if object["metadata"]["annotations"]["helm.sh/hook"].is_null() => {
            json!({"selector": spec["selector"], "template": spec["template"]})
        }
        "PersistentVolumeClaim" => json!({
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "volumeName": spec["volumeName"],
        }),
        // From an address to none and back is refused.
        "Service" => json!({"clusterIP": spec["clusterIP"]}),
        "RoleBinding" | "ClusterRoleBinding" => json!({"roleRef": object["roleRef"]}),
        "Secret" => json!({"type": object["type"]}),
        _ => Value::Null,
    }
}

/// What a StatefulSet makes claims of, without kind and version, which the API server fills in before it compares.
fn claims(spec: &Value) -> Vec<Value> {
    let claims = spec["volumeClaimTemplates"].as_array().into_iter().flatten();
    claims.map(|claim| json!({"metadata": claim["metadata"], "spec": claim["spec"]})).collect()
}

/// What must not be made anew under another name: it holds, or stands before, what is a user's.
fn stays(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap();
    ["StatefulSet", "PersistentVolumeClaim", "Deployment"].contains(&kind)
        || object["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
}

/// What an upgrade would be refused for, or lose.
fn refused(before: &[Value], after: &[Value]) -> Vec<String> {
    let name = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {}/{}", object["kind"], metadata["namespace"], metadata["name"]).replace('"', "")
    };
    let mut refused = Vec::new();
    for old in before {
        match after.iter().find(|new| name(new) == name(old)) {
            Some(new) if immutable(old) != immutable(new) => {
                refused.push(format!("{} changes what cannot be changed", name(old)));
            }
            None if stays(old) => refused.push(format!("{} is gone", name(old))),
            _ => {}
        }
    }
    refused
}

#[test]
fn an_upgrade_from_each_version_before_changes_nothing_that_cannot_be_changed() {
    for archive in archives() {
        let mut compared = 0;
        for file in values("good-") {
            let given = ["--values", file.to_str().unwrap()];
            // An earlier version may not know what these values give.
            let Some(before) = objects_of(&archive, &given) else { continue };
            let after = objects_of(&chart(), &given).unwrap();
            let (archive, file) = (archive.display(), file.display());
            assert_eq!(refused(&before, &after), [""; 0], "{archive} with {file}");
            compared += 1;
        }
        assert!(compared >= AT_LEAST, "{}: {compared}", archive.display());
    }
}

#[test]
fn each_change_that_a_cluster_refuses_is_found() {
    let set = "global.runtime.name=prod,nats.mode=embedded,nats.replicaCount=3";
    let before = objects_of(&chart(), &["--set", set]).unwrap();
    assert_eq!(refused(&before, &before), [""; 0]);
    let changes: [(&str, &str, Value); 6] = [
        ("Deployment", "/spec/selector/matchLabels/app.kubernetes.io~1name", json!("other")),
        ("StatefulSet", "/spec/volumeClaimTemplates/0/spec/resources/requests/storage", json!("9Gi")),
        ("StatefulSet", "/spec/serviceName", json!("other")),
        ("RoleBinding", "/roleRef/name", json!("other")),
        ("Secret", "/type", json!("other")),
        ("Secret", "/metadata/name", json!("other")),
    ];
    for (kind, at, value) in changes {
        let mut after = before.clone();
        let changed = after.iter_mut().find(|object| object["kind"] == kind).unwrap();
        *changed.pointer_mut(at).unwrap() = value;
        assert_eq!(refused(&before, &after).len(), 1, "{kind}{at}");
    }
    let mut after = before.clone();
    let headless = |object: &&mut Value| object["spec"]["clusterIP"] == "None";
    after.iter_mut().find(headless).unwrap()["spec"].as_object_mut().unwrap().remove("clusterIP");
    assert_eq!(
        refused(&before, &after),
        ["Service runtime/prod-gitops-runtime-nats changes what cannot be changed"]
    );
}
