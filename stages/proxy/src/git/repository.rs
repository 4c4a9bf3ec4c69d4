//! A repository, as its provider tells of it and as the schema has it.

use async_graphql::SimpleObject;

/// A repository of a provider.
#[derive(Debug, Clone, SimpleObject)]
pub(crate) struct Repository {
    pub(crate) id: String,
    /// As the provider of Git integrations is called.
    pub(super) provider: &'static str,
    /// Its owner and its name.
    pub(super) full_name: String,
    pub(super) is_repo_private: bool,
    pub(super) pushed_at: Option<String>,
    pub(super) open_issues: u64,
    pub(crate) clone_url: String,
    pub(super) ssh_url: String,
    pub(super) owner_login: String,
    pub(super) owner_avatar_url: Option<String>,
    pub(super) repo_creator: Option<String>,
    pub(super) org: Option<String>,
    pub(crate) default_branch: String,
    /// Whether whoever asks administers it.
    pub(super) is_repo_admin: Option<bool>,
    pub(super) web_url: String,
    pub(super) project: Option<String>,
}
