//! From where a visitor is to a runtime, step by step: which one fails, and what to do about it.
//!
//! takes: a namespace, an address or both - gives: each hop from inside out, as the cluster sees it, and from outside in,
//! as a visitor does; and the one to begin with
//! calls: a cluster through [`Cluster`], and the address through [`Visitor`] - fails: never; what nobody could look at is
//! said to be not measured

mod controller;
pub(crate) mod hop;
mod inside;
mod outside;
mod ways;

use std::fmt::Write as _;

use serde::Serialize;

use self::controller::Controller;
pub use self::hop::{Hop, Side, Verdict};
use self::hop::{Hops, add_row, shown, text};
use self::inside::{Entrance, Look};
use self::outside::Place;
pub use self::outside::{Upgraded, Visitor};
use self::ways::Ways;
use crate::rules::Cluster;

/// What is to be looked at.
pub struct Wanted<'a> {
    /// Where the runtime is installed.
    pub namespace: Option<&'a str>,
    /// The Service of its router.
    pub service: &'a str,
    /// Its address; `None`: the one that the cluster knows.
    pub url: Option<&'a str>,
    /// The cluster, or why none is asked.
    pub cluster: Result<&'a dyn Cluster, &'a str>,
    /// Who asks from outside, or why nobody does.
    pub visitor: Result<&'a dyn Visitor, &'a str>,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Access {
    /// The runtime's address, where it is known.
    pub url: Option<String>,
    /// Each hop: from inside out, then from outside in.
    pub hops: Vec<Hop>,
}

/// Looks at all of it.
#[must_use]
pub fn access(wanted: &Wanted<'_>) -> Access {
    let mut inside = Hops::new(Side::Inside);
    let mut outside = Hops::new(Side::Outside);
    let mut entrance = Entrance { controller: Controller::Unknown, stated: Vec::new() };
    let mut url = wanted.url.map(|url| url.trim_end_matches('/').to_owned());
    match (wanted.cluster, wanted.namespace) {
        (Ok(cluster), Some(namespace)) => {
            let ways = Ways::read(cluster, namespace, wanted.service, &mut inside);
            url = url.or_else(|| told(cluster, namespace)).or_else(|| {
                let (host, tls) = ways.host()?;
                Some(format!("{}://{host}", if tls { "https" } else { "http" }))
            });
            let host = url.as_deref().map(host).unwrap_or_default();
            let is_https = url.as_deref().is_some_and(|url| url.starts_with("https://"));
            let look = Look { cluster, namespace, service: wanted.service, host, is_https };
            entrance = inside::look(&look, &ways, &mut inside);
        }
        (Err(why), _) => {
            inside.unmeasured("cluster", why, "give --namespace, and a kubeconfig with --kubeconfig");
        }
        (_, None) => inside.unmeasured("cluster", "no namespace was given", "give --namespace"),
    }
    match (wanted.visitor, url.as_deref()) {
        (Ok(visitor), Some(url)) => {
            let place =
                Place { url, host: host(url), controller: entrance.controller, stated: &entrance.stated };
            outside::look(visitor, &place, &mut outside);
        }
        (Err(why), _) => outside.unmeasured("visitor", why, ""),
        (_, None) => {
            outside.unmeasured("visitor", "the runtime's address is not known", "give it with --url");
        }
    }
    Access { url, hops: inside.all.into_iter().chain(outside.all).collect() }
}

/// The address that the chart has told the platform.
fn told(cluster: &dyn Cluster, namespace: &str) -> Option<String> {
    let map = cluster.get(&format!("/api/v1/namespaces/{namespace}/configmaps/codefresh-cm")).ok()??;
    let url = text(&map, "/data/ingressHost").trim_end_matches('/');
    (url.starts_with("https://") || url.starts_with("http://")).then(|| shown(url))
}

/// The host of an address.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

impl Access {
    /// The hop to begin with: the first from inside out that fails, else from outside in.
    #[must_use]
    pub fn failing(&self) -> Option<&Hop> {
        self.hops.iter().find(|hop| hop.verdict == Verdict::Fails)
    }

    /// For people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::new();
        let mut side = None;
        // Writing to a text cannot fail.
        for hop in &self.hops {
            if side.replace(hop.side) != Some(hop.side) {
                let _ = match hop.side {
                    Side::Inside => writeln!(out, "From inside out:"),
                    Side::Outside => match &self.url {
                        Some(url) => writeln!(out, "From outside in, {url}:"),
                        None => writeln!(out, "From outside in:"),
                    },
                };
            }
            add_row(&mut out, (hop.hop.as_str(), hop.verdict), &hop.found, &hop.todo);
        }
        let _ = match self.failing() {
            Some(hop) => writeln!(out, "Begin with {}: {}.", hop.hop, hop.todo),
            None if self.is_unmeasured() => writeln!(out, "Nothing could be looked at."),
            None if self.hops.iter().any(|hop| hop.verdict == Verdict::Unmeasured) => {
                writeln!(out, "Nothing that was looked at fails.")
            }
            None if self.hops.iter().any(|hop| hop.verdict == Verdict::Doubtful) => {
                writeln!(out, "Every hop leads on, and not all is as it should be.")
            }
            None => writeln!(out, "Every hop leads on."),
        };
        out
    }

    /// Nobody could look at anything: whether a way leads there is not known.
    #[must_use]
    pub fn is_unmeasured(&self) -> bool {
        self.hops.iter().all(|hop| hop.verdict == Verdict::Unmeasured)
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> String {
        let failing = self.failing().map(|hop| &hop.hop);
        let whole = serde_json::json!({"url": self.url, "failing": failing, "hops": self.hops});
        format!("{whole:#}\n")
    }
}
