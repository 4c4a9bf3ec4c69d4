//! Gitea, and Forgejo, whose API is the same: as the comments of `routers/api/v1/` in Gitea's repository describe it, which its
//! `swagger.v1.json` is made of.

use serde::Deserialize;
use serde_json::json;

use super::api::{Api, Asked};
use super::{ACT, Checked, Person, ProviderApi, given};
use crate::error::ActError;
use crate::git::pull_request::{NewPullRequest, PullRequest};
use crate::git::repository::Repository;

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
struct Found {
    id: u64,
    full_name: String,
    #[serde(default)]
    private: bool,
    updated_at: Option<String>,
    #[serde(default)]
    open_issues_count: u64,
    clone_url: String,
    #[serde(default)]
    ssh_url: String,
    owner: Owner,
    #[serde(default)]
    default_branch: String,
    permissions: Option<Permissions>,
    #[serde(default)]
    html_url: String,
}

#[derive(Deserialize)]
struct Owner {
    login: String,
    avatar_url: Option<String>,
}

#[derive(Deserialize)]
struct Permissions {
    #[serde(default)]
    admin: bool,
}

#[derive(Deserialize)]
struct Pull {
    number: u64,
    title: String,
    html_url: String,
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

impl ProviderApi for Gitea {
    /// It says no scopes, and asks for them before it looks at what a request holds: an empty one is refused either way.
    async fn check(&self) -> Result<Checked, ActError> {
        let asked = Asked::get(ACT.check, &["user"]);
        let user = match self.0.try_ask(&asked).await? {
            Ok(answer) => answer.read()?,
            Err(reply) if reply.status() == 403 => return lacks("read:user"),
            Err(reply) => return Err(self.0.refused(ACT.check, reply)),
        };
        let empty = Asked::post(ACT.check, &["repos", "migrate"], json!({}));
        match self.0.try_ask(&empty).await? {
            Err(reply) if reply.status() == 422 => Ok(Checked::lasting(self.person(user))),
            Err(reply) if reply.status() == 403 => lacks("write:repository"),
            Err(reply) => Err(self.0.refused(ACT.check, reply)),
            Ok(_) => lacks("write:repository"),
        }
    }

    async fn me(&self) -> Result<Person, ActError> {
        Ok(self.person(self.0.get(ACT.me, &["user"]).await?))
    }

    async fn repositories(&self, page: u32, limit: u32) -> Result<(Vec<Repository>, bool), ActError> {
        let asked = Asked::get(ACT.list, &["user", "repos"]).with("page", page).with("limit", limit);
        let answer = self.0.ask(asked).await?;
        let all: Vec<Found> = answer.read()?;
        Ok((all.into_iter().map(Repository::from).collect(), answer.links_on()))
    }

    fn is_named(&self, parts: usize) -> bool {
        parts == 2
    }

    async fn repository(&self, name: &[&str]) -> Result<Repository, ActError> {
        let path = [&["repos"], name].concat();
        self.0.get::<Found>(ACT.find, &path).await.map(Repository::from)
    }

    async fn organizations(&self) -> Result<Vec<String>, ActError> {
        let asked = Asked::get(ACT.organizations, &["user", "orgs"]).with("limit", PAGE);
        let all: Vec<Organization> = self.0.ask(asked).await?.read()?;
        Ok(all.into_iter().map(|one| one.name).collect())
    }

    async fn opened(
        &self,
        of: &Repository,
        wanted: &NewPullRequest,
    ) -> Result<Option<PullRequest>, ActError> {
        let path: Vec<&str> = ["repos"].into_iter().chain(of.full_name.split('/')).chain(["pulls"]).collect();
        for page in 1..=PAGES {
            let asked = Asked::get(ACT.opened, &path).with("state", "open");
            let answer = self.0.ask(asked.with("page", page).with("limit", PAGE)).await?;
            let all: Vec<Pull> = answer.read()?;
            if let Some(found) = all.into_iter().find(|pull| pull.is_of(wanted)) {
                return Ok(Some(found.of(wanted)));
            }
            if !answer.links_on() {
                break;
            }
        }
        Ok(None)
    }

    async fn open(&self, of: &Repository, wanted: &NewPullRequest) -> Result<PullRequest, ActError> {
        let path: Vec<&str> = ["repos"].into_iter().chain(of.full_name.split('/')).chain(["pulls"]).collect();
        let body = json!({
            "title": wanted.title, "head": wanted.head, "base": wanted.base, "body": wanted.description,
        });
        let made: Pull = self.0.ask(Asked::post(ACT.open, &path, body)).await?.read()?;
        Ok(made.of(wanted))
    }
}

impl Pull {
    /// Of the same branches, and not of a fork.
    fn is_of(&self, wanted: &NewPullRequest) -> bool {
        let is_own = self.head.repo_id == self.base.repo_id;
        is_own && self.head.name == wanted.head && self.base.name == wanted.base
    }

    fn of(self, wanted: &NewPullRequest) -> PullRequest {
        PullRequest::new(self.number, self.title, self.html_url, wanted)
    }
}

impl From<Found> for Repository {
    fn from(of: Found) -> Self {
        Self {
            id: of.id.to_string(),
            provider: "GITEA",
            full_name: of.full_name,
            is_repo_private: of.private,
            pushed_at: of.updated_at,
            open_issues: of.open_issues_count,
            clone_url: of.clone_url,
            ssh_url: of.ssh_url,
            owner_login: of.owner.login,
            owner_avatar_url: of.owner.avatar_url,
            repo_creator: None,
            org: None,
            default_branch: of.default_branch,
            is_repo_admin: of.permissions.map(|of| of.admin),
            web_url: of.html_url,
            project: None,
        }
    }
}
