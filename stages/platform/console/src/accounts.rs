//! Who may see anything: users, sessions, and the link that makes the first user.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::fleet::Unavailable;

/// Somebody who signs in by a password.
#[derive(Clone)]
pub(crate) struct User {
    /// How they sign in.
    pub(crate) name: String,
    /// Their password's Argon2id hash, in PHC form.
    pub(crate) password: String,
}

/// Where users and sessions are kept. Tokens come here as SHA-256 only.
#[async_trait]
pub(crate) trait Accounts: Send + Sync + 'static {
    /// Whether anybody has a password yet.
    async fn any_user(&self) -> Result<bool, Unavailable>;

    /// A user by name.
    async fn user(&self, name: &str) -> Result<Option<User>, Unavailable>;

    /// Keeps a one-time link, and forgets any before it.
    async fn keep_link(&self, link: [u8; 32], until: Timestamp) -> Result<(), Unavailable>;

    /// Makes the user and uses the link up, both or neither; `false`: the link is not good (any more).
    async fn use_link(&self, link: [u8; 32], now: Timestamp, user: User) -> Result<bool, Unavailable>;

    /// Keeps a session.
    async fn keep_session(&self, session: [u8; 32], user: &str, until: Timestamp) -> Result<(), Unavailable>;

    /// The user of a session that has not ended.
    async fn session(&self, session: [u8; 32], now: Timestamp) -> Result<Option<String>, Unavailable>;

    /// Ends a session.
    async fn end_session(&self, session: [u8; 32]) -> Result<(), Unavailable>;
}
