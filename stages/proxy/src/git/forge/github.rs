//! GitHub, and servers of GitHub Enterprise: as npm's `@octokit/openapi` describes both.

use jiff::Timestamp;
use jiff::fmt::strtime;
use pipeline_core::async_trait;
use serde::Deserialize;

use super::api::{Api, ForgeRequest};
use super::github_api::{self, ForgeFields, PullRequestResponse};
use super::{ACT, CheckedToken, Person, ProviderApi, given};
use crate::error::ActError;
use crate::git::pull_request::{NewPullRequest, PullRequest};
use crate::git::repository::Repository;
use crate::git::token_type::GitTokenType;

/// GitHub.
pub(super) struct GitHub(pub(super) Api);

#[derive(Deserialize)]
struct User {
    id: u64,
    login: String,
    name: Option<String>,
    email: Option<String>,
}

#[derive(Deserialize)]
struct Organization {
    login: String,
}

#[derive(Deserialize)]
struct RepositoryResponse {
    #[serde(flatten)]
    alike: github_api::RepositoryResponse,
    pushed_at: Option<String>,
    owner: Option<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    login: String,
    avatar_url: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl GitHub {
    fn person(&self, user: User) -> Person {
        // What GitHub takes for somebody who does not show their address.
        let hidden = match self.0.host() {
            "api.github.com" => "users.noreply.github.com".to_owned(),
            host => format!("users.noreply.{host}"),
        };
        let email = given(user.email).unwrap_or_else(|| format!("{}+{}@{hidden}", user.id, user.login));
        let name = given(user.name).unwrap_or_else(|| user.login.clone());
        Person { username: user.login, name, email }
    }

    /// Whose the token is and until when, whatever it may; and what it may, where GitHub says so.
    async fn scoped(&self) -> Result<(CheckedToken, Option<String>), ActError> {
        let answer = self.0.ask(ForgeRequest::get(ACT.check, &["user"])).await?;
        let person = self.person(answer.read()?);
        let expires = answer.header("github-authentication-token-expiration").and_then(expiration);
        Ok((CheckedToken { person, expires }, answer.header("x-oauth-scopes").map(str::to_owned)))
    }
}

/// `2026-12-01 10:00:00 UTC`, or an offset in place of the zone's name.
fn expiration(text: &str) -> Option<Timestamp> {
    let text = text.trim().replace(" UTC", " +0000");
    strtime::parse("%Y-%m-%d %H:%M:%S %z", text).ok()?.to_timestamp().ok()
}

#[async_trait]
impl ProviderApi for GitHub {
    async fn check(&self, of: GitTokenType) -> Result<CheckedToken, ActError> {
        let (checked, scopes) = self.scoped().await?;
        let Some(scopes) = scopes else {
            return Err(ActError::Wrong("missing scopes header on response".to_owned()));
        };
        let has = |wanted: &str| scopes.split(',').any(|scope| scope.trim() == wanted);
        let wanted: &[&str] = match of {
            GitTokenType::UserToken => &["repo"],
            // Webhooks of repositories are the runtime's.
            GitTokenType::RuntimeToken => &["repo", "admin:repo_hook"],
        };
        match wanted.iter().find(|wanted| !has(wanted)) {
            None => Ok(checked),
            Some(lacking) => {
                Err(ActError::Wrong(format!("the token may too little: it has not the scope {lacking}")))
            }
        }
    }

    async fn whose(&self) -> Result<CheckedToken, ActError> {
        self.scoped().await.map(|(checked, _)| checked)
    }

    async fn me(&self) -> Result<Person, ActError> {
        Ok(self.person(self.0.get(ACT.me, &["user"]).await?))
    }

    async fn repositories(&self, page: u32, limit: u32) -> Result<(Vec<Repository>, bool), ActError> {
        let asked =
            ForgeRequest::get(ACT.list, &["user", "repos"]).with("page", page).with("per_page", limit);
        github_api::repositories::<RepositoryResponse>(&self.0, asked.with("sort", "full_name")).await
    }

    fn is_named(&self, parts: usize) -> bool {
        parts == github_api::PARTS
    }

    async fn repository(&self, name: &[&str]) -> Result<Repository, ActError> {
        github_api::repository::<RepositoryResponse>(&self.0, name).await
    }

    async fn organizations(&self) -> Result<Vec<String>, ActError> {
        let asked = ForgeRequest::get(ACT.organizations, &["user", "orgs"]).with("per_page", 100);
        let all: Vec<Organization> = self.0.ask(asked).await?.read()?;
        Ok(all.into_iter().map(|one| one.login).collect())
    }

    async fn opened(
        &self,
        of: &Repository,
        wanted: &NewPullRequest,
    ) -> Result<Option<PullRequest>, ActError> {
        let Some((owner, name)) = of.full_name.split_once('/') else { return Ok(None) };
        let path = ["repos", owner, name, "pulls"];
        let asked = ForgeRequest::get(ACT.opened, &path).with("state", "open").with("base", &wanted.base);
        // The name before the branch leaves out those of forks.
        let asked = asked.with("head", format!("{owner}:{}", wanted.head)).with("per_page", 1);
        let all: Vec<PullRequestResponse> = self.0.ask(asked).await?.read()?;
        Ok(all.into_iter().next().map(|pull| pull.of(wanted)))
    }

    async fn open(&self, of: &Repository, wanted: &NewPullRequest) -> Result<PullRequest, ActError> {
        github_api::open(&self.0, of, wanted).await
    }
}

impl From<RepositoryResponse> for Repository {
    fn from(of: RepositoryResponse) -> Self {
        let (login, avatar, kind) = match of.owner {
            Some(owner) => (owner.login, owner.avatar_url, owner.kind),
            None => Default::default(),
        };
        let org = kind.filter(|kind| kind == "Organization").map(|_| login.clone());
        let own = ForgeFields {
            provider: "GITHUB",
            pushed_at: of.pushed_at,
            owner_login: login,
            owner_avatar_url: avatar,
            org,
        };
        of.alike.with(own)
    }
}

#[cfg(test)]
mod tests {
    use super::expiration;

    #[test]
    fn the_end_of_a_token_is_read_in_both_forms_that_there_are() {
        for text in ["2026-12-01 10:00:00 UTC", "2026-12-01 03:00:00 -0700", " 2026-12-01 10:00:00 +0000"] {
            assert_eq!(expiration(text).unwrap().to_string(), "2026-12-01T10:00:00Z", "{text}");
        }
        assert_eq!(expiration("never"), None);
    }
}
