//! GitHub, and servers of GitHub Enterprise: as npm's `@octokit/openapi` describes both.

use jiff::Timestamp;
use jiff::fmt::strtime;
use serde::Deserialize;
use serde_json::json;

use super::api::{Answer, Api, Asked};
use super::{ACT, Checked, Person, ProviderApi, given};
use crate::error::ActError;
use crate::git::pull_request::{NewPullRequest, PullRequest};
use crate::git::repository::Repository;

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
struct Found {
    id: u64,
    full_name: String,
    #[serde(default)]
    private: bool,
    pushed_at: Option<String>,
    #[serde(default)]
    open_issues_count: u64,
    clone_url: String,
    #[serde(default)]
    ssh_url: String,
    owner: Option<Owner>,
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
    #[serde(rename = "type")]
    kind: Option<String>,
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
}

/// `2026-12-01 10:00:00 UTC`, or an offset in place of the zone's name.
fn expiration(text: &str) -> Option<Timestamp> {
    let text = text.trim().replace(" UTC", " +0000");
    strtime::parse("%Y-%m-%d %H:%M:%S %z", text).ok()?.to_timestamp().ok()
}

impl ProviderApi for GitHub {
    async fn check(&self) -> Result<Checked, ActError> {
        let answer = self.0.ask(Asked::get(ACT.check, &["user"])).await?;
        let person = self.person(answer.read()?);
        let Some(scopes) = answer.header("x-oauth-scopes") else {
            return Err(ActError::Wrong("missing scopes header on response".to_owned()));
        };
        match scopes.split(',').any(|scope| scope.trim() == "repo") {
            true => {
                let expires = answer.header("github-authentication-token-expiration").and_then(expiration);
                Ok(Checked { person, expires })
            }
            false => Err(ActError::Wrong("the token may too little: it has not the scope repo".to_owned())),
        }
    }

    async fn me(&self) -> Result<Person, ActError> {
        Ok(self.person(self.0.get(ACT.me, &["user"]).await?))
    }

    async fn repositories(&self, page: u32, limit: u32) -> Result<(Vec<Repository>, bool), ActError> {
        let asked = Asked::get(ACT.list, &["user", "repos"]).with("page", page).with("per_page", limit);
        let answer: Answer = self.0.ask(asked.with("sort", "full_name")).await?;
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
        let asked = Asked::get(ACT.organizations, &["user", "orgs"]).with("per_page", 100);
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
        let asked = Asked::get(ACT.opened, &path).with("state", "open").with("base", &wanted.base);
        // The name before the branch leaves out those of forks.
        let asked = asked.with("head", format!("{owner}:{}", wanted.head)).with("per_page", 1);
        let all: Vec<Pull> = self.0.ask(asked).await?.read()?;
        Ok(all.into_iter().next().map(|pull| pull.of(wanted)))
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
    fn of(self, wanted: &NewPullRequest) -> PullRequest {
        PullRequest::new(self.number, self.title, self.html_url, wanted)
    }
}

impl From<Found> for Repository {
    fn from(of: Found) -> Self {
        let (login, avatar, kind) = match of.owner {
            Some(owner) => (owner.login, owner.avatar_url, owner.kind),
            None => Default::default(),
        };
        let org = kind.filter(|kind| kind == "Organization").map(|_| login.clone());
        Self {
            id: of.id.to_string(),
            provider: "GITHUB",
            full_name: of.full_name,
            is_repo_private: of.private,
            pushed_at: of.pushed_at,
            open_issues: of.open_issues_count,
            clone_url: of.clone_url,
            ssh_url: of.ssh_url,
            owner_login: login,
            owner_avatar_url: avatar,
            repo_creator: None,
            org,
            default_branch: of.default_branch,
            is_repo_admin: of.permissions.map(|of| of.admin),
            web_url: of.html_url,
            project: None,
        }
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
