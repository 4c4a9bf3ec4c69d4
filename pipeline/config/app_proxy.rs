//! The settings of the role `app-proxy`. What each means, and its default, stands in `config/default.yaml`, and there alone.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::Token;
use super::problem::Problems;
use super::units::{As, Size, Unit};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct AppProxy {
    pub(crate) listen: As<Option<SocketAddr>>,
    pub(crate) cors: As<Option<String>>,
    namespaces: Vec<As<Place>>,
    pub(crate) workflows: Workflows,
    pub(crate) sealed_secrets: SealedSecrets,
    pub(crate) registration: Registration,
    pub(crate) oauth: OAuth,
    pub(crate) git_ca_file: As<Option<PathBuf>>,
    pub(crate) skip_git_permission_validation: bool,
    pub(crate) own_pods: String,
    pub(crate) max_body: As<Size>,
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) log_streams: usize,
    pub(crate) remember: As<Duration>,
    pub(crate) heartbeat: As<Duration>,
    repositories: Clones,
}

/// Clones of people's repositories.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Clones {
    directory: As<Option<PathBuf>>,
    size: As<Size>,
    fetch_size: As<Size>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Workflows {
    pub(crate) url: As<Option<Url>>,
    token_file: As<Option<PathBuf>>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) insecure: bool,
}

/// What Secrets are sealed for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SealedSecrets {
    pub(crate) url: As<Option<Url>>,
}

/// How the runtime registers with the platform.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Registration {
    pub(crate) runtime: As<Option<String>>,
    token_file: As<Option<PathBuf>>,
    pub(crate) cluster: String,
    pub(crate) ingress_host: As<Option<Url>>,
    pub(crate) internal_ingress_host: As<Option<Url>>,
    pub(crate) access_mode: String,
    pub(crate) ingress_class: String,
    pub(crate) ingress_controller: String,
    pub(crate) chart_version: String,
    pub(crate) external_argo_cd: bool,
}

/// The OAuth application by which people register tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct OAuth {
    secret: As<Option<String>>,
    external_url: As<Option<Url>>,
}

impl OAuth {
    /// The Secret that is read of it.
    pub(crate) fn secret(&self) -> Option<&str> {
        self.secret.as_deref()
    }

    /// As the app proxy works with it; `None`: there is none.
    pub(crate) fn config(&self) -> Option<stages_proxy::OAuthConfig> {
        let (secret, external_url) = (self.secret.clone()?, self.external_url.clone()?);
        Some(stages_proxy::OAuthConfig { secret, external_url })
    }

    fn check(&self, problems: &mut Problems) {
        let Some(secret) = &*self.secret else { return };
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        if secret.len() > 253 || !secret.chars().all(fits) {
            problems.add("appProxy.oauth.secret", format!("'{secret}' is no name of a Secret"));
        }
        match &*self.external_url {
            None => {
                problems.add("appProxy.oauth.externalUrl", "is not set, and appProxy.oauth.secret needs it");
            }
            Some(url) if url.scheme() != "https" && !is_this_machine(url) => {
                problems.add("appProxy.oauth.externalUrl", "must begin with https://: codes come there");
            }
            Some(_) => {}
        }
    }
}

fn is_this_machine(url: &Url) -> bool {
    matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"))
}

impl Registration {
    /// What it is registered with.
    pub(crate) fn token(&self) -> Token {
        Token::of(&None, &self.token_file)
    }

    fn check(&self, problems: &mut Problems) {
        let at = |name: &str| format!("appProxy.registration.{name}");
        let Some(runtime) = &*self.runtime else { return };
        if !is_runtime(runtime) {
            let text = format!(
                "'{runtime}' is no name of a runtime: lower-case letters and digits, a letter first, at most 38"
            );
            problems.add(at("runtime"), text);
        }
        if self.token_file.is_none() {
            problems.add(at("tokenFile"), "is not set, and appProxy.registration.runtime needs it");
        }
        if !["", "INGRESS", "TUNNEL"].contains(&&*self.access_mode) {
            problems.add(at("accessMode"), "must be INGRESS or TUNNEL, or \"\" for another way");
        }
    }
}

/// What the platform takes as the name of a runtime.
fn is_runtime(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 38
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

impl Workflows {
    /// What its server is called with.
    pub(crate) fn token(&self) -> Token {
        Token::of(&None, &self.token_file)
    }
}

impl AppProxy {
    pub(super) fn check(&self, problems: &mut Problems) {
        problems.positive("appProxy.heartbeat", *self.heartbeat);
        self.registration.check(problems);
        self.oauth.check(problems);
        problems.at_least("appProxy.maxBody", &self.max_body, "1Ki");
        problems.at_least("appProxy.repositories.size", &self.repositories.size, "1Mi");
        problems.at_least("appProxy.repositories.fetchSize", &self.repositories.fetch_size, "1Mi");
        if !is_labels(&self.own_pods) {
            problems.add("appProxy.ownPods", "must be labels, such as app.kubernetes.io/instance=runtime");
        }
        if *self.remember > Duration::from_secs(60) {
            problems
                .add("appProxy.remember", "must be at most 1m: so long may a right that was taken away hold");
        }
        if self.workflows.url.is_some() && self.workflows.token_file.is_none() {
            problems.add("appProxy.workflows.tokenFile", "is not set, and appProxy.workflows.url needs it");
        }
    }

    /// Where clones are kept, and what they may cost.
    pub(crate) fn checkouts(&self) -> stages_git::remote::Config {
        let otherwise = || std::env::temp_dir().join("gitops-runtime-repositories");
        let of = &self.repositories;
        stages_git::remote::Config {
            bytes: of.size.0,
            fetch_bytes: of.fetch_size.0,
            // Its memory is for many: what people commit to by hand are texts.
            object_bytes: 32 << 20,
            ..stages_git::remote::Config::new(of.directory.clone().unwrap_or_else(otherwise))
        }
    }

    /// Where Rollouts and Workflows are changed beside its own namespace.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        self.namespaces.iter().map(|place| place.0.clone()).collect()
    }
}

/// Labels that a pod is to have, as `key=value,key=value`.
fn is_labels(text: &str) -> bool {
    let part = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    text.split(',').all(|label| {
        label.split_once('=').is_some_and(|(key, value)| part(key, "-._/") && part(value, "-._"))
    })
}

/// A namespace, or `*` for all.
#[derive(Debug)]
struct Place(String);

impl Unit for Place {
    const FORMAT: &'static str = "namespace-or-all";

    fn read(text: &str) -> Result<Self, String> {
        if text == "*" || crate::cli::is_label(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(format!("'{text}' is neither the name of a namespace nor *"))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::tests::refused;

    #[test]
    fn what_cannot_be_is_refused_with_its_path() {
        refused(&[
            ("appProxy.remember", "2m", "must be at most 1m: so long may a right that was taken away hold"),
            (
                "appProxy.workflows.url",
                "http://argo-server:2746",
                "appProxy.workflows.tokenFile: is not set, and appProxy.workflows.url needs it",
            ),
            ("appProxy.ownPods", "app", "must be labels, such as app.kubernetes.io/instance=runtime"),
            (
                "appProxy.registration.runtime",
                "eu1",
                "appProxy.registration.tokenFile: is not set, and appProxy.registration.runtime needs it",
            ),
            (
                "appProxy.oauth.secret",
                "github-oauth2",
                "appProxy.oauth.externalUrl: is not set, and appProxy.oauth.secret needs it",
            ),
            ("appProxy.oauth.secret", "A_b", "'A_b' is no name of a Secret"),
            ("appProxy.repositories.size", "1Ki", "must be at least 1Mi"),
            ("appProxy.namespaces", "A_b", "'A_b' is neither the name of a namespace nor *"),
        ]);
    }
}
