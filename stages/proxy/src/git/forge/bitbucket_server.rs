//! Bitbucket Server, now Data Center: as Atlassian's description of its REST API has it, below `/rest/api/1.0`.

use pipeline_core::async_trait;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::api::{Api, ForgeRequest};
use super::{ACT, CheckedToken, PEER, Person, ProviderApi, given};
use crate::error::ActError;
use crate::git::pull_request::{NewPullRequest, PullRequest};
use crate::git::repository::Repository;
use crate::git::token_type::GitTokenType;

/// Pages that are gone through: one is found from the one before it alone.
const PAGES: u32 = 100;
/// Of one of pull requests, or people.
const PAGE: u32 = 100;

/// Bitbucket Server.
pub(super) struct BitbucketServer(pub(super) Api);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    values: Vec<T>,
    #[serde(default)]
    is_last_page: bool,
    next_page_start: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct User {
    name: String,
    /// What they are called in paths: a name may be an address.
    slug: Option<String>,
    display_name: Option<String>,
    email_address: Option<String>,
}

#[derive(Deserialize)]
struct RepositoryResponse {
    id: u64,
    slug: String,
    #[serde(default)]
    public: bool,
    project: Project,
    links: Links,
}

#[derive(Deserialize)]
struct Project {
    key: String,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Links {
    #[serde(rename = "self", default)]
    itself: Vec<Link>,
    #[serde(default)]
    clone: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    name: Option<String>,
    href: String,
}

/// A branch: `refs/heads/…`.
#[derive(Deserialize)]
struct Branch {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PullRequestResponse {
    id: u64,
    title: String,
    from_ref: PullRequestEnd,
    to_ref: PullRequestEnd,
    links: Links,
}

#[derive(Deserialize)]
struct PullRequestEnd {
    id: String,
    repository: RepositoryId,
}

#[derive(Deserialize)]
struct RepositoryId {
    id: u64,
}

impl BitbucketServer {
    /// The name of whoever the token is of.
    async fn name(&self, act: &'static str) -> Result<String, ActError> {
        let answer = self.0.ask(ForgeRequest::head(act, &["application-properties"])).await?;
        // A token that it does not know is nobody's, and may ask this all the same.
        match answer.header("x-ausername").filter(|name| !name.is_empty()) {
            // It stands there as in an address.
            Some(name) => Ok(percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned()),
            None => Err(self.0.unknown()),
        }
    }

    /// Whoever has this name, and what they are called in paths.
    async fn person(&self, name: String) -> Result<(Person, String), ActError> {
        let asked = ForgeRequest::get(ACT.me, &["users"]).with("filter", &name).with("limit", PAGE);
        let page: Page<User> = self.0.ask(asked).await?.read()?;
        let found = page.values.into_iter().find(|user| user.name.eq_ignore_ascii_case(&name));
        let (full, email, slug) =
            found.map_or((None, None, None), |user| (user.display_name, user.email_address, user.slug));
        let email = given(email).unwrap_or_else(|| format!("{name}@users.noreply.{}", self.0.host()));
        let slug = slug.unwrap_or_else(|| name.clone());
        Ok((Person { name: given(full).unwrap_or_else(|| name.clone()), email, username: name }, slug))
    }

    /// The page of that number, and whether there is another.
    async fn page<T: DeserializeOwned>(
        &self,
        number: u32,
        asked: impl Fn() -> ForgeRequest<'static>,
    ) -> Result<(Vec<T>, bool), ActError> {
        let mut start = 0;
        for at in 1..=number.min(PAGES) {
            let page: Page<T> = self.0.ask(asked().with("start", start)).await?.read()?;
            let next = page.next_page_start.filter(|_| !page.is_last_page);
            if at == number {
                return Ok((page.values, next.is_some()));
            }
            match next {
                Some(next) => start = next,
                None => break,
            }
        }
        Ok((Vec::new(), false))
    }

    /// The branch that is meant where none is named; none: there is no such setting.
    async fn default_branch(&self, project: &str, slug: &str) -> Result<String, ActError> {
        // Servers before 7.5 know the second alone.
        for rest in [&["default-branch"][..], &["branches", "default"]] {
            let path = [&["projects", project, "repos", slug], rest].concat();
            match self.0.try_ask(&ForgeRequest::get(ACT.find, &path)).await? {
                Ok(answer) => {
                    let branch = answer.read::<Branch>().map(|of| of.id).unwrap_or_default();
                    return Ok(branch.strip_prefix("refs/heads/").unwrap_or(&branch).to_owned());
                }
                Err(reply) if reply.status() == 404 => {}
                Err(reply) => return Err(self.0.refused(ACT.find, reply)),
            }
        }
        Ok(String::new())
    }
}

#[async_trait]
impl ProviderApi for BitbucketServer {
    /// It says no scopes: that a repository of such a name is refused for its name says that one may be made.
    async fn check(&self, _: GitTokenType) -> Result<CheckedToken, ActError> {
        let name = self.name(ACT.check).await?;
        let (person, slug) = self.person(name).await?;
        let probe = json!({"name": "!invalid"});
        let path = ["users", &*slug, "repos"];
        match self.0.try_ask(&ForgeRequest::post(ACT.check, &path, probe)).await? {
            Err(reply) if reply.status() == 400 => {}
            Err(reply) if reply.status() == 429 || reply.status() >= 500 => {
                return Err(self.0.refused(ACT.check, reply));
            }
            _ => {
                return Err(ActError::Wrong(
                    "the token may too little: it has not the permission of a project's admin".to_owned(),
                ));
            }
        }
        Ok(CheckedToken::lasting(person))
    }

    async fn me(&self) -> Result<Person, ActError> {
        let name = self.name(ACT.me).await?;
        Ok(self.person(name).await?.0)
    }

    async fn repositories(&self, page: u32, limit: u32) -> Result<(Vec<Repository>, bool), ActError> {
        let asked =
            || ForgeRequest::get(ACT.list, &["repos"]).with("permission", "REPO_READ").with("limit", limit);
        let (all, has_next) = self.page::<RepositoryResponse>(page, asked).await?;
        let read = all.into_iter().map(|one| one.repository(String::new())).collect::<Result<_, _>>()?;
        Ok((read, has_next))
    }

    fn is_named(&self, parts: usize) -> bool {
        parts == 2
    }

    async fn repository(&self, name: &[&str]) -> Result<Repository, ActError> {
        let &[project, slug] = name else { return Err(ActError::Unreadable(PEER)) };
        let found: RepositoryResponse = self.0.get(ACT.find, &["projects", project, "repos", slug]).await?;
        let branch = self.default_branch(&found.project.key, &found.slug).await?;
        found.repository(branch)
    }

    async fn organizations(&self) -> Result<Vec<String>, ActError> {
        let asked = || ForgeRequest::get(ACT.organizations, &["projects"]).with("limit", PAGE);
        let (all, _) = self.page::<Project>(1, asked).await?;
        Ok(all.into_iter().map(|one| one.key).collect())
    }

    async fn opened(
        &self,
        of: &Repository,
        wanted: &NewPullRequest,
    ) -> Result<Option<PullRequest>, ActError> {
        let Some((project, slug)) = of.full_name.split_once('/') else { return Ok(None) };
        let path = ["projects", project, "repos", slug, "pull-requests"];
        let mut start = 0;
        for _ in 0..PAGES {
            let asked =
                ForgeRequest::get(ACT.opened, &path).with("state", "OPEN").with("direction", "OUTGOING");
            let asked = asked.with("at", format!("refs/heads/{}", wanted.head)).with("limit", PAGE);
            let page: Page<PullRequestResponse> = self.0.ask(asked.with("start", start)).await?.read()?;
            if let Some(found) = page.values.into_iter().find(|pull| pull.is_of(wanted)) {
                return Ok(Some(found.of(wanted)));
            }
            match page.next_page_start.filter(|_| !page.is_last_page) {
                Some(next) => start = next,
                None => break,
            }
        }
        Ok(None)
    }

    async fn open(&self, of: &Repository, wanted: &NewPullRequest) -> Result<PullRequest, ActError> {
        let Some((project, slug)) = of.full_name.split_once('/') else {
            return Err(ActError::Unreadable(PEER));
        };
        let path = ["projects", project, "repos", slug, "pull-requests"];
        let side = |branch: &str| -> Value {
            json!({"id": format!("refs/heads/{branch}"), "repository": {"slug": slug, "project": {"key": project}}})
        };
        let body = json!({
            "title": wanted.title, "description": wanted.description,
            "fromRef": side(&wanted.head), "toRef": side(&wanted.base),
        });
        let made: PullRequestResponse =
            self.0.ask(ForgeRequest::post(ACT.open, &path, body)).await?.read()?;
        Ok(made.of(wanted))
    }
}

impl PullRequestResponse {
    /// Of the same branches, and within one repository.
    fn is_of(&self, wanted: &NewPullRequest) -> bool {
        let is = |side: &PullRequestEnd, branch: &str| side.id.strip_prefix("refs/heads/") == Some(branch);
        self.from_ref.repository.id == self.to_ref.repository.id
            && is(&self.from_ref, &wanted.head)
            && is(&self.to_ref, &wanted.base)
    }

    fn of(self, wanted: &NewPullRequest) -> PullRequest {
        let page = self.links.itself.into_iter().next().map(|link| link.href).unwrap_or_default();
        PullRequest::new(self.id, self.title, page, wanted)
    }
}

impl RepositoryResponse {
    fn repository(self, default_branch: String) -> Result<Repository, ActError> {
        let clone = |name: &str| {
            let link = self.links.clone.iter().find(|link| link.name.as_deref() == Some(name));
            link.map(|link| link.href.clone())
        };
        let clone_url = clone("http").ok_or(ActError::Unreadable(PEER))?;
        let ssh_url = clone("ssh").unwrap_or_default();
        let key = self.project.key;
        let org = self.project.kind.filter(|kind| kind != "PERSONAL").map(|_| key.clone());
        Ok(Repository {
            id: self.id.to_string(),
            provider: "BITBUCKET_SERVER",
            full_name: format!("{key}/{}", self.slug),
            is_repo_private: !self.public,
            pushed_at: None,
            open_issues: 0,
            clone_url,
            ssh_url,
            owner_login: key.clone(),
            owner_avatar_url: None,
            repo_creator: None,
            org,
            default_branch,
            is_repo_admin: None,
            web_url: self.links.itself.into_iter().next().map(|link| link.href).unwrap_or_default(),
            project: Some(key),
        })
    }
}
