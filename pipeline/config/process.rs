//! The settings of the process itself: what it serves, keeps, logs, and how it ends.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Token;
use super::problem::Problems;
use super::units::{As, SocketPlace};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Directory {
    pub(super) directory: As<Option<PathBuf>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Redaction {
    pub(super) key_file: As<Option<PathBuf>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Serve {
    pub(crate) address: As<Option<SocketAddr>>,
    /// Never the same as `address`.
    pub(crate) metrics_address: As<Option<SocketAddr>>,
}

impl Serve {
    pub(super) fn settle(&mut self) {
        let address = *self.address;
        *self.metrics_address =
            self.metrics_address.filter(|other| address != Some(*other) || other.port() == 0);
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Admin {
    pub(super) socket: As<SocketPlace>,
    /// Loopback, or there is a token.
    pub(crate) address: As<Option<SocketAddr>>,
    token: As<Option<SecretString>>,
    token_file: As<Option<PathBuf>>,
}

impl Admin {
    /// What each request to `address` carries.
    pub(crate) fn token(&self) -> Token {
        Token::of(&self.token, &self.token_file)
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        problems.token("admin", &self.token, &self.token_file);
        match *self.address {
            Some(address) if !self.token().is_given() && !address.ip().is_loopback() => {
                let text = format!(
                    "{address} can be reached from other hosts, and no token is given; set admin.tokenFile, or take a \
                     loopback address such as 127.0.0.1:8089"
                );
                problems.add("admin.address", text);
            }
            None if self.token().is_given() => {
                problems.add("admin.token", "is for admin.address, which is not set");
            }
            _ => {}
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metrics {
    pub(crate) compat: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) level: LogLevel,
    pub(crate) format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shutdown {
    pub(crate) grace: As<Duration>,
}
