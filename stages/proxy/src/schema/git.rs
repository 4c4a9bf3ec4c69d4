//! Git integrations, as they are asked for and told.

use async_graphql::{Enum, InputObject, SimpleObject};
use pipeline_core::SecretString;

use crate::error::ActError;
use crate::git::{Listed, Provider, SharingPolicy};

/// What an integration is called that nobody named.
pub(crate) const DEFAULT: &str = "default";

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

/// Whose token it is.
#[derive(Debug, Enum, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitTokenType {
    RuntimeToken,
    UserToken,
}

/// A token of whoever asks.
#[derive(InputObject)]
pub(crate) struct RegisterToGitIntegrationArgs {
    /// None: `default`.
    pub(crate) name: Option<String>,
    pub(crate) token: String,
    /// Of OAuth, which is not carried out: to be left out.
    pub(crate) refresh_token: Option<String>,
    /// Nothing is made of it: the provider says whose the token is there.
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

impl RegisterToGitIntegrationArgs {
    /// The integration, and the token, unless more is asked for than is done.
    pub(crate) fn read(self) -> Result<(String, Option<String>, SecretString), ActError> {
        let token = SecretString::from(self.token);
        if self.refresh_token.is_some() {
            return Err(ActError::Wrong(
                "tokens that are refreshed are not taken: leave refreshToken out".to_owned(),
            ));
        }
        if self.token_type == Some(GitTokenType::RuntimeToken) {
            return Err(ActError::Wrong(
                "this registers the token of a person: tokenType is USER_TOKEN".to_owned(),
            ));
        }
        Ok((self.name.unwrap_or_else(|| DEFAULT.to_owned()), self.user_id, token))
    }
}

impl From<Listed> for GitIntegration {
    fn from(listed: Listed) -> Self {
        let provider = listed.provider();
        let Listed { name, integration, users } = listed;
        let users: Vec<_> =
            users.into_iter().map(|(user_id, is_valid)| GitIntegrationUser { user_id, is_valid }).collect();
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
