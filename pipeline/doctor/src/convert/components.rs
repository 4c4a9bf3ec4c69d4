//! What keys of the other chart's components mean here: those of its router, its tunnel, its reporters, its server of sources, and its
//! app proxy.

use super::{Fate, IMAGE, NAMES, NO_SUCH_VALUE, OTHER, of, truth};
use crate::tree::Node;

const EXPOSED: &str = "the Service is a ClusterIP: make one of that type yourself, which selects the router's pods, where visitors come by it";
const TELEMETRY: &str = "no variable of OpenTelemetry is heeded: set config.traces of the component";
const MONITOR: &str = "metrics.serviceMonitor serves every component";

/// Variables of proxies, which every process heeds.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/// Variables that name certificate authorities to Node and Go.
const CERTIFICATES: &[&str] =
    &["NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "SSL_CERT_DIR", "SSL_CERT_FILE"];

/// What every role without state has under the same key, in the incumbent's chart and here.
const ROLE: &[&str] = &[
    "replicaCount",
    "nodeSelector",
    "tolerations",
    "affinity",
    "resources",
    "topologySpreadConstraints",
    "podAnnotations",
    "podLabels",
    "priorityClassName",
];

/// What a key of the incumbent's router means here.
pub(super) fn router(path: &[&str], node: &Node) -> Fate {
    match path {
        [] | ["pdb" | "service"] => Fate::Below,
        [key] if ROLE.contains(key) => Fate::To(format!("router.{key}")),
        ["pdb", key @ ("enabled" | "minAvailable" | "maxUnavailable")] => {
            Fate::To(format!("router.pdb.{key}"))
        }
        ["service", "annotations"] => Fate::To("router.service.annotations".to_owned()),
        ["service", "type"] if node.text().is_some_and(|kind| kind != "ClusterIP") => Fate::None(EXPOSED),
        ["service", _] => Fate::None("the Service is a ClusterIP with port 80"),
        ["fullnameOverride"] => Fate::To("router.service.name".to_owned()),
        ["image"] => Fate::None(IMAGE),
        ["resolver" | "dnsService" | "dnsNamespace"] => {
            Fate::None("names are asked of the servers of /etc/resolv.conf, on OpenShift as well")
        }
        ["routing"] => Fate::None("give router.appProxyUrl and router.workflowsUrl"),
        ["env"] => Fate::None("no variable is heeded: set router.config"),
        ["nameOverride" | "serviceAccount" | "podSecurityContext" | "securityContext"] => Fate::None(NAMES),
        _ => Fate::None(OTHER),
    }
}

/// What a key of the incumbent's client of a tunnel means here.
pub(super) fn tunnel(path: &[&str]) -> Fate {
    match path {
        [] | ["tunnelServer" | "tunnel"] => Fate::Below,
        [
            key @ ("enabled" | "nodeSelector" | "tolerations" | "affinity" | "resources" | "podAnnotations"),
        ] => Fate::To(format!("tunnelClient.{key}")),
        ["libraryMode"] => Fate::None("this chart renders the client itself"),
        ["tunnelServer", "host"] => Fate::To("tunnelClient.to".to_owned()),
        ["tunnelServer", "subdomainHost"] => Fate::To("tunnelClient.domain".to_owned()),
        ["tunnelServer", "authorization"] => Fate::Below,
        ["tunnelServer", "authorization", "secretKeyRef"] => {
            Fate::To("tunnelClient.tokenSecretKeyRef".to_owned())
        }
        ["tunnelServer", "port" | "protocol" | "tls"] => {
            Fate::None("is part of the address: tunnelClient.to")
        }
        ["tunnel", "ipsAllowList"] => Fate::To("tunnelClient.allow".to_owned()),
        ["tunnel", "subdomainPrefix"] => Fate::To("tunnelClient.name".to_owned()),
        ["tunnel", "forwardTo"] => {
            Fate::None("is tunnelClient.forward where it leads elsewhere than to the router")
        }
        ["logLevel"] => Fate::To("tunnelClient.config.log.level".to_owned()),
        ["image"] => Fate::None(IMAGE),
        ["env"] => Fate::None("is a list there: give tunnelClient.extraEnv, where each name has its value"),
        ["nameOverride" | "serviceAccount" | "podSecurityContext"] => Fate::None(NAMES),
        ["replicaCount"] => {
            Fate::None("one client opens the tunnel; tunnelClient.replicaCount adds those that stand by")
        }
        _ => Fate::None(OTHER),
    }
}

/// What a key of an event reporter means here: of that of applications, or of that of resources.
pub(super) fn reporter(component: &str, path: &[&str]) -> Fate {
    match path {
        [] | ["pdb" | "serviceAccount" | "serviceMonitor" | "service" | "env"] => Fate::Below,
        // As versions before 0.24 have it.
        ["container" | "controller"] | ["serviceMonitor", "main"] => Fate::Below,
        ["container", key @ ("image" | "env" | "resources"), rest @ ..] => {
            reporter(component, &[&[*key], rest].concat())
        }
        ["replicas"] | ["controller", "replicas"] => of(component, "replicaCount"),
        ["serviceMonitor", "main", key] => reporter(component, &["serviceMonitor", key]),
        ["container" | "controller", ..] => Fate::None(NO_SUCH_VALUE),
        [key @ ("enabled" | "readinessProbe" | "livenessProbe" | "extraVolumes" | "extraVolumeMounts")] => {
            of(component, key)
        }
        [key] if ROLE.contains(key) => of(component, key),
        ["pdb", key @ ("enabled" | "minAvailable" | "maxUnavailable")] => {
            of(component, &format!("pdb.{key}"))
        }
        ["serviceAccount", key @ ("create" | "name" | "annotations")] => {
            of(component, &format!("serviceAccount.{key}"))
        }
        ["serviceMonitor", key] => monitor(key),
        ["service", "annotations"] => of(component, "service.annotations"),
        ["service", _] => Fate::None("the Service is a ClusterIP with the ports 8087 and 8088"),
        ["env", name] if name.starts_with("OTEL_") => Fate::None(TELEMETRY),
        ["env", name] => of(component, &format!("extraEnv.{name}")),
        ["image"] => Fate::None(IMAGE),
        ["config"] => Fate::None(
            "are another program's settings; `gitops-runtime config print` shows those for reporter.config",
        ),
        ["nameOverride" | "fullnameOverride"] => Fate::None("names are made of the release's"),
        ["podSecurityContext" | "securityContext"] => Fate::None(NAMES),
        ["command" | "extraArgs"] => Fate::None(NO_SUCH_VALUE),
        _ => Fate::None(OTHER),
    }
}

/// What a key of the incumbent's server of sources means here.
pub(super) fn sources(path: &[&str]) -> Fate {
    match path {
        ["hpa"] => Fate::Below,
        ["hpa", key] => of("sourceServer", &format!("autoscaling.{key}")),
        ["service", "annotations"] => of("sourceServer", "service.annotations"),
        ["service", _] => Fate::None("the Service is a ClusterIP"),
        ["config"] => Fate::None("are another program's settings: set sourceServer.config"),
        path => reporter("sourceServer", path),
    }
}

/// What a key of the incumbent's app proxy means here.
pub(super) fn app_proxy(path: &[&str], node: &Node) -> Fate {
    let to = |to: &str| Fate::To(to.to_owned());
    match path {
        [] | ["config" | "pdb" | "service" | "serviceAccount" | "serviceMonitor" | "env"] => Fate::Below,
        ["env", name] if PROXIES.contains(&&*name.to_ascii_uppercase()) => {
            of("appProxy", &format!("extraEnv.{}", name.to_ascii_uppercase()))
        }
        [key @ ("readinessProbe" | "livenessProbe")] => of("appProxy", key),
        [key] if ROLE.contains(key) => of("appProxy", key),
        ["fullnameOverride"] => to("appProxy.service.name"),
        ["pdb", key] => of("appProxy", &format!("pdb.{key}")),
        ["service", "annotations"] => to("appProxy.service.annotations"),
        ["service", _] => Fate::None("the Service is a ClusterIP with port 3017"),
        ["serviceAccount", key] => of("appProxy", &format!("serviceAccount.{key}")),
        ["serviceMonitor", key] => monitor(key),
        ["config", "cors"] if node.text().is_some_and(|text| !text.contains(',')) => {
            to("appProxy.config.appProxy.cors")
        }
        ["config", "cors"] => Fate::None("one origin may ask: give appProxy.config.appProxy.cors"),
        ["config", "logLevel"] => to("appProxy.config.log.level"),
        ["config", "argoCdUsername"] if node.text().is_some_and(|name| !name.is_empty()) => {
            to("global.integrations.argo-cd.server.auth.username")
        }
        ["config", "argoCdUrl" | "argoCdUsername"] => Fate::None("give global.integrations.argo-cd.server"),
        ["config", "argoWorkflowsUrl" | "argoWorkflowsInsecure"] => Fate::None(
            "Workflows are changed through the API server of Kubernetes; appProxy.config.appProxy.workflows asks another",
        ),
        ["config", "skipGitPermissionValidation"] if truth(node).is_some() => {
            to("appProxy.config.appProxy.skipGitPermissionValidation")
        }
        ["config", _] => Fate::None(
            "is another program's setting; `gitops-runtime config print` shows those for appProxy.config",
        ),
        ["env", name] if CERTIFICATES.contains(name) => Fate::None(
            "give global.codefresh.tls.caCerts for the platform's authorities, and appProxy.git.caSecretKeyRef for those of Git",
        ),
        ["env", name] if name.starts_with("OTEL_") => Fate::None(TELEMETRY),
        ["env", _] => Fate::None("no such variable is heeded: set appProxy.config"),
        ["image"] => Fate::None(IMAGE),
        ["image-enrichment"] => Fate::None("no workflow enriches images here"),
        ["initContainer" | "leader-elector"] => Fate::None("there is one container, and it needs no other"),
        [key @ ("extraVolumes" | "extraVolumeMounts")] => of("appProxy", key),
        ["nameOverride" | "podSecurityContext" | "securityContext"] => Fate::None(NAMES),
        _ => Fate::None(OTHER),
    }
}

/// What a key of a component's monitor means here, where one monitor serves them all.
fn monitor(key: &str) -> Fate {
    match key {
        "enabled" | "interval" | "scrapeTimeout" | "labels" => {
            Fate::To(format!("metrics.serviceMonitor.{key}"))
        }
        _ => Fate::None(MONITOR),
    }
}
