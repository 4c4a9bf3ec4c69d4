//! Addresses that no runtime is at.
//!
//! takes: a host, or its name when it is connected to - gives: its addresses without those that are refused
//! calls: the system's resolver - fails: with [`RefusedName`] for a name that has no other address

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolves names, but for what is refused. It is asked for each connection, so that a name cannot lead elsewhere later.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    refused: Arc<[IpNet]>,
}

/// A name leads to nothing but addresses that are refused.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to an address that is refused")]
pub(crate) struct RefusedName;

impl RefusedName {
    /// Whether a call failed for this reason.
    pub(crate) fn is_in(error: &reqwest::Error) -> bool {
        let mut source = error.source();
        while let Some(error) = source {
            if error.is::<Self>() {
                return true;
            }
            source = error.source();
        }
        false
    }
}

impl Addresses {
    pub(crate) fn new(refused: Vec<IpNet>) -> Self {
        Self { refused: refused.into() }
    }

    /// Whether the host of a URL is an address that is refused; a name is looked at when it is connected to.
    pub(crate) fn refuse(&self, host: &str) -> bool {
        host.trim_matches(['[', ']']).parse().is_ok_and(|address| self.hold(address))
    }

    /// Also an IPv4 address that is written as IPv6.
    fn hold(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.refused.iter().any(|network| network.contains(&address))
    }
}

impl Resolve for Addresses {
    fn resolve(&self, name: Name) -> Resolving {
        let own = self.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let is_found = !found.is_empty();
            let taken: Vec<SocketAddr> = found.into_iter().filter(|at| !own.hold(at.ip())).collect();
            if is_found && taken.is_empty() {
                return Err(RefusedName.into());
            }
            Ok(Box::new(taken.into_iter()) as Addrs)
        })
    }
}
