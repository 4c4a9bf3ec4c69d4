//! The settings of the role `router`. What each means, and its default, stands in `config/default.yaml`, and there alone.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use stages_router::{Allowed, Limits, NamesConfig, Proxied, RouterConfig, Webhooks};
use url::Url;

use super::problem::Problems;
use super::tls::Tls;
use super::units::{As, Network, Size, Unit};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Router {
    listen: As<Option<SocketAddr>>,
    tls: Tls,
    trusted_proxies: Vec<As<Network>>,
    #[schemars(range(min = 1, max = 1_000_000))]
    connections: usize,
    head_timeout: As<Duration>,
    keep_alive: As<Duration>,
    write_timeout: As<Duration>,
    connect_timeout: As<Duration>,
    drain_delay: As<Duration>,
    access_log: bool,
    dns: Dns,
    app_proxy: AppProxy,
    workflows: Service,
    webhooks: Events,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Dns {
    servers: Vec<As<Server>>,
    cluster_domain: As<Option<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AppProxy {
    url: As<Option<Url>>,
    ca_file: As<Option<PathBuf>>,
    insecure: bool,
    cors_origin: As<Option<String>>,
    limits: Most,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Service {
    url: As<Option<Url>>,
    ca_file: As<Option<PathBuf>>,
    insecure: bool,
    limits: Most,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Events {
    allow: Vec<As<Which>>,
    port: u16,
    limits: Most,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Most {
    idle_timeout: As<Duration>,
    max_body: As<Size>,
    max_headers: As<Size>,
    #[schemars(range(min = 1, max = 1_000_000))]
    requests: usize,
}

impl Most {
    fn check(&self, at: &str, problems: &mut Problems) {
        problems.positive(&format!("{at}.idleTimeout"), *self.idle_timeout);
        problems.at_least(&format!("{at}.maxHeaders"), &self.max_headers, "1Ki");
    }

    fn limits(&self) -> Limits {
        Limits {
            idle: *self.idle_timeout,
            body: self.max_body.0,
            headers: self.max_headers.len(),
            requests: self.requests,
        }
    }
}

impl Router {
    pub(super) fn check(&self, problems: &mut Problems) {
        for (at, time) in [
            ("router.headTimeout", &self.head_timeout),
            ("router.keepAlive", &self.keep_alive),
            ("router.writeTimeout", &self.write_timeout),
            ("router.connectTimeout", &self.connect_timeout),
        ] {
            problems.positive(at, **time);
        }
        self.app_proxy.limits.check("router.appProxy.limits", problems);
        self.workflows.limits.check("router.workflows.limits", problems);
        self.webhooks.limits.check("router.webhooks.limits", problems);
        self.tls.check("router.tls", problems);
        if self.listen.is_none() {
            problems.add("router.listen", "must be an address to listen on such as 0.0.0.0:8080");
        }
    }

    /// What the router is built from, in a pod of this namespace; `origin` is where browsers come from, unless the settings
    /// say otherwise.
    pub(crate) fn config(&self, namespace: Option<&str>, origin: &str, grace: Duration) -> RouterConfig {
        let proxied = |url: &Option<Url>, ca_file: &Option<PathBuf>, insecure, limits: &Most| {
            let url = url.clone()?;
            Some(Proxied { url, ca_file: ca_file.clone(), insecure, limits: limits.limits() })
        };
        let (proxy, flows, events) = (&self.app_proxy, &self.workflows, &self.webhooks);
        let mut allowed: Vec<Allowed> = events.allow.iter().map(|which| which.0.clone()).collect();
        if allowed.is_empty() {
            let own = |namespace: &str| Allowed { namespace: Some(namespace.to_owned()), name: None };
            allowed.extend(namespace.map(own));
        }
        RouterConfig {
            listen: self.listen.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 8080))),
            certificate: self.tls.files(),
            trusted: self.trusted_proxies.iter().map(|network| network.0).collect(),
            connections: self.connections,
            head_timeout: *self.head_timeout,
            keep_alive: *self.keep_alive,
            write_timeout: *self.write_timeout,
            connect_timeout: *self.connect_timeout,
            drain_delay: *self.drain_delay,
            grace,
            access_log: self.access_log,
            cors_origin: proxy.cors_origin.clone().unwrap_or_else(|| origin.to_owned()),
            names: NamesConfig {
                servers: self.dns.servers.iter().map(|server| server.0).collect(),
                cluster_domain: self.dns.cluster_domain.clone(),
                namespace: namespace.map(str::to_owned),
            },
            app_proxy: proxied(&proxy.url, &proxy.ca_file, proxy.insecure, &proxy.limits),
            workflows: proxied(&flows.url, &flows.ca_file, flows.insecure, &flows.limits),
            webhooks: Webhooks { allowed, port: events.port, limits: events.limits.limits() },
        }
    }
}

/// A server of names.
#[derive(Debug)]
struct Server(SocketAddr);

impl Unit for Server {
    const FORMAT: &'static str = "name-server";

    fn read(text: &str) -> Result<Self, String> {
        let alone = || text.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, 53));
        let server = text.parse().ok().or_else(alone);
        server
            .map(Self)
            .ok_or_else(|| format!("'{text}' is not the address of a server such as 10.96.0.10:53"))
    }
}

/// Event sources: a namespace and a name, either of which may be `*`.
#[derive(Debug)]
struct Which(Allowed);

impl Unit for Which {
    const FORMAT: &'static str = "event-source";

    fn read(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not a namespace and a name such as runtime/push, runtime/* or */*");
        let part = |part: &str| match part {
            "*" => Ok(None),
            label if crate::cli::is_label(label) => Ok(Some(label.to_owned())),
            _ => Err(wrong()),
        };
        let (namespace, name) = text.split_once('/').ok_or_else(wrong)?;
        Ok(Self(Allowed { namespace: part(namespace)?, name: part(name)? }))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{host, refused, resolve};

    #[test]
    fn the_webhooks_of_its_own_namespace_are_reached_unless_others_are_named() {
        let router = |flags: &[(&str, &str)], namespace| {
            let config = resolve(flags, &host()).unwrap();
            config.router.config(namespace, "https://platform.example", *config.shutdown.grace)
        };
        let allowed = |flags: &[(&str, &str)], namespace| {
            let part = |part: Option<String>| part.unwrap_or_else(|| "*".to_owned());
            let allowed = router(flags, namespace).webhooks.allowed.into_iter();
            allowed.map(|one| format!("{}/{}", part(one.namespace), part(one.name))).collect::<Vec<_>>()
        };
        assert_eq!(allowed(&[], Some("runtime")), ["runtime/*"]);
        assert!(allowed(&[], None).is_empty());
        let named = [("router.webhooks.allow", "a/push,*/pull")];
        assert_eq!(allowed(&named, Some("runtime")), ["a/push", "*/pull"]);
        let defaults = router(&[], Some("runtime"));
        assert_eq!(defaults.listen.to_string(), "0.0.0.0:8080");
        assert_eq!(defaults.app_proxy.unwrap().url.as_str(), "http://cap-app-proxy:3017/");
        assert_eq!(defaults.cors_origin, "https://platform.example");
        assert!(router(&[("router.workflows.url", "")], None).workflows.is_none());
    }

    #[test]
    fn what_the_router_cannot_work_with_is_refused() {
        refused(&[
            (
                "router.trustedProxies",
                "10.0.0.0/40",
                "'10.0.0.0/40' is not an address or a network such as 10.0.0.0/8",
            ),
            (
                "router.dns.servers",
                "kube-dns",
                "'kube-dns' is not the address of a server such as 10.96.0.10:53",
            ),
            (
                "router.webhooks.allow",
                "a.b/push",
                "'a.b/push' is not a namespace and a name such as runtime/push, runtime/* or */*",
            ),
            (
                "router.tls.keyFile",
                "/key",
                "router.tls: needs both certificateFile and keyFile, or neither of them",
            ),
            ("router.listen", "", "must be an address to listen on such as 0.0.0.0:8080"),
            ("router.appProxy.limits.maxHeaders", "1", "must be at least 1Ki"),
        ]);
    }
}
