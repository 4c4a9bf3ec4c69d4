//! Whether others can read a key on its way.

use stages_client::Target;

/// What is said before a key goes to an address, if others can read it on the way; of one that is none nothing is.
pub(crate) fn unencrypted(url: &str) -> Option<String> {
    let target = Target::new(url, "").ok()?;
    let is_open = !target.is_https() && !is_here(target.host());
    is_open.then(|| format!("{url} is not encrypted: whoever is on the way reads the key"))
}

fn is_here(host: &str) -> bool {
    let port = |(_, port): &(&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = host.rsplit_once(':').filter(port).map_or(host, |(host, _)| host);
    let numbers = host.parse().is_ok_and(|address: std::net::Ipv4Addr| address.is_loopback());
    host == "localhost" || host.ends_with(".localhost") || numbers || host == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_needs_no_encryption() {
        let said = |host: &str| unencrypted(&format!("http://{host}/x"));
        for here in ["localhost:8080", "127.0.0.1", "[::1]:81", "a.localhost"] {
            assert_eq!(said(here), None, "{here}");
            assert_eq!(unencrypted(&format!("https://{here}")), None, "{here}");
        }
        for host in
            ["example.com", "10.0.0.1:81", "localhost.example.com", "127.0.0.1.example.com", "0.0.0.0:81"]
        {
            let text = format!("http://{host}/x is not encrypted: whoever is on the way reads the key");
            assert_eq!(said(host), Some(text));
            assert_eq!(unencrypted(&format!("https://{host}")), None, "{host}");
        }
        let upper = "HTTP://example.com is not encrypted: whoever is on the way reads the key";
        assert_eq!(unencrypted("HTTP://example.com").as_deref(), Some(upper));
        assert_eq!(unencrypted("example.com"), None);
    }
}
