//! Providers of Git: where their API is, and what a person's token may there.
//!
//! GitHub says the scopes of a token in a header of every answer; GitLab says them of the token that asks.

use std::time::Duration;

use async_graphql::Enum;
use pipeline_core::ExposeSecret as _;
use pipeline_core::SecretString;
use serde::{Deserialize, Serialize};
use stages_client::{Client, Fault, HttpError, Method, Target, Token, Url};

use crate::error::ActError;

/// A provider is not waited for longer.
const WITHIN: Duration = Duration::from_secs(20);
/// No answer about a token is longer.
const LARGEST: usize = 64 << 10;
/// Of GitHub's tokens those that do not say what they may.
const FINE_GRAINED: &str = "github_pat_";
const PEER: &str = "the Git provider";
const CHECK: &str = "check the token";

/// A provider of Git.
#[derive(Debug, Enum, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Provider {
    Bitbucket,
    BitbucketServer,
    Gerrit,
    #[graphql(name = "GITHUB")]
    #[serde(rename = "GITHUB")]
    GitHub,
    #[graphql(name = "GITLAB")]
    #[serde(rename = "GITLAB")]
    GitLab,
}

/// What GitLab says of whoever asks.
#[derive(Deserialize)]
struct GitLabUser {
    username: String,
    #[serde(default)]
    bot: bool,
}

/// What GitLab says of the token that asks.
#[derive(Deserialize)]
struct GitLabToken {
    #[serde(default)]
    scopes: Vec<String>,
}

/// What GitHub says of whoever asks.
#[derive(Deserialize)]
struct GitHubUser {
    login: String,
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
            Self::GitHub => "GITHUB",
            Self::GitLab => "GITLAB",
        }
    }

    /// Where its API is: what was given, with the path that its servers have where none was given.
    pub(super) fn api(self, given: Option<&str>) -> Result<String, ActError> {
        let (own, path) = match self {
            Self::GitHub => ("https://api.github.com", "/api/v3"),
            Self::GitLab => ("https://gitlab.com/api/v4", "/api/v4"),
            other => {
                let word = other.word();
                return wrong(format!("this app proxy works with GITHUB and GITLAB, and not with {word}"));
            }
        };
        let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) else {
            return Ok(own.to_owned());
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
        let inferred = match host {
            "github.com" | "api.github.com" => Some(Self::GitHub),
            "gitlab.com" => Some(Self::GitLab),
            "bitbucket.org" | "api.bitbucket.org" => Some(Self::Bitbucket),
            _ => None,
        };
        match inferred {
            Some(other) if other != self => wrong(format!(
                "supplied provider \"{}\" does not match inferred cloud provider \"{}\" for url \"{given}\"",
                self.word(),
                other.word()
            )),
            Some(_) => Ok(own.to_owned()),
            None => {
                if url.path().trim_matches('/').is_empty() {
                    url.set_path(path);
                }
                Ok(url.as_str().trim_end_matches('/').to_owned())
            }
        }
    }

    /// Whether a person's token is known there, and may read and write repositories; gives whose it is there.
    pub(super) async fn check(self, api: &str, token: &SecretString) -> Result<String, ActError> {
        let text = token.expose_secret();
        if text.is_empty() || text.len() > 4_096 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("that is no token: it is empty, too long, or holds what no token holds");
        }
        let target = Target::new(api, "").map_err(|error| ActError::Wrong(format!("apiUrl: {error}")))?;
        let config = stages_client::Config { max_idle: 1, ..stages_client::Config::new(WITHIN, LARGEST) };
        let client = config.build(target).await;
        let client = client.map_err(|error| ActError::Wrong(format!("the Git provider: {error}")))?;
        match self {
            Self::GitHub if text.starts_with(FINE_GRAINED) => wrong(
                "a fine-grained token does not say what it may: register a classic token of the scope repo",
            ),
            Self::GitHub => self.check_github(&client, token).await,
            Self::GitLab => self.check_gitlab(&client, token).await,
            other => other.api(None),
        }
    }

    async fn check_github(self, client: &Client, token: &SecretString) -> Result<String, ActError> {
        let (user, scopes): (GitHubUser, _) = self.ask(client, token, "token ", &["user"]).await?;
        let Some(scopes) = scopes else { return wrong("missing scopes header on response") };
        match scopes.split(',').any(|scope| scope.trim() == "repo") {
            true => Ok(user.login),
            false => wrong("the token may too little: it has not the scope repo"),
        }
    }

    async fn check_gitlab(self, client: &Client, token: &SecretString) -> Result<String, ActError> {
        let (said, _): (GitLabToken, _) =
            self.ask(client, token, "Bearer ", &["personal_access_tokens", "self"]).await?;
        let has = |scope: &str| said.scopes.iter().any(|one| one == scope);
        let enough = has("api") || has("write_repository") && has("read_api");
        if !enough {
            return wrong(
                "the token may too little: it has not the scopes write_repository and read_api, nor api",
            );
        }
        let (user, _): (GitLabUser, _) = self.ask(client, token, "Bearer ", &["user"]).await?;
        match user.bot && user.username.starts_with("project") {
            true => wrong("the token is that of a project: register one of a person"),
            false => Ok(user.username),
        }
    }

    /// What it answers, and the scopes that it says in a header.
    async fn ask<T: serde::de::DeserializeOwned>(
        self,
        client: &Client,
        token: &SecretString,
        prefix: &str,
        path: &[&str],
    ) -> Result<(T, Option<String>), ActError> {
        let away = |source: HttpError| ActError::Away { peer: PEER, act: CHECK, source };
        let request = client.request(CHECK, Method::GET, path).map_err(away)?;
        let token = Token::literal(token.expose_secret().to_owned());
        let request = client.authorize(CHECK, request, &token, prefix).await.map_err(away)?;
        let mut opened = match client.open(CHECK, request).await.map_err(away)? {
            Ok(opened) => opened,
            Err(reply) => {
                return match reply.status() {
                    401 | 403 => wrong(format!(
                        "{} does not take this token: it has ended, or is that of another server, or may too little",
                        self.word()
                    )),
                    status => Err(away(reply.into_error(Fault::Status(status)))),
                };
            }
        };
        let scopes = opened.header("x-oauth-scopes").map(str::to_owned);
        let mut body = Vec::new();
        while let Some(chunk) = opened.chunk().await.map_err(away)? {
            body.extend_from_slice(&chunk);
            if body.len() > LARGEST {
                return Err(ActError::Unreadable(PEER));
            }
        }
        let answer = serde_json::from_slice(&body).map_err(|_| ActError::Unreadable(PEER))?;
        Ok((answer, scopes))
    }
}
