//! The settings of the role `platform`. What each means, and its default, stands in `config/default.yaml`, and there alone.

use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use schemars::JsonSchema;
use serde::Deserialize;
use stages_platform_oidc::Issuer;
use stages_platform_store::check_team;
use url::Url;

use super::problem::Problems;
use super::units::{As, Network, Size, Unit};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PlatformServer {
    pub(crate) external_url: As<Option<Url>>,
    pub(crate) store: Store,
    pub(crate) ingest: Ingest,
    pub(crate) forward: Forward,
    pub(crate) oidc: Oidc,
    pub(crate) retention: Retention,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Store {
    pub(crate) path: As<Option<PathBuf>>,
    pub(crate) postgres_url: As<Option<SecretString>>,
    pub(crate) postgres_url_file: As<Option<PathBuf>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Ingest {
    pub(crate) max_body: As<Size>,
    pub(crate) max_unpacked: As<Size>,
    pub(crate) body_timeout: As<Duration>,
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) runtime_requests: usize,
    pub(crate) runtime_bytes: As<Size>,
    pub(crate) all_bytes: As<Size>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Forward {
    pub(crate) connect_timeout: As<Duration>,
    pub(crate) timeout: As<Duration>,
    pub(crate) idle_timeout: As<Duration>,
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) concurrency: usize,
    pub(crate) refused_networks: Vec<As<Network>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Oidc {
    pub(crate) issuer: As<Option<Issuer>>,
    pub(crate) client_id: As<Option<String>>,
    pub(crate) client_secret: As<Option<SecretString>>,
    pub(crate) client_secret_file: As<Option<PathBuf>>,
    pub(crate) scopes: Vec<As<String>>,
    pub(crate) groups_claim: As<Option<String>>,
    pub(crate) teams: Vec<As<TeamOfGroup>>,
    pub(crate) admin_group: As<Option<String>>,
    pub(crate) allowed_domains: Vec<As<Domain>>,
    pub(crate) create_users: bool,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) button_text: As<Option<String>>,
}

/// A group at the provider, and the team here that its people are in.
#[derive(Debug, Clone)]
pub(crate) struct TeamOfGroup {
    pub(crate) group: String,
    pub(crate) team: String,
}

/// What stands behind the @ of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Domain(pub(crate) String);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retention {
    pub(crate) history: As<Duration>,
    pub(crate) keys: As<Duration>,
    pub(crate) interval: As<Duration>,
}

impl PlatformServer {
    pub(super) fn check(&self, problems: &mut Problems) {
        let Store { path, postgres_url, postgres_url_file } = &self.store;
        let server = postgres_url.is_some() || postgres_url_file.is_some();
        problems.exclusive(
            path.is_some() && server,
            "platformServer.store.path",
            "platformServer.store.postgresUrl",
        );
        let both = postgres_url.is_some() && postgres_url_file.is_some();
        problems.exclusive(both, "platformServer.store.postgresUrl", "platformServer.store.postgresUrlFile");
        if self.external_url.as_ref().is_some_and(|url| url.path() != "/") {
            let text = "must have no path: the console is at the root of a host of its own";
            problems.add("platformServer.externalUrl", text);
        }
        self.oidc.check(problems);
        problems.positive("platformServer.ingest.bodyTimeout", *self.ingest.body_timeout);
        problems.at_least("platformServer.ingest.maxBody", &self.ingest.max_body, "1Ki");
        problems.at_least("platformServer.ingest.maxUnpacked", &self.ingest.max_unpacked, "1Ki");
        problems.positive("platformServer.forward.connectTimeout", *self.forward.connect_timeout);
        problems.positive("platformServer.forward.timeout", *self.forward.timeout);
        problems.positive("platformServer.forward.idleTimeout", *self.forward.idle_timeout);
        problems.positive("platformServer.retention.history", *self.retention.history);
        problems.positive("platformServer.retention.keys", *self.retention.keys);
        problems.positive("platformServer.retention.interval", *self.retention.interval);
    }
}

impl Oidc {
    fn check(&self, problems: &mut Problems) {
        let (secret, file) = (self.client_secret.is_some(), self.client_secret_file.is_some());
        let at = |name: &str| format!("platformServer.oidc.{name}");
        problems.exclusive(secret && file, &at("clientSecret"), &at("clientSecretFile"));
        if self.issuer.is_none() {
            return;
        }
        if self.client_id.is_none() {
            problems.missing(at("clientId"), "must be given with issuer: who this platform is there");
        }
        if !secret && !file {
            problems.missing(
                at("clientSecretFile"),
                "must be given with issuer: how this platform proves who it is",
            );
        }
        if !self.teams.is_empty() && self.groups_claim.is_none() {
            problems.add(at("teams"), "needs groupsClaim: without it nobody has any group");
        }
        if self.admin_group.is_some() && self.groups_claim.is_none() {
            problems.add(at("adminGroup"), "needs groupsClaim: without it nobody has any group");
        }
    }
}

impl Unit for Option<Issuer> {
    const FORMAT: &'static str = "issuer";

    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Ok(None),
            text => Issuer::parse(text).map(Some).map_err(|error| error.to_string()),
        }
    }
}

impl Unit for TeamOfGroup {
    const FORMAT: &'static str = "team-of-group";

    fn read(text: &str) -> Result<Self, String> {
        // A group may be called by a distinguished name, which has signs of equality in it; a team has none.
        let parts = text.rsplit_once('=').map(|(group, team)| (group.trim(), team.trim()));
        match parts {
            Some((group, team)) if !group.is_empty() && (1..=100).contains(&team.chars().count()) => {
                check_team(team).map_err(|why| format!("'{text}' leads to no team: {why}"))?;
                Ok(Self { group: group.to_owned(), team: team.to_owned() })
            }
            _ => Err(format!(
                "'{text}' is not a group and a team of at most 100 characters, such as platform-ops=ops"
            )),
        }
    }
}

impl Unit for Domain {
    const FORMAT: &'static str = "mail-domain";

    fn read(text: &str) -> Result<Self, String> {
        let domain = text.trim();
        let domain = domain.strip_prefix('@').unwrap_or(domain);
        let is_part = |part: &str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_alphanumeric() || c == '-')
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        match domain.split('.').all(is_part) {
            true => Ok(Self(domain.to_owned())),
            false => {
                Err(format!("'{text}' is not a domain such as example.com; give each by its whole name"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{host, resolve, wrong};

    #[test]
    fn the_console_has_a_host_of_its_own() {
        assert!(resolve(&[("platformServer.externalUrl", "https://platform.example.com/")], &host()).is_ok());
        assert_eq!(
            wrong(&[("platformServer.externalUrl", "https://tools.example.com/gitops")]),
            "platformServer.externalUrl: must have no path: the console is at the root of a host of its own"
        );
    }

    #[test]
    fn a_domain_of_addresses_is_one_that_somebody_may_be_at() {
        let of = |text| {
            let config = resolve(&[("platformServer.oidc.allowedDomains", text)], &host()).unwrap();
            let domains = &config.platform_server.oidc.allowed_domains;
            domains.iter().map(|domain| domain.0.clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            of("@example.com, a-b.example.org,b\u{fc}cher.example"),
            ["example.com", "a-b.example.org", "b\u{fc}cher.example"]
        );
        for text in [
            "@@example.com",
            "*.example.com",
            "https://example.com",
            "ada@example.com",
            "example.com.",
            "-a.example",
        ] {
            assert_eq!(
                wrong(&[("platformServer.oidc.allowedDomains", text)]),
                format!(
                    "platformServer.oidc.allowedDomains: '{text}' is not a domain such as example.com; give each by its whole name (from --set)"
                )
            );
        }
    }
}
