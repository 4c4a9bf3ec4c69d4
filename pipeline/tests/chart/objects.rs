//! What the objects promise: the restricted standard, labels that never change, no secret where others read.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::helm::{NAMESPACE, ROOT, chart, expect, object, objects, pods, template, text, values};

#[test]
fn every_good_file_renders_the_same_twice() {
    for file in values("good-") {
        assert_eq!(text(&file), text(&file), "{}", file.display());
    }
}

#[test]
fn what_helm_refuses_the_doctor_has_found() {
    let mut refused = 0;
    for file in values("") {
        let output = template(&chart(), &["--values", file.to_str().unwrap()]);
        let said = std::fs::read_to_string(file.with_extension("txt")).unwrap();
        let found = said.lines().any(|line| line.starts_with("error GR00"));
        assert!(
            output.status.success() || found,
            "{}: {}",
            file.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        refused += usize::from(!output.status.success());
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn every_object_stands_in_the_namespace_of_the_release_or_of_argo_cd() {
    for file in values("good-") {
        let objects = objects(&file);
        let mut names = BTreeSet::new();
        for object in &objects {
            let (kind, metadata) = (object["kind"].as_str().unwrap(), &object["metadata"]);
            let place = match &metadata["namespace"] {
                Value::Null => {
                    assert!(kind.starts_with("ClusterRole"), "{kind} {}", metadata["name"]);
                    ""
                }
                namespace => namespace.as_str().unwrap(),
            };
            assert!(["", NAMESPACE, "argocd"].contains(&place), "{kind} in {place}");
            let name = metadata["name"].as_str().unwrap();
            assert!(names.insert((kind, place.to_owned(), name)), "{kind} {name} is rendered twice");
        }
    }
}

#[test]
fn every_pod_keeps_to_the_restricted_standard_and_a_read_only_root() {
    let mut seen = BTreeSet::new();
    for file in values("good-") {
        for (name, _, pod) in pods(&objects(&file)) {
            let at = format!("{}: {name}", file.display());
            let security = &pod["securityContext"];
            assert_eq!(security["runAsNonRoot"], true, "{at}");
            assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault", "{at}");
            assert_ne!(security["runAsUser"], 0, "{at}");
            for host in ["hostNetwork", "hostPID", "hostIPC"] {
                assert!(pod[host].is_null(), "{at}");
            }
            assert!(pod["initContainers"].is_null(), "{at}");
            for container in pod["containers"].as_array().unwrap() {
                let security = &container["securityContext"];
                assert_eq!(security["allowPrivilegeEscalation"], false, "{at}");
                assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}), "{at}");
                assert_eq!(security["readOnlyRootFilesystem"], true, "{at}");
                assert!(
                    container["ports"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .all(|port| port["hostPort"].is_null())
                );
                assert!(container["resources"]["requests"]["memory"].is_string(), "{at}");
                assert!(container["resources"]["limits"]["memory"].is_string(), "{at}");
            }
            let allowed = ["configMap", "emptyDir", "persistentVolumeClaim", "secret"];
            for volume in pod["volumes"].as_array().into_iter().flatten() {
                let kinds = volume.as_object().unwrap().keys().filter(|key| *key != "name");
                assert!(kinds.into_iter().all(|kind| allowed.contains(&kind.as_str())), "{at}: {volume}");
            }
            seen.insert(name);
        }
    }
    assert!(seen.len() >= 3, "{seen:?}");
}

#[test]
fn pull_secrets_proxies_and_places_reach_every_pod() {
    let file = values("good-private").remove(0);
    let objects = objects(&file);
    for (name, _, pod) in pods(&objects) {
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "regcred"}]), "{name}");
        assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/os": "linux"}), "{name}");
        assert_eq!(pod["tolerations"][0]["key"], "dedicated", "{name}");
        let spread = &pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"];
        assert!(spread["app.kubernetes.io/component"].is_string(), "{name}");
        let image = pod["containers"][0]["image"].as_str().unwrap();
        assert!(image.starts_with("registry.example.com/mirror/gitops-runtime:0.1.0@sha256:"), "{image}");
        // OpenShift gives user and group.
        assert!(pod["securityContext"]["runAsUser"].is_null() && pod["securityContext"]["fsGroup"].is_null());
    }
    let reporter = object(&objects, "Deployment", "-runtime-reporter").unwrap();
    let env = reporter["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    let value = |name: &str| env.iter().find(|variable| variable["name"] == name).unwrap();
    assert_eq!(value("HTTPS_PROXY")["value"], "http://proxy.example.com:3128");
    let direct = value("NO_PROXY")["value"].as_str().unwrap();
    assert!(
        direct.starts_with("$(KUBERNETES_SERVICE_HOST),") && direct.ends_with(",.example.com"),
        "{direct}"
    );
    assert_eq!(value("B")["value"], "1");
    assert_eq!(value("POD")["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name");
}

#[test]
fn a_specific_registry_stands_above_the_global_one() {
    let set = "global.runtime.name=prod,global.imageRegistry=mirror.example.com,image.registry=own.example.com,\
               nats.mode=embedded";
    let output = template(&chart(), &["--set", set]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"own.example.com/gitops-runtime:0.1.0\""), "{text}");
    assert!(text.contains("\"mirror.example.com/nats:"), "{text}");
}

#[test]
fn what_workloads_select_by_never_changes() {
    let mut lines = BTreeSet::new();
    for file in values("good-") {
        for object in objects(&file) {
            let selector = match object["kind"].as_str().unwrap() {
                "Deployment" | "StatefulSet" => &object["spec"]["selector"]["matchLabels"],
                "Service" => &object["spec"]["selector"],
                _ => continue,
            };
            let mut line = format!("{} {}: {selector}", object["kind"], object["metadata"]["name"]);
            if object["kind"] == "StatefulSet" {
                let claim = &object["spec"]["volumeClaimTemplates"][0]["metadata"];
                let _ = write!(line, " {claim}");
                assert_eq!(object["spec"]["serviceName"], object["metadata"]["name"]);
            }
            lines.insert(line);
            // A selector selects its own pods.
            if let Some(labels) = object["spec"]["template"]["metadata"]["labels"].as_object() {
                let selects = |(key, value): (&String, &Value)| labels.get(key) == Some(value);
                assert!(selector.as_object().unwrap().iter().all(selects));
            }
        }
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    expect(&Path::new(ROOT).join("pipeline/tests/chart/selectors.txt"), &text);
}

#[test]
fn a_secret_stands_in_secrets_alone() {
    let file = values("bad-inline-secrets").remove(0);
    let objects = objects(&file);
    let mut secrets = Vec::new();
    for object in &objects {
        if object["kind"] == "Secret" {
            secrets.push(object["metadata"]["name"].as_str().unwrap());
        } else {
            assert!(!object.to_string().contains("not-to-be-shown"), "{object}");
        }
    }
    secrets.sort_unstable();
    assert_eq!(secrets, ["codefresh-user-token", "gitops-runtime-argo-cd-token", "prod-git-password"]);
}

#[test]
fn a_ledger_and_a_bus_exclude_each_other() {
    for file in values("good-") {
        let objects = objects(&file);
        let Some(reporter) = object(&objects, "Deployment", "-runtime-reporter") else { continue };
        let has_bus = object(&objects, "ConfigMap", "-runtime-reporter").unwrap()["data"]["config.yaml"]
            .as_str()
            .unwrap()
            .contains("\nbus:");
        let claim = object(&objects, "PersistentVolumeClaim", "-runtime-reporter");
        let strategy = reporter["spec"]["strategy"]["type"].as_str().unwrap();
        assert_eq!(strategy, if has_bus { "RollingUpdate" } else { "Recreate" }, "{}", file.display());
        assert!(!has_bus || claim.is_none(), "{}", file.display());
        if let Some(claim) = claim {
            assert_eq!(claim["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
        }
    }
}

#[test]
fn no_hook_runs_but_the_test_and_the_doctor_where_it_is_asked_for() {
    for file in values("good-") {
        let is_asked = file.ends_with("good-validated.yaml");
        for object in objects(&file) {
            let hook = &object["metadata"]["annotations"]["helm.sh/hook"];
            assert!(hook.is_null() || hook == "test" || is_asked, "{object}");
        }
    }
}
