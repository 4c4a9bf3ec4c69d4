//! Bitbucket Cloud: as Atlassian's description of its REST API 2.0 has it. `GET /user/workspaces` is the way to somebody's
//! repositories since listing them across workspaces was taken away (its changelog, CHANGE-2770 and CHANGE-3022).

use pipeline_core::async_trait;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::api::{Api, ForgeRequest};
use super::{ACT, CheckedToken, PEER, Person, ProviderApi};
use crate::error::ActError;
use crate::git::pull_request::{NewPullRequest, PullRequest};
use crate::git::repository::Repository;
use crate::git::token_type::GitTokenType;

/// Workspaces that are looked at.
const WORKSPACES: u32 = 100;
/// What Git takes for the name of whoever has an API token, and is not told an address.
const OF_TOKENS: &str = "x-bitbucket-api-token-auth";

/// Bitbucket Cloud. It wants to know whose a token is.
pub(super) struct Bitbucket {
    pub(super) api: Api,
    /// A user name, with an app password; an address, with an API token.
    pub(super) username: String,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    account_id: String,
    #[serde(default)]
    display_name: String,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default = "Vec::new")]
    values: Vec<T>,
    /// Of all pages, where it is said.
    size: Option<u32>,
    next: Option<String>,
}

/// A workspace, or what somebody is in one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Access {
    Within { workspace: Workspace },
    Itself(Workspace),
}

#[derive(Deserialize)]
struct Workspace {
    slug: String,
}

#[derive(Deserialize)]
struct RepositoryResponse {
    uuid: String,
    full_name: String,
    #[serde(default)]
    is_private: bool,
    updated_on: Option<String>,
    mainbranch: Option<Named>,
    project: Option<Project>,
    links: Links,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Project {
    key: String,
}

#[derive(Deserialize)]
struct Links {
    html: Option<Link>,
    avatar: Option<Link>,
    #[serde(default)]
    clone: Vec<NamedLink>,
}

#[derive(Deserialize)]
struct Link {
    href: String,
}

#[derive(Deserialize)]
struct NamedLink {
    name: String,
    href: String,
}

#[derive(Deserialize)]
struct PullRequestResponse {
    id: u64,
    title: String,
    source: PullRequestEnd,
    destination: PullRequestEnd,
    links: Links,
}

#[derive(Deserialize)]
struct PullRequestEnd {
    branch: Named,
    repository: Option<RepositoryId>,
}

#[derive(Deserialize)]
struct RepositoryId {
    uuid: String,
}

impl Bitbucket {
    fn person(&self, user: User) -> Person {
        let email = match self.username.contains('@') {
            true => self.username.clone(),
            // It tells nobody's address, and has none that stands for it.
            false => format!("{}@users.noreply.bitbucket.org", user.account_id),
        };
        let name = Some(user.display_name).filter(|name| !name.trim().is_empty());
        Person { name: name.unwrap_or_else(|| self.username.clone()), email, username: self.username.clone() }
    }

    async fn page<T: DeserializeOwned>(&self, asked: ForgeRequest<'_>) -> Result<Page<T>, ActError> {
        self.api.ask(asked).await?.read()
    }

    async fn workspaces(&self) -> Result<Vec<String>, ActError> {
        let asked = ForgeRequest::get(ACT.organizations, &["user", "workspaces"]).with("pagelen", WORKSPACES);
        let page: Page<Access> = self.page(asked).await?;
        let slug = |of| match of {
            Access::Within { workspace } | Access::Itself(workspace) => workspace.slug,
        };
        let mut all: Vec<String> = page.values.into_iter().map(slug).collect();
        all.sort_unstable();
        Ok(all)
    }
}

fn lacks(what: &str) -> ActError {
    ActError::Wrong(format!("the token may too little: it has not {what}"))
}

#[async_trait]
impl ProviderApi for Bitbucket {
    async fn check(&self, _: GitTokenType) -> Result<CheckedToken, ActError> {
        let answer = self.api.ask(ForgeRequest::get(ACT.check, &["user"])).await?;
        let Some(scopes) = answer.header("x-oauth-scopes") else {
            return Err(ActError::Wrong("missing scopes header on response".to_owned()));
        };
        let has = |wanted: &[&str]| scopes.split(',').map(str::trim).any(|scope| wanted.contains(&scope));
        // The second name of each is that of API tokens.
        for (what, wanted) in [
            ("the scope repository:admin", &["repository:admin", "admin:repository:bitbucket"][..]),
            ("the scope account", &["account", "read:user:bitbucket", "account:read", "account:write"]),
            ("the scope team", &["team", "read:workspace:bitbucket", "team:write"]),
            ("the scope webhook", &["webhook", "write:webhook:bitbucket"]),
        ] {
            if !has(wanted) {
                return Err(lacks(what));
            }
        }
        Ok(CheckedToken::lasting(self.person(answer.read()?)))
    }

    fn of_git<'a>(&'a self, _: &'a str) -> &'a str {
        match self.username.contains('@') {
            true => OF_TOKENS,
            false => &self.username,
        }
    }

    async fn me(&self) -> Result<Person, ActError> {
        Ok(self.person(self.api.get(ACT.me, &["user"]).await?))
    }

    /// Page by page of one workspace after another.
    async fn repositories(&self, page: u32, limit: u32) -> Result<(Vec<Repository>, bool), ActError> {
        let all = self.workspaces().await?;
        let mut left = page;
        for (number, workspace) in all.iter().enumerate() {
            let path = ["repositories", workspace.as_str()];
            let asked = |page: u32| {
                let asked = ForgeRequest::get(ACT.list, &path).with("role", "member").with("sort", "slug");
                asked.with("pagelen", limit).with("page", page)
            };
            let first: Page<RepositoryResponse> = self.page(asked(1)).await?;
            let pages = first.size.map_or(1, |size| size.div_ceil(limit));
            if left > pages {
                left -= pages;
                continue;
            }
            let found = if left == 1 { first } else { self.page(asked(left)).await? };
            let has_next = found.next.is_some() || number + 1 < all.len();
            let read =
                found.values.into_iter().map(RepositoryResponse::repository).collect::<Result<_, _>>()?;
            return Ok((read, has_next));
        }
        Ok((Vec::new(), false))
    }

    fn is_named(&self, parts: usize) -> bool {
        parts == 2
    }

    async fn repository(&self, name: &[&str]) -> Result<Repository, ActError> {
        let path = [&["repositories"], name].concat();
        self.api.get::<RepositoryResponse>(ACT.find, &path).await?.repository()
    }

    async fn organizations(&self) -> Result<Vec<String>, ActError> {
        self.workspaces().await
    }

    async fn opened(
        &self,
        of: &Repository,
        wanted: &NewPullRequest,
    ) -> Result<Option<PullRequest>, ActError> {
        let path: Vec<&str> =
            ["repositories"].into_iter().chain(of.full_name.split('/')).chain(["pullrequests"]).collect();
        let quoted = |branch: &str| branch.replace('\\', "\\\\").replace('"', "\\\"");
        let filter = format!(
            "state=\"OPEN\" AND source.branch.name=\"{}\" AND destination.branch.name=\"{}\"",
            quoted(&wanted.head),
            quoted(&wanted.base)
        );
        let asked = ForgeRequest::get(ACT.opened, &path).with("q", filter).with("pagelen", 50);
        let page: Page<PullRequestResponse> = self.page(asked).await?;
        Ok(page.values.into_iter().find(|pull| pull.is_of(wanted)).map(|pull| pull.of(wanted)))
    }

    async fn open(&self, of: &Repository, wanted: &NewPullRequest) -> Result<PullRequest, ActError> {
        let path: Vec<&str> =
            ["repositories"].into_iter().chain(of.full_name.split('/')).chain(["pullrequests"]).collect();
        let side = |branch: &str| json!({"branch": {"name": branch}});
        let body = json!({
            "title": wanted.title, "description": wanted.description,
            "source": side(&wanted.head), "destination": side(&wanted.base),
        });
        let made: PullRequestResponse =
            self.api.ask(ForgeRequest::post(ACT.open, &path, body)).await?.read()?;
        Ok(made.of(wanted))
    }
}

impl PullRequestResponse {
    /// Of the same branches, and not of a fork.
    fn is_of(&self, wanted: &NewPullRequest) -> bool {
        let repository = |side: &PullRequestEnd| side.repository.as_ref().map(|of| of.uuid.clone());
        repository(&self.source) == repository(&self.destination)
            && self.source.branch.name == wanted.head
            && self.destination.branch.name == wanted.base
    }

    fn of(self, wanted: &NewPullRequest) -> PullRequest {
        let page = self.links.html.map(|link| link.href).unwrap_or_default();
        PullRequest::new(self.id, self.title, page, wanted)
    }
}

impl RepositoryResponse {
    fn repository(self) -> Result<Repository, ActError> {
        let clone = |name: &str| {
            let link = self.links.clone.iter().find(|link| link.name == name)?;
            // The name of whoever asks may stand in it, and is not of the address.
            let mut url = stages_client::Url::parse(&link.href).ok()?;
            url.set_username("").ok()?;
            Some(url.to_string())
        };
        let clone_url = clone("https").ok_or(ActError::Unreadable(PEER))?;
        let ssh_url = self.links.clone.iter().find(|link| link.name == "ssh");
        let ssh_url = ssh_url.map(|link| link.href.clone()).unwrap_or_default();
        let workspace = self.full_name.split('/').next().unwrap_or_default().to_owned();
        Ok(Repository {
            id: self.uuid,
            provider: "BITBUCKET",
            full_name: self.full_name,
            is_repo_private: self.is_private,
            pushed_at: self.updated_on,
            open_issues: 0,
            clone_url,
            ssh_url,
            owner_login: workspace.clone(),
            owner_avatar_url: self.links.avatar.map(|link| link.href),
            repo_creator: None,
            org: Some(workspace),
            default_branch: self.mainbranch.map(|branch| branch.name).unwrap_or_default(),
            is_repo_admin: None,
            web_url: self.links.html.map(|link| link.href).unwrap_or_default(),
            project: self.project.map(|project| project.key),
        })
    }
}
