//! A Postgres server: what its URL says, and why it cannot be connected to.
//!
//! takes: a URL - gives: how the server is connected to - fails: with [`StoreError`], which names neither user nor password

use sqlx::postgres::PgConnectOptions;

use crate::error::StoreError;

/// Why a server cannot be connected to, with its address, which holds neither user nor password.
pub(crate) fn unconnected(options: &PgConnectOptions, error: sqlx::Error) -> StoreError {
    let address = address(options);
    match error {
        sqlx::Error::Io(source) => StoreError::Unconnected { address, source: source.into() },
        sqlx::Error::Database(said) if said.code().is_some_and(|code| code.starts_with("28")) => {
            StoreError::NotLetIn { address, code: said.code().unwrap_or_default().into_owned() }
        }
        error => StoreError::Unconnected { address, source: error.into() },
    }
}

/// The server of a URL. Of another scheme anything could be read as a name, a password too.
pub(crate) fn of_url(url: &str) -> Result<PgConnectOptions, StoreError> {
    let scheme = url.trim().split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    if !scheme.is_some_and(|scheme| ["postgres", "postgresql"].contains(&&*scheme)) {
        return Err(StoreError::Url(None));
    }
    url.parse().map_err(|error| match error {
        sqlx::Error::Configuration(why) => StoreError::Url(Some(why)),
        error => StoreError::Url(Some(error.into())),
    })
}

/// A server's host, or the folder of its socket, and its port.
pub(crate) fn address(options: &PgConnectOptions) -> String {
    let host = options.get_socket().map_or(options.get_host().into(), |socket| socket.to_string_lossy());
    format!("{host}:{}", options.get_port())
}
