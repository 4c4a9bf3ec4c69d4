//! The settings of the roles `tunnel-server` and `tunnel-client`. What each means, and its default, stands in
//! `config/default.yaml`, and there alone.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use schemars::JsonSchema;
use serde::Deserialize;
use stages_tunnel::{Name, NameError, Networks, Packing, ServerConfig, Times};
use url::Url;

use super::Token;
use super::problem::Problems;
use super::tls::Tls;
use super::units::{As, Network, Unit};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Server {
    pub(crate) listen: As<Option<SocketAddr>>,
    domain: As<Option<Domain>>,
    tls: Tls,
    pub(crate) tokens_file: As<Option<PathBuf>>,
    pub(crate) ask_platform: bool,
    trusted_proxies: Vec<As<Network>>,
    #[schemars(range(min = 1, max = 1_000_000))]
    connections: usize,
    #[schemars(range(min = 1, max = 2_000))]
    requests: usize,
    answer_timeout: As<Duration>,
    check_interval: As<Duration>,
    drain_delay: As<Duration>,
    pub(crate) peers: Peers,
}

/// Other servers behind the same name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Peers {
    listen: As<Option<SocketAddr>>,
    address: As<Option<Reached>>,
}

impl Peers {
    /// Where they connect, and the address that they reach it at.
    ///
    /// # Errors
    /// When that is not known.
    pub(crate) fn addresses(&self) -> anyhow::Result<(SocketAddr, Option<SocketAddr>)> {
        let listen = self.listen.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 8081)));
        let reached = self.address.as_ref().map(|address| address.0);
        anyhow::ensure!(
            reached.is_some() || !listen.ip().is_unspecified(),
            "tunnelServer.peers.address is not set: set it to the address that other servers reach this one at, such as \
             its pod's"
        );
        Ok((listen, reached))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Client {
    pub(crate) to: As<Option<Url>>,
    protocol: Protocol,
    frp: Frp,
    pub(crate) name: As<Option<Name>>,
    pub(crate) forward: As<Option<Url>>,
    token: As<Option<SecretString>>,
    token_file: As<Option<PathBuf>>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    allow: Vec<As<Network>>,
    #[schemars(range(min = 1, max = 4))]
    pub(crate) connections: usize,
    pub(crate) id: As<Option<Id>>,
}

/// What is done to what visitors say, on its way to a server of the frp family.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Frp {
    encryption: bool,
    compression: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Protocol {
    Native,
    Frp,
}

impl Server {
    pub(super) fn check(&self, problems: &mut Problems) {
        problems.positive("tunnelServer.answerTimeout", *self.answer_timeout);
        problems.positive("tunnelServer.checkInterval", *self.check_interval);
        if *self.check_interval > Times::default().unchecked {
            problems.add(
                "tunnelServer.checkInterval",
                "must be at most 45s: what is revoked ends within a minute",
            );
        }
        problems.exclusive(
            self.ask_platform && self.tokens_file.is_some(),
            "tunnelServer.askPlatform",
            "tunnelServer.tokensFile",
        );
        self.tls.check("tunnelServer.tls", problems);
        if self.listen.is_none() {
            problems.add("tunnelServer.listen", "must be an address to listen on such as 0.0.0.0:8080");
        }
    }

    /// What the server is built from; `None` without a domain.
    pub(crate) fn config(&self, grace: Duration) -> Option<ServerConfig> {
        Some(ServerConfig {
            address: self.listen.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 8080))),
            domain: self.domain.as_ref()?.0.clone(),
            tls: self.tls.files(),
            trusted: self.trusted_proxies.iter().map(|network| network.0).collect::<Networks>(),
            streams: self.requests,
            connections: self.connections,
            drain_delay: *self.drain_delay,
            grace,
            times: Times { answer: *self.answer_timeout, check: *self.check_interval, ..Times::default() },
        })
    }
}

impl Client {
    pub(super) fn check(&self, problems: &mut Problems) {
        problems.token("tunnelClient", &self.token, &self.token_file);
        if self.protocol == Protocol::Native && self.name.as_ref().is_some_and(|name| !name.is_unambiguous())
        {
            problems.add("tunnelClient.name", NameError::Dash.to_string());
        }
    }

    /// What the server speaks.
    pub(crate) fn protocol(&self) -> stages_tunnel::Protocol {
        match self.protocol {
            Protocol::Native => stages_tunnel::Protocol::Native,
            Protocol::Frp => stages_tunnel::Protocol::Frp(Packing {
                encryption: self.frp.encryption,
                compression: self.frp.compression,
            }),
        }
    }

    /// What opens the tunnel.
    pub(crate) fn token(&self) -> Token {
        Token::of(&self.token, &self.token_file)
    }

    /// Who may visit, as the server is told.
    pub(crate) fn allowed(&self) -> String {
        let networks: Vec<String> = self.allow.iter().map(|network| network.0.to_string()).collect();
        networks.join(",")
    }
}

/// What hosts of tunnels end in.
#[derive(Debug)]
struct Domain(String);

impl Unit for Option<Domain> {
    const FORMAT: &'static str = "domain";

    fn read(text: &str) -> Result<Self, String> {
        let domain = text.to_ascii_lowercase();
        if domain.is_empty() {
            return Ok(None);
        }
        if !domain.split('.').all(crate::cli::is_label) {
            return Err(format!("'{text}' is not a domain such as tunnels.example.com"));
        }
        Ok(Some(Domain(domain)))
    }
}

impl Unit for Option<Name> {
    const FORMAT: &'static str = "tunnel-name";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(None);
        }
        // What it speaks says whether a runtime may have a dash in its name: `Client::check`.
        let adopted = |error: NameError| match error {
            NameError::Dash => Name::read_adopted(text).map_err(|_| error),
            other => Err(other),
        };
        Name::read(text).or_else(adopted).map(Some).map_err(|error| error.to_string())
    }
}

/// An address that others reach; port 0 stands for that of the listener.
#[derive(Debug)]
struct Reached(SocketAddr);

impl Unit for Option<Reached> {
    const FORMAT: &'static str = "reached-address";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let alone = || text.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, 0));
        let address = text.parse().ok().or_else(alone);
        let address = address.filter(|address: &SocketAddr| !address.ip().is_unspecified());
        let wrong =
            || format!("'{text}' is not an address that others reach, such as 10.1.2.3 or 10.1.2.3:8081");
        address.map(|address| Some(Reached(address))).ok_or_else(wrong)
    }
}

/// What a client calls itself.
#[derive(Debug)]
pub(crate) struct Id(pub(crate) String);

impl Unit for Option<Id> {
    const FORMAT: &'static str = "client-id";

    fn read(text: &str) -> Result<Self, String> {
        if text.len() > 128 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("must have at most 128 characters, none of them a space".to_owned());
        }
        Ok((!text.is_empty()).then(|| Id(text.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{host, refused, resolve};

    #[test]
    fn a_server_without_a_domain_is_none() {
        let built = |flags: &[(&str, &str)]| {
            let config = resolve(flags, &host()).unwrap();
            config.tunnel_server.config(*config.shutdown.grace)
        };
        assert!(built(&[]).is_none());
        let built = built(&[("tunnelServer.domain", "Tunnels.example.com")]).unwrap();
        assert_eq!(
            (built.domain.as_str(), built.address.to_string().as_str()),
            ("tunnels.example.com", "0.0.0.0:8080")
        );
    }

    #[test]
    fn what_tunnels_cannot_work_with_is_refused() {
        refused(&[
            (
                "tunnelServer.domain",
                "*.example.com",
                "'*.example.com' is not a domain such as tunnels.example.com",
            ),
            (
                "tunnelServer.tls.keyFile",
                "/key",
                "tunnelServer.tls: needs both certificateFile and keyFile, or neither of them",
            ),
            ("tunnelServer.listen", "", "must be an address to listen on such as 0.0.0.0:8080"),
            ("tunnelServer.checkInterval", "1m", "must be at most 45s: what is revoked ends within a minute"),
            (
                "tunnelClient.name",
                "a-b-c",
                "the name of a tunnel is <account>-<runtime> with one dash in it; a runtime with a dash in its name is reached by its id",
            ),
            (
                "tunnelClient.allow",
                "10.0.0.0/40",
                "'10.0.0.0/40' is not an address or a network such as 10.0.0.0/8",
            ),
            (
                "tunnelServer.peers.address",
                "0.0.0.0",
                "'0.0.0.0' is not an address that others reach, such as 10.1.2.3 or 10.1.2.3:8081",
            ),
            ("tunnelClient.id", "a b", "must have at most 128 characters, none of them a space"),
        ]);
    }

    #[test]
    fn other_servers_reach_an_address_that_is_said_or_listened_on() {
        let addresses = |flags: &[(&str, &str)]| {
            let config = resolve(flags, &host()).unwrap();
            config.tunnel_server.peers.addresses().map_err(|error| error.to_string())
        };
        assert_eq!(
            addresses(&[]).unwrap_err(),
            "tunnelServer.peers.address is not set: set it to the address that other servers reach this one at, such as its \
             pod's"
        );
        let at = |text: &str| text.parse::<std::net::SocketAddr>().unwrap();
        for (listen, address, reached) in [
            ("127.0.0.1:9000", "", None),
            ("0.0.0.0:9000", "10.1.2.3", Some(at("10.1.2.3:0"))),
            ("[::]:9000", "[fd00::1]:9001", Some(at("[fd00::1]:9001"))),
            ("[::]:9000", "fd00::1", Some(at("[fd00::1]:0"))),
        ] {
            let given = [("tunnelServer.peers.listen", listen), ("tunnelServer.peers.address", address)];
            assert_eq!(addresses(&given), Ok((at(listen), reached)));
        }
    }

    #[test]
    fn a_server_of_the_frp_family_takes_a_runtime_with_a_dash() {
        let flags = [("tunnelClient.name", "acme-team-prod"), ("tunnelClient.protocol", "frp")];
        let config = resolve(&flags, &host()).unwrap();
        assert_eq!(config.tunnel_client.name.as_ref().map(|name| name.as_str()), Some("acme-team-prod"));
    }
}
