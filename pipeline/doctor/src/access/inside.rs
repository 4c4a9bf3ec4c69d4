//! The way as the cluster sees it: pods, Service, router, what is behind it, and each object that leads to it.

use serde_json::Value as Json;

use super::controller::Controller;
use super::hop::{Hops, is_name, list, shown, takes, text, text_or, texts};
use super::outside::PROBE;
use super::ways::{Ways, backends, destinations};
use crate::rules::Cluster;

/// The prefixes that must lead to the router.
const PREFIXES: [&str; 2] = ["/webhooks", "/app-proxy"];

/// The cluster, and whose way is looked at.
pub(super) struct Look<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub(super) namespace: &'a str,
    pub(super) service: &'a str,
    pub(super) host: &'a str,
    pub(super) is_https: bool,
}

/// What the entrance is, and where it says that it is.
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) controller: Controller,
    pub(super) stated: Vec<String>,
}

/// Asks from inside out.
pub(super) fn look(look: &Look<'_>, ways: &Ways, hops: &mut Hops) -> Entrance {
    let ports = service(look, hops);
    let mut entrance = Entrance { controller: Controller::Unknown, stated: Vec::new() };
    let names = ways.names();
    match names.as_slice() {
        [] if ways.unread => {}
        [] => hops.doubts(
            "way in",
            format!("nothing in namespace {} leads to the Service {}", look.namespace, look.service),
            "enable an Ingress, an HTTPRoute or the tunnel in the chart's values; a gateway of your own may be elsewhere",
        ),
        [_] => {}
        several => hops.doubts(
            "way in",
            format!("several lead to the router: {}", shown(&several.join(", "))),
            "keep one: the platform is told of the first alone",
        ),
    }
    for one in ways.tunnels.iter() {
        entrance.controller = Controller::Tunnel;
        tunnel(one, hops);
    }
    for one in &ways.services {
        entrance.controller = Controller::Istio;
        virtual_service(look, one, &ports, hops);
    }
    for one in &ways.routes {
        entrance.controller = Controller::Gateway;
        entrance.stated = route(look, one, &ports, hops);
    }
    for one in &ways.ingresses {
        entrance = ingress(look, one, &ports, hops);
    }
    entrance
}

/// The Service's ports; the router's own answer, by way of the API server.
fn service(look: &Look<'_>, hops: &mut Hops) -> Vec<Json> {
    let Look { cluster, namespace, service, .. } = look;
    let at = format!("/api/v1/namespaces/{namespace}/services/{service}");
    let hop = format!("Service {service}");
    let found = match cluster.get(&at) {
        Ok(Some(found)) => found,
        Ok(None) => {
            let todo = "install the chart with its router, or name the Service of the router with --service";
            hops.fails(hop, format!("there is none in namespace {namespace}"), todo);
            return Vec::new();
        }
        Err(why) => {
            hops.unmeasured(
                hop,
                why,
                "see whether the kubeconfig leads to the cluster, and may get services",
            );
            return Vec::new();
        }
    };
    let slices = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={service}"
    );
    match cluster.get(&slices) {
        Ok(slices) => {
            let slices = slices.unwrap_or_default();
            let ready = list(&slices, "/items")
                .iter()
                .flat_map(|slice| list(slice, "/endpoints"))
                .filter(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Json::Bool(false)))
                .count();
            if ready == 0 {
                let todo = format!("see kubectl get pods -n {namespace} and the log of the router");
                hops.fails("router's pods", "none is ready", todo);
            } else {
                hops.works("router's pods", format!("{ready} ready"));
            }
        }
        Err(why) => hops.unmeasured("router's pods", why, "ask as somebody who may list endpointslices"),
    }
    let ports = list(&found, "/spec/ports").to_vec();
    let named = ports.iter().find(|port| port["name"] == "http").or(ports.first());
    let port = named.and_then(|port| port["port"].as_u64()).unwrap_or(80);
    match cluster.get(&format!("{at}:{port}/proxy{PROBE}/hop")) {
        Ok(Some(said)) if said["router"] == "gitops-runtime" => {
            hops.works(hop, "leads to the router");
            behind(&said, hops);
        }
        Ok(_) => {
            let todo = "see whom the Service selects: kubectl describe service";
            hops.fails(hop, "something else than this router answers", todo);
        }
        Err(why) => {
            let todo = "ask as somebody who may get services/proxy; 503 means that no pod answers";
            hops.unmeasured(hop, why, todo);
        }
    }
    ports
}

/// What the router says of the services behind it.
pub(super) fn behind(said: &Json, hops: &mut Hops) {
    for (key, name, setting) in [
        ("appProxy", "App Proxy", "router.appProxy.url"),
        ("workflows", "Argo Workflows", "router.workflows.url"),
    ] {
        let found = match text(said, &format!("/{key}")) {
            "connects" => {
                hops.works(name, "the router connects to it");
                continue;
            }
            "not served" => continue,
            "unresolved" => "its name does not resolve from the router",
            "unreachable" => "the router's connection is refused",
            "connect_timeout" => "the router's connection is not answered: a NetworkPolicy, or its node",
            _ => continue,
        };
        let todo = format!(
            "see whether its pods are ready, and the router's setting {setting} (\"\" serves it not)"
        );
        hops.fails(name, found, todo);
    }
}

/// Whether a port of a backend is one of the Service's.
fn ported(hop: &str, number: Option<u64>, name: &str, ports: &[Json], hops: &mut Hops) {
    let is = |port: &Json| match number {
        Some(number) => port["port"] == number,
        None => port["name"] == name,
    };
    if ports.is_empty() || ports.iter().any(is) || (number.is_none() && name.is_empty()) {
        return;
    }
    let wanted = number.map_or_else(|| name.to_owned(), |number| number.to_string());
    let has: Vec<String> =
        ports.iter().filter_map(|port| port["port"].as_u64()).map(|port| port.to_string()).collect();
    hops.fails(
        hop,
        format!("it sends to port {}, and the Service has {}", shown(&wanted), has.join(", ")),
        "make both the same",
    );
}

fn prefixed(hop: &str, prefixes: &[&str], hops: &mut Hops) {
    let leads = |wanted: &str| {
        prefixes.iter().any(|prefix| {
            let prefix = prefix.trim_end_matches('*').trim_end_matches('/');
            wanted == prefix || prefix.is_empty()
        })
    };
    let missing: Vec<&str> = PREFIXES.into_iter().filter(|wanted| !leads(wanted)).collect();
    if !missing.is_empty() {
        hops.fails(
            hop,
            format!("{} does not lead to the router", missing.join(" and ")),
            "add the prefix, with the router's Service behind it",
        );
    }
}

fn ingress(look: &Look<'_>, ingress: &Json, ports: &[Json], hops: &mut Hops) -> Entrance {
    let hop = format!("Ingress {}", text(ingress, "/metadata/name"));
    let before = hops.all.len();
    let annotation = text(ingress, "/metadata/annotations/kubernetes.io~1ingress.class");
    let class = text_or(ingress, "/spec/ingressClassName", annotation);
    let controller = class_of(look, class, annotation, &hop, hops);
    let rules = list(ingress, "/spec/rules");
    let of_host: Vec<&Json> = rules
        .iter()
        .filter(|rule| text(rule, "/host").is_empty() || takes(text(rule, "/host"), look.host))
        .collect();
    if of_host.is_empty() {
        let hosts: Vec<&str> = rules.iter().map(|rule| text(rule, "/host")).collect();
        let found = format!("it is for {}, not for {}", shown(&hosts.join(", ")), look.host);
        hops.fails(&hop, found, "make the runtime's address and the host of the Ingress the same");
    } else {
        let paths: Vec<&Json> = of_host
            .iter()
            .flat_map(|rule| list(rule, "/http/paths"))
            .filter(|path| text(path, "/backend/service/name") == look.service)
            .collect();
        let prefixes: Vec<&str> = paths.iter().map(|path| text(path, "/path")).collect();
        if ingress.pointer("/spec/defaultBackend/service/name") != Some(&Json::from(look.service)) {
            prefixed(&hop, &prefixes, hops);
        }
    }
    if let Some(backend) = backends(ingress).find(|backend| text(backend, "/service/name") == look.service) {
        let number = backend.pointer("/service/port/number").and_then(Json::as_u64);
        ported(&hop, number, text(backend, "/service/port/name"), ports, hops);
    }
    secured(look, ingress, controller, &hop, hops);
    let stated: Vec<String> = list(ingress, "/status/loadBalancer/ingress")
        .iter()
        .map(|one| shown(text_or(one, "/ip", text(one, "/hostname"))))
        .filter(|address| !address.is_empty())
        .collect();
    if stated.is_empty() {
        let found =
            "its status says no address: Argo CD calls it Progressing, and no DNS record can be made of it";
        hops.doubts(&hop, found, controller.status());
    }
    hops.fine_since(before, hop, format!("leads to the router, at {}", stated.join(", ")));
    Entrance { controller, stated }
}

/// The controller of a class.
fn class_of(look: &Look<'_>, class: &str, annotation: &str, hop: &str, hops: &mut Hops) -> Controller {
    let classes = "/apis/networking.k8s.io/v1/ingressclasses";
    if class.is_empty() {
        return match look.cluster.get(classes) {
            Ok(all) => {
                let all = all.unwrap_or_default();
                let default = list(&all, "/items").iter().find(|class| {
                    text(class, "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class")
                        == "true"
                });
                match default {
                    Some(class) => Controller::of(text(class, "/spec/controller")),
                    None => {
                        let found = "it names no class, and the cluster has no default: nobody takes it up";
                        hops.fails(
                            hop,
                            found,
                            "name one: global.runtime.ingress.className; see kubectl get ingressclass",
                        );
                        Controller::Unknown
                    }
                }
            }
            Err(why) => {
                hops.unmeasured("IngressClass", why, "ask as somebody who may list ingressclasses");
                Controller::Unknown
            }
        };
    }
    let found = if is_name(class) { look.cluster.get(&format!("{classes}/{class}")) } else { Ok(None) };
    match found {
        Ok(Some(found)) => {
            let controller = Controller::of(text(&found, "/spec/controller"));
            if controller == Controller::IstioIngress {
                let found = "it is of a class of Istio";
                hops.doubts(hop, found, controller.route());
            }
            controller
        }
        // Controllers know classes of the annotation by themselves.
        Ok(None) if class == annotation => match class {
            "nginx" => Controller::Community,
            "alb" => Controller::Alb,
            "traefik" => Controller::Traefik,
            "ambassador" => Controller::Ambassador,
            _ => Controller::Unknown,
        },
        Ok(None) => {
            let found = format!("there is no IngressClass {}: nobody takes it up", shown(class));
            hops.fails(hop, found, "see kubectl get ingressclass, and global.runtime.ingress.className");
            Controller::Unknown
        }
        Err(why) => {
            hops.unmeasured("IngressClass", why, "ask as somebody who may get ingressclasses");
            Controller::Unknown
        }
    }
}

/// Certificates, where the entrance is the one that ends TLS.
fn secured(look: &Look<'_>, ingress: &Json, controller: Controller, hop: &str, hops: &mut Hops) {
    let annotations = &ingress["metadata"]["annotations"];
    if controller == Controller::Nginx && annotations["nginx.org/mergeable-ingress-type"] == "minion" {
        return master(look, hop, hops);
    }
    if !look.is_https || controller == Controller::Alb {
        return;
    }
    let tls = list(ingress, "/spec/tls");
    let of_host = tls.iter().find(|one| {
        let hosts = texts(one, "/hosts");
        hosts.is_empty() || hosts.iter().any(|host| takes(host, look.host))
    });
    let Some(of_host) = of_host else {
        let found = format!("it has no certificate for {}", look.host);
        return hops.doubts(hop, found, controller.certificate());
    };
    let name = text(of_host, "/secretName");
    has_secret(look, look.namespace, name, controller, hop, hops);
}

fn has_secret(
    look: &Look<'_>,
    namespace: &str,
    name: &str,
    controller: Controller,
    hop: &str,
    hops: &mut Hops,
) {
    if !is_name(name) {
        return;
    }
    match look.cluster.get(&format!("/api/v1/namespaces/{namespace}/secrets/{name}")) {
        Ok(Some(secret)) if secret.pointer("/data/tls.crt").is_some() => {}
        Ok(Some(_)) => {
            let found = format!("the Secret {name} in namespace {namespace} holds no tls.crt");
            hops.fails(hop, found, controller.certificate());
        }
        Ok(None) => {
            let found = format!("there is no Secret {name} in namespace {namespace}");
            hops.fails(hop, found, controller.certificate());
        }
        Err(why) => hops.unmeasured(format!("Secret {name}"), why, "ask as somebody who may get that Secret"),
    }
}

/// A minion of NGINX leads nowhere without a master of its host, which ends TLS for it.
fn master(look: &Look<'_>, hop: &str, hops: &mut Hops) {
    let all = match look.cluster.get("/apis/networking.k8s.io/v1/ingresses") {
        Ok(all) => all.unwrap_or_default(),
        Err(why) => {
            let todo = "ask as somebody who may list ingresses in all namespaces: the master may be in any";
            return hops.unmeasured("master Ingress", why, todo);
        }
    };
    let master = list(&all, "/items").iter().find(|one| {
        one["metadata"]["annotations"]["nginx.org/mergeable-ingress-type"] == "master"
            && list(one, "/spec/rules").iter().any(|rule| takes(text(rule, "/host"), look.host))
    });
    let Some(master) = master else {
        let found = format!("it is a minion, and no Ingress is the master of {}", look.host);
        let todo = "make one with the annotation nginx.org/mergeable-ingress-type: master, the host alone, and its TLS";
        return hops.fails(hop, found, todo);
    };
    if !look.is_https {
        return;
    }
    let namespace = text(master, "/metadata/namespace");
    let name = shown(text(master, "/metadata/name"));
    match list(master, "/spec/tls")
        .first()
        .map(|tls| text(tls, "/secretName"))
        .filter(|name| !name.is_empty())
    {
        Some(secret) => has_secret(look, namespace, secret, Controller::Nginx, hop, hops),
        None => {
            let found =
                format!("the master Ingress {name} in namespace {namespace} has no Secret of a certificate");
            hops.fails(hop, found, Controller::Nginx.certificate());
        }
    }
}

fn condition<'a>(object: &'a Json, pointer: &str, kind: &str) -> Option<&'a Json> {
    list(object, pointer).iter().find(|one| one["type"] == kind)
}

fn route(look: &Look<'_>, route: &Json, ports: &[Json], hops: &mut Hops) -> Vec<String> {
    let hop = format!("HTTPRoute {}", text(route, "/metadata/name"));
    let before = hops.all.len();
    let hosts = texts(route, "/spec/hostnames");
    if !hosts.is_empty() && !hosts.iter().any(|host| takes(host, look.host)) {
        let found = format!("it is for {}, not for {}", shown(&hosts.join(", ")), look.host);
        hops.fails(&hop, found, "make the runtime's address and the HTTPRoute's hostname the same");
    }
    let rules: Vec<&Json> = list(route, "/spec/rules")
        .iter()
        .filter(|rule| {
            list(rule, "/backendRefs").iter().any(|backend| text(backend, "/name") == look.service)
        })
        .collect();
    let matches: Vec<&str> =
        rules.iter().flat_map(|rule| list(rule, "/matches")).map(|one| text(one, "/path/value")).collect();
    if rules.iter().all(|rule| !list(rule, "/matches").is_empty()) {
        prefixed(&hop, &matches, hops);
    }
    for backend in rules.iter().flat_map(|rule| list(rule, "/backendRefs")).take(1) {
        ported(&hop, backend["port"].as_u64(), "", ports, hops);
    }
    let parents = list(route, "/status/parents");
    if parents.is_empty() {
        let found = "no gateway has taken it up";
        hops.fails(
            &hop,
            found,
            "see that its parentRefs name a Gateway, and that the Gateway's class has a controller",
        );
    }
    for parent in parents {
        for kind in ["Accepted", "ResolvedRefs"] {
            let Some(is) = condition(parent, "/conditions", kind) else { continue };
            if is["status"] == "False" {
                let reason = text(is, "/reason");
                let todo = match reason {
                    "NotAllowedByListeners" => {
                        "let a listener of the Gateway take routes of this namespace: allowedRoutes.namespaces"
                    }
                    "NoMatchingListenerHostname" => {
                        "give the Gateway a listener whose hostname takes this one"
                    }
                    "NoMatchingParent" => {
                        "see sectionName and port of its parentRefs: the Gateway has no such listener"
                    }
                    "BackendNotFound" => "see that its backendRefs name the router's Service",
                    "RefNotPermitted" => "add a ReferenceGrant, or keep route and Service in one namespace",
                    _ => "see kubectl describe httproute",
                };
                let found = format!("{kind} is False: {}: {}", shown(reason), shown(text(is, "/message")));
                hops.fails(&hop, found, todo);
            }
        }
    }
    hops.fine_since(before, hop, "is taken up, and leads to the router");
    let mut stated = Vec::new();
    for parent in list(route, "/spec/parentRefs") {
        let namespace = text_or(parent, "/namespace", look.namespace);
        let kind = text(parent, "/kind");
        if kind.is_empty() || kind == "Gateway" {
            stated.extend(gateway(look, namespace, text(parent, "/name"), hops));
        }
    }
    stated
}

/// A Gateway of one group of the API, in the newest version that has it.
fn find_gateway(look: &Look<'_>, group: &str, namespace: &str, name: &str) -> Result<Option<Json>, String> {
    if !is_name(name) || !is_name(namespace) {
        return Ok(None);
    }
    let at = |version: &str| format!("/apis/{group}/{version}/namespaces/{namespace}/gateways/{name}");
    match look.cluster.get(&at("v1")) {
        Ok(None) => look.cluster.get(&at("v1beta1")),
        found => found,
    }
}

/// Where a Gateway says that it is.
fn gateway(look: &Look<'_>, namespace: &str, name: &str, hops: &mut Hops) -> Vec<String> {
    let hop = format!("Gateway {}", shown(name));
    let found = match find_gateway(look, "gateway.networking.k8s.io", namespace, name) {
        Ok(Some(found)) => found,
        Ok(None) => {
            let todo = "see kubectl get gateways --all-namespaces, and global.runtime.httpRoute.parentRefs";
            hops.fails(hop, format!("there is none in namespace {}", shown(namespace)), todo);
            return Vec::new();
        }
        Err(why) => {
            hops.unmeasured(hop, why, "ask as somebody who may get gateways");
            return Vec::new();
        }
    };
    let before = hops.all.len();
    for kind in ["Accepted", "Programmed"] {
        if let Some(is) = condition(&found, "/status/conditions", kind).filter(|is| is["status"] == "False") {
            let found =
                format!("{kind} is False: {}: {}", shown(text(is, "/reason")), shown(text(is, "/message")));
            hops.fails(&hop, found, "see kubectl describe gateway");
        }
    }
    let listeners = list(&found, "/spec/listeners");
    if look.is_https && !listeners.iter().any(|one| matches!(text(one, "/protocol"), "HTTPS" | "TLS")) {
        let todo = Controller::Gateway.certificate();
        hops.doubts(&hop, "none of its listeners speaks HTTPS", todo);
    }
    let stated: Vec<String> =
        list(&found, "/status/addresses").iter().map(|one| shown(text(one, "/value"))).collect();
    if stated.is_empty() {
        let todo = "see whether the Service of its controller has an external address";
        hops.doubts(&hop, "its status says no address", todo);
    }
    hops.fine_since(before, hop, format!("is at {}", stated.join(", ")));
    stated
}

fn virtual_service(look: &Look<'_>, service: &Json, ports: &[Json], hops: &mut Hops) {
    let hop = format!("VirtualService {}", text(service, "/metadata/name"));
    let before = hops.all.len();
    let hosts = texts(service, "/spec/hosts");
    if !hosts.iter().any(|host| takes(host, look.host)) {
        let found = format!("it is for {}, not for {}", shown(&hosts.join(", ")), look.host);
        hops.fails(&hop, found, "make the runtime's address and the host of the VirtualService the same");
    }
    let https = list(service, "/spec/http");
    let matches = || https.iter().flat_map(|http| list(http, "/match"));
    let prefixes: Vec<&str> = matches().map(|one| text_or(one, "/uri/prefix", "-")).collect();
    if https.iter().all(|http| !list(http, "/match").is_empty()) {
        prefixed(&hop, &prefixes, hops);
    }
    if let Some(destination) = destinations(service).next() {
        ported(&hop, destination.pointer("/port/number").and_then(Json::as_u64), "", ports, hops);
    }
    let gateways: Vec<&str> =
        texts(service, "/spec/gateways").into_iter().filter(|name| *name != "mesh").collect();
    if gateways.is_empty() {
        let found = "it names no gateway: it holds inside the mesh alone";
        hops.fails(&hop, found, "name the Gateway that visitors come through in spec.gateways");
    }
    hops.fine_since(before, hop, "leads to the router");
    for name in gateways {
        let (namespace, name) = name.split_once('/').unwrap_or((look.namespace, name));
        istio_gateway(look, namespace, name, hops);
    }
}

fn istio_gateway(look: &Look<'_>, namespace: &str, name: &str, hops: &mut Hops) {
    let hop = format!("Gateway {}/{}", shown(namespace), shown(name));
    match find_gateway(look, "networking.istio.io", namespace, name) {
        Ok(Some(found)) => {
            let of_host = |server: &&Json| texts(server, "/hosts").iter().any(|host| takes(host, look.host));
            let servers: Vec<&Json> = list(&found, "/spec/servers").iter().filter(of_host).collect();
            if servers.is_empty() {
                let found = format!("none of its servers takes {}", look.host);
                hops.fails(hop, found, "add the host to a server of the Gateway");
            } else if look.is_https && !servers.iter().any(|server| server.get("tls").is_some()) {
                let found = format!("no server of {} has TLS", look.host);
                hops.doubts(hop, found, Controller::Istio.certificate());
            } else {
                hops.works(hop, format!("takes {}", look.host));
            }
        }
        Ok(None) => hops.fails(
            hop,
            "there is none",
            "see kubectl get gateways.networking.istio.io --all-namespaces, and spec.gateways (<namespace>/<name>)",
        ),
        Err(why) => hops.unmeasured(hop, why, "ask as somebody who may get gateways.networking.istio.io"),
    }
}

fn tunnel(client: &Json, hops: &mut Hops) {
    let name = text(client, "/metadata/name");
    let hop = format!("tunnel {name}");
    match client.pointer("/status/availableReplicas").and_then(Json::as_u64).unwrap_or(0) {
        0 => {
            let todo = format!(
                "see kubectl logs deployment/{name}: its server is not reached (a proxy, a firewall on 443), its token is \
                 refused, or another client holds the name"
            );
            hops.fails(hop, "no client is ready", todo);
        }
        ready => hops.works(hop, format!("{ready} ready")),
    }
}
