//! Accounts as the platform's store keeps them.

use async_trait::async_trait;
use jiff::Timestamp;
use stages_platform_store::{Account, Role, Store};

use crate::accounts::{Accounts, User};
use crate::fleet::Unavailable;

fn unavailable(error: impl std::error::Error + Send + Sync + 'static) -> Unavailable {
    Unavailable(Box::new(error))
}

#[async_trait]
impl Accounts for Store {
    async fn any_user(&self) -> Result<bool, Unavailable> {
        self.has_accounts().await.map_err(unavailable)
    }

    async fn user(&self, name: &str) -> Result<Option<User>, Unavailable> {
        let found = self.account(name).await.map_err(unavailable)?;
        Ok(found.map(|Account { name, password, .. }| User { name, password }))
    }

    async fn keep_link(&self, link: [u8; 32], until: Timestamp) -> Result<(), Unavailable> {
        self.keep_link(link, until.as_millisecond()).await.map_err(unavailable)
    }

    async fn use_link(&self, link: [u8; 32], now: Timestamp, user: User) -> Result<bool, Unavailable> {
        let account = Account { name: user.name, password: user.password, role: Role::Admin };
        self.use_link(link, now.as_millisecond(), &account).await.map_err(unavailable)
    }

    async fn keep_session(&self, session: [u8; 32], user: &str, until: Timestamp) -> Result<(), Unavailable> {
        let now = Timestamp::now().as_millisecond();
        self.keep_session(session, user, now, until.as_millisecond()).await.map_err(unavailable)
    }

    async fn session(&self, session: [u8; 32], now: Timestamp) -> Result<Option<String>, Unavailable> {
        self.session(session, now.as_millisecond()).await.map_err(unavailable)
    }

    async fn end_session(&self, session: [u8; 32]) -> Result<(), Unavailable> {
        self.end_session(session).await.map_err(unavailable)
    }
}
