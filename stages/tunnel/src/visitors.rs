//! Who a visitor really is, and whether a tunnel lets them in.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

/// A list of networks, such as those whose `X-Forwarded-For` is believed, or those that may visit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

/// A text is neither an address nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither an address nor a network such as 10.0.0.0/8")]
pub struct NetworkError(String);

/// How many networks one list may have.
const MAX_NETWORKS: usize = 256;

impl Networks {
    /// Reads addresses and networks between commas or spaces.
    ///
    /// # Errors
    /// [`NetworkError`], which names the first that is none.
    pub fn read(text: &str) -> Result<Self, NetworkError> {
        let parts = text.split([',', ' ']).map(str::trim).filter(|part| !part.is_empty());
        let one = |part: &str| {
            let network = part.parse().or_else(|_| part.parse::<IpAddr>().map(IpNet::from));
            network.map_err(|_| NetworkError(part.chars().take(64).collect()))
        };
        let networks: Vec<IpNet> = parts.take(MAX_NETWORKS + 1).map(one).collect::<Result<_, _>>()?;
        if networks.len() > MAX_NETWORKS {
            return Err(NetworkError(format!("more than {MAX_NETWORKS} networks")));
        }
        Ok(Self(networks))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them holds `address`, also when that is written as IPv6.
    #[must_use]
    pub fn hold(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

impl std::fmt::Display for Networks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, network) in self.0.iter().enumerate() {
            write!(f, "{}{network}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromIterator<IpNet> for Networks {
    fn from_iter<I: IntoIterator<Item = IpNet>>(networks: I) -> Self {
        Self(networks.into_iter().collect())
    }
}

/// The address of a visitor: the last one that `X-Forwarded-For` gained from somebody who is not trusted, if `peer` is
/// trusted; else the peer's. Whoever stands in front of a trusted proxy can add what they like further left.
pub(crate) fn address_of(headers: &HeaderMap, peer: IpAddr, trusted: &Networks) -> IpAddr {
    let mut address = peer.to_canonical();
    let lists = headers.get_all("x-forwarded-for").iter().rev();
    let all = lists.flat_map(|list| list.to_str().unwrap_or("").rsplit(','));
    for text in all {
        if !trusted.hold(address) {
            break;
        }
        // Some proxies add the port.
        let text = text.trim();
        let parsed = text.parse().or_else(|_| text.parse::<std::net::SocketAddr>().map(|with| with.ip()));
        match parsed {
            Ok(before) => address = IpAddr::to_canonical(&before),
            Err(_) => break,
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_what_the_outermost_trusted_proxy_saw() {
        let trusted = Networks::read("10.0.0.0/8, 192.0.2.1").unwrap();
        let of = |peer: &str, lists: &[&str]| {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append("x-forwarded-for", list.parse().unwrap());
            }
            address_of(&headers, peer.parse().unwrap(), &trusted).to_string()
        };
        assert_eq!(of("203.0.113.9", &["198.51.100.1"]), "203.0.113.9", "nobody trusts a visitor's own word");
        assert_eq!(of("10.1.1.1", &["198.51.100.1, 203.0.113.9"]), "203.0.113.9");
        assert_eq!(of("10.1.1.1", &["198.51.100.1", "203.0.113.9, 192.0.2.1"]), "203.0.113.9");
        assert_eq!(of("::ffff:10.1.1.1", &["203.0.113.9:4711"]), "203.0.113.9");
        assert_eq!(of("10.1.1.1", &["203.0.113.9, nonsense"]), "10.1.1.1");
        assert_eq!(of("10.1.1.1", &[]), "10.1.1.1");
    }

    #[test]
    fn lists_are_read_and_what_is_none_is_named() {
        let list = Networks::read("203.0.113.0/24 2001:db8::/32,198.51.100.7").unwrap();
        for (address, held) in
            [("203.0.113.9", true), ("198.51.100.7", true), ("198.51.100.8", false), ("2001:db8::1", true)]
        {
            assert_eq!(list.hold(address.parse().unwrap()), held, "{address}");
        }
        assert!(Networks::read("").unwrap().is_empty());
        let error = Networks::read("10.0.0.0/8,canary").unwrap_err();
        assert_eq!(error.to_string(), "'canary' is neither an address nor a network such as 10.0.0.0/8");
    }
}
