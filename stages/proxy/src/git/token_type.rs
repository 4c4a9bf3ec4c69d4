//! Whose a Git token is, which says what it has to be allowed.

use async_graphql::Enum;

/// Whose token it is.
#[derive(Debug, Enum, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum GitTokenType {
    /// With which Argo CD reads repositories, and the runtime has their webhooks.
    RuntimeToken,
    /// With which somebody commits.
    #[default]
    UserToken,
}
