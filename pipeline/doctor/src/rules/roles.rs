//! Which Roles and ClusterRoles the chart makes, as its templates do: by the settings of each role above the other values.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::{Place, argocd, argocd_of_app_proxy};
use super::installed::is_false;
use super::{Judged, Node, reported};

/// What the chart makes of rights.
#[derive(Debug, Default)]
pub(super) struct MadeRoles {
    /// The namespaces that it makes Roles in.
    pub(super) namespaces: BTreeSet<String>,
    /// Whether it makes ClusterRoles.
    pub(super) in_cluster: bool,
    /// What it grants to accounts: where, the group and kind of objects, and verbs.
    pub(super) granted: BTreeMap<(Option<String>, String, String), BTreeSet<&'static str>>,
}

impl MadeRoles {
    pub(super) fn of(judged: &Judged, place: &Place<'_>) -> Self {
        let mut made = Self::default();
        made.validation(judged, place);
        made.new_argocd(judged, place);
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

    /// A new Argo CD has Roles in its namespace, and its controller, unless somebody says otherwise, all rights in the cluster.
    fn new_argocd(&mut self, judged: &Judged, place: &Place<'_>) {
        if !judged.truth("argo-cd.enabled") {
            return;
        }
        self.namespaces.insert(new_argocd(judged, place));
        if judged.at("argo-cd.createClusterRoles").is_some_and(is_false) {
            return;
        }
        self.in_cluster = true;
        if !judged.truth("argo-cd.controller.clusterRoleRules.enabled") {
            self.grant(None, "*", "*", &["*"]);
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
        if !judged.truth("resourceReporter.enabled") {
            return;
        }
        let namespace = text(judged, &["resourceReporter.config.kubernetes.namespace"], argocd);
        let namespaces = ["resourceReporter.config.resources.namespaces", "resourceReporter.namespaces"];
        let scope = Some(namespace).filter(|_| list(judged, &namespaces).is_none());
        for (resource, verbs) in reported::rights(judged) {
            let (kinds, group) = resource.split_once('.').unwrap_or((&resource, ""));
            self.grant(scope, group, kinds, &verbs);
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
    fn grant(&mut self, scope: Option<&str>, group: &str, kinds: &str, verbs: &[&'static str]) {
        match scope {
            Some(namespace) => drop(self.namespaces.insert(namespace.to_owned())),
            None => self.in_cluster = true,
        }
        let granted = (scope.map(str::to_owned), group.to_owned(), kinds.to_owned());
        self.granted.entry(granted).or_default().extend(verbs);
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

/// The namespace that a new Argo CD is installed in.
pub(super) fn new_argocd(judged: &Judged, place: &Place<'_>) -> String {
    text(judged, &["argo-cd.namespaceOverride"], place.namespace).to_owned()
}

/// The first text of these paths that is not empty, or another. As Helm merges, an empty value stands above nothing.
fn text<'a>(judged: &'a Judged, paths: &[&str], other: &'a str) -> &'a str {
    paths.iter().map(|path| judged.text(path)).find(|text| !text.is_empty()).unwrap_or(other)
}

/// The first list of these paths that is not empty.
fn list<'a>(judged: &'a Judged, paths: &[&str]) -> Option<&'a [Node]> {
    let items = |path: &&str| judged.at(path).map(Node::items).filter(|items| !items.is_empty());
    paths.iter().find_map(items)
}
