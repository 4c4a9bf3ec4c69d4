//! Git tokens that somebody gives along with what they ask.

use async_graphql::{Context, InputObject, Result};
use pipeline_core::SecretString;

use super::git::given;
use super::{caller, services};
use crate::dispatcher::Invocation;
use crate::error::ActError;
use crate::gate::Subject;
use crate::git::{GitTokenType, NewRuntimeToken, OfferedToken, Provider};
use crate::operation::Operation;

/// A token, and which API it is for.
#[derive(InputObject)]
pub(crate) struct GitAuthDetails {
    provider: Provider,
    /// None: that of the provider's own cloud.
    api_url: Option<String>,
    /// Whose the token is at Bitbucket Cloud, which wants to be told.
    username: Option<String>,
    /// The token.
    password: Option<String>,
    /// Of tokens that end within hours, which are not taken: to be left out.
    refresh_token: Option<String>,
}

/// A token that is to be looked at, and not kept.
#[derive(InputObject)]
pub(crate) struct ValidateGitProviderArgs {
    provider: Provider,
    /// None: that of the provider's own cloud.
    api_url: Option<String>,
    /// Whose the token is at Bitbucket Cloud, which wants to be told.
    username: Option<String>,
    token: String,
    /// Of tokens that end within hours, which are not taken: to be left out.
    refresh_token: Option<String>,
    /// None: `USER_TOKEN`.
    token_type: Option<GitTokenType>,
}

/// A token that the runtime is to have.
#[derive(InputObject)]
pub(crate) struct UpdateRuntimeGitTokenArgs {
    token: String,
    /// Of tokens that end within hours, which are not taken: to be left out.
    refresh_token: Option<String>,
    /// None: that of the provider's own cloud, or of the Git integration `default`.
    api_url: Option<String>,
    /// None: that of the Git integration `default`.
    provider: Option<Provider>,
    /// Whose the token is at Bitbucket Cloud, which wants to be told.
    username: Option<String>,
}

type Read<T> = std::result::Result<T, ActError>;

/// Whether a token is one that lasts.
pub(super) fn unrefreshed(refresh_token: Option<String>) -> Read<()> {
    match given(refresh_token) {
        None => Ok(()),
        Some(_) => {
            Err(ActError::Wrong("tokens that are refreshed are not taken: leave refreshToken out".to_owned()))
        }
    }
}

/// For whom an API is called with a token that somebody gives along: for whoever may, where an integration of everybody has it, and
/// else for admins, so that nobody else sends what they like to where they like.
pub(super) async fn offering(
    context: &Context<'_>,
    operation: Operation,
    offered: &OfferedToken,
) -> Result<Invocation> {
    let (services, invocation) = (services(context)?, Invocation::new(operation, Subject::default()));
    let looked = services.git.is_for_everybody(offered.provider, &offered.api_url);
    let looked = services.dispatcher.read(caller(context)?, invocation.clone(), looked).await;
    Ok(match looked.map_err(|error| error.graphql())? {
        true => invocation,
        false => Invocation { operation: invocation.operation.of_admins(), ..invocation },
    })
}

impl GitAuthDetails {
    pub(crate) fn read(self) -> Read<OfferedToken> {
        let Self { provider, api_url, username, password, refresh_token } = self;
        unrefreshed(refresh_token)?;
        let token =
            password.ok_or_else(|| ActError::Wrong("authDetails.password is to be the token".to_owned()))?;
        let who = (username, SecretString::from(token));
        OfferedToken::new((provider, api_url.as_deref()), who, GitTokenType::UserToken)
    }
}

impl ValidateGitProviderArgs {
    pub(crate) fn read(self) -> Read<OfferedToken> {
        let Self { provider, api_url, username, token, refresh_token, token_type } = self;
        unrefreshed(refresh_token)?;
        let who = (username, SecretString::from(token));
        OfferedToken::new((provider, api_url.as_deref()), who, token_type.unwrap_or_default())
    }
}

impl UpdateRuntimeGitTokenArgs {
    pub(crate) fn read(self) -> Read<NewRuntimeToken> {
        let Self { token, refresh_token, api_url, provider, username } = self;
        unrefreshed(refresh_token)?;
        Ok(NewRuntimeToken { provider, api_url: given(api_url), username, token: SecretString::from(token) })
    }
}
