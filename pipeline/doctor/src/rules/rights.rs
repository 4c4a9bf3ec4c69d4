//! The rights that whoever installs needs: to create what the chart makes of these values, and to have what its roles grant.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::cluster::Place;
use super::doubtful::{LIMITED, SCALED, volumes};
use super::installed::is_false;
use super::roles::{MadeRoles, new_argocd};
use super::{Judged, Severity};

const RBAC: &str = "rbac.authorization.k8s.io";
/// The components of the chart, by their groups of values.
pub(super) const COMPONENTS: [&str; 9] = [
    "appProxy",
    "changeRevision",
    "platform",
    "reporter",
    "resourceReporter",
    "router",
    "sourceServer",
    "tunnelClient",
    "tunnelServer",
];
/// Those that may have an account of their own.
pub(super) const WITH_ACCOUNT: [&str; 6] =
    ["appProxy", "changeRevision", "platform", "reporter", "resourceReporter", "sourceServer"];
/// What the chart of a new Argo CD makes in its namespace, beside roles and their bindings.
const OF_ARGOCD: [(&str, &str); 6] = [
    ("", "configmaps"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
];

pub(super) fn check(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    if place.is_hook {
        return Err("the hook has rights of its own".to_owned());
    }
    let made = MadeRoles::of(judged, place);
    let mut creates: Vec<_> =
        created(judged).into_iter().map(|(group, kinds)| (Some(place.namespace), group, kinds)).collect();
    let argocd = new_argocd(judged, place);
    if judged.truth("argo-cd.enabled") {
        let all = OF_ARGOCD.map(|(group, kinds)| (Some(argocd.as_str()), group, kinds));
        let more: Vec<_> = all.into_iter().filter(|one| !creates.contains(one)).collect();
        creates.extend(more);
        if !judged.at("argo-cd.crds.install").is_some_and(is_false) {
            creates.push((None, "apiextensions.k8s.io", "customresourcedefinitions"));
        }
    }
    if made.in_cluster {
        creates.extend(["clusterroles", "clusterrolebindings"].map(|role| (None, RBAC, role)));
    }
    for namespace in &made.namespaces {
        creates.extend(["roles", "rolebindings"].map(|role| (Some(&**namespace), RBAC, role)));
    }
    for (scope, group, kinds) in creates {
        if !place.cluster.may("create", group, kinds, scope)? {
            tell(judged, "create", (scope, group, kinds), "install as somebody who has it, or ask for it");
        }
    }
    let mut granting = BTreeMap::new();
    for ((scope, group, kinds), verbs) in &made.granted {
        let scope = scope.as_deref();
        let may_grant = match granting.entry(scope) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(may_grant(place, scope)?),
        };
        let mut lacking = Vec::new();
        for verb in verbs.iter().filter(|_| !may_grant) {
            if !place.cluster.may(verb, group, kinds, scope)? {
                lacking.push(*verb);
            }
        }
        if !lacking.is_empty() {
            let todo = "install as somebody who has it, or who may escalate and bind roles: nobody else may grant it";
            tell(judged, &lacking.join(", "), (scope, group.as_str(), kinds.as_str()), todo);
        }
    }
    Ok(())
}

/// Whether whoever asks may make a role of what they have not themselves, and give it to an account.
fn may_grant(place: &Place<'_>, scope: Option<&str>) -> Result<bool, String> {
    let roles = if scope.is_some() { "roles" } else { "clusterroles" };
    Ok(place.cluster.may("escalate", RBAC, roles, scope)? && place.cluster.may("bind", RBAC, roles, scope)?)
}

/// Takes verbs, and of what: a namespace or the whole cluster, and the group and kind of objects.
fn tell(judged: &mut Judged, verbs: &str, (scope, group, kinds): (Option<&str>, &str, &str), todo: &str) {
    let dot = if group.is_empty() { "" } else { "." };
    let at = scope.map_or_else(|| "in the cluster".to_owned(), |name| format!("in namespace {name}"));
    let found = format!("no right to {verbs} {kinds}{dot}{group} {at}");
    judged.told(Severity::Error, "GR0103", "", found, "that right for who installs", todo);
}

/// Whether the chart makes pods of a component.
pub(super) fn runs(judged: &Judged, group: &str) -> bool {
    match group {
        "router" => judged.is_on(group) && super::access::way(judged).is_some(),
        "tunnelClient" => super::access::way(judged) == Some("tunnel"),
        _ => judged.is_on(group),
    }
}

/// The groups and kinds of what the chart makes in the namespace of the release, beside roles and their bindings.
fn created(judged: &Judged) -> BTreeSet<(&'static str, &'static str)> {
    let way = super::access::way(judged);
    let runs = |group: &str| runs(judged, group);
    let runs_any = COMPONENTS.into_iter().any(runs);
    let validates = judged.is_on("validation");
    let embeds = runs("reporter") && judged.text("nats.mode") == "embedded";
    let is_limited = LIMITED.into_iter().any(|group| runs(group) && judged.is_on(&format!("{group}.pdb")));
    let is_scaled =
        SCALED.into_iter().any(|group| runs(group) && judged.is_on(&format!("{group}.autoscaling")));
    let has_account = validates
        || WITH_ACCOUNT
            .into_iter()
            .any(|group| runs(group) && judged.truth(&format!("{group}.serviceAccount.create")));
    let makes_claim =
        |(group, is_there): (&str, bool)| is_there && judged.is_empty(&format!("{group}.existingClaim"));
    let is_led = runs("router").then_some(way).flatten();
    let is_led_to = |kind: &str| {
        ["platform", "tunnelServer"]
            .into_iter()
            .any(|group| runs(group) && judged.is_on(&format!("{group}.{kind}")))
    };
    let (has_ingress, has_route) = (is_led_to("ingress"), is_led_to("httpRoute"));
    let backs_up = runs("platform")
        && judged.is_on("platform.backup")
        && judged.is_empty("platform.postgres.secretKeyRef.name");
    let has_map = runs_any
        || validates
        || judged.truth("runtimeConfigMap.create")
        || judged.is_on("metrics.dashboards");
    let kinds = [
        // Helm keeps the release itself in one.
        ("", "secrets", true),
        ("", "configmaps", has_map),
        ("", "persistentvolumeclaims", volumes(judged).into_iter().any(makes_claim)),
        ("", "serviceaccounts", has_account),
        ("", "services", runs_any),
        ("apps", "deployments", runs_any),
        ("apps", "statefulsets", embeds),
        ("autoscaling", "horizontalpodautoscalers", is_scaled),
        ("batch", "cronjobs", backs_up),
        ("batch", "jobs", validates),
        ("gateway.networking.k8s.io", "httproutes", has_route || is_led == Some("httpRoute")),
        ("monitoring.coreos.com", "prometheusrules", judged.is_on("metrics.rules")),
        ("monitoring.coreos.com", "servicemonitors", runs_any && judged.is_on("metrics.serviceMonitor")),
        ("networking.istio.io", "virtualservices", is_led == Some("virtualService")),
        ("networking.k8s.io", "ingresses", has_ingress || is_led == Some("ingress")),
        ("networking.k8s.io", "networkpolicies", (runs_any || validates) && judged.is_on("networkPolicy")),
        ("policy", "poddisruptionbudgets", is_limited || embeds),
    ];
    kinds.into_iter().filter(|(.., is_made)| *is_made).map(|(group, kinds, _)| (group, kinds)).collect()
}
