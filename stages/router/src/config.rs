//! What a router is built from.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use stages_client::CertificateFiles;
use url::Url;

/// The settings of a router.
#[derive(Debug, Clone)]
pub struct RouterConfig {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The certificate that it serves TLS with; `None`: it speaks plain HTTP.
    pub certificate: Option<CertificateFiles>,
    /// Peers whose `Forwarded` and `X-Forwarded-*` are believed: load balancers and ingresses.
    pub trusted: Vec<IpNet>,
    /// How many connections there may be at a time; one more takes the place of the one that has been idle the longest.
    pub connections: usize,
    /// How long a client has for the head of a request, once it has begun one, and for its first request.
    pub head_timeout: Duration,
    /// How long a connection without a request is kept.
    pub keep_alive: Duration,
    /// How long a client may take nothing of what is sent to it before it is cut off.
    pub write_timeout: Duration,
    /// How long it goes on taking requests after it was told to stop, while it says that it is not ready.
    pub drain_delay: Duration,
    /// How long requests that are under way after that have to end.
    pub grace: Duration,
    /// How long connecting to a service may take.
    pub connect_timeout: Duration,
    /// Whether each request is logged.
    pub access_log: bool,
    /// What `Access-Control-Allow-Origin` says where the App Proxy is away.
    pub cors_origin: String,
    /// How names of services are resolved.
    pub names: NamesConfig,
    /// The service behind `/app-proxy`; `None`: the path is not served.
    pub app_proxy: Option<Proxied>,
    /// The service behind `/workflows/`; `None`: the path is not served.
    pub workflows: Option<Proxied>,
    /// The services behind `/webhooks/<namespace>/<name>`.
    pub webhooks: Webhooks,
}

/// How names of services are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamesConfig {
    /// The servers that are asked; none: those of `/etc/resolv.conf`.
    pub servers: Vec<SocketAddr>,
    /// What follows `.svc`; `None`: what `/etc/resolv.conf` searches, else `cluster.local`.
    pub cluster_domain: Option<String>,
    /// The namespace of a service that is given by its name alone; `None`: such a name is taken as it is.
    pub namespace: Option<String>,
}

/// What one route may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long nothing may move in either direction before a request is given up.
    pub idle: Duration,
    /// How many bytes the body of a request may have.
    pub body: u64,
    /// How many bytes the names and values of a request's headers may have together.
    pub headers: usize,
    /// How many requests may be under way at a time, streams and upgrades included.
    pub requests: usize,
}

/// A service that is always the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxied {
    /// Its address.
    pub url: Url,
    /// A file in PEM with the authorities that sign its certificate; `None`: the system's authorities do.
    pub ca_file: Option<PathBuf>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// What the route may take.
    pub limits: Limits,
}

/// The services of event sources, which webhooks are passed on to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhooks {
    /// Which event sources may be reached.
    pub allowed: Vec<Allowed>,
    /// The port that each of them listens on.
    pub port: u16,
    /// What the route may take.
    pub limits: Limits,
}

/// A rule that lets event sources be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// The namespace that they are in; `None`: any.
    pub namespace: Option<String>,
    /// The name that they have; `None`: any.
    pub name: Option<String>,
}

impl Allowed {
    /// Whether the event source of this namespace and name may be reached by this rule.
    pub(crate) fn takes(&self, namespace: &str, name: &str) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.namespace, namespace) && is(&self.name, name)
    }
}
