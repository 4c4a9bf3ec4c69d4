//! GitLab: as its documentation has the REST API in its version 4 (`doc/api/` of its repository: users, personal access tokens,
//! projects, groups, merge requests).

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pipeline_core::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::api::{Api, ForgeRequest, ForgeResponse};
use super::{ACT, CheckedToken, Person, ProviderApi, given};
use crate::error::ActError;
use crate::git::pull_request::{NewPullRequest, PullRequest};
use crate::git::repository::Repository;
use crate::git::token_type::GitTokenType;

/// Developers and above: they may make projects.
const MAKES: u32 = 30;

/// GitLab.
pub(super) struct GitLab(pub(super) Api);

#[derive(Deserialize)]
struct User {
    id: u64,
    username: String,
    name: Option<String>,
    commit_email: Option<String>,
    email: Option<String>,
    #[serde(default)]
    bot: bool,
}

/// The token that asks.
#[derive(Deserialize)]
struct AccessToken {
    #[serde(default)]
    scopes: Vec<String>,
    /// A day, at whose beginning it ends.
    expires_at: Option<String>,
}

#[derive(Deserialize)]
struct Group {
    full_path: String,
}

#[derive(Deserialize)]
struct Project {
    id: u64,
    path_with_namespace: String,
    visibility: Option<String>,
    last_activity_at: Option<String>,
    #[serde(default)]
    open_issues_count: u64,
    http_url_to_repo: String,
    #[serde(default)]
    ssh_url_to_repo: String,
    /// Not of a project without commits.
    default_branch: Option<String>,
    namespace: Option<Namespace>,
    #[serde(default)]
    web_url: String,
}

#[derive(Deserialize)]
struct Namespace {
    full_path: String,
    kind: Option<String>,
    avatar_url: Option<String>,
}

#[derive(Deserialize)]
struct MergeRequest {
    iid: u64,
    title: String,
    web_url: String,
    source_project_id: Option<u64>,
    target_project_id: u64,
}

impl GitLab {
    fn person(&self, user: User) -> Person {
        let email = given(user.commit_email).or_else(|| given(user.email));
        let hidden = || format!("{}-{}@users.noreply.{}", user.id, user.username, self.0.host());
        let email = email.unwrap_or_else(hidden);
        let name = given(user.name).unwrap_or_else(|| user.username.clone());
        Person { username: user.username, name, email }
    }
}

/// Of a day, in UTC.
fn beginning(day: &str) -> Option<Timestamp> {
    let day: Date = day.parse().ok()?;
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[async_trait]
impl ProviderApi for GitLab {
    async fn check(&self, of: GitTokenType) -> Result<CheckedToken, ActError> {
        let token: AccessToken = self.0.get(ACT.check, &["personal_access_tokens", "self"]).await?;
        let has = |scope: &str| token.scopes.iter().any(|one| one == scope);
        let lacks = match of {
            GitTokenType::UserToken if has("api") || (has("write_repository") && has("read_api")) => None,
            GitTokenType::UserToken => Some("scopes write_repository and read_api, nor api"),
            GitTokenType::RuntimeToken if has("api") => None,
            GitTokenType::RuntimeToken => Some("scope api"),
        };
        if let Some(lacks) = lacks {
            return Err(ActError::Wrong(format!("the token may too little: it has not the {lacks}")));
        }
        let user: User = self.0.get(ACT.check, &["user"]).await?;
        match user.bot && user.username.starts_with("project") {
            true => {
                let instead = match of {
                    GitTokenType::UserToken => "register one of a person",
                    GitTokenType::RuntimeToken => "give one of a person or of a group",
                };
                Err(ActError::Wrong(format!("the token is that of a project: {instead}")))
            }
            false => {
                let expires = token.expires_at.as_deref().and_then(beginning);
                Ok(CheckedToken { person: self.person(user), expires })
            }
        }
    }

    async fn me(&self) -> Result<Person, ActError> {
        Ok(self.person(self.0.get(ACT.me, &["user"]).await?))
    }

    async fn repositories(&self, page: u32, limit: u32) -> Result<(Vec<Repository>, bool), ActError> {
        let asked = ForgeRequest::get(ACT.list, &["projects"]).with("page", page).with("per_page", limit);
        let asked = asked.with("membership", true).with("order_by", "path").with("sort", "asc");
        let answer: ForgeResponse = self.0.ask(asked).await?;
        let all: Vec<Project> = answer.read()?;
        // It says in a header of its own whether there is another page.
        let has_next = answer.header("x-next-page").is_some_and(|page| !page.trim().is_empty());
        Ok((all.into_iter().map(Repository::from).collect(), has_next || answer.links_on()))
    }

    fn is_named(&self, parts: usize) -> bool {
        (2..=21).contains(&parts)
    }

    async fn repository(&self, name: &[&str]) -> Result<Repository, ActError> {
        let name = name.join("/");
        self.0.get::<Project>(ACT.find, &["projects", &name]).await.map(Repository::from)
    }

    async fn organizations(&self) -> Result<Vec<String>, ActError> {
        let asked = ForgeRequest::get(ACT.organizations, &["groups"]).with("per_page", 100);
        let all: Vec<Group> = self.0.ask(asked.with("min_access_level", MAKES)).await?.read()?;
        Ok(all.into_iter().map(|one| one.full_path).collect())
    }

    async fn opened(
        &self,
        of: &Repository,
        wanted: &NewPullRequest,
    ) -> Result<Option<PullRequest>, ActError> {
        let path = ["projects", &*of.id, "merge_requests"];
        let asked = ForgeRequest::get(ACT.opened, &path).with("state", "opened").with("per_page", 100);
        let asked = asked.with("source_branch", &wanted.head).with("target_branch", &wanted.base);
        let all: Vec<MergeRequest> = self.0.ask(asked).await?.read()?;
        // A fork may have a branch of the same name.
        let own = all.into_iter().find(|one| one.source_project_id == Some(one.target_project_id));
        Ok(own.map(|one| one.of(wanted)))
    }

    async fn open(&self, of: &Repository, wanted: &NewPullRequest) -> Result<PullRequest, ActError> {
        let path = ["projects", &*of.id, "merge_requests"];
        let body = json!({
            "title": wanted.title, "source_branch": wanted.head, "target_branch": wanted.base,
            "description": wanted.description,
        });
        let made: MergeRequest = self.0.ask(ForgeRequest::post(ACT.open, &path, body)).await?.read()?;
        Ok(made.of(wanted))
    }
}

impl MergeRequest {
    fn of(self, wanted: &NewPullRequest) -> PullRequest {
        PullRequest::new(self.iid, self.title, self.web_url, wanted)
    }
}

impl From<Project> for Repository {
    fn from(of: Project) -> Self {
        let (path, avatar, kind) = match of.namespace {
            Some(namespace) => (namespace.full_path, namespace.avatar_url, namespace.kind),
            None => Default::default(),
        };
        let org = kind.filter(|kind| kind == "group").map(|_| path.clone());
        Self {
            id: of.id.to_string(),
            provider: "GITLAB",
            full_name: of.path_with_namespace,
            is_repo_private: of.visibility.is_none_or(|visibility| visibility != "public"),
            pushed_at: of.last_activity_at,
            open_issues: of.open_issues_count,
            clone_url: of.http_url_to_repo,
            ssh_url: of.ssh_url_to_repo,
            owner_login: path,
            owner_avatar_url: avatar,
            repo_creator: None,
            org,
            default_branch: of.default_branch.unwrap_or_default(),
            is_repo_admin: None,
            web_url: of.web_url,
            project: None,
        }
    }
}
