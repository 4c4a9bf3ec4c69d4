//! A Git integration: a provider, its API, and who may use it.

use async_graphql::Enum;
use serde::{Deserialize, Serialize};

use super::provider::Provider;
use crate::error::ActError;

/// The integration that is meant where none is named.
pub(crate) const DEFAULT_INTEGRATION: &str = "default";

/// Who may register a token.
#[derive(Debug, Enum, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum SharingPolicy {
    AllUsersInAccount,
    AccountAdmins,
}

/// A Git integration, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Integration {
    pub(crate) provider: Provider,
    pub(crate) api_url: String,
    pub(crate) sharing_policy: SharingPolicy,
}

impl Integration {
    /// One whose provider and address are known to go together.
    pub(crate) fn new(
        provider: Provider,
        api_url: Option<&str>,
        sharing_policy: SharingPolicy,
    ) -> Result<Self, ActError> {
        let api_url = provider.api(api_url)?;
        Ok(Self { provider, api_url, sharing_policy })
    }
}

/// A name that an integration may have: it stands in keys of a Secret.
pub(super) fn named(name: &str) -> Result<(), ActError> {
    let well = (1..=63).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    match well {
        true => Ok(()),
        false => Err(ActError::Wrong(
            "a Git integration is named by up to 63 lowercase letters, digits and dashes".to_owned(),
        )),
    }
}
