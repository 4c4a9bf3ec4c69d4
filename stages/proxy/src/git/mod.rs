//! Git integrations, the Git tokens that people register with them, and what is done in repositories with those.
//!
//! takes: an integration, a person, their token - gives: integrations and who is registered; repositories, files and commits
//! calls: the provider, which says what a token may; the API server, which keeps it sealed; the provider's Git server
//! fails: a token that is not known, or may too little, is never kept

mod calls;
mod files;
mod forge;
mod git_secret;
mod integration;
mod integrations;
mod oauth;
mod offered;
mod provider;
mod pull_request;
mod repository;
mod runtime_token;
mod seal;
mod token_type;

pub(crate) use self::calls::Calls;
pub(crate) use self::files::{
    Commit, CommitFile, CommitRequest, GitFile, GitFiles, GitOrganization, RepositoriesPage,
    RepositoryBranchesAndTagsOutput, RepositoryFiles, RequestedPull,
};
pub(crate) use self::git_secret::{GitSecret, is_iv};
pub(crate) use self::integration::{DEFAULT_INTEGRATION, Integration, SharingPolicy};
pub(crate) use self::integrations::{GitToken, Integrations, ListedIntegration, ListedUser};
pub(crate) use self::oauth::OAuth;
pub use self::oauth::OAuthConfig;
pub(crate) use self::offered::{CheckedGitToken, OfferedToken};
pub(crate) use self::provider::Provider;
pub(crate) use self::pull_request::PullRequest;
pub(crate) use self::runtime_token::NewRuntimeToken;
pub(crate) use self::token_type::GitTokenType;
