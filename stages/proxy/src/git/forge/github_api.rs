//! What GitHub's API has, and Gitea's, which is made after it.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::ACT;
use super::api::{Api, ForgeRequest};
use crate::error::ActError;
use crate::git::pull_request::{NewPullRequest, PullRequest};
use crate::git::repository::Repository;

/// What a full name has: an owner, and a name.
pub(super) const PARTS: usize = 2;

/// What is said alike of a repository.
#[derive(Deserialize)]
pub(super) struct RepositoryResponse {
    id: u64,
    full_name: String,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    open_issues_count: u64,
    clone_url: String,
    #[serde(default)]
    ssh_url: String,
    #[serde(default)]
    default_branch: String,
    permissions: Option<Permissions>,
    #[serde(default)]
    html_url: String,
}

#[derive(Deserialize)]
struct Permissions {
    #[serde(default)]
    admin: bool,
}

/// What each says of a repository in its own way.
pub(super) struct ForgeFields {
    pub(super) provider: &'static str,
    pub(super) pushed_at: Option<String>,
    pub(super) owner_login: String,
    pub(super) owner_avatar_url: Option<String>,
    pub(super) org: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct PullRequestResponse {
    number: u64,
    title: String,
    html_url: String,
}

impl RepositoryResponse {
    pub(super) fn with(self, own: ForgeFields) -> Repository {
        Repository {
            id: self.id.to_string(),
            provider: own.provider,
            full_name: self.full_name,
            is_repo_private: self.private,
            pushed_at: own.pushed_at,
            open_issues: self.open_issues_count,
            clone_url: self.clone_url,
            ssh_url: self.ssh_url,
            owner_login: own.owner_login,
            owner_avatar_url: own.owner_avatar_url,
            repo_creator: None,
            org: own.org,
            default_branch: self.default_branch,
            is_repo_admin: self.permissions.map(|of| of.admin),
            web_url: self.html_url,
            project: None,
        }
    }
}

impl PullRequestResponse {
    pub(super) fn of(self, wanted: &NewPullRequest) -> PullRequest {
        PullRequest::new(self.number, self.title, self.html_url, wanted)
    }
}

/// A page of repositories, and whether another follows.
pub(super) async fn repositories<T: DeserializeOwned + Into<Repository>>(
    api: &Api,
    asked: ForgeRequest<'_>,
) -> Result<(Vec<Repository>, bool), ActError> {
    let answer = api.ask(asked).await?;
    let all: Vec<T> = answer.read()?;
    Ok((all.into_iter().map(T::into).collect(), answer.links_on()))
}

/// One repository, by the parts of its full name.
pub(super) async fn repository<T: DeserializeOwned + Into<Repository>>(
    api: &Api,
    name: &[&str],
) -> Result<Repository, ActError> {
    let path = [&["repos"], name].concat();
    api.get::<T>(ACT.find, &path).await.map(T::into)
}

/// The path of a repository's pull requests.
pub(super) fn pulls(of: &Repository) -> Vec<&str> {
    ["repos"].into_iter().chain(of.full_name.split('/')).chain(["pulls"]).collect()
}

/// Opens a pull request.
pub(super) async fn open(
    api: &Api,
    of: &Repository,
    wanted: &NewPullRequest,
) -> Result<PullRequest, ActError> {
    let body = json!({
        "title": wanted.title, "head": wanted.head, "base": wanted.base, "body": wanted.description,
    });
    let made: PullRequestResponse = api.ask(ForgeRequest::post(ACT.open, &pulls(of), body)).await?.read()?;
    Ok(made.of(wanted))
}
