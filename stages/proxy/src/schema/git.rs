//! Git integrations, as they are asked for and told.

use async_graphql::{InputObject, SimpleObject};
use pipeline_core::SecretString;
use stages_git::{Content, NewFile};

use crate::error::ActError;
use crate::git::{
    CommitFile, CommitRequest, DEFAULT_INTEGRATION, GitTokenType, ListedIntegration, ListedUser, Provider,
    RequestedPull, SharingPolicy,
};
use crate::schema::git_token::{GitAuthDetails, unrefreshed};

/// What was given: clients write nothing as an empty text, too.
pub(crate) fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// The name that was given.
pub(crate) fn or_default(name: Option<String>) -> String {
    given(name).unwrap_or_else(|| DEFAULT_INTEGRATION.to_owned())
}

/// A Git integration, and who registered a token with it.
#[derive(SimpleObject)]
pub(crate) struct GitIntegration {
    name: String,
    sharing_policy: SharingPolicy,
    provider: Provider,
    api_url: String,
    registered_users: u64,
    users: Vec<GitIntegrationUser>,
}

/// Somebody who registered a token.
#[derive(SimpleObject)]
struct GitIntegrationUser {
    user_id: String,
    /// Whether what is kept opens: not after the runtime's store key was changed.
    is_valid: bool,
    /// When the token ends, as its provider said when it was registered; none: it did not say, or it does not end.
    expires_at: Option<String>,
}

/// A Git integration that is to be.
#[derive(InputObject)]
pub(crate) struct AddGitIntegrationArgs {
    /// None: `default`.
    pub(crate) name: Option<String>,
    pub(crate) provider: Provider,
    /// None: that of the provider's own cloud.
    pub(crate) api_url: Option<String>,
    pub(crate) sharing_policy: SharingPolicy,
}

/// What becomes of a Git integration.
#[derive(InputObject)]
pub(crate) struct EditGitIntegrationArgs {
    /// None: `default`.
    pub(crate) name: Option<String>,
    /// None: as it is. Tokens that were registered for another address are forgotten.
    pub(crate) api_url: Option<String>,
    pub(crate) sharing_policy: SharingPolicy,
}

/// A token of whoever asks.
#[derive(InputObject)]
pub(crate) struct RegisterToGitIntegrationArgs {
    /// None: `default`.
    pub(crate) name: Option<String>,
    pub(crate) token: String,
    /// Of tokens that end within hours, which are not taken: to be left out. `beginGitAuth` is for tokens of an OAuth application.
    pub(crate) refresh_token: Option<String>,
    /// Whose the token is at Bitbucket Cloud, which wants to be told: a user name, or an address with an API token. Nothing is made
    /// of it elsewhere, where the provider says so.
    pub(crate) username: Option<String>,
    /// Whoever asks; another is refused.
    pub(crate) user_id: Option<String>,
    /// Nothing is made of it: there is one account.
    pub(crate) account_id: Option<String>,
    /// Nothing is made of it: the platform says who is an admin.
    pub(crate) is_admin: Option<bool>,
    /// `USER_TOKEN`, or nothing.
    pub(crate) token_type: Option<GitTokenType>,
}

/// Whose consent is asked for by a browser.
#[derive(SimpleObject)]
pub(crate) struct GitAuth {
    /// What whoever asked is to open, within 10 minutes.
    pub(crate) url: String,
}

/// What a browser showed to whoever consented.
#[derive(InputObject)]
pub(crate) struct FinishGitAuthArgs {
    /// None: `default`.
    pub(crate) name: Option<String>,
    /// The line.
    pub(crate) line: String,
}

/// Which repositories are listed.
#[derive(InputObject, Default)]
pub(crate) struct GitRepositoriesArgs {
    /// None: `default`.
    pub(crate) integration_name: Option<String>,
    /// From 1 on, which it is unless another is named.
    pub(crate) page: Option<u32>,
    /// Of a page: 30 unless another number is named, 100 at most.
    pub(crate) limit: Option<u32>,
}

/// Whose organisations are listed.
#[derive(InputObject, Default)]
pub(crate) struct GitOrganizationsArgs {
    /// None: `default`.
    pub(crate) integration_name: Option<String>,
    /// Of whoever this token is, and no integration is asked for one.
    pub(crate) auth_details: Option<GitAuthDetails>,
}

/// Of which repository branches and tags are listed.
#[derive(InputObject)]
pub(crate) struct RepositoryBranchesAndTagsArgs {
    /// None: `default`.
    pub(crate) integration_name: Option<String>,
    /// Its owner and its name, such as `team/mono`.
    pub(crate) repo: String,
}

/// Which directory is listed.
#[derive(InputObject)]
pub(crate) struct RepositoryFilesArgs {
    /// None: `default`.
    pub(crate) integration_name: Option<String>,
    /// A branch, a tag or a commit.
    #[graphql(name = "ref")]
    pub(crate) revision: String,
    /// Its owner and its name, such as `team/mono`.
    pub(crate) repo: String,
    /// None: the root.
    pub(crate) path: Option<String>,
}

/// Which file is read.
#[derive(InputObject)]
pub(crate) struct ReadFileArgs {
    /// None: `default`.
    pub(crate) integration_name: Option<String>,
    /// A branch, a tag or a commit.
    #[graphql(name = "ref")]
    pub(crate) revision: String,
    /// Its owner and its name, such as `team/mono`.
    pub(crate) repo: String,
    pub(crate) path: String,
}

/// Files that are to be committed.
#[derive(InputObject)]
pub(crate) struct CommitFilesArgs {
    /// None: `default`.
    pub(crate) integration_name: Option<String>,
    /// None: the repository's own, which a repository without commits gets by its first one.
    pub(crate) branch_name: Option<String>,
    /// The branch, tag or commit that `branchName` begins at: it is a new branch then, and refused where there is one of that name.
    pub(crate) base_ref: Option<String>,
    /// The branch that a pull request is to merge it into: nothing is committed where there is no such branch.
    pub(crate) target_branch: Option<String>,
    /// Its owner and its name, such as `team/mono`.
    pub(crate) repo: String,
    pub(crate) files: Vec<CommitFile>,
    /// The first line of what the commit says; none: it names the file.
    pub(crate) msg: Option<String>,
    /// What stands below.
    pub(crate) description: Option<String>,
    /// What others changed meanwhile is written over. Never their commits: those stay.
    pub(crate) force: Option<bool>,
    /// The commit is made although it changes nothing.
    pub(crate) allow_empty: Option<bool>,
}

/// Files that are to be deleted.
#[derive(InputObject)]
pub(crate) struct DeleteFilesArgs {
    /// None: `default`.
    pub(crate) integration_name: Option<String>,
    /// None: the repository's own.
    pub(crate) branch_name: Option<String>,
    /// As of `CommitFilesArgs`.
    pub(crate) base_ref: Option<String>,
    /// As of `CommitFilesArgs`.
    pub(crate) target_branch: Option<String>,
    /// Its owner and its name, such as `team/mono`.
    pub(crate) repo: String,
    pub(crate) paths: Vec<String>,
    /// The first line of what the commit says; none: it names the file.
    pub(crate) msg: Option<String>,
    /// What stands below.
    pub(crate) description: Option<String>,
}

/// A pull request that is to be.
#[derive(InputObject)]
pub(crate) struct CreatePullRequestArgs {
    /// None: `default`.
    pub(crate) integration_name: Option<String>,
    /// Its owner and its name, such as `team/mono`.
    pub(crate) repo: String,
    /// The branch that is to be merged.
    pub(crate) head: String,
    /// The branch that it is to be merged into; none: the repository's own.
    pub(crate) base: Option<String>,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
}

impl CreatePullRequestArgs {
    pub(crate) fn wanted(self) -> RequestedPull {
        let Self { integration_name: _, repo: _, head, base, title, description } = self;
        RequestedPull { title, description, head, base }
    }
}

impl CommitFilesArgs {
    pub(crate) fn change(self) -> CommitRequest {
        CommitRequest {
            branch: self.branch_name,
            base: self.base_ref,
            target: self.target_branch,
            files: self.files.into_iter().map(CommitFile::written).collect(),
            message: (self.msg, self.description),
            force: self.force.unwrap_or_default(),
            allow_empty: self.allow_empty.unwrap_or_default(),
        }
    }
}

impl DeleteFilesArgs {
    pub(crate) fn change(self) -> CommitRequest {
        let deleted = |path| NewFile { path, content: Content::Deleted, revision: None };
        CommitRequest {
            branch: self.branch_name,
            base: self.base_ref,
            target: self.target_branch,
            files: self.paths.into_iter().map(deleted).collect(),
            message: (self.msg, self.description),
            force: false,
            allow_empty: false,
        }
    }
}

/// A token that is to be registered.
pub(crate) struct Registration {
    pub(crate) integration: String,
    /// Whose it is, if that is said.
    pub(crate) user: Option<String>,
    /// What they are called at the provider, where that goes with the token.
    pub(crate) username: Option<String>,
    pub(crate) token: SecretString,
}

impl RegisterToGitIntegrationArgs {
    /// What is asked for, unless it is more than is done.
    pub(crate) fn read(self) -> Result<Registration, ActError> {
        let token = SecretString::from(self.token);
        unrefreshed(self.refresh_token)?;
        if self.token_type == Some(GitTokenType::RuntimeToken) {
            return Err(ActError::Wrong(
                "this registers the token of a person: tokenType is USER_TOKEN".to_owned(),
            ));
        }
        Ok(Registration {
            integration: or_default(self.name),
            user: given(self.user_id),
            username: self.username,
            token,
        })
    }
}

impl From<ListedIntegration> for GitIntegration {
    fn from(listed: ListedIntegration) -> Self {
        let provider = listed.provider();
        let ListedIntegration { name, integration, users } = listed;
        let user = |of: ListedUser| GitIntegrationUser {
            user_id: of.user,
            is_valid: of.is_valid,
            expires_at: of.expires.map(|at| at.to_string()),
        };
        let users: Vec<_> = users.into_iter().map(user).collect();
        Self {
            name,
            sharing_policy: integration.sharing_policy,
            provider,
            api_url: integration.api_url,
            registered_users: u64::try_from(users.len()).unwrap_or(u64::MAX),
            users,
        }
    }
}
