//! A Git token that comes with a request, and is not kept.

use pipeline_core::SecretString;

use super::calls::Calls;
use super::files::GitOrganization;
use super::forge::{CheckedToken, Forge};
use super::integrations::Integrations;
use super::provider::Provider;
use super::token_type::GitTokenType;
use crate::error::ActError;

/// A token, and the API that it is for.
pub(crate) struct OfferedToken {
    pub(crate) provider: Provider,
    pub(crate) api_url: String,
    /// The name of its owner, where the provider wants to be told.
    username: Option<String>,
    token: SecretString,
    of: GitTokenType,
}

impl OfferedToken {
    /// Checks that the provider and the address go together.
    pub(crate) fn new(
        (provider, api_url): (Provider, Option<&str>),
        (username, token): (Option<String>, SecretString),
        of: GitTokenType,
    ) -> Result<Self, ActError> {
        Ok(Self { provider, api_url: provider.api(api_url)?, username, token, of })
    }

    fn who(&self) -> (Option<&str>, &SecretString) {
        (self.username.as_deref(), &self.token)
    }

    /// Whose token it is, and when it ends, if it has the permissions that its kind needs.
    pub(super) async fn checked(&self, git: &Integrations) -> Result<CheckedToken, ActError> {
        self.provider.check(&self.api_url, self.who(), git.wanted(self.of), &git.calls).await
    }

    /// As [`Self::checked`], in the form of the schema.
    pub(crate) async fn check(&self, git: &Integrations) -> Result<CheckedGitToken, ActError> {
        self.checked(git).await.map(CheckedGitToken::from)
    }

    /// The organisations or groups that its owner may make repositories in.
    pub(crate) async fn organizations(&self, calls: &Calls) -> Result<Vec<GitOrganization>, ActError> {
        let forge = Forge::new(self.provider, &self.api_url, self.who(), calls).await?;
        Ok(forge.organizations().await?.into_iter().map(GitOrganization::from).collect())
    }

    /// The name and the password that a Git server takes.
    pub(super) async fn of_git(
        self,
        username: &str,
        calls: &Calls,
    ) -> Result<(String, SecretString), ActError> {
        let forge = Forge::new(self.provider, &self.api_url, self.who(), calls).await?;
        Ok((forge.of_git(username).to_owned(), self.token))
    }
}

/// A token that may what is wanted of its kind.
#[derive(async_graphql::SimpleObject)]
pub(crate) struct CheckedGitToken {
    /// Whose it is at the provider.
    username: String,
    /// When it ends; none: its provider does not say, or it does not end.
    expires_at: Option<String>,
}

impl From<CheckedToken> for CheckedGitToken {
    fn from(of: CheckedToken) -> Self {
        let CheckedToken { person, expires } = of;
        Self { username: person.username, expires_at: expires.map(|at| at.to_string()) }
    }
}
