//! A provider's API, asked with somebody's token.
//!
//! takes: a token - gives: whose it is, what they see, and a pull request of theirs - calls: the provider, one file each
//! fails: a token that it does not take is said to be so, and what it refuses in its own words; all else is a peer that is away

mod api;
mod bitbucket;
mod bitbucket_server;
mod gitea;
mod github;
mod github_api;
mod gitlab;

use jiff::Timestamp;
use pipeline_core::{SecretString, async_trait};

pub(super) use self::api::PEER;
use self::api::{Api, Scheme};
use self::bitbucket::Bitbucket;
use self::bitbucket_server::BitbucketServer;
use self::gitea::Gitea;
use self::github::GitHub;
use self::gitlab::GitLab;
use super::calls::Calls;
use super::provider::Provider;
use super::pull_request::{NewPullRequest, PullRequest};
use super::repository::Repository;
use super::token_type::GitTokenType;
use crate::error::ActError;

/// The acts that a provider is asked for; each completes "the Git provider did not ...".
struct Acts {
    check: &'static str,
    me: &'static str,
    list: &'static str,
    find: &'static str,
    organizations: &'static str,
    opened: &'static str,
    open: &'static str,
}

const ACT: Acts = Acts {
    check: "check the token",
    me: "say whose the token is",
    list: "list repositories",
    find: "find the repository",
    organizations: "list organisations",
    opened: "list pull requests",
    open: "open the pull request",
};

/// What is asked of every provider, in the terms of its own API.
#[async_trait]
trait ProviderApi: Send + Sync {
    /// Whose token it is, if it has the permissions that its kind needs: a person's token is to read and write repositories.
    async fn check(&self, of: GitTokenType) -> Result<CheckedToken, ActError>;
    /// Whose token it is, and when it ends, whatever its permissions are.
    async fn whose(&self) -> Result<CheckedToken, ActError> {
        self.me().await.map(CheckedToken::lasting)
    }
    /// Whoever asks.
    async fn me(&self) -> Result<Person, ActError>;
    /// The name that its Git server takes beside the token.
    fn of_git<'a>(&'a self, username: &'a str) -> &'a str {
        username
    }
    /// A page of the repositories that they may work with, counted from 1, and whether there is another.
    async fn repositories(&self, page: u32, limit: u32) -> Result<(Vec<Repository>, bool), ActError>;
    /// Whether the full name of a repository has so many parts.
    fn is_named(&self, parts: usize) -> bool;
    /// One repository, by the parts of its full name.
    async fn repository(&self, name: &[&str]) -> Result<Repository, ActError>;
    /// The organisations or groups that they may make repositories in: the first hundred.
    async fn organizations(&self) -> Result<Vec<String>, ActError>;
    /// The open pull request of two branches of a repository.
    async fn opened(&self, of: &Repository, wanted: &NewPullRequest)
    -> Result<Option<PullRequest>, ActError>;
    /// Opens one.
    async fn open(&self, of: &Repository, wanted: &NewPullRequest) -> Result<PullRequest, ActError>;
}

/// A provider's API, asked with somebody's token.
pub(super) struct Forge(Box<dyn ProviderApi>);

/// Somebody, as a provider knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) username: String,
    /// Their name in commits.
    pub(super) name: String,
    pub(super) email: String,
}

/// A token with the permissions that its kind needs.
pub(super) struct CheckedToken {
    pub(super) person: Person,
    /// When it ends, where the provider says so.
    pub(super) expires: Option<Timestamp>,
}

impl CheckedToken {
    /// The token of a provider that does not say when it ends.
    fn lasting(person: Person) -> Self {
        Self { person, expires: None }
    }
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Whether a name can be that of HTTP's basic authentication.
fn is_username(name: &str) -> bool {
    (1..=255).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

impl Forge {
    /// A client with a token, and the name of its owner where the provider wants to be told.
    pub(super) async fn new(
        provider: Provider,
        url: &str,
        (username, token): (Option<&str>, &SecretString),
        calls: &Calls,
    ) -> Result<Self, ActError> {
        let api = async |scheme| Api::new((provider.word(), scheme), url, token, calls).await;
        let (word, bearer) = (Scheme::Word("token "), Scheme::Word("Bearer "));
        let of: Box<dyn ProviderApi> = match provider {
            Provider::Bitbucket => {
                let username = username.filter(|name| is_username(name)).ok_or_else(|| {
                    let why = "BITBUCKET wants to know whose the token is: give username, which is an address with an API token";
                    ActError::Wrong(why.to_owned())
                })?;
                let (username, scheme) = (username.to_owned(), Scheme::Basic(username.to_owned()));
                Box::new(Bitbucket { api: api(scheme).await?, username })
            }
            Provider::BitbucketServer => Box::new(BitbucketServer(api(bearer).await?)),
            Provider::Gitea => Box::new(Gitea(api(word).await?)),
            Provider::GitHub => Box::new(GitHub(api(word).await?)),
            Provider::GitLab => Box::new(GitLab(api(bearer).await?)),
            Provider::Gerrit => return Err(provider.unknown()),
        };
        Ok(Self(of))
    }

    /// The name that its Git server takes beside the token.
    pub(super) fn of_git<'a>(&'a self, username: &'a str) -> &'a str {
        self.0.of_git(username)
    }

    /// Whose token it is, and when it ends, if it has the permissions that its kind needs.
    pub(super) async fn check(&self, of: GitTokenType) -> Result<CheckedToken, ActError> {
        self.0.check(of).await
    }

    /// Whose token it is, and when it ends, whatever its permissions are.
    pub(super) async fn whose(&self) -> Result<CheckedToken, ActError> {
        self.0.whose().await
    }

    /// Whoever asks.
    pub(super) async fn me(&self) -> Result<Person, ActError> {
        self.0.me().await
    }

    /// A page of the repositories that they may work with, counted from 1, and whether there is another.
    pub(super) async fn repositories(
        &self,
        page: u32,
        limit: u32,
    ) -> Result<(Vec<Repository>, bool), ActError> {
        self.0.repositories(page, limit).await
    }

    /// One repository, by its full name.
    pub(super) async fn repository(&self, full_name: &str) -> Result<Repository, ActError> {
        let parts: Vec<&str> = full_name.split('/').collect();
        let is_name = |part: &&str| {
            !matches!(*part, "" | "." | "..")
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+~".contains(&byte))
        };
        let is_named = self.0.is_named(parts.len());
        if full_name.len() > 255 || !is_named || !parts.iter().all(is_name) {
            return Err(ActError::Wrong(
                "a repository is named by its owner and its name, such as team/mono".to_owned(),
            ));
        }
        let found = self.0.repository(&parts).await;
        found.map_err(|error| match &error {
            ActError::Away { source, .. } if source.status() == Some(404) => {
                ActError::NotFound(format!("there is no repository {full_name}, or the token may not see it"))
            }
            _ => error,
        })
    }

    /// What they may make repositories in: the first hundred.
    pub(super) async fn organizations(&self) -> Result<Vec<String>, ActError> {
        self.0.organizations().await
    }

    /// Opens a pull request, or gives the one that is open for the same branches already.
    pub(super) async fn pull_request(
        &self,
        of: &Repository,
        wanted: &NewPullRequest,
    ) -> Result<PullRequest, ActError> {
        if let Some(found) = self.0.opened(of, wanted).await? {
            return Ok(found);
        }
        let error = match self.0.open(of, wanted).await {
            Ok(made) => return Ok(PullRequest { is_new: true, ..made }),
            Err(error @ ActError::Wrong(_)) => return Err(error),
            Err(error) => error,
        };
        // Somebody else was faster, or the answer was lost.
        match self.0.opened(of, wanted).await {
            Ok(Some(found)) => Ok(found),
            _ => Err(error),
        }
    }
}
