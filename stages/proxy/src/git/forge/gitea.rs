//! Gitea, and Forgejo, whose API is the same: as the comments of `routers/api/v1/` in Gitea's repository describe it, which its
//! `swagger.v1.json` is made of.

use pipeline_core::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::api::{Api, ForgeRequest};
use super::github_api::{self, ForgeFields, PullRequestResponse};
use super::{ACT, CheckedToken, Person, ProviderApi, given};
use crate::error::ActError;
use crate::git::pull_request::{NewPullRequest, PullRequest};
use crate::git::repository::Repository;
use crate::git::token_type::GitTokenType;

/// Pages of open pull requests that are looked at: it finds none by its branches.
const PAGES: u32 = 20;
/// Of a page: no server gives more unless it is told to.
const PAGE: u32 = 50;

/// Gitea, or Forgejo.
pub(super) struct Gitea(pub(super) Api);

#[derive(Deserialize)]
struct User {
    id: u64,
    login: String,
    full_name: Option<String>,
    email: Option<String>,
}

#[derive(Deserialize)]
struct Organization {
    name: String,
}

#[derive(Deserialize)]
struct RepositoryResponse {
    #[serde(flatten)]
    alike: github_api::RepositoryResponse,
    updated_at: Option<String>,
    owner: Owner,
}

#[derive(Deserialize)]
struct Owner {
    login: String,
    avatar_url: Option<String>,
}

#[derive(Deserialize)]
struct OpenPullRequest {
    #[serde(flatten)]
    pull: PullRequestResponse,
    head: Branch,
    base: Branch,
}

#[derive(Deserialize)]
struct Branch {
    #[serde(rename = "ref")]
    name: String,
    repo_id: i64,
}

impl Gitea {
    fn person(&self, user: User) -> Person {
        let hidden = || format!("{}+{}@noreply.{}", user.id, user.login, self.0.host());
        let email = given(user.email).unwrap_or_else(hidden);
        let name = given(user.full_name).unwrap_or_else(|| user.login.clone());
        Person { username: user.login, name, email }
    }
}

fn lacks<T>(scope: &str) -> Result<T, ActError> {
    Err(ActError::Wrong(format!("the token may too little: it has not the scope {scope}")))
}

#[async_trait]
impl ProviderApi for Gitea {
    /// It says no scopes, and asks for them before it looks at what a request holds: an empty one is refused either way.
    async fn check(&self, _: GitTokenType) -> Result<CheckedToken, ActError> {
        let asked = ForgeRequest::get(ACT.check, &["user"]);
        let user = match self.0.try_ask(&asked).await? {
            Ok(answer) => answer.read()?,
            Err(reply) if reply.status() == 403 => return lacks("read:user"),
            Err(reply) => return Err(self.0.refused(ACT.check, reply)),
        };
        let empty = ForgeRequest::post(ACT.check, &["repos", "migrate"], json!({}));
        match self.0.try_ask(&empty).await? {
            Err(reply) if reply.status() == 422 => Ok(CheckedToken::lasting(self.person(user))),
            Err(reply) if reply.status() == 403 => lacks("write:repository"),
            Err(reply) => Err(self.0.refused(ACT.check, reply)),
            Ok(_) => lacks("write:repository"),
        }
    }

    async fn me(&self) -> Result<Person, ActError> {
        Ok(self.person(self.0.get(ACT.me, &["user"]).await?))
    }

    async fn repositories(&self, page: u32, limit: u32) -> Result<(Vec<Repository>, bool), ActError> {
        let asked = ForgeRequest::get(ACT.list, &["user", "repos"]).with("page", page).with("limit", limit);
        github_api::repositories::<RepositoryResponse>(&self.0, asked).await
    }

    fn is_named(&self, parts: usize) -> bool {
        parts == github_api::PARTS
    }

    async fn repository(&self, name: &[&str]) -> Result<Repository, ActError> {
        github_api::repository::<RepositoryResponse>(&self.0, name).await
    }

    async fn organizations(&self) -> Result<Vec<String>, ActError> {
        let asked = ForgeRequest::get(ACT.organizations, &["user", "orgs"]).with("limit", PAGE);
        let all: Vec<Organization> = self.0.ask(asked).await?.read()?;
        Ok(all.into_iter().map(|one| one.name).collect())
    }

    async fn opened(
        &self,
        of: &Repository,
        wanted: &NewPullRequest,
    ) -> Result<Option<PullRequest>, ActError> {
        let path = github_api::pulls(of);
        for page in 1..=PAGES {
            let asked = ForgeRequest::get(ACT.opened, &path).with("state", "open");
            let answer = self.0.ask(asked.with("page", page).with("limit", PAGE)).await?;
            let all: Vec<OpenPullRequest> = answer.read()?;
            if let Some(found) = all.into_iter().find(|one| one.is_of(wanted)) {
                return Ok(Some(found.pull.of(wanted)));
            }
            if !answer.links_on() {
                break;
            }
        }
        Ok(None)
    }

    async fn open(&self, of: &Repository, wanted: &NewPullRequest) -> Result<PullRequest, ActError> {
        github_api::open(&self.0, of, wanted).await
    }
}

impl OpenPullRequest {
    /// Of the same branches, and not of a fork.
    fn is_of(&self, wanted: &NewPullRequest) -> bool {
        let is_own = self.head.repo_id == self.base.repo_id;
        is_own && self.head.name == wanted.head && self.base.name == wanted.base
    }
}

impl From<RepositoryResponse> for Repository {
    fn from(of: RepositoryResponse) -> Self {
        let own = ForgeFields {
            provider: "GITEA",
            pushed_at: of.updated_at,
            owner_login: of.owner.login,
            owner_avatar_url: of.owner.avatar_url,
            org: None,
        };
        of.alike.with(own)
    }
}
