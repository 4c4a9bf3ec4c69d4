//! A repository, as its provider tells of it and as the schema has it.

use async_graphql::SimpleObject;
use serde::Deserialize;

/// A repository of a provider.
#[derive(Debug, Clone, SimpleObject)]
pub(crate) struct Repository {
    pub(crate) id: String,
    /// As the provider of Git integrations is called.
    provider: &'static str,
    /// Its owner and its name.
    full_name: String,
    is_repo_private: bool,
    pushed_at: Option<String>,
    open_issues: u64,
    pub(crate) clone_url: String,
    ssh_url: String,
    owner_login: String,
    owner_avatar_url: Option<String>,
    repo_creator: Option<String>,
    org: Option<String>,
    pub(crate) default_branch: String,
    /// Whether whoever asks administers it.
    is_repo_admin: Option<bool>,
    web_url: String,
    project: Option<String>,
}

/// What GitHub says of one.
#[derive(Deserialize)]
pub(super) struct GitHubRepository {
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
    owner: Option<GitHubOwner>,
    #[serde(default)]
    default_branch: String,
    permissions: Option<GitHubPermissions>,
    #[serde(default)]
    html_url: String,
}

#[derive(Deserialize)]
struct GitHubOwner {
    login: String,
    avatar_url: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct GitHubPermissions {
    #[serde(default)]
    admin: bool,
}

/// What GitLab says of one.
#[derive(Deserialize)]
pub(super) struct GitLabProject {
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
    namespace: Option<GitLabNamespace>,
    #[serde(default)]
    web_url: String,
}

#[derive(Deserialize)]
struct GitLabNamespace {
    full_path: String,
    kind: Option<String>,
    avatar_url: Option<String>,
}

impl From<GitHubRepository> for Repository {
    fn from(of: GitHubRepository) -> Self {
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

impl From<GitLabProject> for Repository {
    fn from(of: GitLabProject) -> Self {
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
