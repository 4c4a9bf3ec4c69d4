//! What is in the cluster already: Argo CD and its like, whose they are, others that manage the same, leftovers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::cluster::Place;
use super::{Judged, Severity, cluster};

/// Programs by the definitions that are theirs.
const DEFINITIONS: &[(&str, &[&str])] = &[
    ("Argo CD", &["applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io"]),
    (
        "Argo Rollouts",
        &[
            "analysisruns.argoproj.io",
            "analysistemplates.argoproj.io",
            "clusteranalysistemplates.argoproj.io",
            "experiments.argoproj.io",
            "rollouts.argoproj.io",
        ],
    ),
    (
        "Argo Workflows",
        &[
            "clusterworkflowtemplates.argoproj.io",
            "cronworkflows.argoproj.io",
            "workflowartifactgctasks.argoproj.io",
            "workfloweventbindings.argoproj.io",
            "workflows.argoproj.io",
            "workflowtaskresults.argoproj.io",
            "workflowtasksets.argoproj.io",
            "workflowtemplates.argoproj.io",
        ],
    ),
    ("Argo Events", &["eventbus.argoproj.io", "eventsources.argoproj.io", "sensors.argoproj.io"]),
    ("Sealed Secrets", &["sealedsecrets.bitnami.com"]),
];

/// What says of all ApplicationSets which annotations they keep, and where.
const PRESERVED: &str = "applicationsetcontroller.global.preserved.annotations";
const PARAMETERS: &str = "argocd-cmd-params-cm";
/// What the role change-revision writes to Applications.
const ANNOTATIONS: [&str; 4] = [
    "mrp-controller.argoproj.io/change-revision",
    "mrp-controller.argoproj.io/change-revisions",
    "mrp-controller.argoproj.io/git-revision",
    "mrp-controller.argoproj.io/git-revisions",
];

/// What Argo CD reads the runtime's own repositories with: the app proxy keeps it where Argo CD is.
const REPOSITORIES: &str = "runtime-repo-creds-secret";
/// The label that the chart's claims carry.
pub(super) const OURS: &str = "app.kubernetes.io%2Fname%3Dgitops-runtime";

pub(super) fn items(list: Option<&Json>) -> impl Iterator<Item = &Json> {
    list.and_then(|list| list["items"].as_array()).into_iter().flatten()
}

/// The release that an object belongs to, by Helm's own annotations.
fn release(object: &Json) -> Option<String> {
    let annotations = &object["metadata"]["annotations"];
    let name = annotations["meta.helm.sh/release-name"].as_str()?;
    let namespace = annotations["meta.helm.sh/release-namespace"].as_str()?;
    Some(format!("{name} in namespace {namespace}"))
}

fn name(object: &Json) -> String {
    let part = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    if part("namespace").is_empty() {
        part("name").to_owned()
    } else {
        format!("{}/{}", part("namespace"), part("name"))
    }
}

/// The release or Application that an object of the chart is of, by its label.
pub(super) fn instance(object: &Json) -> &str {
    object["metadata"]["labels"]["app.kubernetes.io/instance"].as_str().unwrap_or_default()
}

/// Whether the Argo CD is there that the values name.
pub(super) fn argocd(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    if !judged.truth("reporter.enabled") {
        return Ok(());
    }
    let argocd = cluster::argocd(judged, place);
    // A new one comes with the release.
    let is_new = judged.truth("argo-cd.enabled");
    if !is_new && place.cluster.get("/apis/argoproj.io/v1alpha1")?.is_none() {
        let found = "no kind of argoproj.io/v1alpha1 in the cluster".to_owned();
        let path = "global.integrations.argo-cd";
        judged.told(Severity::Error, "GR0107", path, found, "Argo CD", "install it first");
    }
    let service = judged.text("global.integrations.argo-cd.server.svc").to_owned();
    if !is_new
        && judged.is_empty("global.integrations.argo-cd.server.url")
        && !service.is_empty()
        && place.cluster.get(&format!("/api/v1/namespaces/{argocd}/services/{service}"))?.is_none()
    {
        let labels = "app.kubernetes.io%2Fpart-of%3Dargocd,app.kubernetes.io%2Fcomponent%3Dserver";
        let others =
            place.cluster.get(&format!("/api/v1/namespaces/{argocd}/services?labelSelector={labels}"))?;
        let others: Vec<String> = items(others.as_ref())
            .filter_map(|other| other["metadata"]["name"].as_str().map(str::to_owned))
            .collect();
        let found = format!("no Service {service} in namespace {argocd}");
        let path = "global.integrations.argo-cd.server.svc";
        let todo = "name the Service of Argo CD's API server, or its namespace in global.integrations.argo-cd.namespace";
        let wanted = "the Service of Argo CD's API server";
        let finding = judged.add(Severity::Error, "GR0107", path, wanted, todo);
        finding.found = found;
        finding.meant = (!others.is_empty()).then(|| others.join("' or '"));
    }
    let told = format!("/api/v1/namespaces/{}/configmaps/codefresh-cm", place.namespace);
    if judged.truth("runtimeConfigMap.create")
        && let Some(map) = place.cluster.get(&told)?
    {
        let labels = &map["metadata"]["labels"];
        let release =
            map["metadata"]["annotations"]["meta.helm.sh/release-name"].as_str().unwrap_or("nobody");
        let runtime = labels["codefresh.io/runtime-name"].as_str().unwrap_or_default();
        if labels["app.kubernetes.io/name"] != "gitops-runtime" {
            let found = format!("a ConfigMap codefresh-cm of the release {release}");
            let todo = "choose another namespace, or set runtimeConfigMap.create to false";
            judged.told(
                Severity::Error,
                "GR0107",
                "runtimeConfigMap.create",
                found,
                "none of another's",
                todo,
            );
        } else if runtime != judged.text("global.runtime.name") {
            // Of the same release it is where somebody gives the runtime another name.
            let found = format!("a ConfigMap codefresh-cm of the runtime {runtime}");
            let todo = "for a second runtime choose another namespace, or set runtimeConfigMap.create to false, and router.service.name \
                        and appProxy.service.name to others";
            judged.told(
                Severity::Warning,
                "GR0107",
                "global.runtime.name",
                found,
                "one of this runtime",
                todo,
            );
        }
    }
    Ok(())
}

/// Controllers that would work on the same objects.
pub(super) fn rivals(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    let rollouts = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io%2Fname%3Dargo-rollouts";
    let rollouts = place.cluster.get(rollouts)?;
    // One that keeps to its namespace is in nobody's way.
    let is_everywhere = |object: &&Json| {
        let containers = object["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
        let component = &object["metadata"]["labels"]["app.kubernetes.io/component"];
        (component.is_null() || component == "rollouts-controller")
            && containers
                .flat_map(|one| one["args"].as_array().into_iter().flatten())
                .all(|argument| argument != "--namespaced")
    };
    let names: Vec<String> = items(rollouts.as_ref()).filter(is_everywhere).map(name).collect();
    if names.len() > 1 {
        let found = format!("{} controllers of Argo Rollouts: {}", names.len(), names.join(", "));
        let todo = "remove all but one, or start them with --namespaced";
        judged.told(Severity::Warning, "GR0110", "", found, "one in the cluster", todo);
    }
    let labels =
        "app.kubernetes.io%2Fpart-of%3Dargocd,app.kubernetes.io%2Fcomponent%3Dapplication-controller";
    let mut namespaces = BTreeSet::new();
    for kind in ["statefulsets", "deployments"] {
        let found = place.cluster.metadata(&format!("/apis/apps/v1/{kind}?labelSelector={labels}"))?;
        let of = |object: &Json| object["metadata"]["namespace"].as_str().map(str::to_owned);
        namespaces.extend(items(found.as_ref()).filter_map(of));
    }
    let mut keys: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for namespace in namespaces {
        let map = format!("/api/v1/namespaces/{namespace}/configmaps/argocd-cm");
        let map = place.cluster.get(&map)?.unwrap_or_default();
        let setting = |key: &str| map["data"][key].as_str().unwrap_or_default().to_owned();
        let key = match setting("application.resourceTrackingMethod").as_str() {
            "" | "annotation" => "argocd.argoproj.io/tracking-id".to_owned(),
            _ => Some(setting("application.instanceLabelKey"))
                .filter(|key| !key.is_empty())
                .unwrap_or_else(|| "app.kubernetes.io/instance".to_owned()),
        };
        keys.entry((key, setting("installationID"))).or_default().push(namespace);
    }
    for ((key, _), namespaces) in keys.into_iter().filter(|(_, namespaces)| namespaces.len() > 1) {
        let found = format!("Argo CDs in the namespaces {} track by {key}", namespaces.join(", "));
        let todo = "give each an installationID in argocd-cm: they prune each other's objects where they manage one cluster";
        judged.told(Severity::Warning, "GR0110", "", found, "a tracking key for each", todo);
    }
    application_sets(judged, place)
}

/// ApplicationSets whose controller would take the annotations of what changed an Application away again, each time that they
/// are written.
fn application_sets(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    const AT: &str = "changeRevision.annotations";
    if !judged.truth("changeRevision.enabled") || !judged.truth(AT) {
        return Ok(());
    }
    let namespace = cluster::argocd(judged, place);
    let sets = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applicationsets");
    let sets = place.cluster.get(&sets)?;
    let settings = format!("/api/v1/namespaces/{namespace}/configmaps/{PARAMETERS}");
    let settings = if items(sets.as_ref()).next().is_some() { place.cluster.get(&settings)? } else { None };
    let settings = settings.unwrap_or_default();
    let everywhere = settings["data"][PRESERVED].as_str().unwrap_or_default();
    let keeps = |set: &Json| {
        let own = set["spec"]["preservedFields"]["annotations"].as_array().into_iter().flatten();
        let kept: Vec<&str> =
            own.filter_map(Json::as_str).chain(everywhere.split(',').map(str::trim)).collect();
        ANNOTATIONS.iter().all(|annotation| kept.contains(annotation))
    };
    let names: Vec<String> = items(sets.as_ref()).filter(|set| !keeps(set)).map(name).collect();
    if !names.is_empty() {
        let found = format!(
            "ApplicationSets in namespace {namespace} that keep no such annotation: {}",
            names.join(", ")
        );
        let todo = format!(
            "set {PRESERVED} of the ConfigMap {PARAMETERS} to {}, and restart Argo CD's ApplicationSet controller: else it takes \
             them away as often as they are written",
            ANNOTATIONS.join(",")
        );
        judged.told(Severity::Warning, "GR0110", AT, found, "ApplicationSets that keep all four", &todo);
    }
    Ok(())
}

/// What an earlier installation left in the namespace.
pub(super) fn leftovers(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    let of = format!("/api/v1/namespaces/{}", place.namespace);
    let values = format!("{of}/configmaps/helm-values-config");
    if place.cluster.get(&values)?.is_some() {
        let found =
            "a ConfigMap helm-values-config, in which a hook of the incumbent left its values".to_owned();
        let todo = "delete it: tokens that were given as they are stand in it";
        judged.told(Severity::Warning, "GR0111", "", found, "no such ConfigMap", todo);
    }
    let secrets = place.cluster.metadata(&format!("{of}/secrets?labelSelector=owner%3Dhelm"))?;
    let mut releases: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for secret in items(secrets.as_ref()) {
        let label = |key: &str| secret["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
        let version = label("version").parse().unwrap_or(0);
        let newest = releases.entry(label("name")).or_default();
        if version >= newest.0 {
            *newest = (version, label("status"));
        }
    }
    for (release, (version, status)) in &releases {
        if status.starts_with("pending") || status == "failed" {
            let found = format!("the release {release} is {status} at version {version}");
            let todo = format!("helm rollback {release}, or helm uninstall {release}: Helm refuses to go on");
            judged.told(Severity::Warning, "GR0111", "", found, "releases that are deployed", &todo);
        }
    }
    let claims = place.cluster.metadata(&format!("{of}/persistentvolumeclaims?labelSelector={OURS}"))?;
    let mut installed: BTreeSet<String> = releases.into_keys().collect();
    // Helm need not have installed it: Argo CD keeps no releases. What runs says of which it is.
    for kind in ["deployments", "statefulsets"] {
        let path = format!("/apis/apps/v1/namespaces/{}/{kind}?labelSelector={OURS}", place.namespace);
        let running = place.cluster.metadata(&path)?;
        installed.extend(items(running.as_ref()).map(|object| instance(object).to_owned()));
    }
    for claim in items(claims.as_ref()) {
        let release = instance(claim);
        if !installed.contains(release) {
            let found = format!("the claim {} of the release {release}, which is not installed", name(claim));
            let todo = "install under that name to go on with its ledger, or delete the claim";
            judged.told(
                Severity::Warning,
                "GR0111",
                "",
                found,
                "claims of releases that are installed",
                todo,
            );
        }
    }
    let argocd = cluster::argocd_of_app_proxy(judged, place);
    let is_moved = judged.truth("appProxy.enabled") && argocd != place.namespace;
    if is_moved && place.cluster.get(&format!("{of}/secrets/{REPOSITORIES}"))?.is_some() {
        let found = format!("a Secret {REPOSITORIES}, though Argo CD reads that of namespace {argocd}");
        let todo = format!(
            "an earlier version kept the runtime's Git token here: see that there is one in namespace {argocd}, then delete this one"
        );
        judged.told(Severity::Warning, "GR0111", "", found, "no such Secret beside the release", &todo);
    }
    Ok(())
}

/// Which definitions are there, and which release owns them.
pub(super) fn definitions(judged: &mut Judged, place: &Place<'_>) -> Result<(), String> {
    let all = place.cluster.metadata("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")?;
    let owners: BTreeMap<String, Option<String>> =
        items(all.as_ref()).map(|object| (name(object), release(object))).collect();
    // An Argo CD of the chart's own brings its definitions.
    let brings = judged.truth("argo-cd.enabled") && !judged.at("argo-cd.crds.install").is_some_and(is_false);
    for (program, names) in DEFINITIONS {
        let there: Vec<_> = names.iter().filter_map(|name| owners.get(*name)).collect();
        if there.is_empty() {
            continue;
        }
        let whose: BTreeSet<String> = there
            .iter()
            .map(|owner| {
                owner.as_ref().map_or("no release".to_owned(), |owner| format!("the release {owner}"))
            })
            .collect();
        let whose = whose.into_iter().collect::<Vec<_>>().join(" and ");
        let found = format!("{} definitions of {program}, of {whose}", there.len());
        if brings && *program == "Argo CD" {
            let todo = "gitops-runtime crds adopt --release NAME, or argo-cd.crds.install=false: Helm takes no others' objects";
            let wanted = "definitions of the release that is installed";
            judged.told(Severity::Warning, "GR0112", "argo-cd.enabled", found, wanted, todo);
        } else {
            judged.told(Severity::Note, "GR0112", "", found, "", "");
        }
    }
    Ok(())
}

pub(super) fn is_false(node: &super::Node) -> bool {
    node.value == super::Value::Bool(false)
}
