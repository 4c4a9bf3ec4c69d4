//! The rights that whoever installs needs: those for what the values switch on, where the chart makes it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{SimulatedCluster, WITH_A_CLUSTER, asked, lines_of};

#[test]
fn rights_in_the_whole_cluster_are_asked_for_by_each_component_that_is_given_some() {
    let mut held = SimulatedCluster { objects: BTreeMap::new(), refused: BTreeSet::new() };
    held.refused.extend(["create clusterroles", "create tokenreviews", "create horizontalpodautoscalers"]);
    held.refused.extend(["escalate clusterroles", "escalate roles"]);
    let lacks = |more: &str| lines_of(&asked(&held, &format!("{WITH_A_CLUSTER}{more}")), "GR0103");
    let right = |text: &str| format!("error : no right to create {text}");
    let roles = right("clusterroles.rbac.authorization.k8s.io in the cluster");
    assert_eq!(lacks(""), [] as [&str; 0]);
    for more in [
        "reporter: {applicationNamespaces: [team-*]}\n",
        "resourceReporter: {enabled: true}\n",
        "appProxy: {enabled: true, namespaces: ['*']}\n",
    ] {
        assert_eq!(lacks(more), [roles.as_str()], "{more}");
    }
    for more in [
        "resourceReporter: {enabled: true, namespaces: []}\n",
        "appProxy: {enabled: true, namespaces: [a]}\n",
    ] {
        assert_eq!(lacks(more), [] as [&str; 0], "{more}");
    }
    let scaled =
        "sourceServer: {enabled: true, allowed: ['https://git.example.com'], autoscaling: {enabled: true}}\n";
    let reviews = right("tokenreviews.authentication.k8s.io in the cluster");
    let scalers = right("horizontalpodautoscalers.autoscaling in namespace prod");
    assert_eq!(lacks(scaled), [scalers, roles, reviews]);
    assert_eq!(lacks(&format!("{scaled}rbac: {{create: false}}\n")).len(), 1);
}

#[test]
fn whoever_may_escalate_and_bind_roles_grants_what_they_do_not_have() {
    let lacks = |refused: &[&'static str], more: &str| {
        let held = SimulatedCluster { objects: BTreeMap::new(), refused: refused.iter().copied().collect() };
        lines_of(&asked(&held, &format!("{WITH_A_CLUSTER}{more}")), "GR0103")
    };
    let rights = ["watch applications", "get applications", "patch rollouts/status"];
    let proxy = "appProxy: {enabled: true}\n";
    let reads = "error : no right to get, watch applications.argoproj.io in namespace prod";
    let acts = "error : no right to patch rollouts/status.argoproj.io in namespace prod";
    assert_eq!(lacks(&rights, proxy), [""; 0]);
    for other in ["escalate roles in prod", "bind roles in prod"] {
        let refused = [&rights[..], &[other]].concat();
        assert_eq!(lacks(&refused, ""), [reads], "{other}");
        assert_eq!(lacks(&refused, proxy), [reads, acts], "{other}");
        assert_eq!(lacks(&refused, &format!("{proxy}rbac: {{create: false}}\n")), [""; 0], "{other}");
    }
    // Roles of the whole cluster are others.
    let everywhere = "reporter: {applicationNamespaces: [team-*]}\n";
    let in_cluster = "error : no right to get, watch applications.argoproj.io in the cluster";
    let refused = [&rights[..], &["escalate clusterroles in the cluster"]].concat();
    assert_eq!(lacks(&refused, everywhere), [in_cluster]);
}

#[test]
fn roles_are_asked_for_in_every_namespace_that_the_chart_makes_some_in() {
    let all = ["argocd", "elsewhere", "prod", "shop"];
    let refused: Vec<String> = all.iter().map(|namespace| format!("create roles in {namespace}")).collect();
    let refused = refused.iter().map(|right| &*right.clone().leak()).collect();
    let held = SimulatedCluster { objects: BTreeMap::new(), refused };
    let argocd = "  integrations: {argo-cd: {namespace: argocd}}\n";
    let lacks = |more: &str| -> Vec<String> {
        let found = lines_of(&asked(&held, &format!("{WITH_A_CLUSTER}{argocd}{more}")), "GR0103");
        let at = |line: &String| {
            let right = "error : no right to create roles.rbac.authorization.k8s.io in namespace ";
            line.strip_prefix(right).expect("nothing else is lacking").to_owned()
        };
        found.iter().map(at).collect()
    };
    // No Role of the reporter's is made in a namespace where it watches all of them.
    let everywhere =
        "reporter: {applicationNamespaces: [team-*], redactionKey: {secretKeyRef: {name: a, key: b}}}\n";
    for (values, places) in [
        ("", &["argocd", "prod"][..]),
        ("reporter: {redactionKey: {secretKeyRef: {name: a, key: b}}}\n", &["argocd"]),
        (everywhere, &[]),
        (&format!("{everywhere}appProxy: {{enabled: true}}\n"), &["argocd", "prod"]),
        (&format!("{everywhere}appProxy: {{enabled: true, namespaces: ['*']}}\n"), &["argocd", "prod"]),
        (
            &format!("{everywhere}appProxy: {{enabled: true, namespaces: [shop]}}\n"),
            &["argocd", "prod", "shop"],
        ),
        (
            &format!(
                "{everywhere}appProxy: {{enabled: true, config: {{argocd: {{namespace: elsewhere}}}}}}\n"
            ),
            &["elsewhere", "prod"],
        ),
        (&format!("{everywhere}changeRevision: {{enabled: true, argocdCredentials: true}}\n"), &["argocd"]),
        (&format!("{everywhere}resourceReporter: {{enabled: true, namespaces: []}}\n"), &["argocd"]),
        ("rbac: {create: false}\n", &[]),
    ] {
        assert_eq!(lacks(values), places, "{values}");
    }
}

#[test]
fn what_a_resource_reporter_reads_is_asked_for_where_it_reads_it() {
    let lacks = |more: &str| {
        let refused =
            ["escalate clusterroles", "escalate roles", "get deployments", "watch rollouts", "list services"];
        let held = SimulatedCluster { objects: BTreeMap::new(), refused: refused.into_iter().collect() };
        let reporter = format!("{WITH_A_CLUSTER}resourceReporter: {{enabled: true, {more}}}\n");
        lines_of(&asked(&held, &reporter), "GR0103")
    };
    let right = |text: &str| format!("error : no right to {text}");
    let (owner, reported) =
        ("get deployments.apps in the cluster", "watch rollouts.argoproj.io in the cluster");
    assert_eq!(lacks(""), [right(owner), right(reported)]);
    assert_eq!(lacks("applications: false"), [right(reported)]);
    let here = "watch rollouts.argoproj.io in namespace prod";
    assert_eq!(lacks("kinds: [{kind: rollouts.argoproj.io@v1alpha1}], namespaces: []"), [right(here)]);
    assert_eq!(lacks("kinds: [secrets], applications: false"), [""; 0]);
    let all = lacks(
        "kinds: [{kind: deployments.apps, labelSelector: a=b}], applications: false, preset: incumbent",
    );
    // What is selected is not read object by object.
    assert_eq!(all, [right("list services in the cluster"), right(reported)]);
}

#[test]
fn a_new_argo_cd_takes_the_rights_that_it_gives_itself() {
    let lacks = |refused: &[&'static str], more: &str| {
        let held = SimulatedCluster { objects: BTreeMap::new(), refused: refused.iter().copied().collect() };
        let new = format!("{WITH_A_CLUSTER}argo-cd: {{enabled: true, {more}}}\n");
        lines_of(&asked(&held, &new), "GR0103")
    };
    let right = |text: &str| format!("error : no right to {text}");
    let all = ["* *", "escalate clusterroles", "create customresourcedefinitions", "create statefulsets"];
    let beside = "namespaceOverride: argo";
    assert_eq!(
        lacks(&all, beside),
        [
            right("create statefulsets.apps in namespace argo"),
            right("create customresourcedefinitions.apiextensions.k8s.io in the cluster"),
            right("* *.* in the cluster"),
        ]
    );
    assert_eq!(lacks(&["create roles in argo"], beside).len(), 1);
    assert_eq!(lacks(&all, "createClusterRoles: false, crds: {install: false}").len(), 1);
    assert_eq!(
        lacks(&["* *", "escalate clusterroles"], "controller: {clusterRoleRules: {enabled: true}}"),
        [""; 0]
    );
}
