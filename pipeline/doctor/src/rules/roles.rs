//! Which Roles and ClusterRoles the chart makes, as its templates do: by the settings of each role above the other values.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::{Place, argocd, argocd_of_app_proxy};
use super::{Judged, Node};

/// What the chart makes of rights.
#[derive(Debug, Default)]
pub(super) struct MadeRoles {
    /// The namespaces that it makes Roles in.
    pub(super) namespaces: BTreeSet<String>,
    /// Whether it makes ClusterRoles.
    pub(super) in_cluster: bool,
    /// What it grants to accounts, but for what resource reporters read: where, the group and kind of objects,
    /// and verbs.
    pub(super) granted: BTreeMap<(Option<String>, &'static str, &'static str), BTreeSet<&'static str>>,
}

impl MadeRoles {
    pub(super) fn of(judged: &Judged, place: &Place<'_>) -> Self {
        let mut made = Self::default();
        made.validation(judged, place);
        if judged.truth("rbac.create") {
            let argocd = argocd(judged, place);
            made.reporter(judged, place, &argocd);
            made.change_revision(judged, &argocd);
            made.resource_reporter(judged, &argocd);
            made.source_server(judged, &argocd);
            made.app_proxy(judged, place);
        }
        made
    }

    /// The hook has rights of its own, whoever makes the others.
    fn validation(&mut self, judged: &Judged, place: &Place<'_>) {
        if !judged.truth("validation.enabled") {
            return;
        }
        self.grant(Some(place.namespace), "", "secrets", &["get"]);
        let sees_class = judged.truth("global.runtime.ingress.enabled")
            && !judged.is_empty("global.runtime.ingress.className")
            && !judged.truth("global.runtime.singleNamespace");
        if sees_class {
            self.grant(None, "networking.k8s.io", "ingressclasses", &["get"]);
        }
    }

    fn reporter(&mut self, judged: &Judged, place: &Place<'_>, argocd: &str) {
        if !judged.truth("reporter.enabled") {
            return;
        }
        let makes_keys = judged.is_empty("reporter.redactionKey.secretKeyRef.name")
            || (judged.text("nats.mode") == "embedded"
                && judged.is_empty("nats.auth.tokenSecretKeyRef.name"));
        if makes_keys {
            self.grant(Some(place.namespace), "", "secrets", &["get", "patch"]);
        }
        let namespace = text(judged, &["reporter.config.kubernetes.namespace"], argocd);
        self.reads_applications(judged, &APPLICATIONS[1..], namespace);
    }

    fn change_revision(&mut self, judged: &Judged, argocd: &str) {
        if !judged.truth("changeRevision.enabled") {
            return;
        }
        let paths = ["changeRevision.config.kubernetes.namespace", "reporter.config.kubernetes.namespace"];
        let namespace = text(judged, &paths, argocd);
        if judged.truth("changeRevision.argocdCredentials") {
            self.reads_credentials(namespace);
        }
        let scope = self.reads_applications(judged, &APPLICATIONS, namespace);
        if judged.truth("changeRevision.annotations") {
            self.grant(scope, ARGO, "applications", &["patch"]);
        }
    }

    fn resource_reporter(&mut self, judged: &Judged, argocd: &str) {
        const OWN: &str = "resourceReporter.config.resources";
        let is_on = |path: &str| {
            judged.truth(&format!("{OWN}.{path}")) || judged.truth(&format!("resourceReporter.{path}"))
        };
        let preset = text(
            judged,
            &["resourceReporter.config.resources.preset"],
            judged.text("resourceReporter.preset"),
        );
        let reports = preset == "incumbent"
            || is_on("applications")
            || list(judged, &["resourceReporter.config.resources.kinds", "resourceReporter.kinds"]).is_some();
        if !judged.truth("resourceReporter.enabled") || !reports {
            return;
        }
        match list(judged, &["resourceReporter.config.resources.namespaces", "resourceReporter.namespaces"]) {
            Some(_) => self.in_cluster = true,
            None => {
                let namespace = text(judged, &["resourceReporter.config.kubernetes.namespace"], argocd);
                self.namespaces.insert(namespace.to_owned());
            }
        }
    }

    fn source_server(&mut self, judged: &Judged, argocd: &str) {
        if !judged.truth("sourceServer.enabled") {
            return;
        }
        // Whose the token of a caller is.
        self.grant(None, "authentication.k8s.io", "tokenreviews", &["create"]);
        if judged.truth("sourceServer.argocdCredentials") {
            self.reads_credentials(text(judged, &["sourceServer.config.kubernetes.namespace"], argocd));
        }
    }

    fn app_proxy(&mut self, judged: &Judged, place: &Place<'_>) {
        if !judged.truth("appProxy.enabled") {
            return;
        }
        let (own, argocd) = (place.namespace, argocd_of_app_proxy(judged, place));
        self.grant(Some(&argocd), ARGO, "applications", &["get", "list"]);
        self.grant(Some(own), "", "pods", &["list"]);
        self.grant(Some(own), "", "pods/log", &["get"]);
        for namespace in [own, &argocd] {
            self.grant(Some(namespace), "", "secrets", &["create", "get", "patch"]);
        }
        let acts = list(judged, &["appProxy.config.appProxy.namespaces", "appProxy.namespaces"]);
        let acts: Vec<&str> = acts.unwrap_or_default().iter().filter_map(Node::text).collect();
        let scopes: Vec<Option<&str>> = match acts.contains(&"*") {
            true => vec![None],
            false => acts.into_iter().chain([own]).map(Some).collect(),
        };
        for scope in scopes {
            self.grant(scope, "apps", "replicasets", &["list"]);
            self.grant(scope, ARGO, "analysisruns", &["list"]);
            self.grant(scope, ARGO, "rollouts", &["get", "patch"]);
            self.grant(scope, ARGO, "rollouts/status", &["patch"]);
            self.grant(scope, ARGO, "workflows", &["create", "get", "list", "patch"]);
        }
    }

    /// What Argo CD reads repositories with is read where it is.
    fn reads_credentials(&mut self, argocd: &str) {
        self.grant(Some(argocd), "", "secrets", &["list"]);
        self.grant(Some(argocd), ARGO, "appprojects", &["list"]);
        self.grant(Some(argocd), "", "configmaps", &["get"]);
    }

    /// Applications are read in all namespaces where these settings name some, and else in this one.
    fn reads_applications<'a>(
        &mut self,
        judged: &Judged,
        settings: &[&str],
        namespace: &'a str,
    ) -> Option<&'a str> {
        let scope = Some(namespace).filter(|_| list(judged, settings).is_none());
        self.grant(scope, ARGO, "applications", &["get", "list", "watch"]);
        scope
    }

    /// A role in a namespace, or in the whole cluster, grants these verbs. Some roles name single objects: who installs is
    /// asked for the right to all of the kind, as nobody has one to the objects of a runtime alone.
    fn grant(
        &mut self,
        scope: Option<&str>,
        group: &'static str,
        kinds: &'static str,
        verbs: &[&'static str],
    ) {
        match scope {
            Some(namespace) => drop(self.namespaces.insert(namespace.to_owned())),
            None => self.in_cluster = true,
        }
        self.granted.entry((scope.map(str::to_owned), group, kinds)).or_default().extend(verbs);
    }
}

const ARGO: &str = "argoproj.io";
/// Where namespaces of applications are named, what counts more first: what the role change-revision has of its own, and what is the
/// reporter's.
const APPLICATIONS: [&str; 3] = [
    "changeRevision.config.kubernetes.applicationNamespaces",
    "reporter.config.kubernetes.applicationNamespaces",
    "reporter.applicationNamespaces",
];

/// The first text of these paths that is not empty, or another. As Helm merges, an empty value stands above nothing.
fn text<'a>(judged: &'a Judged, paths: &[&str], other: &'a str) -> &'a str {
    paths.iter().map(|path| judged.text(path)).find(|text| !text.is_empty()).unwrap_or(other)
}

/// The first list of these paths that is not empty.
fn list<'a>(judged: &'a Judged, paths: &[&str]) -> Option<&'a [Node]> {
    let items = |path: &&str| judged.at(path).map(Node::items).filter(|items| !items.is_empty());
    paths.iter().find_map(items)
}
