//! What of an installation no upgrade changes by itself: of volumes, so that an upgrade that would is refused half way, and of
//! the servers of the bus.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::cluster::{Place, quantity};
use super::doubtful::volumes;
use super::installed::{OURS, instance, items};
use super::{Judged, Node, Severity};

const CODE: &str = "GR0113";
/// The component that a group of values describes the claim of.
const COMPONENTS: [(&str, &str); 5] = [
    ("changeRevision.persistence", "change-revision"),
    ("platform.backup.persistence", "platform-backup"),
    ("platform.persistence", "platform"),
    ("reporter.persistence", "reporter"),
    ("resourceReporter.persistence", "resource-reporter"),
];
const BUS: &str = "nats.persistence";

pub(super) fn check(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    let namespace = place.namespace;
    let claims = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims?labelSelector={OURS}");
    let claims = place.cluster.get(&claims)?;
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/statefulsets?labelSelector={OURS}");
    let sets = place.cluster.get(&sets)?;
    let pods = format!("/apis/apps/v1/namespaces/{namespace}/deployments?labelSelector={OURS}");
    let pods = place.cluster.metadata(&pods)?;
    // Claims are kept, and say nothing of what is to be installed when theirs is not any more.
    let all: BTreeSet<&str> = items(pods.as_ref()).chain(items(sets.as_ref())).map(instance).collect();
    // Of several nobody says which one the values are for.
    if all.len() > 1 {
        return Ok(());
    }
    let is_upgraded = |claim: &&Json| all.contains(instance(claim));
    let needed = volumes(judged).into_iter().filter(|(_, is_needed)| *is_needed).map(|(group, _)| group);
    for group in needed.collect::<Vec<_>>() {
        let component = COMPONENTS.into_iter().find(|(of, _)| *of == group).map(|(_, component)| component);
        if !judged.is_empty(&format!("{group}.existingClaim")) {
            continue;
        }
        for claim in items(claims.as_ref()).filter(is_upgraded).filter(|claim| component == is_of(claim)) {
            of_claim(judged, place, group, claim)?;
        }
    }
    let embeds = judged.truth("reporter.enabled") && judged.text("nats.mode") == "embedded";
    for set in items(sets.as_ref()).filter(|set| embeds && is_of(set) == Some("nats")) {
        of_servers(judged, namespace, set);
        of_more_servers(judged, namespace, set);
    }
    Ok(())
}

/// The component that an object is of.
fn is_of(object: &Json) -> Option<&str> {
    object["metadata"]["labels"]["app.kubernetes.io/component"].as_str()
}

fn name(object: &Json) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The size of a group of values, and that of a claim.
fn sizes(judged: &Judged, group: &str, spec: &Json) -> (f64, f64) {
    let given = judged.at(&format!("{group}.size")).map(Node::json).unwrap_or_default();
    (quantity(&given), quantity(&spec["resources"]["requests"]["storage"]))
}

fn of_claim(judged: &mut Judged, place: &Place<'_>, group: &str, claim: &Json) -> Result<(), String> {
    let (spec, called) = (&claim["spec"], name(claim));
    let (path, has) =
        (format!("{group}.storageClass"), spec["storageClassName"].as_str().unwrap_or_default());
    let given = judged.text(&path).to_owned();
    if !given.is_empty() && given != has {
        let found = format!("{given}, and the claim {called} is of the class {has}");
        let todo =
            format!("keep {has}, or copy what it holds to a claim of your own for {group}.existingClaim");
        judged.told(
            Severity::Error,
            CODE,
            &path,
            found,
            "the class of the claim, which nothing changes",
            &todo,
        );
    }
    let path = format!("{group}.size");
    let (size, had) = sizes(judged, group, spec);
    let held = spec["resources"]["requests"]["storage"].as_str().unwrap_or_default();
    if size < had {
        let found = format!("less than the {held} of the claim {called}");
        judged.told(Severity::Warning, CODE, &path, found, "no less: no claim shrinks", "give what it has");
    } else if size > had && !has.is_empty() {
        let class = place.cluster.get(&format!("/apis/storage.k8s.io/v1/storageclasses/{has}"))?;
        if class.is_some_and(|class| class["allowVolumeExpansion"] != true) {
            let found =
                format!("more than the {held} of the claim {called}, whose class {has} lets none grow");
            let todo = format!(
                "give what it has, or copy what it holds to a claim of your own for {group}.existingClaim"
            );
            judged.told(Severity::Error, CODE, &path, found, "the size of the claim", &todo);
        }
    }
    Ok(())
}

/// What a StatefulSet makes claims of never changes.
fn of_servers(judged: &mut Judged, namespace: &str, set: &Json) {
    let (spec, called) = (&set["spec"]["volumeClaimTemplates"][0]["spec"], name(set));
    let has = spec["storageClassName"].as_str().unwrap_or_default();
    let (size, had) = sizes(judged, BUS, spec);
    let held = spec["resources"]["requests"]["storage"].as_str().unwrap_or_default();
    let class = format!("{BUS}.storageClass");
    let of_class = (judged.text(&class) != has).then_some((class, has));
    let of_size = (had > 0.0 && size != had).then(|| (format!("{BUS}.size"), held));
    for (path, has) in of_class.into_iter().chain(of_size) {
        let has = if has.is_empty() { "the cluster's default" } else { has };
        let found = format!("another than {has} of the StatefulSet {called}");
        let todo = format!(
            "keep it, or kubectl --namespace {namespace} delete statefulset {called} --cascade=orphan before the upgrade, which then \
             makes it anew around the pods; the claims that are there keep their class, and grow by kubectl edit pvc"
        );
        judged.told(Severity::Error, CODE, &path, found, "what it has: an upgrade cannot change it", &todo);
    }
}

/// A StatefulSet renews no pod before those of higher numbers are ready, and these are not before the first knows of them.
fn of_more_servers(judged: &mut Judged, namespace: &str, set: &Json) {
    const SERVERS: &str = "nats.replicaCount";
    let called = name(set);
    if set["spec"]["replicas"] == 1 && judged.number(SERVERS).is_some_and(|wanted| wanted > 1.0) {
        let found = format!("more servers than the one of the StatefulSet {called}");
        let todo = format!(
            "after the upgrade kubectl --namespace {namespace} delete pod {called}-0: the others wait until it knows of them. \
             Everything is reported once more then"
        );
        judged.told(
            Severity::Warning,
            CODE,
            SERVERS,
            found,
            "a first server that knows of the others",
            &todo,
        );
    }
}
