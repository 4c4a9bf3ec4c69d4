//! What repositories are asked with: credentials, hosts and authorities, all given as data.

use std::collections::BTreeMap;

use super::credentials::Credentials;
use super::hosts::KnownHosts;

/// Credentials, known hosts and authorities.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Who we are, by address.
    pub credentials: Credentials,
    /// SSH hosts that are known.
    pub hosts: KnownHosts,
    /// Authorities that are trusted for one host beside those of the system: PEM by host, as in `argocd-tls-certs-cm`.
    pub authorities: BTreeMap<String, String>,
    /// Authorities that are trusted for every host: PEM.
    pub everywhere: Vec<String>,
}

impl Access {
    /// PEM of the authorities that are trusted for a host, which may have its port.
    pub(super) fn authorities(&self, host: &str) -> Vec<String> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let own = self.authorities.get(host).or_else(|| self.authorities.get(name));
        own.into_iter().chain(&self.everywhere).cloned().collect()
    }
}
