//! Git integrations of the runtime, and the tokens that people register with them.

use async_graphql::SimpleObject;
use jiff::Timestamp;
use pipeline_core::SecretString;

use super::calls::Calls;
use super::forge::CheckedToken;
use super::git_secret::{GitSecret, KeptToken, SecretChanges};
use super::integration::{Integration, SharingPolicy, named};
use super::provider::Provider;
use super::seal::{KeyMaterial, Sealer};
use super::token_type::GitTokenType;
use crate::account::Account;
use crate::error::ActError;
use crate::platform::Platform;

/// The most integrations of a runtime.
const MAX_INTEGRATIONS: usize = 50;

/// The Git integrations, and the tokens that people registered with them. Cloning shares.
#[derive(Clone)]
pub(crate) struct Integrations {
    pub(crate) kept: GitSecret,
    /// Secrets in the namespace of Argo CD, for Argo CD to read.
    pub(crate) of_argocd: GitSecret,
    pub(crate) platform: Platform,
    /// How providers are called.
    pub(crate) calls: Calls,
    /// Whether tokens are taken without a check of what they may.
    pub(crate) takes_any: bool,
}

/// An integration, and the people who registered a token with it.
pub(crate) struct ListedIntegration {
    pub(crate) name: String,
    pub(crate) integration: Integration,
    pub(crate) users: Vec<ListedUser>,
}

/// Somebody who registered a token.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListedUser {
    pub(crate) user: String,
    /// The uid of their account of the platform.
    pub(crate) uid: String,
    /// Whether their token can be opened.
    pub(crate) is_valid: bool,
    /// When their token ends, where the provider said so.
    pub(crate) expires: Option<Timestamp>,
}

/// A token of whoever asks, as its provider sees it now.
#[derive(SimpleObject)]
pub(crate) struct GitToken {
    user_id: String,
    /// Whose it is at the provider.
    username: String,
    /// When it ends; none: its provider does not say, or it does not end.
    expires_at: Option<String>,
}

/// A person's token, opened, and its integration.
pub(super) struct RegisteredToken {
    pub(super) integration: Integration,
    /// The name of its owner at the provider.
    pub(super) username: String,
    pub(super) token: SecretString,
}

/// The place of a token, which it is sealed for.
fn place(name: &str, uid: &str) -> String {
    format!("{name}/{uid}")
}

fn missing(name: &str) -> ActError {
    ActError::NotFound(format!("there is no Git integration {name}"))
}

fn unregistered(name: &str, user: &str) -> ActError {
    ActError::NotFound(format!("'{user}' has no token registered with the Git integration {name}"))
}

impl Integrations {
    /// Seals tokens; the runtime's `encryptionIV` is made where it is missing.
    pub(super) async fn sealer(&self) -> Result<Sealer, ActError> {
        let store_key = self.platform.store_key().await?;
        KeyMaterial { store_key, iv: self.kept.iv_or_new().await? }.sealer()
    }

    /// What tokens are opened with; `None`: no token was sealed with what there is. Nothing is made.
    pub(super) async fn opener(&self) -> Result<Option<Sealer>, ActError> {
        let Some(iv) = self.kept.iv().await? else { return Ok(None) };
        KeyMaterial { store_key: self.platform.store_key().await?, iv }.sealer().map(Some)
    }

    pub(crate) async fn list(&self) -> Result<Vec<ListedIntegration>, ActError> {
        let all = self.kept.content().await?;
        let sealer = match all.tokens.is_empty() {
            true => None,
            false => self.opener().await?,
        };
        let listed = all.integrations.iter().map(|(name, integration)| {
            let (name, integration) = (name.clone(), integration.clone());
            let mut users: Vec<_> = all
                .tokens_of(&name)
                .map(|token| {
                    let opens =
                        |sealer: &Sealer| sealer.open(&place(&name, &token.uid), &token.sealed).is_ok();
                    ListedUser {
                        user: token.user.clone(),
                        uid: token.uid.clone(),
                        is_valid: sealer.as_ref().is_some_and(opens),
                        expires: token.expires,
                    }
                })
                .collect();
            users.sort();
            ListedIntegration { name, integration, users }
        });
        Ok(listed.collect())
    }

    pub(crate) async fn get(&self, name: &str) -> Result<ListedIntegration, ActError> {
        let found = self.list().await?.into_iter().find(|one| one.name == name);
        found.ok_or_else(|| missing(name))
    }

    /// An integration, without those who are registered.
    pub(crate) async fn find(&self, name: &str) -> Result<Integration, ActError> {
        named(name)?;
        self.kept.content().await?.integrations.remove(name).ok_or_else(|| missing(name))
    }

    /// Whether everybody may register with an integration that has this API.
    pub(crate) async fn is_for_everybody(&self, provider: Provider, api_url: &str) -> Result<bool, ActError> {
        let all = self.kept.content().await?.integrations;
        Ok(all.values().any(|one| {
            (one.provider, &*one.api_url) == (provider, api_url)
                && one.sharing_policy == SharingPolicy::AllUsersInAccount
        }))
    }

    pub(crate) async fn add(&self, name: &str, integration: &Integration) -> Result<(), ActError> {
        named(name)?;
        self.kept
            .change(|all| match all.integrations.contains_key(name) {
                true => Err(ActError::Wrong(format!("there is a Git integration {name} already: edit it"))),
                false if all.integrations.len() >= MAX_INTEGRATIONS => {
                    Err(ActError::Wrong(format!("a runtime has at most {MAX_INTEGRATIONS} Git integrations")))
                }
                // Tokens of a former integration of this name are not those of the new one.
                false => {
                    SecretChanges::default().forget_tokens(name, all).keep_integration(name, integration)
                }
            })
            .await
    }

    /// Changes an integration. Where its address changes, its tokens are forgotten, since they are not to be sent to another server.
    pub(crate) async fn edit(
        &self,
        name: &str,
        api_url: Option<&str>,
        sharing: SharingPolicy,
    ) -> Result<(), ActError> {
        named(name)?;
        self.kept
            .change(|all| {
                let before = all.integrations.get(name).ok_or_else(|| missing(name))?;
                let api_url = api_url.unwrap_or(&before.api_url);
                let after = Integration::new(before.provider, Some(api_url), sharing)?;
                let changes = match after.api_url == before.api_url {
                    true => SecretChanges::default(),
                    false => SecretChanges::default().forget_tokens(name, all),
                };
                changes.keep_integration(name, &after)
            })
            .await
    }

    pub(crate) async fn remove(&self, name: &str) -> Result<(), ActError> {
        named(name)?;
        self.kept
            .change(|all| match all.integrations.contains_key(name) {
                true => Ok(SecretChanges::default().forget_integration(name).forget_tokens(name, all)),
                false => Err(missing(name)),
            })
            .await
    }

    /// The kind that a token is checked for; `None`: its permissions are not checked.
    pub(super) fn wanted(&self, of: GitTokenType) -> Option<GitTokenType> {
        (!self.takes_any).then_some(of)
    }

    /// Keeps a person's token once the provider takes it, unless the integration was changed meanwhile.
    pub(crate) async fn register(
        &self,
        name: &str,
        integration: &Integration,
        account: &Account,
        (username, token): (Option<&str>, &SecretString),
    ) -> Result<(), ActError> {
        let (user, uid) = (account.name.clone(), account.uid()?.to_owned());
        let who = (username, token);
        let CheckedToken { person, expires } = integration
            .provider
            .check(&integration.api_url, who, self.wanted(GitTokenType::UserToken), &self.calls)
            .await?;
        let sealed = self.sealer().await?.seal(&place(name, &uid), token)?;
        let kept = KeptToken { uid, user, username: person.username, sealed, expires };
        self.kept
            .change(|all| match all.integrations.get(name) {
                Some(now) if now == integration => {
                    SecretChanges::default().forget_before(name, account, all).keep_token(name, &kept)
                }
                _ => Err(ActError::Wrong(format!(
                    "the Git integration {name} was changed meanwhile: look at it and try again"
                ))),
            })
            .await
    }

    /// A person's token for an integration, opened.
    pub(super) async fn token_of(&self, name: &str, account: &Account) -> Result<RegisteredToken, ActError> {
        let (user, uid) = (&*account.name, account.uid()?);
        named(name)?;
        let mut all = self.kept.content().await?;
        let integration = all.integrations.remove(name).ok_or_else(|| missing(name))?;
        let none = || unregistered(name, user);
        let kept = all.tokens_of(name).find(|token| token.uid == uid).ok_or_else(none)?;
        let opened = match self.opener().await? {
            Some(sealer) => sealer.open(&place(name, uid), &kept.sealed).ok(),
            None => None,
        };
        let token = opened.ok_or_else(|| {
            ActError::Wrong(format!(
                "the token of '{user}' does not open any more, because the runtime's key is another by now: register it again"
            ))
        })?;
        Ok(RegisteredToken { integration, username: kept.username.clone(), token })
    }

    /// Asks the provider about a person's token.
    pub(crate) async fn check(&self, name: &str, account: Account) -> Result<GitToken, ActError> {
        let RegisteredToken { integration, username, token } = self.token_of(name, &account).await?;
        let (who, of) = ((Some(&*username), &token), self.wanted(GitTokenType::UserToken));
        let found = integration.provider.check(&integration.api_url, who, of, &self.calls).await?;
        let expires_at = found.expires.map(|at| at.to_string());
        Ok(GitToken { user_id: account.name, username: found.person.username, expires_at })
    }

    pub(crate) async fn deregister(&self, name: &str, account: &Account) -> Result<(), ActError> {
        let (user, uid) = (&*account.name, account.uid()?);
        named(name)?;
        self.kept
            .change(|all| match all.tokens_of(name).any(|token| token.uid == uid) {
                true => Ok(SecretChanges::default().forget_token(name, uid)),
                false => Err(unregistered(name, user)),
            })
            .await
    }
}

impl ListedIntegration {
    /// The integration as an account sees it: without former accounts of its name.
    pub(crate) fn seen_by(mut self, account: &Account) -> Self {
        self.users.retain(|one| !account.follows(&one.user, &one.uid));
        self
    }

    pub(crate) fn provider(&self) -> Provider {
        self.integration.provider
    }
}
