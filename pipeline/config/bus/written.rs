//! The settings of the bus as they stand in a file.

use std::path::PathBuf;
use std::time::Duration;

use pipeline_bus::{Prefix, jetstream};
use pipeline_core::SecretString;
use pipeline_ownership::Replica;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::units::{As, Size, Unit};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Bus {
    pub(crate) url: As<Servers>,
    pub(crate) prefix: As<Subjects>,
    #[schemars(range(min = 1, max = 3))]
    pub(crate) copies: usize,
    pub(crate) max_bytes: As<Size>,
    pub(crate) reports_max_bytes: As<Size>,
    pub(crate) ack_wait: As<Duration>,
    pub(crate) timeout: As<Duration>,
    pub(crate) user: As<Option<String>>,
    pub(crate) password: As<Option<SecretString>>,
    pub(crate) password_file: As<Option<PathBuf>>,
    pub(crate) token: As<Option<SecretString>>,
    pub(crate) token_file: As<Option<PathBuf>>,
    pub(crate) credentials_file: As<Option<PathBuf>>,
    pub(crate) nkey_file: As<Option<PathBuf>>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) certificate_file: As<Option<PathBuf>>,
    pub(crate) key_file: As<Option<PathBuf>>,
    pub(crate) reports: bool,
    pub(crate) replica: As<Option<ReplicaName>>,
    pub(crate) leases: Leases,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Leases {
    pub(crate) ttl: As<Duration>,
    pub(crate) renew: As<Duration>,
}

/// Addresses of NATS servers, without a user or password; none: there is no bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Servers(pub(crate) Vec<String>);

impl Unit for Servers {
    const FORMAT: &'static str = "bus-addresses";

    fn read(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let urls: Vec<String> = parts.map(str::to_owned).collect();
        if urls.is_empty() {
            return Ok(Self(urls));
        }
        let config = jetstream::Config { urls, ..jetstream::Config::default() };
        match config.check() {
            Ok(()) => Ok(Self(config.urls)),
            Err(jetstream::ConfigError::Secret(_)) => {
                Err("must hold no user and no password; give bus.user and bus.passwordFile, or bus.tokenFile"
                    .to_owned())
            }
            Err(_) => {
                Err("must be addresses such as nats://nats:4222 or tls://nats:4222, with commas between them"
                    .to_owned())
            }
        }
    }
}

/// What every subject begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subjects(pub(crate) String);

impl Unit for Subjects {
    const FORMAT: &'static str = "bus-prefix";

    fn read(text: &str) -> Result<Self, String> {
        match Prefix::new(text) {
            Ok(prefix) => Ok(Self(prefix.as_str().to_owned())),
            Err(_) => Err("must be 1 to 128 letters, digits, - and _, in parts between dots".to_owned()),
        }
    }
}

/// What the name of this replica begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplicaName(pub(crate) String);

impl ReplicaName {
    /// The most bytes: the process adds some.
    const BYTES: usize = 200;

    /// The name of a host, as far as it can be one.
    pub(super) fn of_host(name: &str) -> Self {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(Self::BYTES).collect();
        let name = name.trim_matches('.');
        Self(if name.is_empty() { "replica" } else { name }.to_owned())
    }
}

impl Unit for Option<ReplicaName> {
    const FORMAT: &'static str = "replica-name";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            name if name.len() <= ReplicaName::BYTES && Replica::new(name).is_ok() => {
                Ok(Some(ReplicaName(name.to_owned())))
            }
            _ => Err("must be 1 to 200 letters, digits, -, _ and ., neither beginning nor ending with ."
                .to_owned()),
        }
    }
}
