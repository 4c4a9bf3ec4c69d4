//! Providers of Git: where their API is, and what a person's token may there.

use async_graphql::Enum;
use pipeline_core::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use stages_client::{Target, Url};

use super::calls::Calls;
use super::forge::{CheckedToken, Forge};
use super::token_type::GitTokenType;
use crate::error::ActError;

/// Of GitHub's tokens those that do not say what they may.
const FINE_GRAINED: &str = "github_pat";
/// Clouds, by their names.
const CLOUDS: [(&str, Provider); 3] = [
    ("github.com", Provider::GitHub),
    ("gitlab.com", Provider::GitLab),
    ("bitbucket.org", Provider::Bitbucket),
];

/// A provider of Git.
#[derive(Debug, Enum, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Provider {
    Bitbucket,
    BitbucketServer,
    Gerrit,
    /// Gitea, or Forgejo.
    Gitea,
    #[graphql(name = "GITHUB")]
    #[serde(rename = "GITHUB")]
    GitHub,
    #[graphql(name = "GITLAB")]
    #[serde(rename = "GITLAB")]
    GitLab,
}

fn wrong<T>(why: impl Into<String>) -> Result<T, ActError> {
    Err(ActError::Wrong(why.into()))
}

impl Provider {
    /// As the schema calls it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Bitbucket => "BITBUCKET",
            Self::BitbucketServer => "BITBUCKET_SERVER",
            Self::Gerrit => "GERRIT",
            Self::Gitea => "GITEA",
            Self::GitHub => "GITHUB",
            Self::GitLab => "GITLAB",
        }
    }

    /// What is said of one that is not worked with.
    pub(super) fn unknown(self) -> ActError {
        let word = self.word();
        ActError::Wrong(format!(
            "this app proxy works with BITBUCKET, BITBUCKET_SERVER, GITEA, GITHUB and GITLAB, and not with {word}"
        ))
    }

    /// Where its API is: what was given, with the path that its servers have where none of the API was given.
    pub(super) fn api(self, given: Option<&str>) -> Result<String, ActError> {
        let (own, path) = match self {
            Self::Bitbucket => (Some("https://api.bitbucket.org/2.0"), "/2.0"),
            Self::BitbucketServer => (None, "/rest/api/1.0"),
            Self::Gitea => (None, "/api/v1"),
            Self::GitHub => (Some("https://api.github.com"), "/api/v3"),
            Self::GitLab => (Some("https://gitlab.com/api/v4"), "/api/v4"),
            Self::Gerrit => return Err(self.unknown()),
        };
        let given = given.map(str::trim).filter(|given| !given.is_empty());
        let Some(given) = given.or(own) else {
            return wrong(format!("{} has no cloud of its own: give the apiUrl of your server", self.word()));
        };
        if let Err(error) = Target::new(given, "") {
            return wrong(format!("apiUrl: {error}"));
        }
        let Ok(mut url) = Url::parse(given) else { return wrong("apiUrl is no URL") };
        let host = url.host_str().unwrap_or_default();
        let is_this_machine = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
        if url.scheme() != "https" && !is_this_machine {
            return wrong("apiUrl must begin with https://: tokens are sent there");
        }
        let is_below = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        let cloud = CLOUDS.into_iter().find(|(name, _)| host == *name || is_below(name));
        let inferred = cloud.map(|(_, provider)| provider);
        match inferred {
            Some(other) if other != self => wrong(format!(
                "supplied provider \"{}\" does not match inferred cloud provider \"{}\" for url \"{given}\"",
                self.word(),
                other.word()
            )),
            Some(_) => Ok(own.unwrap_or(given).to_owned()),
            None if self == Self::Bitbucket && !is_this_machine => {
                wrong("BITBUCKET is at bitbucket.org alone: a server of your own is BITBUCKET_SERVER")
            }
            // GitHub's own cloud, for those whose data stays where they are: its API is at a name of its own.
            None if self == Self::GitHub && host.ends_with(".ghe.com") => {
                Ok(format!("https://api.{}", host.trim_start_matches("api.")))
            }
            None => {
                let given = url.path().trim_end_matches('/').to_owned();
                // All but GitHub's may stand below a path of their host. Whoever names a part of the API's own knows where it is.
                let part = path.rsplit_once('/').map_or(path, |(part, _)| part);
                let is_of_api = self == Self::GitHub || format!("{given}/").contains(&format!("{part}/"));
                if given.is_empty() || !is_of_api {
                    url.set_path(&format!("{given}{path}"));
                }
                Ok(url.as_str().trim_end_matches('/').to_owned())
            }
        }
    }

    /// Whether a token is known there, and may what is wanted of its kind; gives whose it is there, and until when. Of no kind, it
    /// is not looked what it may.
    pub(super) async fn check(
        self,
        api: &str,
        (username, token): (Option<&str>, &SecretString),
        of: Option<GitTokenType>,
        calls: &Calls,
    ) -> Result<CheckedToken, ActError> {
        let text = token.expose_secret();
        if text.is_empty() || text.len() > 4_096 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("that is no token: it is empty, too long, or holds what no token holds");
        }
        let Some(of) = of else {
            return Forge::new(self, api, (username, token), calls).await?.whose().await;
        };
        if self == Self::GitHub && text.starts_with(FINE_GRAINED) {
            let instead = match of {
                GitTokenType::UserToken => "register a classic token of the scope repo",
                GitTokenType::RuntimeToken => "give a classic token of the scopes repo and admin:repo_hook",
            };
            return wrong(format!(
                "a fine-grained token does not say what it may: {instead}, or have appProxy.skipGitPermissionValidation set"
            ));
        }
        Forge::new(self, api, (username, token), calls).await?.check(of).await
    }
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_ascii_lowercase()
}

/// Whether a clone's address is that of the provider of an API: of the same host, or of the one that the API is the `api.` of,
/// and not with less protection.
pub(super) fn is_of(api: &Url, clone: &str) -> bool {
    let Ok(clone) = Url::parse(clone) else { return false };
    let (ours, theirs) = (host(api), host(&clone));
    clone.scheme() == api.scheme() && (ours == theirs || ours == format!("api.{theirs}"))
}

/// Where the repositories of an API are: what their addresses begin with.
pub(super) fn repositories_of(api: &Url) -> String {
    let host = host(api);
    let is_cloud = matches!(&*host, "api.github.com" | "api.bitbucket.org") || host.ends_with(".ghe.com");
    let host = if is_cloud { host.trim_start_matches("api.") } else { &host };
    let port = api.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}", api.scheme())
}

#[cfg(test)]
mod tests {
    use stages_client::Url;

    use super::{Provider, is_of, repositories_of};

    #[test]
    fn an_api_is_below_the_path_that_its_server_stands_at() {
        for (provider, given, api) in [
            (Provider::GitLab, "https://git.example/", "https://git.example/api/v4"),
            (Provider::GitLab, "https://git.example/gitlab/", "https://git.example/gitlab/api/v4"),
            (Provider::GitLab, "https://git.example/gitlab/api/v4/", "https://git.example/gitlab/api/v4"),
            (Provider::Gitea, "https://git.example/a/tea", "https://git.example/a/tea/api/v1"),
            (Provider::Gitea, "https://git.example/api/v1", "https://git.example/api/v1"),
            (
                Provider::BitbucketServer,
                "https://git.example/bitbucket",
                "https://git.example/bitbucket/rest/api/1.0",
            ),
            (
                Provider::BitbucketServer,
                "https://git.example/bitbucket/rest/api/latest",
                "https://git.example/bitbucket/rest/api/latest",
            ),
            (Provider::GitHub, "https://git.example", "https://git.example/api/v3"),
            (Provider::GitHub, "https://git.example/own", "https://git.example/own"),
            (Provider::Bitbucket, "http://127.0.0.1:1/own", "http://127.0.0.1:1/own"),
        ] {
            assert_eq!(provider.api(Some(given)).unwrap(), api, "{given}");
        }
    }

    #[test]
    fn a_token_goes_to_the_host_of_its_provider_alone() {
        for (api, clone, goes) in [
            ("https://api.github.com", "https://github.com/a/b.git", true),
            ("https://git.example/api/v3", "https://git.example/a/b.git", true),
            ("https://git.example/api/v3", "http://git.example/a/b.git", false),
            ("https://git.example/api/v3", "https://evil.example/a/b.git", false),
            ("https://api.github.com", "https://evilgithub.com/a/b.git", false),
            ("https://git.example/api/v3", "git@git.example:a/b.git", false),
        ] {
            assert_eq!(is_of(&Url::parse(api).unwrap(), clone), goes, "{clone}");
        }
    }

    #[test]
    fn the_repositories_of_a_cloud_are_not_where_its_api_is() {
        for (api, repositories) in [
            ("https://api.github.com", "https://github.com"),
            ("https://api.acme.ghe.com", "https://acme.ghe.com"),
            ("https://api.bitbucket.org/2.0", "https://bitbucket.org"),
            ("https://gitlab.com/api/v4", "https://gitlab.com"),
            ("https://api.example:8443/api/v1", "https://api.example:8443"),
        ] {
            let api = Url::parse(api).unwrap();
            assert_eq!(repositories_of(&api), repositories);
            assert!(is_of(&api, repositories), "{repositories}");
        }
    }
}
