//! A provider's API, asked with somebody's token.
//!
//! takes: a token - gives: whose it is, and what they see - calls: GitHub (`GET /user`, `/user/repos`, `/user/orgs`,
//! `/repos/{owner}/{name}`), GitLab (`GET /user`, `/personal_access_tokens/self`, `/projects`, `/groups`) - fails: a token that it
//! does not take is said to be so; all else is a peer that is away

use std::time::Duration;

use pipeline_core::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use stages_client::{Client, Fault, HttpError, Method, Target, Token};

use super::provider::Provider;
use super::repository::{GitHubRepository, GitLabProject, Repository};
use crate::error::ActError;

/// A provider is not waited for longer.
const WITHIN: Duration = Duration::from_secs(20);
/// No answer is longer: a hundred repositories are the longest.
const LARGEST: usize = 4 << 20;
const PEER: &str = "the Git provider";

/// A provider, and whoever asks it.
pub(super) struct Forge {
    provider: Provider,
    client: Client,
    token: Token,
}

/// Somebody, as a provider knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) username: String,
    /// As their commits have it.
    pub(super) name: String,
    pub(super) email: String,
}

/// What is asked: an act to name in errors, a path, and a query.
struct Asked<'a> {
    act: &'static str,
    path: &'a [&'a str],
    query: &'a [(&'static str, String)],
}

/// An answer, and of its head what matters.
struct Answer<T> {
    body: T,
    scopes: Option<String>,
    /// Whether it has another page.
    has_next: bool,
}

/// What GitHub says of whoever asks.
#[derive(Deserialize)]
struct GitHubUser {
    id: u64,
    login: String,
    name: Option<String>,
    email: Option<String>,
}

/// What GitLab says of whoever asks.
#[derive(Deserialize)]
struct GitLabUser {
    id: u64,
    username: String,
    name: Option<String>,
    commit_email: Option<String>,
    email: Option<String>,
    #[serde(default)]
    bot: bool,
}

/// What GitLab says of the token that asks.
#[derive(Deserialize)]
struct GitLabToken {
    #[serde(default)]
    scopes: Vec<String>,
}

/// An organisation of GitHub, or a group of GitLab.
#[derive(Deserialize)]
struct Organization {
    login: Option<String>,
    full_path: Option<String>,
}

fn wrong<T>(why: impl Into<String>) -> Result<T, ActError> {
    Err(ActError::Wrong(why.into()))
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

impl Forge {
    pub(super) async fn new(provider: Provider, api: &str, token: &SecretString) -> Result<Self, ActError> {
        let target = Target::new(api, "").map_err(|error| ActError::Wrong(format!("apiUrl: {error}")))?;
        let config = stages_client::Config { max_idle: 1, ..stages_client::Config::new(WITHIN, LARGEST) };
        let client = config.build(target).await;
        let client = client.map_err(|error| ActError::Wrong(format!("the Git provider: {error}")))?;
        Ok(Self { provider, client, token: Token::literal(token.expose_secret().to_owned()) })
    }

    /// Whose token it is, if it may read and write repositories.
    pub(super) async fn check(&self) -> Result<Person, ActError> {
        const CHECK: &str = "check the token";
        match self.provider {
            Provider::GitHub => {
                let user: Answer<GitHubUser> = self.get(CHECK, &["user"]).await?;
                let Some(scopes) = &user.scopes else { return wrong("missing scopes header on response") };
                match scopes.split(',').any(|scope| scope.trim() == "repo") {
                    true => Ok(self.of_github(user.body)),
                    false => wrong("the token may too little: it has not the scope repo"),
                }
            }
            Provider::GitLab => {
                let said: Answer<GitLabToken> = self.get(CHECK, &["personal_access_tokens", "self"]).await?;
                let has = |scope: &str| said.body.scopes.iter().any(|one| one == scope);
                let enough = has("api") || has("write_repository") && has("read_api");
                if !enough {
                    return wrong(
                        "the token may too little: it has not the scopes write_repository and read_api, nor api",
                    );
                }
                let user: Answer<GitLabUser> = self.get(CHECK, &["user"]).await?;
                match user.body.bot && user.body.username.starts_with("project") {
                    true => wrong("the token is that of a project: register one of a person"),
                    false => Ok(self.of_gitlab(user.body)),
                }
            }
            other => Err(other.unknown()),
        }
    }

    /// Whoever asks.
    pub(super) async fn me(&self) -> Result<Person, ActError> {
        const ASK: &str = "say whose the token is";
        match self.provider {
            Provider::GitHub => Ok(self.of_github(self.get(ASK, &["user"]).await?.body)),
            Provider::GitLab => Ok(self.of_gitlab(self.get(ASK, &["user"]).await?.body)),
            other => Err(other.unknown()),
        }
    }

    /// A page of the repositories that they may work with, counted from 1, and whether there is another.
    pub(super) async fn repositories(
        &self,
        page: u32,
        limit: u32,
    ) -> Result<(Vec<Repository>, bool), ActError> {
        const LIST: &str = "list repositories";
        let mut query = vec![("page", page.to_string()), ("per_page", limit.to_string())];
        match self.provider {
            Provider::GitHub => {
                query.push(("sort", "full_name".to_owned()));
                let asked = Asked { act: LIST, path: &["user", "repos"], query: &query };
                let answer: Answer<Vec<GitHubRepository>> = self.ask(asked).await?;
                Ok((answer.body.into_iter().map(Repository::from).collect(), answer.has_next))
            }
            Provider::GitLab => {
                query.push(("membership", "true".to_owned()));
                query.push(("order_by", "path".to_owned()));
                query.push(("sort", "asc".to_owned()));
                let asked = Asked { act: LIST, path: &["projects"], query: &query };
                let answer: Answer<Vec<GitLabProject>> = self.ask(asked).await?;
                Ok((answer.body.into_iter().map(Repository::from).collect(), answer.has_next))
            }
            other => Err(other.unknown()),
        }
    }

    /// One repository, by its full name.
    pub(super) async fn repository(&self, full_name: &str) -> Result<Repository, ActError> {
        const FIND: &str = "find the repository";
        let parts: Vec<&str> = full_name.split('/').collect();
        let is_name = |part: &&str| {
            !matches!(*part, "" | "." | "..")
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
        };
        let deep = match self.provider {
            Provider::GitHub => 2..=2,
            _ => 2..=21,
        };
        if full_name.len() > 255 || !deep.contains(&parts.len()) || !parts.iter().all(is_name) {
            return wrong("a repository is named by its owner and its name, such as team/mono");
        }
        let found = match (self.provider, parts.as_slice()) {
            (Provider::GitHub, [owner, name]) => {
                let path = ["repos", owner, name];
                self.get::<GitHubRepository>(FIND, &path).await.map(|answer| answer.body.into())
            }
            (Provider::GitLab, _) => {
                let path = ["projects", full_name];
                self.get::<GitLabProject>(FIND, &path).await.map(|answer| answer.body.into())
            }
            (other, _) => Err(other.unknown()),
        };
        found.map_err(|error| match &error {
            ActError::Away { source, .. } if source.status() == Some(404) => {
                ActError::NotFound(format!("there is no repository {full_name}, or the token may not see it"))
            }
            _ => error,
        })
    }

    /// What they may make repositories in: the first hundred.
    pub(super) async fn organizations(&self) -> Result<Vec<String>, ActError> {
        let mut query = vec![("per_page", "100".to_owned())];
        let path: &[&str] = match self.provider {
            Provider::GitHub => &["user", "orgs"],
            Provider::GitLab => {
                // Developers and above.
                query.push(("min_access_level", "30".to_owned()));
                &["groups"]
            }
            other => return Err(other.unknown()),
        };
        let asked = Asked { act: "list organisations", path, query: &query };
        let answer: Answer<Vec<Organization>> = self.ask(asked).await?;
        Ok(answer.body.into_iter().filter_map(|one| one.login.or(one.full_path)).collect())
    }

    fn of_github(&self, user: GitHubUser) -> Person {
        // What GitHub takes for somebody who does not show their address.
        let hidden = match self.client.host().as_ref() {
            "api.github.com" => "users.noreply.github.com".to_owned(),
            host => format!("users.noreply.{}", host.split(':').next().unwrap_or(host)),
        };
        let email = given(user.email).unwrap_or_else(|| format!("{}+{}@{hidden}", user.id, user.login));
        let name = given(user.name).unwrap_or_else(|| user.login.clone());
        Person { username: user.login, name, email }
    }

    fn of_gitlab(&self, user: GitLabUser) -> Person {
        let host = self.client.host().clone();
        let host = host.split(':').next().unwrap_or_default();
        let email = given(user.commit_email).or_else(|| given(user.email));
        let email = email.unwrap_or_else(|| format!("{}-{}@users.noreply.{host}", user.id, user.username));
        let name = given(user.name).unwrap_or_else(|| user.username.clone());
        Person { username: user.username, name, email }
    }

    async fn get<T: DeserializeOwned>(
        &self,
        act: &'static str,
        path: &[&str],
    ) -> Result<Answer<T>, ActError> {
        self.ask(Asked { act, path, query: &[] }).await
    }

    async fn ask<T: DeserializeOwned>(&self, asked: Asked<'_>) -> Result<Answer<T>, ActError> {
        let act = asked.act;
        let away = |source: HttpError| ActError::Away { peer: PEER, act, source };
        let request = self.client.request(act, Method::GET, asked.path).map_err(away)?.query(asked.query);
        let prefix = match self.provider {
            Provider::GitHub => "token ",
            _ => "Bearer ",
        };
        let request = self.client.authorize(act, request, &self.token, prefix).await.map_err(away)?;
        let mut opened = match self.client.open(act, request).await.map_err(away)? {
            Ok(opened) => opened,
            Err(reply) => {
                return match reply.status() {
                    401 | 403 => wrong(format!(
                        "{} does not take this token: it has ended, or is that of another server, or may too little",
                        self.provider.word()
                    )),
                    status => Err(away(reply.into_error(Fault::Status(status)))),
                };
            }
        };
        let scopes = opened.header("x-oauth-scopes").map(str::to_owned);
        // GitHub says it in links, GitLab in a header of its own.
        let has_next = opened.header("link").is_some_and(|links| links.contains("rel=\"next\""))
            || opened.header("x-next-page").is_some_and(|page| !page.trim().is_empty());
        let mut body = Vec::new();
        while let Some(chunk) = opened.chunk().await.map_err(away)? {
            body.extend_from_slice(&chunk);
            if body.len() > LARGEST {
                return Err(ActError::Unreadable(PEER));
            }
        }
        let body = serde_json::from_slice(&body).map_err(|_| ActError::Unreadable(PEER))?;
        Ok(Answer { body, scopes, has_next })
    }
}
