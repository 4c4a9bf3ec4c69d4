//! What a client of HTTP/1.1 asks to go on with.
//!
//! takes: the value of `Upgrade` - gives: whether another version of HTTP is among it - fails: never

/// Whether an `Upgrade` asks, beside whatever else, for another version of HTTP or for TLS. A proxy passes that on to nobody: of
/// what would be said in it, it would look at nothing, neither hosts and paths nor what says who asked.
#[must_use]
pub fn speaks_http(upgrade: &str) -> bool {
    upgrade.split(',').any(|one| {
        let name = one.trim().split('/').next().unwrap_or_default().to_ascii_lowercase();
        matches!(&*name, "h2c" | "h2" | "http" | "tls" | "")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_of_http_are_told_from_other_protocols() {
        for upgrade in ["h2c", "H2C", "HTTP/2.0", "TLS/1.2, HTTP/1.1", "websocket, h2c", "websocket,", ""] {
            assert!(speaks_http(upgrade), "{upgrade}");
        }
        for upgrade in ["websocket", "WebSocket", "SPDY/3.1", "echo, websocket/13", "httpx"] {
            assert!(!speaks_http(upgrade), "{upgrade}");
        }
    }
}
