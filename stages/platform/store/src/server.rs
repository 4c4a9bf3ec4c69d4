//! A Postgres server: what its URL says, and why it cannot be connected to.
//!
//! takes: a URL - gives: how the server is connected to - fails: with [`StoreError`], which names neither user nor password

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::error::StoreError;

/// What a URL calls the file of certificate authorities.
const AUTHORITIES: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];

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

/// The server of a URL. Of another scheme, or where its password is cut, anything could be read as a name, a password too.
pub(crate) fn of_url(url: &str) -> Result<PgConnectOptions, StoreError> {
    let (scheme, rest) = url.trim().split_once("://").ok_or(StoreError::Url(None))?;
    if !["postgres", "postgresql"].contains(&&*scheme.to_ascii_lowercase()) || is_cut(rest) {
        return Err(StoreError::Url(None));
    }
    let options = url.parse::<PgConnectOptions>().map_err(|error| match error {
        sqlx::Error::Configuration(why) => StoreError::Url(Some(why)),
        error => StoreError::Url(Some(error.into())),
    })?;
    // As libpq does: whoever names authorities wants the server to be one that they vouch for.
    let is_vouched_for = matches!(options.get_ssl_mode(), PgSslMode::Require) && names_authorities(url);
    Ok(if is_vouched_for { options.ssl_mode(PgSslMode::VerifyCa) } else { options })
}

/// Whether there is a `/` or a `#` in its password, which would end there: what is behind would be taken for a name of a database.
fn is_cut(rest: &str) -> bool {
    let before = rest.split_once('?').map_or(rest, |(before, _)| before);
    rest.contains('#') || before.split_once('/').is_some_and(|(_, name)| name.contains('@'))
}

/// Whether a file of certificate authorities is named, by the URL or by the environment.
fn names_authorities(url: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.any(|(name, file)| AUTHORITIES.contains(&name) && !file.is_empty())
        || std::env::var_os("PGSSLROOTCERT").is_some()
}

/// A server's host, or the folder of its socket, and its port.
pub(crate) fn address(options: &PgConnectOptions) -> String {
    let host = options.get_socket().map_or(options.get_host().into(), |socket| socket.to_string_lossy());
    format!("{host}:{}", options.get_port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_verified_by_the_authorities_that_are_named() {
        let mode = |query: &str| {
            of_url(&format!("postgres://reader@localhost/fleet?{query}")).unwrap().get_ssl_mode()
        };
        for (query, verified) in [
            ("sslmode=require&sslrootcert=/etc/ca.pem", true),
            ("ssl-ca=/etc/ca.pem&sslmode=require", true),
            ("sslmode=require&sslrootcert=", false),
            ("sslmode=require", false),
        ] {
            assert_eq!(matches!(mode(query), PgSslMode::VerifyCa), verified, "{query}");
        }
        // What is more or less than that stays as it is set.
        assert!(matches!(mode("sslmode=verify-full&sslrootcert=/etc/ca.pem"), PgSslMode::VerifyFull));
        assert!(matches!(mode("sslmode=prefer&sslrootcert=/etc/ca.pem"), PgSslMode::Prefer));
    }
}
