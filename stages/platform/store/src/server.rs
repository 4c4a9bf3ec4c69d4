//! A Postgres server: what its URL says, connections to it, and why there are none.
//!
//! takes: a URL, or the file that holds one - gives: connections, also once another user or password stands in that file - fails: with
//! [`StoreError`], which names neither user nor password

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions as _, PgPool};

use crate::connection::Connection;
use crate::database::STATEMENTS;
use crate::error::StoreError;
use crate::limits::Limits;

/// What a URL calls the file of certificate authorities.
const AUTHORITIES: [&str; 3] = ["sslrootcert", "ssl-root-cert", "ssl-ca"];
/// What a URL may say behind its `?`, beside those and `options[NAME]`.
const PARAMETERS: [&str; 15] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "sslcert",
    "sslkey",
    "sslmode",
    "statement-cache-capacity",
    "user",
];

/// Connections of one kind to a server; cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct ServerPool {
    pool: PgPool,
    limits: Limits,
    /// Where its URL stands, if in a file.
    file: Option<Arc<Path>>,
    /// Whoever is let in was refused something for want of a right since the file was read.
    lacks_right: Arc<AtomicBool>,
}

impl ServerPool {
    pub(crate) fn new(pool: PgPool, limits: Limits, file: Option<Arc<Path>>) -> Self {
        Self { pool, limits, file, lacks_right: Arc::default() }
    }

    pub(crate) async fn acquire(&self) -> Result<Connection, StoreError> {
        // Another user may have come in the place of one who may still sign in.
        if let Some(file) = &self.file
            && self.lacks_right.swap(false, Ordering::Relaxed)
            && let Err(error) = self.follow(file).await
        {
            let error = &error as &(dyn std::error::Error + 'static);
            tracing::warn!(
                error,
                "whom the file of its URL names is not taken over while Postgres lets in who was before"
            );
        }
        let mut acquired = self.pool.acquire().await;
        // The server is there, and does not let in whom the file named so far.
        if matches!(acquired, Err(sqlx::Error::Database(_)))
            && let Some(file) = &self.file
        {
            self.follow(file).await?;
            acquired = self.pool.acquire().await;
            if acquired.is_ok() {
                tracing::info!("Postgres lets in whom the file of its URL names now");
            }
        }
        match acquired {
            Ok(connection) => {
                Ok(Connection::to_postgres(connection, self.limits).telling(Arc::clone(&self.lacks_right)))
            }
            Err(
                error @ (sqlx::Error::Io(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed),
            ) => Err(error.into()),
            // It is there, and not as it is to be, by its certificate for one.
            Err(error) => Err(unconnected(&self.pool.connect_options(), error)),
        }
    }

    /// Connects from now on as the file says now. Another server, or another database, is another store, which is to be opened.
    async fn follow(&self, file: &Path) -> Result<(), StoreError> {
        let url = url_read(file, tokio::fs::read_to_string(file).await)?;
        let (known, now) = (self.pool.connect_options(), options_of(&url)?);
        // Where no database is named it is the one that is called as the user.
        let database =
            |options: &PgConnectOptions| options.get_database().unwrap_or(options.get_username()).to_owned();
        if address(&known) != address(&now) || database(&known) != database(&now) {
            return Err(StoreError::Moved { from: name(&known), to: name(&now) });
        }
        self.pool.set_connect_options(now);
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }
}

/// The URL that stands in a file.
pub(crate) fn url_in(file: &Path) -> Result<String, StoreError> {
    url_read(file, std::fs::read_to_string(file))
}

fn url_read(file: &Path, read: io::Result<String>) -> Result<String, StoreError> {
    let failed = |source| StoreError::File { act: "read", path: file.display().to_string(), source };
    Ok(read.map_err(failed)?.trim().to_owned())
}

/// How the server of a URL is connected to.
pub(crate) fn options_of(url: &str) -> Result<PgConnectOptions, StoreError> {
    let options = of_url(url)?.application_name("gitops-runtime").disable_statement_logging();
    // No number here is a fraction, and poolers refuse whoever asks how these are written.
    Ok(options.statement_cache_capacity(STATEMENTS).extra_float_digits(None))
}

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
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    let hosts = before.split_once('/').map_or(before, |(hosts, _)| hosts);
    let hosts = hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts);
    if hosts.contains(',') {
        return Err(StoreError::Hosts);
    }
    // Where a parameter names the folder of its socket there may be a user and no host, which no other URL has.
    let before = match hosts {
        "" => before.replacen("@/", "@localhost/", 1),
        _ => before.to_owned(),
    };
    // Of what it does not know the client would log the value.
    let known: Vec<&str> = query.split('&').filter(|pair| is_known(pair)).collect();
    let known = format!("{scheme}://{before}?{}", known.join("&"));
    let options = known.parse::<PgConnectOptions>().map_err(|error| match error {
        sqlx::Error::Configuration(why) => StoreError::Url(Some(why)),
        error => StoreError::Url(Some(error.into())),
    })?;
    if options.get_socket().is_none() && options.get_host().contains(',') {
        return Err(StoreError::Hosts);
    }
    Ok(options)
}

/// The parameters of a URL that nothing is done by, without their values.
pub(crate) fn unknown_parameters(url: &str) -> Vec<&str> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let unknown = query.split('&').filter(|pair| !pair.is_empty() && !is_known(pair));
    unknown.map(name_of).collect()
}

fn name_of(pair: &str) -> &str {
    pair.split_once('=').map_or(pair, |(name, _)| name)
}

fn is_known(pair: &str) -> bool {
    let name = name_of(pair);
    // Whatever writes URLs may percent-encode the bracket.
    let is_option = ["options[", "options%5B", "options%5b"].iter().any(|begin| name.starts_with(begin));
    is_option || PARAMETERS.contains(&name) || AUTHORITIES.contains(&name)
}

/// Whether authorities are named that nobody is verified by: libpq verifies a server then, this client in other modes alone.
pub(crate) fn is_unverified(url: &str, options: &PgConnectOptions) -> bool {
    matches!(options.get_ssl_mode(), PgSslMode::Require) && names_authorities(url)
}

/// Whether there is a `/`, `?` or `#` in its password, which would end there: what is behind would be taken for a name of a database, or
/// of a parameter.
fn is_cut(rest: &str) -> bool {
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    rest.contains('#')
        || before.split_once('/').is_some_and(|(_, name)| name.contains('@'))
        || query.split('&').any(|pair| pair.contains('@') && !is_known(pair))
}

/// Whether a file of certificate authorities is named, by the URL or by the environment.
fn names_authorities(url: &str) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.any(|(name, file)| AUTHORITIES.contains(&name) && !file.is_empty())
        || std::env::var_os("PGSSLROOTCERT").is_some()
}

/// A server and a database of it, for people: neither user nor password.
pub(crate) fn name(options: &PgConnectOptions) -> String {
    format!("{}/{}", address(options), options.get_database().unwrap_or_default())
}

/// A server's host, or the folder of its socket, and its port.
pub(crate) fn address(options: &PgConnectOptions) -> String {
    let host = options.get_socket().map_or(options.get_host().into(), |socket| socket.to_string_lossy());
    format!("{host}:{}", options.get_port())
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgPoolOptions;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn parameters_that_nothing_is_done_by_are_told_without_their_values() {
        for (query, expected) in [
            (
                "sslmode=require&channel_binding=require&connect_timeout=10",
                vec!["channel_binding", "connect_timeout"],
            ),
            ("options=-c%20search_path=a&options[geqo]=off&user=reader@db&sslrootcert=/etc/ca.pem", vec![]),
            ("options%5Bsearch_path%5D=fleet&options%5bgeqo%5d=off", vec![]),
            ("sslpassword=hidden&pgbouncer", vec!["sslpassword", "pgbouncer"]),
            ("", vec![]),
        ] {
            assert_eq!(unknown_parameters(&format!("postgres://db/fleet?{query}")), expected, "{query}");
        }
        assert!(unknown_parameters("postgres://db/fleet").is_empty());
    }

    #[test]
    fn an_option_whose_name_is_percent_encoded_is_taken() {
        // Without it the tables would be looked for, and made, in another schema.
        for option in
            ["options[search_path]=fleet", "options%5Bsearch_path%5D=fleet", "options%5bsearch_path%5d=fleet"]
        {
            let options = of_url(&format!("postgres://db/fleet?{option}")).unwrap();
            let taken = options.get_options().unwrap_or_default();
            assert!(taken.ends_with("search_path=fleet"), "{option}: {taken}");
        }
    }

    #[tokio::test]
    async fn a_server_without_tls_is_told_as_one_that_cannot_be_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers = async {
            let (mut client, _) = listener.accept().await.unwrap();
            client.read_exact(&mut [0; 8]).await.unwrap();
            client.write_all(b"N").await.unwrap();
            client
        };
        let options = options_of(&format!("postgres://reader@{address}/fleet?sslmode=require")).unwrap();
        let pool = ServerPool::new(PgPoolOptions::new().connect_lazy_with(options), Limits::default(), None);
        let (_client, acquired) = tokio::join!(answers, pool.acquire());
        let error = acquired.unwrap_err();
        assert!(matches!(error, StoreError::Unconnected { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("cannot connect to Postgres at {address}"));
    }

    #[test]
    fn authorities_that_nobody_is_verified_by_are_noticed() {
        let is_unverified = |query: &str| {
            let url = format!("postgres://reader@localhost/fleet?{query}");
            is_unverified(&url, &of_url(&url).unwrap())
        };
        for (query, expected) in [
            ("sslmode=require&sslrootcert=/etc/ca.pem", true),
            ("ssl-ca=/etc/ca.pem&sslmode=require", true),
            ("sslmode=require&sslrootcert=", false),
            ("sslmode=require", false),
            ("sslmode=verify-full&sslrootcert=/etc/ca.pem", false),
            ("sslmode=prefer&sslrootcert=/etc/ca.pem", false),
        ] {
            assert_eq!(is_unverified(query), expected, "{query}");
        }
    }
}
