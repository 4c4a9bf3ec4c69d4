//! What a router is built from.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use stages_client::CertificateFiles;
use url::Url;

/// All of it.
#[derive(Debug, Clone)]
pub struct RouterConfig {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// `None`: it speaks without TLS.
    pub certificate: Option<CertificateFiles>,
    /// Peers whose `Forwarded` and `X-Forwarded-*` are believed: load balancers and ingresses.
    pub trusted: Vec<IpNet>,
    /// Connections at a time; one more takes the place of the one that has been idle the longest.
    pub connections: usize,
    /// A client has this long for the head of a request, once it has begun one, and for the first.
    pub head_timeout: Duration,
    /// A connection without a request is kept this long.
    pub keep_alive: Duration,
    /// A client that takes none of what is sent to it is cut off after this long.
    pub write_timeout: Duration,
    /// After it was told to stop it takes requests for this long, and says that it is not ready.
    pub drain_delay: Duration,
    /// What is under way then has this long.
    pub grace: Duration,
    /// A service is connected to within this time.
    pub connect_timeout: Duration,
    /// Log each request.
    pub access_log: bool,
    /// What `Access-Control-Allow-Origin` says where the App Proxy is away.
    pub cors_origin: String,
    /// How names of services are resolved.
    pub names: NamesConfig,
    /// `/app-proxy`; `None`: it is not served.
    pub app_proxy: Option<Proxied>,
    /// `/workflows/`; `None`: it is not served.
    pub workflows: Option<Proxied>,
    /// `/webhooks/<namespace>/<name>`.
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
    /// Nothing was sent either way for this long: the request is given up.
    pub idle: Duration,
    /// Bytes of a body.
    pub body: u64,
    /// Bytes of names and values of headers.
    pub headers: usize,
    /// Requests under way at a time, streams and upgrades included.
    pub requests: usize,
}

/// A service that is always the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxied {
    /// Its address.
    pub url: Url,
    /// Authorities that sign its certificate, in PEM; `None`: the system's.
    pub ca_file: Option<PathBuf>,
    /// Accept any certificate.
    pub insecure: bool,
    /// What the route may take.
    pub limits: Limits,
}

/// Services of event sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhooks {
    /// Who may be reached.
    pub allowed: Vec<Allowed>,
    /// The port of each.
    pub port: u16,
    /// What the route may take.
    pub limits: Limits,
}

/// Event sources that may be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// In this namespace; `None`: in any.
    pub namespace: Option<String>,
    /// Of this name; `None`: of any.
    pub name: Option<String>,
}

impl Allowed {
    pub(crate) fn takes(&self, namespace: &str, name: &str) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.namespace, namespace) && is(&self.name, name)
    }
}
