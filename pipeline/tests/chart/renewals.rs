//! When the pods of a workload are made anew, and how.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::helm::{objects, settings, values};
use crate::objects::with;

#[test]
fn settings_that_a_program_reads_once_bring_new_pods_when_they_change() {
    let all = "nats.mode=embedded,reporter.replicaCount=2,platform.enabled=true,appProxy.enabled=true,\
               resourceReporter.enabled=true,changeRevision.enabled=true,sourceServer.enabled=true,\
               sourceServer.argocdCredentials=true,tunnelServer.enabled=true,tunnelServer.domain=t.example.com,\
               global.runtime.ingressUrl=https://runtime.example.com";
    let before = with(all);
    let mut renewed = BTreeSet::new();
    for change in ["ipv6.enabled=true", "nats.replicaCount=3"] {
        let after = with(&format!("{all},{change}"));
        let map = |objects: &[Value], name: &Value| {
            let is_it =
                |object: &&Value| object["kind"] == "ConfigMap" && object["metadata"]["name"] == *name;
            objects.iter().find(is_it).unwrap()["data"].clone()
        };
        for workload in before.iter().filter(|object| object["spec"]["template"]["spec"].is_object()) {
            let (kind, name) = (&workload["kind"], &workload["metadata"]["name"]);
            let is_same = |object: &&Value| object["kind"] == *kind && object["metadata"]["name"] == *name;
            let other = after.iter().find(is_same).unwrap();
            let volumes = workload["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
            let maps = volumes.iter().map(|volume| &volume["configMap"]["name"]).filter(|map| !map.is_null());
            let changed = maps.filter(|name| map(&before, name) != map(&after, name)).count();
            let is_renewed = workload["spec"]["template"] != other["spec"]["template"];
            assert!(changed == 0 || is_renewed, "{change}: {kind} {name} keeps its pods");
            if changed > 0 {
                renewed.insert(name.to_string());
            }
        }
    }
    // Each workload but the hooks and jobs has settings that one of these changes.
    assert!(renewed.len() >= 8, "{renewed:?}");
}

#[test]
fn how_a_workload_is_renewed_is_said_wholly() {
    let mut kinds = BTreeSet::new();
    for file in values("good-") {
        let objects = objects(&file);
        for deployment in objects.iter().filter(|object| object["kind"] == "Deployment") {
            let (name, strategy) = (&deployment["metadata"]["name"], &deployment["spec"]["strategy"]);
            // What the API server fills in of the one kind it refuses beside the other, where fields are applied by owner.
            // Of frp one client alone has the name of a tunnel, so that a new one would wait for the former's end.
            let is_client = name.as_str().unwrap().ends_with("-tunnel-client");
            let is_alone =
                is_client && settings(&objects, "tunnel-client")["tunnelClient"]["protocol"] == "frp";
            let expected = match strategy["type"].as_str() {
                Some("RollingUpdate") if is_alone => json!({"maxSurge": 0, "maxUnavailable": "100%"}),
                Some("RollingUpdate") => json!({"maxSurge": 1, "maxUnavailable": 0}),
                Some("Recreate") => Value::Null,
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(strategy["rollingUpdate"], expected, "{}: {name}", file.display());
            kinds.insert((strategy["type"].to_string(), is_alone));
        }
    }
    assert_eq!(kinds.len(), 3, "{kinds:?}");
}
