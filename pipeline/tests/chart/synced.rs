//! The chart where somebody else than Helm's command line applies it: Argo CD, which compares what it rendered with what is there.

use serde_json::{Value, json};

use crate::helm::{object, pods, rendered};

#[test]
fn what_helm_keeps_argo_cd_neither_deletes_nor_prunes_nor_calls_out_of_sync() {
    let objects = rendered(&json!({
        "global": {"runtime": {"name": "prod"}},
        "platform": {"enabled": true},
        "resourceReporter": {"enabled": true},
        "changeRevision": {"enabled": true},
    }));
    let is_kept = |object: &&Value| object["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep";
    let kept: Vec<&Value> = objects.iter().filter(is_kept).collect();
    // Five claims, and the Secret with what nobody gives.
    assert_eq!(kept.len(), 6);
    for object in kept {
        let annotations = &object["metadata"]["annotations"];
        // It prunes what is not rendered any more, as the file of a platform that has a database now.
        assert_eq!(annotations["argocd.argoproj.io/sync-options"], "Delete=false,Prune=false", "{object}");
        assert_eq!(annotations["argocd.argoproj.io/compare-options"], "IgnoreExtraneous", "{object}");
    }
}

#[test]
fn what_the_api_server_would_fill_in_of_lists_is_said_so_that_argo_cd_finds_no_difference() {
    let parents = json!([
        {"name": "public", "namespace": "gateways", "sectionName": "https"},
        {"name": "mesh", "kind": "Service", "group": ""},
    ]);
    let objects = rendered(&json!({
        "global": {"runtime": {
            "name": "prod",
            "httpRoute": {"enabled": true, "hostnames": ["runtime.example.com"], "parentRefs": parents},
        }},
        "nats": {"mode": "embedded"},
    }));
    let route = &object(&objects, "HTTPRoute", "-router").unwrap()["spec"];
    let gateway = "gateway.networking.k8s.io";
    let (public, mesh) = (
        json!({"group": gateway, "kind": "Gateway", "name": "public", "namespace": "gateways", "sectionName": "https"}),
        json!({"group": "", "kind": "Service", "name": "mesh"}),
    );
    assert_eq!(route["parentRefs"], json!([public, mesh]));
    let backend = json!({"group": "", "kind": "Service", "name": "internal-router", "port": 80, "weight": 1});
    assert_eq!(route["rules"][0]["backendRefs"], json!([backend]));
    let claim = &object(&objects, "StatefulSet", "-nats").unwrap()["spec"]["volumeClaimTemplates"][0];
    assert_eq!((&claim["apiVersion"], &claim["kind"]), (&json!("v1"), &json!("PersistentVolumeClaim")));
}

#[test]
fn a_variable_that_is_given_anew_stands_once_as_an_api_server_wants_it_that_applies_by_fields() {
    let given = json!({"enabled": true, "extraEnv": {"NO_PROXY": "own.example.com", "GITOPS_RUNTIME_CONFIG": "/own"}});
    let objects = rendered(&json!({
        "global": {"runtime": {"name": "prod"}, "httpsProxy": "http://proxy.example.com:3128"},
        "platform": given,
        "reporter": given,
    }));
    let mut seen = 0;
    for (name, _, pod) in pods(&objects).into_iter().filter(|(name, ..)| name.starts_with("\"Deployment\"")) {
        let variables = pod["containers"][0]["env"].as_array().unwrap();
        for (variable, value) in [
            ("NO_PROXY", "own.example.com"),
            ("GITOPS_RUNTIME_CONFIG", "/own"),
            ("HTTPS_PROXY", "http://proxy.example.com:3128"),
        ] {
            let found: Vec<&Value> = variables.iter().filter(|one| one["name"] == variable).collect();
            assert_eq!(found, [&json!({"name": variable, "value": value})], "{name}");
            seen += 1;
        }
    }
    assert_eq!(seen, 6);
}
