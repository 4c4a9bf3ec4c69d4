//! What is in the cluster already: Argo CD and its like, and what earlier installations left.

use std::collections::{BTreeMap, BTreeSet};

use pipeline_doctor::Format;
use serde_json::json;

use crate::{SimulatedCluster, WITH_A_CLUSTER, asked, lines_of};

#[test]
fn a_new_argo_cd_need_not_be_there_before_the_release_that_makes_it() {
    let held = SimulatedCluster { objects: BTreeMap::new(), refused: BTreeSet::new() };
    let of_argocd = |values: &str| -> Vec<String> {
        let report = asked(&held, values);
        let all = ["GR0102", "GR0107"].into_iter().flat_map(|code| lines_of(&report, code));
        all.filter(|line| line.to_lowercase().contains("argo")).collect()
    };
    let missing = of_argocd(WITH_A_CLUSTER);
    assert_eq!(missing.len(), 3, "{missing:?}");
    let new = format!("{WITH_A_CLUSTER}argo-cd: {{enabled: true}}\n");
    assert_eq!(of_argocd(&new), [] as [&str; 0]);
    // A password that somebody gives by a Secret of their own has to be there.
    let own =
        "  integrations: {argo-cd: {server: {auth: {passwordSecretKeyRef: {name: own, key: password}}}}}\n";
    let found = of_argocd(&new.replace("  runtime:", &format!("{own}  runtime:")));
    assert_eq!(found.len(), 1, "{found:?}");
    // By what Service it is asked depends on what it is called, and a name that nobody gives it reaches nothing.
    let called = |server: &str, argocd: &str| {
        let values = format!(
            "{WITH_A_CLUSTER}  integrations: {{argo-cd: {{server: {{{server}}}}}}}\nargo-cd: {{enabled: true{argocd}}}\n"
        );
        lines_of(&asked(&held, &values), "GR0041")
    };
    let none: [&str; 0] = [];
    for argocd in
        [", fullnameOverride: ours", ", fullnameOverride: null, nameOverride: ours", ", server: {name: api}"]
    {
        assert_eq!(called("", argocd), none, "{argocd}");
    }
    assert_eq!(called("svc: ours-api", ", fullnameOverride: ours, server: {name: api}"), none);
    assert_eq!(called("svc: argo-cd-server, url: 'http://argo-cd-server.prod.svc'", ""), none);
    let other = "error global.integrations.argo-cd.server.svc: \"argo-cd-server\"";
    assert_eq!(called("svc: argo-cd-server", ""), [other]);
}

#[test]
fn what_is_there_already_is_told_with_whose_it_is() {
    let labels = |namespace: &str, name: &str| json!({"metadata": {"namespace": namespace, "name": name, "labels": {}}});
    let definition = |name: &str, release: Option<&str>| {
        let annotations = release.map(
            |release| json!({"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "ops"}),
        );
        json!({"metadata": {"name": name, "annotations": annotations}})
    };
    let secret = |name: &str, version: &str, status: &str| json!({"metadata": {"labels": {"name": name, "version": version, "status": status}}});
    let argocd = "app.kubernetes.io%2Fpart-of%3Dargocd,app.kubernetes.io%2Fcomponent%3D";
    let servers: &'static str =
        format!("/api/v1/namespaces/prod/services?labelSelector={argocd}server").leak();
    let controllers = |kind: &str| -> &'static str {
        format!("/apis/apps/v1/{kind}?labelSelector={argocd}application-controller").leak()
    };
    let map =
        |id: &str| json!({"data": {"application.resourceTrackingMethod": "label", "installationID": id}});
    let mut held = SimulatedCluster {
        objects: BTreeMap::from([
            ("/apis/argoproj.io/v1alpha1", json!({})),
            (servers, json!({"items": [labels("prod", "argo-cd-server")]})),
            (
                "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fname%3Dargo-rollouts",
                json!({"items": [labels("a", "rollouts"), labels("b", "rollouts"), {
                    "metadata": {"namespace": "c", "name": "rollouts"},
                    "spec": {"template": {"spec": {"containers": [{"args": ["--namespaced"]}]}}},
                }]}),
            ),
            (controllers("statefulsets"), json!({"items": [labels("argocd", "c"), labels("team", "c")]})),
            (controllers("deployments"), json!({"items": [labels("other", "c")]})),
            ("/api/v1/namespaces/argocd/configmaps/argocd-cm", map("")),
            ("/api/v1/namespaces/team/configmaps/argocd-cm", map("")),
            ("/api/v1/namespaces/other/configmaps/argocd-cm", map("other")),
            (
                "/api/v1/namespaces/prod/configmaps/helm-values-config",
                json!({"data": {"values.yaml": "token: not-to-be-shown"}}),
            ),
            (
                "/api/v1/namespaces/prod/secrets?labelSelector=owner%3Dhelm",
                json!({"items": [secret("web", "1", "failed"), secret("web", "2", "deployed"), secret("cf", "1", "pending-install")]}),
            ),
            (
                "/api/v1/namespaces/prod/persistentvolumeclaims?labelSelector=app.kubernetes.io%2Fname%3Dgitops-runtime",
                json!({"items": [{"metadata": {"name": "old-ledger", "labels": {"app.kubernetes.io/instance": "old"}}},
                    {"metadata": {"name": "web-ledger", "labels": {"app.kubernetes.io/instance": "web"}}}]}),
            ),
            (
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                json!({"items": [
                    definition("applications.argoproj.io", Some("argocd")),
                    definition("appprojects.argoproj.io", None),
                    definition("rollouts.argoproj.io", Some("rollouts")),
                    definition("workflows.argoproj.io", None),
                    definition("sensors.argoproj.io", None),
                    definition("sealedsecrets.bitnami.com", None),
                    definition("widgets.example.com", None),
                ]}),
            ),
        ]),
        refused: BTreeSet::new(),
    };
    let report = asked(&held, WITH_A_CLUSTER);
    assert_eq!(
        lines_of(&report, "GR0107"),
        [
            "error global.integrations.argo-cd.server.svc: no Service argocd-server in namespace prod (argo-cd-server?)"
        ]
    );
    assert_eq!(
        lines_of(&report, "GR0110"),
        [
            "warning : 2 controllers of Argo Rollouts: a/rollouts, b/rollouts",
            "warning : Argo CDs in the namespaces argocd, team track by app.kubernetes.io/instance",
        ]
    );
    assert_eq!(
        lines_of(&report, "GR0111"),
        [
            "warning : a ConfigMap helm-values-config, in which a hook of the incumbent left its values",
            "warning : the release cf is pending-install at version 1",
            "warning : the claim old-ledger of the release old, which is not installed",
        ]
    );
    assert_eq!(
        lines_of(&report, "GR0112"),
        [
            "note : 2 definitions of Argo CD, of no release and the release argocd in namespace ops",
            "note : 1 definitions of Argo Rollouts, of the release rollouts in namespace ops",
            "note : 1 definitions of Argo Workflows, of no release",
            "note : 1 definitions of Argo Events, of no release",
            "note : 1 definitions of Sealed Secrets, of no release",
        ]
    );
    assert!(!report.write(Format::Json).contains("not-to-be-shown"));
    let brings = asked(&held, &format!("{WITH_A_CLUSTER}argo-cd: {{enabled: true}}\n"));
    assert!(
        lines_of(&brings, "GR0112")
            .iter()
            .any(|line| line.starts_with("warning argo-cd.enabled: 2 definitions of Argo CD"))
    );
    // Who may not look says so.
    held.objects.insert(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        json!("the API server answered 403"),
    );
    let report = asked(&held, WITH_A_CLUSTER);
    let why = report.unmeasured.iter().find(|one| one.code == "GR0112").map(|one| one.why.as_str());
    assert_eq!(why, Some("the API server answered 403"));
}

#[test]
fn application_sets_that_take_annotations_away_are_named_with_the_setting_that_keeps_them() {
    let values = format!("{WITH_A_CLUSTER}changeRevision: {{enabled: true, annotations: true}}\n");
    let all: Vec<String> = ["change-revision", "change-revisions", "git-revision", "git-revisions"]
        .map(|name| format!("mrp-controller.argoproj.io/{name}"))
        .to_vec();
    let sets = "/apis/argoproj.io/v1alpha1/namespaces/prod/applicationsets";
    let settings = "/api/v1/namespaces/prod/configmaps/argocd-cmd-params-cm";
    let mut held = SimulatedCluster { objects: BTreeMap::new(), refused: BTreeSet::new() };
    assert_eq!(lines_of(&asked(&held, &values), "GR0110"), [] as [&str; 0]);
    let keeps = json!({"metadata": {"name": "keeps"}, "spec": {"preservedFields": {"annotations": all}}});
    held.objects.insert(
        sets,
        json!({"items": [{"metadata": {"name": "web"}}, keeps, {"metadata": {"name": "api"}}]}),
    );
    let found = "warning changeRevision.annotations: ApplicationSets in namespace prod that keep no such annotation: web, api";
    let report = asked(&held, &values);
    assert_eq!(lines_of(&report, "GR0110"), [found]);
    let written = report.write(Format::Table);
    let todo = format!(
        "set applicationsetcontroller.global.preserved.annotations of the ConfigMap argocd-cmd-params-cm to {}, and restart Argo \
         CD's ApplicationSet controller: else it takes them away as often as they are written",
        all.join(",")
    );
    assert!(written.contains(&todo), "{written}");
    let keep =
        |text: String| json!({"data": {"applicationsetcontroller.global.preserved.annotations": text}});
    held.objects.insert(settings, keep(all[..3].join(", ")));
    assert_eq!(lines_of(&asked(&held, &values), "GR0110"), [found]);
    held.objects.insert(settings, keep(format!("other, {}", all.join(", "))));
    assert_eq!(lines_of(&asked(&held, &values), "GR0110"), [] as [&str; 0]);
    // Whoever writes none has nothing to keep.
    held.objects.remove(settings);
    assert_eq!(lines_of(&asked(&held, WITH_A_CLUSTER), "GR0110"), [] as [&str; 0]);
}

#[test]
fn a_git_token_that_an_earlier_version_kept_beside_the_release_is_told_where_argo_cd_is_elsewhere() {
    let secret = "/api/v1/namespaces/prod/secrets/runtime-repo-creds-secret";
    let held = |is_there: bool| {
        let all = [(secret, json!({"data": {"password": "bm90LXRvLWJlLXNob3du"}}))];
        let objects = all.into_iter().filter(|_| is_there).collect();
        SimulatedCluster { objects, refused: BTreeSet::new() }
    };
    let found = |is_there: bool, values: &str| {
        let report = asked(&held(is_there), &format!("{WITH_A_CLUSTER}{values}"));
        assert!(!report.write(Format::Json).contains("bm90"));
        lines_of(&report, "GR0111")
    };
    let acts = "appProxy: {enabled: true, config: {argocd: {namespace: argocd}}}\n";
    let line = "warning : a Secret runtime-repo-creds-secret, though Argo CD reads that of namespace argocd";
    assert_eq!(found(true, acts), [line]);
    assert_eq!(
        found(true, "  integrations: {argo-cd: {namespace: argocd}}\nappProxy: {enabled: true}\n"),
        [line]
    );
    for (is_there, values) in [
        (false, acts),
        (true, "appProxy: {enabled: true}\n"),
        (true, "appProxy: {enabled: false, config: {argocd: {namespace: argocd}}}\n"),
    ] {
        assert_eq!(found(is_there, values), [""; 0], "{values}");
    }
}

#[test]
fn a_claim_of_what_runs_is_no_leftover_though_helm_keeps_no_release_of_it() {
    let ours = "labelSelector=app.kubernetes.io%2Fname%3Dgitops-runtime";
    let of = |instance: &str| json!({"metadata": {"name": "ledger", "labels": {"app.kubernetes.io/instance": instance}}});
    let found = |kind: &str, running: &str| {
        let claims = format!("/api/v1/namespaces/prod/persistentvolumeclaims?{ours}");
        let workloads = format!("/apis/apps/v1/namespaces/prod/{kind}?{ours}");
        let objects = [(claims, of("web")), (workloads, of(running))];
        let objects = objects.map(|(path, object)| (&*path.leak(), json!({"items": [object]})));
        let held = SimulatedCluster { objects: BTreeMap::from(objects), refused: BTreeSet::new() };
        lines_of(&asked(&held, WITH_A_CLUSTER), "GR0111")
    };
    for kind in ["deployments", "statefulsets"] {
        assert_eq!(found(kind, "web"), [""; 0]);
        assert_eq!(
            found(kind, "other"),
            ["warning : the claim ledger of the release web, which is not installed"]
        );
    }
}

#[test]
fn a_second_runtime_beside_one_is_told_what_both_would_have() {
    let map = "/api/v1/namespaces/prod/configmaps/codefresh-cm";
    let of = |runtime: &str| {
        let labels =
            json!({"app.kubernetes.io/name": "gitops-runtime", "codefresh.io/runtime-name": runtime});
        let held = SimulatedCluster {
            objects: BTreeMap::from([(map, json!({"metadata": {"labels": labels}}))]),
            refused: BTreeSet::new(),
        };
        let all = lines_of(&asked(&held, WITH_A_CLUSTER), "GR0107");
        all.into_iter().filter(|line| line.contains("codefresh-cm")).collect::<Vec<_>>()
    };
    assert_eq!(of("prod"), [""; 0]);
    assert_eq!(of("first"), ["warning global.runtime.name: a ConfigMap codefresh-cm of the runtime first"]);
}

#[test]
fn what_no_upgrade_changes_of_volumes_and_servers_that_are_there_is_said_before_it() {
    let ours = "labelSelector=app.kubernetes.io%2Fname%3Dgitops-runtime";
    let claims: &'static str = format!("/api/v1/namespaces/prod/persistentvolumeclaims?{ours}").leak();
    let sets: &'static str = format!("/apis/apps/v1/namespaces/prod/statefulsets?{ours}").leak();
    let spec =
        |class: &str| json!({"storageClassName": class, "resources": {"requests": {"storage": "2Gi"}}});
    let metadata = |component: &str, instance: &str| json!({"name": component, "labels": {"app.kubernetes.io/component": component, "app.kubernetes.io/instance": instance}});
    let bus = json!({"replicas": 1, "volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}]});
    let mut held = SimulatedCluster {
        objects: BTreeMap::from([
            (claims, json!({"items": [{"metadata": metadata("reporter", "web"), "spec": spec("plain")}]})),
            (sets, json!({"items": [{"metadata": metadata("nats", "web"), "spec": bus}]})),
            ("/apis/storage.k8s.io/v1/storageclasses/plain", json!({})),
        ]),
        refused: BTreeSet::new(),
    };
    let of = |held: &SimulatedCluster, values: &str| {
        lines_of(&asked(held, &format!("{WITH_A_CLUSTER}{values}")), "GR0113")
    };
    let ledger = |given: &str| format!("reporter: {{persistence: {{{given}}}}}\n");
    for given in
        ["size: 2Gi", "size: 2048Mi, storageClass: plain", "size: 1Gi, enabled: false", "existingClaim: a"]
    {
        assert_eq!(of(&held, &ledger(given)), [""; 0], "{given}");
    }
    let at = "reporter.persistence";
    for (given, found) in [
        ("size: 1Gi", format!("warning {at}.size: less than the 2Gi of the claim reporter")),
        (
            "size: 3Gi",
            format!(
                "error {at}.size: more than the 2Gi of the claim reporter, whose class plain lets none grow"
            ),
        ),
        (
            "size: 2Gi, storageClass: fast",
            format!("error {at}.storageClass: fast, and the claim reporter is of the class plain"),
        ),
    ] {
        assert_eq!(of(&held, &ledger(given)), [found]);
    }
    let servers = |given: &str| format!("nats: {{mode: embedded, persistence: {{{given}}}}}\n");
    assert_eq!(of(&held, &servers("size: 2Gi")), [""; 0]);
    let at = "error nats.persistence";
    assert_eq!(
        of(&held, &servers("size: 3Gi, storageClass: fast")),
        [
            format!("{at}.storageClass: another than the cluster's default of the StatefulSet nats"),
            format!("{at}.size: another than 2Gi of the StatefulSet nats"),
        ]
    );
    assert_eq!(
        of(&held, "nats: {mode: embedded, replicaCount: 3, persistence: {size: 2Gi}}\n"),
        ["warning nats.replicaCount: more servers than the one of the StatefulSet nats"]
    );
    // A class that lets volumes grow; and of several releases nobody knows which one is meant.
    let grows = json!({"allowVolumeExpansion": true});
    held.objects.insert("/apis/storage.k8s.io/v1/storageclasses/plain", grows);
    assert_eq!(of(&held, &ledger("size: 3Gi")), [""; 0]);
    let less = "warning reporter.persistence.size: less than the 2Gi of the claim reporter";
    assert_eq!(of(&held, &ledger("size: 1Gi")), [less]);
    // Another is installed now, and the claim was kept of one that is not; then both are.
    held.objects.insert(sets, json!({"items": [{"metadata": metadata("nats", "other")}]}));
    assert_eq!(of(&held, &ledger("size: 1Gi")), [""; 0]);
    let pods: &'static str = format!("/apis/apps/v1/namespaces/prod/deployments?{ours}").leak();
    held.objects.insert(pods, json!({"items": [{"metadata": metadata("reporter", "web")}]}));
    assert_eq!(of(&held, &ledger("size: 1Gi")), [""; 0]);
    held.objects.remove(sets);
    assert_eq!(of(&held, &ledger("size: 1Gi")), [less]);
    held.objects.remove(pods);
    assert_eq!(of(&held, &ledger("size: 1Gi")), [""; 0]);
}
