//! Either database, behind one enum: opened, brought to this version's tables, connected to.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, PgPool, SqlSafeStr as _, SqlitePool};

use crate::backup;
use crate::connection::Connection;
use crate::error::{StoreError, has_no_right};
use crate::file_lock::{FileLock, lock, turn};
use crate::limits::{self, Limits};
use crate::lock_wait;
use crate::migrations::MIGRATIONS;
use crate::server::{
    ServerPool, address, is_unverified, name, of_url, options_of, unconnected, unknown_parameters, url_in,
};

/// Connections that read what somebody asks for, beside the one that writes.
const READERS: u32 = 4;
/// Connections by which it is told who asks, beside those: what is read for long keeps nobody out.
const LOOKUPS: u32 = 4;
/// Statements that a connection that writes has read: of each for many rows there is one for every power of two.
pub(crate) const STATEMENTS: usize = 256;
/// Rows of an answer of SQLite's that do not wait for whoever takes them.
const ROWS: usize = 256;
/// Pages of the log that are taken over into the file at a time (16 MiB): a page that many commits change is written there once for all
/// of them. A group of reports changes some hundred pages, so that by SQLite's 1,000 every third of them waited for the whole file.
const LOG_PAGES: &str = "4096";
/// What SQLite says where it can lock nothing, or share no memory.
const UNLOCKED: [u32; 5] = [3_850, 4_618, 4_874, 5_130, 5_386];
/// A lock or a connection is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// The oldest Postgres whose words the tables and statements are written in, as it numbers itself: 13.
const OLDEST: u32 = 130_000;

/// How Postgres calls the encoding that has every character.
const UTF8: &str = "UTF8";

/// What Postgres says while it starts, and while it has as many connections as it takes.
const STARTING: [&str; 2] = ["57P03", "53300"];

/// Where the store is.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// A file on a disk of this machine.
    Sqlite(PathBuf),
    /// A server, by its URL, which may hold a password. It is Postgres 13 or newer.
    Postgres(String),
    /// The same, by a file that holds its URL: another user or password may come to stand there.
    PostgresFile(PathBuf),
}

/// Where it is, for people: of a server neither user nor password.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = match self {
            Self::Sqlite(path) => {
                return write!(f, "{}", std::path::absolute(path).as_ref().unwrap_or(path).display());
            }
            Self::Postgres(url) => of_url(url),
            Self::PostgresFile(file) => url_in(file).and_then(|url| of_url(&url)),
        };
        match server {
            Ok(options) => f.write_str(&name(&options)),
            Err(_) => f.write_str("of the server that is set"),
        }
    }
}

/// Connections of one kind to either database; cloning shares.
#[derive(Debug, Clone)]
enum Pool {
    Sqlite(SqlitePool),
    Postgres(ServerPool),
}

impl Pool {
    async fn acquire(&self) -> Result<Connection, StoreError> {
        match self {
            Self::Sqlite(pool) => Ok(Connection::from(pool.acquire().await?)),
            Self::Postgres(pool) => pool.acquire().await,
        }
    }

    async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

/// The pools; cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    writer: Pool,
    readers: Pool,
    lookups: Pool,
    /// Of Postgres: a newer version has brought the tables to its shape since they were opened.
    is_newer: Arc<AtomicBool>,
    /// Of SQLite: held for as long as the store is open; another process has it where this one is a guest.
    _lock: Option<Arc<FileLock>>,
}

impl Database {
    pub(crate) async fn open(place: &Place, limits: Limits) -> Result<Self, StoreError> {
        match place {
            Place::Sqlite(path) => Self::open_sqlite(path).await,
            Place::Postgres(url) => Self::open_postgres(url, None, limits).await,
            Place::PostgresFile(file) => Self::open_postgres(&url_in(file)?, Some(file), limits).await,
        }
    }

    /// The same for a moment, beside a process that has it open or is about to: it takes no lock that another needs, makes the
    /// tables where there are none, and changes none that there are.
    pub(crate) async fn beside(place: &Place, make: bool) -> Result<Self, StoreError> {
        match place {
            Place::Sqlite(path) => Self::beside_sqlite(path, make).await,
            Place::Postgres(url) => Self::beside_postgres(place, url, make).await,
            Place::PostgresFile(file) => Self::beside_postgres(place, &url_in(file)?, make).await,
        }
    }

    async fn beside_postgres(place: &Place, url: &str, make: bool) -> Result<Self, StoreError> {
        let limits = Limits::default();
        let (pool, options) = connected(url, limits).await?;
        let mut connection = Connection::to_postgres(pool.acquire().await?, limits);
        let is_new = is_new(applied(&mut connection).await?.as_ref())?;
        drop(connection);
        if is_new && !make {
            return Err(StoreError::NoStore(place.to_string()));
        }
        if is_new {
            migrate(&pool, &options, limits).await?;
        }
        Ok(Self::of_one(Pool::Postgres(ServerPool::new(pool, limits, None))))
    }

    async fn beside_sqlite(path: &Path, make: bool) -> Result<Self, StoreError> {
        if !make && !path.exists() {
            return Err(StoreError::NoStore(path.display().to_string()));
        }
        let _turn = turn(path).await?;
        if make {
            made(path)?;
        }
        let one = SqlitePoolOptions::new().max_connections(1).acquire_timeout(PATIENCE);
        let pool = one.connect_with(sqlite(path).create_if_missing(make)).await?;
        let applied = applied(&mut Connection::from(pool.acquire().await?)).await?;
        if is_new(applied.as_ref())? {
            migrator(|(.., sqlite, _)| sqlite).run(&pool).await.map_err(migration)?;
        }
        Ok(Self::of_one(Pool::Sqlite(pool)))
    }

    /// For a moment: whatever is done is done over one connection.
    fn of_one(pool: Pool) -> Self {
        let (writer, readers) = (pool.clone(), pool.clone());
        Self { writer, readers, lookups: pool, is_newer: Arc::default(), _lock: None }
    }

    async fn open_sqlite(path: &Path) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        let turn = turn(path).await?;
        made(path)?;
        let options = sqlite(path).create_if_missing(true);
        // Longer than a lock is waited for, so that it is told.
        let one = SqlitePoolOptions::new().max_connections(1).acquire_timeout(2 * PATIENCE);
        let writing = options.clone().statement_cache_capacity(STATEMENTS).row_buffer_size(ROWS);
        let writer = one.connect_with(writing).await.map_err(|error| not_opened(path, error))?;
        let applied = applied(&mut Connection::from(writer.acquire().await?)).await?;
        match applied {
            Some(applied) if is_newer(&applied) => return Err(backup::newer(path).await),
            Some(applied) if lacks(&applied) => backup::before_migration(&writer, path, &applied).await?,
            _ => {}
        }
        migrator(|(.., sqlite, _)| sqlite).run(&writer).await.map_err(migration)?;
        backup::migrated(path)?;
        drop(turn);
        let reading = options.create_if_missing(false).pragma("query_only", "ON");
        let some = |most| SqlitePoolOptions::new().max_connections(most).acquire_timeout(PATIENCE);
        let readers = some(READERS).connect_with(reading.clone()).await?;
        let lookups = some(LOOKUPS).connect_with(reading).await?;
        let [writer, readers, lookups] = [writer, readers, lookups].map(Pool::Sqlite);
        Ok(Self { writer, readers, lookups, is_newer: Arc::default(), _lock: Some(Arc::new(lock)) })
    }

    /// Opens one whose URL stands in a file, or does not.
    async fn open_postgres(url: &str, file: Option<&Path>, limits: Limits) -> Result<Self, StoreError> {
        let (writer, options) = connected(url, limits).await?;
        migrate(&writer, &options, limits).await?;
        let some = |most| limits.watch(PgPoolOptions::new().max_connections(most).acquire_timeout(PATIENCE));
        let readers = some(READERS).connect_lazy_with(options.clone());
        let lookups = some(LOOKUPS).connect_lazy_with(options);
        let file: Option<Arc<Path>> = file.map(Arc::from);
        let [writer, readers, lookups] = [writer, readers, lookups]
            .map(|pool| Pool::Postgres(ServerPool::new(pool, limits, file.clone())));
        Ok(Self { writer, readers, lookups, is_newer: Arc::default(), _lock: None })
    }

    /// Remembers whose the tables are, by how it went to begin to write.
    pub(crate) fn begun(&self, begun: &Result<(), StoreError>) {
        match begun {
            Ok(()) => self.is_newer.store(false, Ordering::Relaxed),
            Err(StoreError::Newer) => self.is_newer.store(true, Ordering::Relaxed),
            // It says nothing of them.
            Err(_) => {}
        }
    }

    /// Whether a newer version has the tables, by what was to be written last.
    pub(crate) fn is_newer(&self) -> bool {
        self.is_newer.load(Ordering::Relaxed)
    }

    pub(crate) async fn to_write(&self) -> Result<Connection, StoreError> {
        self.writer.acquire().await
    }

    pub(crate) async fn to_read(&self) -> Result<Connection, StoreError> {
        self.readers.acquire().await
    }

    /// For what tells who asks.
    pub(crate) async fn to_look_up(&self) -> Result<Connection, StoreError> {
        self.lookups.acquire().await
    }

    pub(crate) async fn close(&self) {
        self.lookups.close().await;
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// A pool of one connection to a server that is new enough, and how it is connected to.
async fn connected(url: &str, limits: Limits) -> Result<(PgPool, PgConnectOptions), StoreError> {
    let options = options_of(url)?;
    if is_unverified(url, &options) {
        tracing::warn!(
            "Postgres is not verified by the authorities that its URL names: give sslmode=verify-ca or verify-full"
        );
    }
    let unknown = unknown_parameters(url);
    if !unknown.is_empty() {
        tracing::warn!(
            parameters = unknown.join(", "),
            "nothing is done by these parameters of the URL of Postgres"
        );
    }
    // The pool would wait for one that does not run as for one that starts, and not say why.
    let first = tokio::time::timeout(PATIENCE, options.connect()).await;
    let first = first.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()));
    let why = match first {
        Ok(connection) => connection.close().await.err(),
        Err(sqlx::Error::Database(why)) if STARTING.contains(&&*why.code().unwrap_or_default()) => {
            Some(sqlx::Error::Database(why))
        }
        Err(why) => return Err(unconnected(&options, why)),
    };
    let one = limits.watch(PgPoolOptions::new().max_connections(1).acquire_timeout(PATIENCE));
    let pool = one.connect_with(options.clone()).await;
    let pool = pool.map_err(|error| unconnected(&options, why.unwrap_or(error)))?;
    // One that does not say is tried.
    let version = pool.acquire().await?.server_version_num();
    if let Some(version) = version.filter(|version| *version < OLDEST) {
        return Err(StoreError::OldPostgres { address: address(&options), version: version / 10_000 });
    }
    Ok((pool, options))
}

/// Makes the tables of a server, or brings them to this version's shape.
async fn migrate(pool: &PgPool, options: &PgConnectOptions, limits: Limits) -> Result<(), StoreError> {
    let mut connection = Connection::to_postgres(pool.acquire().await?, limits);
    let applied = applied(&mut connection).await?;
    let encoding = connection.row("SELECT current_setting('server_encoding')", &[]).await?;
    let encoding = encoding.map_or(Ok(UTF8.to_owned()), |row| row.text(0))?;
    drop(connection);
    if encoding != UTF8 {
        if applied.is_none() {
            return Err(StoreError::Encoding { name: name(options), encoding });
        }
        tracing::warn!(
            encoding,
            "the database of the store is not encoded as UTF8: no report is kept that has a character which it has not; put a dump of \
             it into one that is"
        );
    }
    let is_to_change = applied.as_ref().is_none_or(lacks);
    if is_to_change && applied.is_some() {
        tracing::info!("the tables of the store change, as soon as no other process does the same");
    }
    let mut connection = pool.acquire().await?;
    limits::unlimited(&mut connection).await?;
    let session = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut *connection);
    let session = limits.answered(session).await?;
    let mut migrator = migrator(|(.., postgres)| postgres);
    // A pooler that gives each transaction another connection may leave the lock of whoever changed the tables with one of them, for as
    // long as that lives: nobody waits for it who changes nothing.
    migrator.set_locking(is_to_change);
    let changing = migrator.run(&mut *connection);
    lock_wait::watched(options, session, limits, changing).await.map_err(migration)?;
    Ok(limits.limited(&mut connection).await?)
}

/// A commit is on the disk when it returns: `synchronous` is full. The log that grew under a long reader is cut again.
pub(crate) fn sqlite(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(PATIENCE)
        .foreign_keys(true)
        .pragma("journal_size_limit", "67108864")
        .pragma("wal_autocheckpoint", LOG_PAGES)
        .pragma("cache_size", "-16384")
        .disable_statement_logging()
}

/// Why the file of a store was not opened. Nobody else has it, by the lock beside it: what SQLite cannot lock all the same, or share its
/// memory of, is on a file system that has no locks of parts of a file, such as SMB.
fn not_opened(path: &Path, error: sqlx::Error) -> StoreError {
    let code = match &error {
        sqlx::Error::Database(said) => said.code().and_then(|code| code.parse::<u32>().ok()),
        _ => None,
    };
    match code {
        Some(code) if code & 0xff == 5 || UNLOCKED.contains(&code) => {
            StoreError::NoLock { path: path.display().to_string(), source: io::Error::other(error) }
        }
        _ => error.into(),
    }
}

/// A new file that its owner alone reads and writes: digests of passwords stand in it, and what runtimes seal under.
pub(crate) fn private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// The file of a store, where there is none. One that there is stays shut: closing it would take SQLite's locks away.
fn made(path: &Path) -> Result<(), StoreError> {
    match private(path) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::File { act: "make", path: path.display().to_string(), source })
        }
        _ => Ok(()),
    }
}

/// The path with more behind its name.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn migrator(text: impl Fn((i64, &'static str, &'static str, &'static str)) -> &'static str) -> Migrator {
    let migrations = MIGRATIONS.iter().map(|migration| {
        let (version, name, ..) = *migration;
        let sql = text(*migration).into_sql_str();
        Migration::new(version, Cow::Borrowed(name), MigrationType::Simple, sql, false)
    });
    Migrator { migrations: migrations.collect(), ..Migrator::DEFAULT }
}

/// The migrations that a store has; `None` for one without tables.
pub(crate) async fn applied(connection: &mut Connection) -> Result<Option<HashSet<i64>>, StoreError> {
    let sql = match connection.is_sqlite() {
        true => "SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'",
        false => "SELECT count(to_regclass('_sqlx_migrations'))",
    };
    if connection.row(sql, &[]).await?.map_or(Ok(0), |row| row.int(0))? == 0 {
        return Ok(None);
    }
    let rows = connection.rows("SELECT version FROM _sqlx_migrations", &[]).await?;
    let applied = rows.iter().map(|row| row.int(0)).collect::<Result<HashSet<_>, _>>()?;
    Ok((!applied.is_empty()).then_some(applied))
}

/// Whether tables are to be made, where there are none; those of another version are left as they are.
fn is_new(applied: Option<&HashSet<i64>>) -> Result<bool, StoreError> {
    match applied {
        None => Ok(true),
        Some(applied) if is_newer(applied) => Err(StoreError::Newer),
        Some(applied) if lacks(applied) => Err(StoreError::Older),
        Some(_) => Ok(false),
    }
}

fn lacks(applied: &HashSet<i64>) -> bool {
    MIGRATIONS.iter().any(|(version, ..)| !applied.contains(version))
}

pub(crate) fn is_newer(applied: &HashSet<i64>) -> bool {
    applied.iter().any(|version| MIGRATIONS.iter().all(|(known, ..)| known != version))
}

fn migration(error: MigrateError) -> StoreError {
    match error {
        MigrateError::VersionMissing(_) => StoreError::Newer,
        MigrateError::Execute(error) => error.into(),
        MigrateError::ExecuteMigration(error, _) if has_no_right(&error) => StoreError::NoRight(error),
        error => StoreError::Migrate(error),
    }
}

/// Without a password: what is printed may end in a log.
impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => f.write_str("Postgres"),
            Self::PostgresFile(file) => f.debug_tuple("PostgresFile").field(file).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_nobody_has_and_that_cannot_be_locked_is_on_a_file_system_without_locks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("platform.db");
        let options = sqlite(&path).create_if_missing(true).busy_timeout(Duration::ZERO);
        let mut other = options.clone().journal_mode(SqliteJournalMode::Delete).connect().await.unwrap();
        sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut other).await.unwrap();
        let error = not_opened(&path, options.connect().await.unwrap_err());
        assert!(matches!(error, StoreError::NoLock { .. }), "{error:?}");
        let said = format!(
            "cannot lock {}: the store is to be on a disk of this machine, as network file systems may have no locks, or in Postgres",
            path.display()
        );
        assert_eq!(error.to_string(), said);
        other.close().await.unwrap();

        let error = not_opened(folder.path(), sqlite(folder.path()).connect().await.unwrap_err());
        assert!(matches!(error, StoreError::Away(_)), "{error:?}");
    }
}
