//! Where the bus is, who asks, and what its stream is like.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::Access;
use crate::{Prefix, PrefixError};
use async_nats::ServerAddr;

/// How to reach the bus and what stands there.
#[derive(Debug, Clone)]
pub struct Config {
    /// How it is reached, and who asks.
    pub access: Access,
    /// First part of every subject; with dots as underscores the stream's name.
    pub prefix: String,
    /// Copies of the stream in a cluster of servers: 1 or 3.
    pub replicas: usize,
    /// Bytes that the stream of events may hold; beyond them publishing is refused.
    pub max_bytes: u64,
    /// Bytes that the stream of reports may hold; beyond them its oldest are discarded.
    pub reports_max_bytes: u64,
    /// How long the server remembers the ids of what was published, to recognise a repetition.
    pub duplicate_window: Duration,
    /// After how long without a word an unacknowledged message is delivered again.
    pub ack_wait: Duration,
    /// Messages of one durable that may be delivered and not acknowledged: back-pressure on its consumer.
    pub max_ack_pending: u32,
    /// How often a server that has nothing to deliver says that it is there; without a word for twice as long it is asked
    /// anew.
    pub heartbeat: Duration,
}

/// TLS to the server; all files are PEM, read for each connection.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Who signed the server's certificate; without it the system's roots.
    pub ca: Option<PathBuf>,
    /// The client's certificate and key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A setting of the bus that cannot be used. No error holds an address: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No server.
    #[error("the bus needs the address of at least one server")]
    NoServer,
    /// The n-th server, counted from 1.
    #[error("server {0} of the bus is not a nats:// or tls:// address")]
    Server(usize),
    /// The n-th server, counted from 1.
    #[error("server {0} of the bus has a user or password in its address; they belong into its credentials")]
    Secret(usize),
    /// The prefix.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// The replicas.
    #[error("the stream of the bus has 1 or 3 replicas, not {0}")]
    Replicas(usize),
    /// A figure that must be above 0, or is beyond what the server takes.
    #[error("the bus's {0} is 0 or too large")]
    Figure(&'static str),
}

impl Config {
    /// What is usable of it.
    ///
    /// # Errors
    /// [`ConfigError`], the first there is.
    pub fn check(&self) -> Result<(), ConfigError> {
        servers(&self.access.urls)?;
        Prefix::new(&self.prefix)?;
        if !matches!(self.replicas, 1 | 3) {
            return Err(ConfigError::Replicas(self.replicas));
        }
        let day = Duration::from_secs(86_400);
        let time = |time: Duration| (Duration::from_millis(1)..=day).contains(&time);
        let figures = [
            ("max_bytes", (1..=i64::MAX as u64).contains(&self.max_bytes)),
            ("max_bytes of reports", (1..=i64::MAX as u64).contains(&self.reports_max_bytes)),
            ("max_ack_pending", (1..=100_000).contains(&self.max_ack_pending)),
            (
                "duplicate window",
                self.duplicate_window >= Duration::from_millis(100) && time(self.duplicate_window),
            ),
            ("ack_wait", time(self.ack_wait)),
            ("heartbeat", time(self.heartbeat)),
            ("timeout", time(self.access.timeout)),
        ];
        match figures.into_iter().find(|(_, fits)| !fits) {
            Some((what, _)) => Err(ConfigError::Figure(what)),
            None => Ok(()),
        }
    }
}

/// The servers that these addresses name, at least one.
///
/// # Errors
/// [`ConfigError`], the first there is.
pub fn servers(urls: &[String]) -> Result<Vec<ServerAddr>, ConfigError> {
    if urls.is_empty() {
        return Err(ConfigError::NoServer);
    }
    let server = |(at, url): (usize, &String)| {
        let address = ServerAddr::from_str(url).map_err(|_| ConfigError::Server(at + 1))?;
        if address.username().is_some() || address.password().is_some() {
            return Err(ConfigError::Secret(at + 1));
        }
        match address.scheme() {
            "nats" | "tls" if !address.host().is_empty() => Ok(address),
            _ => Err(ConfigError::Server(at + 1)),
        }
    };
    urls.iter().enumerate().map(server).collect()
}

#[cfg(test)]
mod tests {
    use pipeline_core::SecretString;

    use super::super::Credentials;
    use super::*;

    fn usual() -> Config {
        let access = Access {
            urls: vec!["nats://127.0.0.1:4222".into()],
            timeout: Duration::from_secs(5),
            credentials: Credentials::None,
            tls: None,
            inbox_prefix: None,
        };
        Config {
            access,
            prefix: "gitops-runtime".to_owned(),
            replicas: 1,
            max_bytes: 1 << 30,
            reports_max_bytes: 256 << 20,
            duplicate_window: Duration::from_secs(120),
            ack_wait: Duration::from_secs(30),
            max_ack_pending: 1_000,
            heartbeat: Duration::from_secs(4),
        }
    }

    fn refused(change: impl FnOnce(&mut Config)) -> String {
        let mut config = usual();
        config.check().unwrap();
        change(&mut config);
        config.check().unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        assert_eq!(refused(|it| it.access.urls.clear()), "the bus needs the address of at least one server");
        for wrong in ["https://a", "ws://a", "nats://", "nats://a:x"] {
            assert_eq!(
                refused(|it| it.access.urls.push(wrong.into())),
                "server 2 of the bus is not a nats:// or tls:// address",
                "{wrong}"
            );
        }
        for secret in ["nats://canary:canary@a", "nats://canary@a"] {
            assert_eq!(
                refused(|it| it.access.urls = vec![secret.into()]),
                "server 1 of the bus has a user or password in its address; they belong into its credentials"
            );
        }
        assert_eq!(
            refused(|it| it.prefix = "a.*".into()),
            "a prefix of the bus is 1 to 128 letters, digits, `-` and `_`, in parts between dots"
        );
        assert_eq!(refused(|it| it.replicas = 2), "the stream of the bus has 1 or 3 replicas, not 2");
        assert_eq!(refused(|it| it.max_bytes = 0), "the bus's max_bytes is 0 or too large");
        assert_eq!(refused(|it| it.max_bytes = u64::MAX), "the bus's max_bytes is 0 or too large");
        assert_eq!(
            refused(|it| it.reports_max_bytes = 0),
            "the bus's max_bytes of reports is 0 or too large"
        );
        assert_eq!(refused(|it| it.max_ack_pending = 0), "the bus's max_ack_pending is 0 or too large");
        let nothing = Duration::ZERO;
        assert_eq!(
            refused(|it| it.duplicate_window = nothing),
            "the bus's duplicate window is 0 or too large"
        );
        assert_eq!(refused(|it| it.ack_wait = nothing), "the bus's ack_wait is 0 or too large");
        assert_eq!(refused(|it| it.access.timeout = Duration::MAX), "the bus's timeout is 0 or too large");
    }

    #[test]
    fn what_is_printed_holds_no_secret() {
        let password = || SecretString::from("canary").into();
        for credentials in [
            Credentials::Password { user: "u".into(), password: password() },
            Credentials::Token(password()),
            Credentials::Nkey(password()),
        ] {
            let mut config = usual();
            config.access.credentials = credentials;
            let printed = format!("{config:?}");
            assert!(!printed.contains("canary"), "{printed}");
        }
    }
}
