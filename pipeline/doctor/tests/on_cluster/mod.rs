//! What a cluster tells. In this file of volumes and Secrets where there are none of them: those of what is switched on alone.

mod installed;
mod rights;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{SimulatedCluster, WITH_A_CLUSTER, asked, lines_of};

/// What is said under a code of these values, in a cluster without classes, claims and Secrets.
fn found(code: &str, values: &str) -> Vec<String> {
    let classes = ("/apis/storage.k8s.io/v1/storageclasses", json!({"items": []}));
    let held = SimulatedCluster { objects: BTreeMap::from([classes]), refused: BTreeSet::new() };
    let all = lines_of(&asked(&held, &format!("{WITH_A_CLUSTER}{values}")), code);
    // These three are looked for in any case.
    let usual = ["global.codefresh.userToken", "global.codefresh.runtimeToken", "global.integrations"];
    all.into_iter().filter(|line| !usual.iter().any(|path| line.contains(path))).collect()
}

#[test]
fn every_volume_of_what_is_switched_on_needs_a_class_or_its_claim() {
    const NONE: &str = "reporter: {persistence: {enabled: false}}\n";
    for group in ["resourceReporter", "changeRevision"] {
        let of = |values: &str| {
            found("GR0106", &format!("{NONE}{group}: {{enabled: true, persistence: {{{values}}}}}\n"))
        };
        let class = format!("error {group}.persistence.storageClass: ");
        let claim = format!("error {group}.persistence.existingClaim: ");
        assert_eq!(of("enabled: true"), [format!("{class}no default storage class in the cluster")]);
        assert_eq!(of("enabled: true, storageClass: fast"), [format!("{class}\"fast\"")]);
        assert_eq!(of("enabled: true, existingClaim: kept"), [format!("{claim}\"kept\"")]);
        assert_eq!(of("enabled: false"), [""; 0]);
        assert_eq!(found("GR0106", &format!("{NONE}{group}: {{enabled: false}}\n")), [""; 0]);
    }
}

#[test]
fn a_cluster_of_openshift_or_of_ipv6_wants_what_the_defaults_do_not_say() {
    let kubernetes = "/api/v1/namespaces/default/services/kubernetes";
    let of = |address: &str, values: &str| {
        let objects = BTreeMap::from([
            ("/apis/security.openshift.io/v1", json!({})),
            (kubernetes, json!({"spec": {"clusterIP": address}})),
        ]);
        let held = SimulatedCluster { objects, refused: BTreeSet::new() };
        lines_of(&asked(&held, &format!("{WITH_A_CLUSTER}{values}")), "GR0114")
    };
    let openshift =
        "warning openshift.enabled: false in a cluster of OpenShift, which gives pods their users itself";
    let ipv6 = "error ipv6.enabled: false in a cluster whose first addresses are of IPv6";
    assert_eq!(of("10.96.0.1", ""), [openshift]);
    assert_eq!(of("fd00::1", "openshift: {enabled: true}\n"), [ipv6]);
    assert_eq!(of("fd00::1", "openshift: {enabled: true}\nipv6: {enabled: true}\n"), [""; 0]);
    // Who may not see that Service is told that it was not looked at.
    let objects = BTreeMap::from([(kubernetes, json!("the API server answered 403"))]);
    let held = SimulatedCluster { objects, refused: BTreeSet::new() };
    let report = asked(&held, WITH_A_CLUSTER);
    assert!(report.unmeasured.iter().any(|one| one.code == "GR0114"));
    let plain = SimulatedCluster { objects: BTreeMap::new(), refused: BTreeSet::new() };
    assert_eq!(lines_of(&asked(&plain, WITH_A_CLUSTER), "GR0114"), [""; 0]);
}

#[test]
fn no_secret_of_what_is_switched_off_is_looked_for() {
    let secret = "{name: own, key: key}";
    for (group, on, below, more) in [
        ("platform", "enabled: true", "postgres: {secretKeyRef: SECRET}", ""),
        ("platform", "enabled: true", "oidc: {secretKeyRef: SECRET}", ""),
        ("sourceServer", "enabled: true", "git: {credentialSecrets: [own]}", ""),
        ("sourceServer", "enabled: true", "git: {caSecretKeyRef: SECRET}", ""),
        ("changeRevision", "enabled: true", "git: {credentialSecrets: [own]}", ""),
        ("appProxy", "enabled: true", "git: {caSecretKeyRef: SECRET}", ""),
        ("nats", "mode: existing", "auth: {tokenSecretKeyRef: SECRET}", ""),
        ("tunnelServer", "enabled: true", "tokensSecretKeyRef: SECRET", ""),
        ("reporter", "enabled: true", "redactionKey: {secretKeyRef: SECRET}", ""),
        (
            "reporter",
            "enabled: false",
            "redactionKey: {secretKeyRef: SECRET}",
            "resourceReporter: {enabled: true}\n",
        ),
    ] {
        let below = below.replace("SECRET", secret);
        let of =
            |switch: &str, more: &str| found("GR0102", &format!("{group}: {{{switch}, {below}}}\n{more}"));
        assert_eq!(of(on, more).len(), 1, "{group}: {below}: {:?}", of(on, more));
        let off = if group == "nats" { "mode: none" } else { "enabled: false" };
        assert_eq!(of(off, ""), [""; 0], "{group}: {below}");
    }
    // An Ingress is the way in: there is no tunnel.
    let client =
        format!("tunnelClient: {{enabled: true, to: 'wss://a.example.com', tokenSecretKeyRef: {secret}}}\n");
    assert_eq!(found("GR0102", &client), [""; 0]);
}

#[test]
fn secrets_of_pulls_and_of_further_variables_and_volumes_are_looked_for() {
    for (values, told) in [
        ("imagePullSecrets: [{name: own}]", "global.imagePullSecrets"),
        ("extraEnv: {A: {valueFrom: {secretKeyRef: {name: own, key: a}}}}", "reporter.extraEnv"),
        ("extraVolumes: [{name: a, secret: {secretName: own}}]", "reporter.extraVolumes"),
        (
            "extraVolumes: [{name: a, secret: {secretName: own, items: [{key: a, path: a}]}}]",
            "reporter.extraVolumes",
        ),
    ] {
        let group = told.split('.').next().unwrap();
        let of = |data: Option<serde_json::Value>, values: &str| {
            let secret = data.map(|data| ("/api/v1/namespaces/prod/secrets/own", json!({"data": data})));
            let held = SimulatedCluster { objects: secret.into_iter().collect(), refused: BTreeSet::new() };
            // What stands above has a group of its own.
            let values = match group {
                "global" => WITH_A_CLUSTER.replacen("global:\n", &format!("global:\n  {values}\n"), 1),
                _ => format!("{WITH_A_CLUSTER}{group}: {{{values}}}\n"),
            };
            let all = lines_of(&asked(&held, &values), "GR0102");
            all.into_iter().filter(|line| line.contains(" own ")).collect::<Vec<_>>()
        };
        assert_eq!(of(None, values), [format!("error {told}: no Secret own in namespace prod")]);
        let all = json!({"a": "YQ==", ".dockerconfigjson": "e30="});
        assert_eq!(of(Some(all), values), [""; 0], "{values}");
        let lacks = of(Some(json!({"b": "YQ=="})), values);
        // Of a Secret for pulls the key depends on its kind.
        let names_key = group != "global" && !values.ends_with("{secretName: own}}]");
        assert_eq!(lacks.len(), usize::from(names_key), "{lacks:?}");
        let optional = values
            .replace("key: a}}}}", "key: a, optional: true}}}}")
            .replace("Name: own", "Name: own, optional: true");
        assert_eq!(of(None, &optional).is_empty(), group != "global", "{optional}");
        if group != "global" {
            assert_eq!(of(None, &format!("{values}, enabled: false")), [""; 0], "{values}");
        }
    }
}
