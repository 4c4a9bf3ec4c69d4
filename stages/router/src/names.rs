//! Addresses of services: asked of DNS, and asked again when their time to live is over.
//!
//! takes: the name of a service - gives: its addresses, of both families - calls: the servers of `/etc/resolv.conf`,
//! which are the cluster's whatever they are called there, or those that are given
//! fails: with no address; what was found last is taken while no server answers

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::RecordType;
use hickory_resolver::system_conf::read_system_conf;
use moka::sync::Cache;

use crate::config::NamesConfig;

/// The domain of the cluster where neither the settings nor `/etc/resolv.conf` say it.
const DEFAULT_DOMAIN: &str = "cluster.local";
/// How long one query to one server may take.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a server is asked.
const QUERY_ATTEMPTS: usize = 2;
/// How long it is remembered that there is no such service, whatever its domain says.
const NEGATIVE_TTL: Duration = Duration::from_secs(2);
/// How long an address is remembered at most, however long its time to live is.
const MAX_TTL: Duration = Duration::from_secs(60);
/// How long the addresses that were found last are used while no server answers.
const STALE_TTL: Duration = Duration::from_secs(600);
/// How many names are remembered.
const MAX_NAMES: u64 = 1_024;

/// Why names cannot be resolved at all.
#[derive(Debug, thiserror::Error)]
pub enum NamesError {
    /// The system's resolver configuration cannot be read.
    #[error("read the name servers of /etc/resolv.conf; or give them in router.dns.servers")]
    System(#[source] NetError),
    /// No resolver can be made of the configuration.
    #[error("make a resolver of names")]
    Build(#[source] NetError),
}

/// Resolves the names of services.
pub(crate) struct Names {
    resolver: TokioResolver,
    last: Cache<String, Arc<[IpAddr]>>,
    domain: String,
    namespace: Option<String>,
}

impl Names {
    pub(crate) fn new(config: NamesConfig) -> Result<Self, NamesError> {
        let NamesConfig { servers, cluster_domain, namespace } = config;
        let system = read_system_conf();
        let searched = system.as_ref().ok().and_then(|(found, _)| searched(found));
        let (found, options) = match servers.is_empty() {
            true => system.map_err(NamesError::System)?,
            false => (of(&servers), ResolverOpts::default()),
        };
        let mut builder = TokioResolver::builder_with_config(found, TokioRuntimeProvider::default());
        let set = builder.options_mut();
        *set = options;
        set.timeout = QUERY_TIMEOUT;
        set.attempts = QUERY_ATTEMPTS;
        set.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        set.positive_max_ttl = Some(MAX_TTL);
        set.negative_max_ttl = Some(NEGATIVE_TTL);
        set.cache_size = MAX_NAMES;
        let resolver = builder.build().map_err(NamesError::Build)?;
        let last = Cache::builder().max_capacity(MAX_NAMES).time_to_live(STALE_TTL).build();
        let domain = cluster_domain.or(searched).unwrap_or_else(|| DEFAULT_DOMAIN.to_owned());
        Ok(Self { resolver, last, domain: domain.trim_matches('.').to_owned(), namespace })
    }

    /// The whole name of a service of the cluster.
    pub(crate) fn service(&self, name: &str, namespace: &str) -> String {
        format!("{name}.{namespace}.svc.{}", self.domain)
    }

    /// The addresses of `host`, a name or an address; none when there is no such service.
    pub(crate) async fn addresses(&self, host: &str) -> Option<Arc<[IpAddr]>> {
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Some(Arc::new([address]));
        }
        if host == "localhost" {
            return Some(Arc::new([Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]));
        }
        for name in self.names(host) {
            if let Some(found) = self.found(name).await {
                return Some(found);
            }
        }
        None
    }

    /// The addresses of a fully qualified name.
    async fn found(&self, name: String) -> Option<Arc<[IpAddr]>> {
        match self.resolver.lookup_ip(name.as_str()).await {
            Ok(found) => {
                let mut addresses: Vec<IpAddr> = found.iter().collect();
                addresses.sort_unstable();
                addresses.dedup();
                let addresses: Arc<[IpAddr]> = addresses.into();
                self.last.insert(name, addresses.clone());
                (!addresses.is_empty()).then_some(addresses)
            }
            Err(error) if error.is_no_records_found() => {
                self.last.invalidate(&name);
                None
            }
            Err(error) => {
                tracing::debug!(%error, "a name is not resolved");
                self.last.get(&name)
            }
        }
    }

    /// Forgets the addresses of `host`, as nobody could be connected to there, so that they are looked up anew.
    pub(crate) fn forget(&self, host: &str) {
        for name in self.names(host) {
            for kind in [RecordType::A, RecordType::AAAA] {
                self.resolver.clear_lookup_cache(name.as_str(), kind);
            }
        }
    }

    /// The whole names that are looked for, one after the other: what has one dot may be a service and its namespace, as in any
    /// pod, and a name of the world.
    fn names(&self, host: &str) -> Vec<String> {
        let service = |host: &str, namespace: &str| format!("{}.", self.service(host, namespace));
        let whole = host.trim_end_matches('.');
        let labels: Vec<&str> = whole.split('.').collect();
        match (&self.namespace, labels.as_slice()) {
            (Some(namespace), [_]) => vec![service(whole, namespace)],
            (Some(_), [name, namespace]) if whole == host => {
                vec![service(name, namespace), format!("{whole}.")]
            }
            (_, [name, namespace, "svc"]) => vec![service(name, namespace)],
            _ => vec![format!("{whole}.")],
        }
    }
}

/// The domain of the cluster, as a pod's `/etc/resolv.conf` has names looked for in it.
fn searched(system: &ResolverConfig) -> Option<String> {
    let mut names = system.search().iter().map(|name| name.to_string().to_ascii_lowercase());
    names.find_map(|name| name.strip_prefix("svc.").map(|domain| domain.trim_matches('.').to_owned()))
}

fn of(servers: &[SocketAddr]) -> ResolverConfig {
    let mut config = ResolverConfig::default();
    for server in servers {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
            connection.port = server.port();
            connection
        });
        config.add_name_server(NameServerConfig::new(server.ip(), true, connections.to_vec()));
    }
    config
}

#[cfg(test)]
mod tests {
    use hickory_resolver::system_conf::parse_resolv_conf;

    use super::*;

    fn names(cluster_domain: &str, namespace: Option<&str>) -> Names {
        let servers = vec!["127.0.0.1:53".parse().unwrap()];
        let config = NamesConfig {
            servers,
            cluster_domain: Some(cluster_domain.to_owned()),
            namespace: namespace.map(str::to_owned),
        };
        Names::new(config).unwrap()
    }

    #[test]
    fn the_domain_of_the_cluster_is_that_which_names_are_looked_for_in() {
        for (search, domain) in [
            ("runtime.svc.cluster.local svc.cluster.local cluster.local corp.example", Some("cluster.local")),
            ("runtime.svc.Corp.Example svc.Corp.Example Corp.Example", Some("corp.example")),
            ("corp.example example", None),
        ] {
            let conf = format!("search {search}\nnameserver 10.96.0.10\noptions ndots:5\n");
            let (system, _) = parse_resolv_conf(conf).unwrap();
            assert_eq!(searched(&system).as_deref(), domain, "{search}");
        }
    }

    #[tokio::test]
    async fn names_are_looked_for_as_a_whole() {
        let inside = names("corp.example", Some("runtime"));
        for (host, whole) in [
            ("cap-app-proxy", &["cap-app-proxy.runtime.svc.corp.example."][..]),
            ("argo-server.argo.svc", &["argo-server.argo.svc.corp.example."]),
            ("argo-server.argo", &["argo-server.argo.svc.corp.example.", "argo-server.argo."]),
            ("example.com.", &["example.com."]),
            ("a.b.svc.cluster.local", &["a.b.svc.cluster.local."]),
            ("proxy.example.com", &["proxy.example.com."]),
            ("proxy.example.com.", &["proxy.example.com."]),
        ] {
            assert_eq!(inside.names(host), whole);
        }
        let outside = names("cluster.local", None);
        assert_eq!(
            (outside.names("app-proxy"), outside.names("a.b")),
            (vec!["app-proxy.".to_owned()], vec!["a.b.".to_owned()])
        );
        assert_eq!(inside.service("x-eventsource-svc", "ns"), "x-eventsource-svc.ns.svc.corp.example");
    }

    #[tokio::test]
    async fn addresses_are_asked_of_nobody() {
        let inside = names("cluster.local", None);
        for (host, found) in [("10.0.0.1", "10.0.0.1"), ("[fd00::1]", "fd00::1"), ("fd00::1", "fd00::1")] {
            assert_eq!(*inside.addresses(host).await.unwrap(), [found.parse::<IpAddr>().unwrap()]);
        }
        assert_eq!(inside.addresses("localhost").await.unwrap().len(), 2);
    }
}
