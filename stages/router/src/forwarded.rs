//! Who asked, and how: `Forwarded` and `X-Forwarded-*` for the service.
//!
//! takes: the headers of a request, and who sent it - gives: the client's address, and headers that say what is true.
//! What a peer says is believed when it is on the trusted list, and taken away when it is not. fails: never.

use std::net::{IpAddr, SocketAddr};

use http::header::{FORWARDED, HeaderName};
use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;
use stages_client::says_who_asked;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const REAL: HeaderName = HeaderName::from_static("x-real-ip");

/// How a request arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) peer: SocketAddr,
    /// The port that it was sent to.
    pub(crate) port: u16,
    pub(crate) tls: bool,
}

/// Sets `Forwarded`, `X-Forwarded-*` and `X-Real-IP` for the service, and gives the address of the client.
pub(crate) fn forward(
    headers: &mut HeaderMap,
    arrival: Arrival,
    host: Option<&str>,
    trusted: &[IpNet],
) -> IpAddr {
    let peer = arrival.peer.ip().to_canonical();
    let is_trusted = |address: IpAddr| trusted.iter().any(|net| net.contains(&address));
    let believed = is_trusted(peer);
    if !believed {
        let named: Vec<HeaderName> = headers.keys().filter(|name| says_who_asked(name)).cloned().collect();
        for name in named {
            headers.remove(name);
        }
    }
    let chain = joined(headers, &FOR);
    let client = client(chain.as_deref(), peer, is_trusted);
    set(headers, FOR, &appended(chain, &peer.to_string()));
    let proto = if arrival.tls { "https" } else { "http" };
    let host = host.unwrap_or_default();
    let element = format!("for={};host=\"{host}\";proto={proto}", quoted(peer));
    let element = if host.is_empty() { format!("for={};proto={proto}", quoted(peer)) } else { element };
    let before = joined(headers, &FORWARDED);
    set(headers, FORWARDED, &appended(before, &element));
    for (name, own) in [(PROTO, proto), (HOST, host), (PORT, arrival.port.to_string().as_str())] {
        match first(headers, &name) {
            Some(said) => set(headers, name, &said),
            None if own.is_empty() => {}
            None => set(headers, name, own),
        }
    }
    set(headers, REAL, &client.to_string());
    client
}

/// The last address of the chain that nobody trusted has added.
fn client(chain: Option<&str>, peer: IpAddr, is_trusted: impl Fn(IpAddr) -> bool) -> IpAddr {
    let mut client = peer;
    for said in chain.unwrap_or_default().rsplit(',') {
        if !is_trusted(client) {
            break;
        }
        let Some(address) = address(said.trim()) else { break };
        client = address;
    }
    client
}

/// The address that an element of `X-Forwarded-For` names, with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let alone = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    alone.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip())).map(|ip| ip.to_canonical())
}

fn quoted(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"[{address}]\""),
    }
}

fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

fn appended(before: Option<String>, own: &str) -> String {
    match before.filter(|before| !before.trim().is_empty()) {
        Some(before) => format!("{before}, {own}"),
        None => own.to_owned(),
    }
}

/// The first element of a header that is a list: what the first proxy said.
fn first(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let said = headers.get(name)?.to_str().ok()?.split(',').next()?.trim();
    (!said.is_empty()).then(|| said.to_owned())
}

fn set(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    match HeaderValue::from_str(text) {
        Ok(value) => drop(headers.insert(name, value)),
        Err(_) => drop(headers.remove(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(peer: &str, said: &[(&str, &str)]) -> (IpAddr, Vec<(String, String)>) {
        let mut headers = HeaderMap::new();
        for (name, value) in said {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let arrival = Arrival { peer: peer.parse().unwrap(), port: 8080, tls: false };
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let client = forward(&mut headers, arrival, Some("runtime.example"), &trusted);
        let mut all: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        all.sort();
        (client, all)
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_a_stranger_says_of_itself_is_taken_away() {
        let said = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "2.2.2.2"),
            ("forwarded", "for=1.1.1.1"),
            ("x-real-ip", "1.1.1.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-prefix", "/x"),
            ("true-client-ip", "1.1.1.1"),
        ];
        let expected = pairs(&[
            ("forwarded", "for=203.0.113.9;host=\"runtime.example\";proto=http"),
            ("x-forwarded-for", "203.0.113.9"),
            ("x-forwarded-host", "runtime.example"),
            ("x-forwarded-port", "8080"),
            ("x-forwarded-proto", "http"),
            ("x-real-ip", "203.0.113.9"),
        ]);
        assert_eq!(forwarded("203.0.113.9:5", &said), ("203.0.113.9".parse().unwrap(), expected));
    }

    #[test]
    fn a_trusted_peer_is_believed_as_far_back_as_the_chain_is_trusted() {
        let said = [
            ("x-forwarded-for", "6.6.6.6, 203.0.113.9, 10.1.1.1"),
            ("forwarded", "for=203.0.113.9"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "outside.example"),
        ];
        let expected = pairs(&[
            ("forwarded", "for=203.0.113.9, for=\"[fd00::1]\";host=\"runtime.example\";proto=http"),
            ("x-forwarded-for", "6.6.6.6, 203.0.113.9, 10.1.1.1, fd00::1"),
            ("x-forwarded-host", "outside.example"),
            ("x-forwarded-port", "8080"),
            ("x-forwarded-proto", "https"),
            ("x-real-ip", "203.0.113.9"),
        ]);
        assert_eq!(forwarded("[fd00::1]:5", &said), ("203.0.113.9".parse().unwrap(), expected));
        let (client, _) = forwarded("[::ffff:10.0.0.1]:5", &[("x-forwarded-for", "nonsense")]);
        assert_eq!(client, "10.0.0.1".parse::<IpAddr>().unwrap());
        let (client, _) = forwarded("10.0.0.1:5", &[("x-forwarded-for", "198.51.100.7:4711")]);
        assert_eq!(client, "198.51.100.7".parse::<IpAddr>().unwrap());
    }
}
