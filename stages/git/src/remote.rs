//! Repositories elsewhere: fetched over HTTPS, HTTP, SSH and from this machine, into clones that stay within bounds.
//!
//! Git's protocol (its second version, and the first where a server knows no other) is spoken here, over `reqwest` with
//! rustls and over `russh`; `git2` takes the packs in and reads them. What was looked at:
//! - `git2::transport::register` takes connections of one's own, but through `unsafe` alone, which nothing here may use; and it
//!   would take any object for as large as it says.
//! - `gix` fetches, but cannot push, over SSH runs the program `ssh`, and would be a second library for one format.
//! - What a fetch says is two requests of a few lines. A push is one more: its pack is what `git2::PackBuilder` makes.

mod access;
mod advertised;
mod bare;
mod checkouts;
mod clone_dir;
mod committing;
mod config;
mod connection;
mod credentials;
mod error;
mod fetch;
mod github_app;
mod github_tokens;
mod global_projects;
mod hosts;
mod http;
mod http_client;
mod local;
mod no_token;
mod pack;
mod packet;
mod packs;
mod prefix;
mod push;
mod scan;
mod session;
mod slots;
mod ssh;
mod ssh_key;
mod tenant;
mod url;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use access::{Access, Scoped};
pub use checkouts::{Checkout, Checkouts, Named};
pub(crate) use committing::COMMIT_OUTCOMES;
pub use committing::{CommitError, Committed};
pub use config::Config;
pub use credentials::{Credential, Credentials, SECRET_TYPE};
pub use error::{FetchError, FetchFailure};
pub use github_app::GitHubApp;
pub use hosts::KnownHosts;
pub use no_token::NoToken;
pub use prefix::UrlPrefix;
pub use tenant::{Projects, Tenant};
pub use url::{RepositoryUrl, Scheme};

/// Does what blocks, on a thread that may.
async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    tokio::task::spawn_blocking(act).await.unwrap_or(Err(FetchError::Stopping))
}

/// What a lock holds; a panic of whoever held it is no reason to stop.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
