//! Which ways lead to the router's Service, found by what refers to it, not by names of a chart.

use serde_json::Value as Json;

use super::hop::{Hops, list, text};
use crate::rules::Cluster;

/// What leads there.
#[derive(Debug, Default)]
pub(super) struct Ways {
    pub(super) ingresses: Vec<Json>,
    pub(super) routes: Vec<Json>,
    pub(super) services: Vec<Json>,
    pub(super) tunnels: Vec<Json>,
    /// Not all could be read.
    pub(super) unread: bool,
}

impl Ways {
    /// Asks for all; what may not be read is said to be not measured.
    pub(super) fn read(cluster: &dyn Cluster, namespace: &str, service: &str, hops: &mut Hops) -> Self {
        let mut unread = false;
        let mut read = |paths: &[String], what: &str, leads: &dyn Fn(&Json) -> bool| {
            for path in paths {
                match cluster.get(path) {
                    Ok(Some(found)) => {
                        return list(&found, "/items").iter().filter(|one| leads(one)).cloned().collect();
                    }
                    Ok(None) => {}
                    Err(why) => {
                        let todo = format!("ask as somebody who may list {what} in namespace {namespace}");
                        unread = true;
                        hops.unmeasured(what, why, todo);
                        break;
                    }
                }
            }
            Vec::new()
        };
        let of = |groups: &[&str], plural: &str| -> Vec<String> {
            groups.iter().map(|group| format!("/apis/{group}/namespaces/{namespace}/{plural}")).collect()
        };
        let gateway = ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"];
        let istio = ["networking.istio.io/v1", "networking.istio.io/v1beta1"];
        Self {
            ingresses: read(&of(&["networking.k8s.io/v1"], "ingresses"), "Ingresses", &|one| {
                backends(one).any(|backend| text(backend, "/service/name") == service)
            }),
            routes: read(&of(&gateway, "httproutes"), "HTTPRoutes", &|one| {
                list(one, "/spec/rules")
                    .iter()
                    .flat_map(|rule| list(rule, "/backendRefs"))
                    .any(|backend| text(backend, "/name") == service)
            }),
            services: read(&of(&istio, "virtualservices"), "VirtualServices", &|one| {
                destinations(one)
                    .any(|destination| is_service(text(destination, "/host"), service, namespace))
            }),
            tunnels: read(&of(&["apps/v1"], "deployments"), "Deployments", &|one| {
                let label = text(one, "/metadata/labels/app.kubernetes.io~1component");
                label == "tunnel-client" || text(one, "/metadata/name").ends_with("tunnel-client")
            }),
            unread,
        }
    }

    /// Each by kind and name, in the order in which the platform is told of them.
    pub(super) fn names(&self) -> Vec<String> {
        let of = |kind: &'static str, all: &[Json]| -> Vec<String> {
            all.iter().map(|one| format!("{kind} {}", text(one, "/metadata/name"))).collect()
        };
        let [ingresses, routes] = [of("Ingress", &self.ingresses), of("HTTPRoute", &self.routes)];
        let [tunnels, services] = [of("tunnel", &self.tunnels), of("VirtualService", &self.services)];
        [ingresses, routes, tunnels, services].concat()
    }

    /// The host of the first that has one.
    pub(super) fn host(&self) -> Option<(&str, bool)> {
        let ingress = self.ingresses.iter().find_map(|one| {
            let host = list(one, "/spec/rules")
                .iter()
                .map(|rule| text(rule, "/host"))
                .find(|host| !host.is_empty())?;
            let alb =
                one.pointer("/metadata/annotations/alb.ingress.kubernetes.io~1certificate-arn").is_some();
            Some((host, alb || !list(one, "/spec/tls").is_empty()))
        });
        ingress
            .or_else(|| host_of(&self.routes, "/spec/hostnames"))
            .or_else(|| host_of(&self.services, "/spec/hosts"))
    }
}

/// The first whole host of the lists.
fn host_of<'a>(all: &'a [Json], pointer: &str) -> Option<(&'a str, bool)> {
    let mut hosts = all.iter().flat_map(|one| list(one, pointer)).filter_map(Json::as_str);
    hosts.find(|host| !host.contains('*')).map(|host| (host, true))
}

/// The backends of an Ingress.
pub(super) fn backends(ingress: &Json) -> impl Iterator<Item = &Json> {
    let rules = list(ingress, "/spec/rules").iter().flat_map(|rule| list(rule, "/http/paths"));
    rules.filter_map(|path| path.get("backend")).chain(ingress.pointer("/spec/defaultBackend"))
}

/// The destinations of a VirtualService.
pub(super) fn destinations(service: &Json) -> impl Iterator<Item = &Json> {
    list(service, "/spec/http")
        .iter()
        .flat_map(|http| list(http, "/route"))
        .filter_map(|route| route.get("destination"))
}

/// Whether a host of a mesh is the Service: by its name alone, or with its namespace.
fn is_service(host: &str, service: &str, namespace: &str) -> bool {
    host == service
        || host == format!("{service}.{namespace}")
        || host.starts_with(&format!("{service}.{namespace}.svc"))
}
