//! One connection to either database, and the little of SQL that both speak alike: numbered parameters, `RETURNING`,
//! `ON CONFLICT`; whole numbers, texts and bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sqlx::pool::PoolConnection;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Postgres, Row as _, SqlSafeStr, Sqlite};
use tokio::sync::OwnedSemaphorePermit;

use crate::error::StoreError;
use crate::limits::{self, Limits};

/// A parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arg<'a> {
    Int(i64),
    IntOrNull(Option<i64>),
    Text(&'a str),
    TextOrNull(Option<&'a str>),
    Bytes(&'a [u8]),
    BytesOrNull(Option<&'a [u8]>),
}

impl Arg<'_> {
    /// Null in its place.
    pub(crate) const fn null(self) -> Self {
        match self {
            Self::Int(_) | Self::IntOrNull(_) => Self::IntOrNull(None),
            Self::Text(_) | Self::TextOrNull(_) => Self::TextOrNull(None),
            Self::Bytes(_) | Self::BytesOrNull(_) => Self::BytesOrNull(None),
        }
    }
}

/// A row of an answer.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// A connection, which counts its statements.
#[derive(Debug)]
pub(crate) struct Connection {
    to: To,
    statements: u64,
    /// When it was begun to write over it last.
    begun_at: Instant,
    /// Told when its user lacks a right.
    lacks_right: Option<Arc<AtomicBool>>,
    /// Of a request that reads a few things at a time.
    _turn: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
enum To {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>, Limits),
}

/// Whoever writes looks rows up by their keys. The server plans a statement once for all that follow, and may do so while the
/// tables are small: none of these plans reads a table that has grown since through. Several processes on one database take
/// turns, so that what each reads before it writes is still so: each statement sees what was committed before it. What is acknowledged is on the disk
/// of the server, also where the database is set to answer before. The last of the answers is the newest migration of the tables.
const BEGIN_POSTGRES: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_seqscan = off; \
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off; \
    SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'";
const TURN_POSTGRES: &str =
    "SELECT pg_advisory_xact_lock(7450119); SELECT max(version) FROM _sqlx_migrations";

/// Postgres has no zero byte in a text.
fn text(text: &str) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.to_owned() }
}

macro_rules! bound {
    ($sql:expr, $arguments:expr) => {
        $arguments.iter().fold(sqlx::query($sql), |query, argument| match *argument {
            Arg::Int(value) => query.bind(value),
            Arg::IntOrNull(value) => query.bind(value),
            Arg::Text(value) => query.bind(text(value)),
            Arg::TextOrNull(value) => query.bind(value.map(text)),
            Arg::Bytes(value) => query.bind(value.to_owned()),
            Arg::BytesOrNull(value) => query.bind(value.map(<[u8]>::to_owned)),
        })
    };
}

impl From<PoolConnection<Sqlite>> for Connection {
    fn from(connection: PoolConnection<Sqlite>) -> Self {
        Self::new(To::Sqlite(connection))
    }
}

/// What a server said within its time. A connection that broke, whose answer may still come, or which has not what was prepared over
/// it, is not used again, and neither is one of a user who has lost their rights: another may have come in their place.
fn said<T>(
    connection: &mut PoolConnection<Postgres>,
    lacks_right: Option<&AtomicBool>,
    said: Result<T, sqlx::Error>,
) -> Result<T, StoreError> {
    let is_broken = matches!(said, Err(sqlx::Error::Io(_)));
    let said = said.map_err(StoreError::from);
    if let (Err(StoreError::NoRight(_)), Some(lacks_right)) = (&said, lacks_right) {
        lacks_right.store(true, Ordering::Relaxed);
    }
    if is_broken || matches!(said, Err(StoreError::NoRight(_) | StoreError::Pooled(_))) {
        connection.close_on_drop();
    }
    said
}

impl Connection {
    fn new(to: To) -> Self {
        Self { to, statements: 0, begun_at: Instant::now(), lacks_right: None, _turn: None }
    }

    /// To a server that is waited for so long.
    pub(crate) fn to_postgres(connection: PoolConnection<Postgres>, limits: Limits) -> Self {
        Self::new(To::Postgres(connection, limits))
    }

    /// Tells whether its user lacks a right.
    pub(crate) fn telling(self, lacks_right: Arc<AtomicBool>) -> Self {
        Self { lacks_right: Some(lacks_right), ..self }
    }

    /// Whether it can be begun to write over it: a server that was told nothing for a while is asked, for whoever stands between may
    /// have ended what was idle and told nobody.
    pub(crate) async fn lives(&mut self) -> bool {
        match &mut self.to {
            To::Postgres(connection, limits) if self.begun_at.elapsed() >= limits.idle => {
                limits.lives(connection).await
            }
            _ => true,
        }
    }

    /// The turn ends with it.
    pub(crate) fn with_turn(self, turn: Option<OwnedSemaphorePermit>) -> Self {
        Self { _turn: turn, ..self }
    }

    /// Whether it is to SQLite: what both do not speak alike.
    pub(crate) const fn is_sqlite(&self) -> bool {
        matches!(self.to, To::Sqlite(_))
    }

    /// How many statements it ran.
    pub(crate) const fn statements(&self) -> u64 {
        self.statements
    }

    /// Runs a statement; how many rows it touched.
    pub(crate) async fn execute(
        &mut self,
        sql: &'static str,
        arguments: &[Arg<'_>],
    ) -> Result<u64, StoreError> {
        self.statements += 1;
        Ok(match &mut self.to {
            To::Sqlite(connection) => {
                bound!(sql, arguments).execute(&mut **connection).await?.rows_affected()
            }
            To::Postgres(connection, limits) => {
                let done = limits.answered(bound!(sql, arguments).execute(&mut **connection)).await;
                said(connection, self.lacks_right.as_deref(), done)?.rows_affected()
            }
        })
    }

    /// The rows of an answer.
    pub(crate) async fn rows(
        &mut self,
        sql: impl SqlSafeStr,
        arguments: &[Arg<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.statements += 1;
        Ok(match &mut self.to {
            To::Sqlite(connection) => {
                let rows = bound!(sql, arguments).fetch_all(&mut **connection).await?;
                rows.into_iter().map(Row::Sqlite).collect()
            }
            To::Postgres(connection, limits) => {
                let rows = limits.answered(bound!(sql, arguments).fetch_all(&mut **connection)).await;
                let rows = said(connection, self.lacks_right.as_deref(), rows)?;
                rows.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    /// The rows of a statement that was put together here: of constants, with all else as its parameters.
    pub(crate) async fn rows_of(
        &mut self,
        sql: impl Into<Arc<str>>,
        arguments: &[Arg<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let sql: Arc<str> = sql.into();
        self.rows(AssertSqlSafe(sql), arguments).await
    }

    /// The first row, if there is one.
    pub(crate) async fn row(
        &mut self,
        sql: &'static str,
        arguments: &[Arg<'_>],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, arguments).await?.into_iter().next())
    }

    /// Closes a connection whose state is not known.
    pub(crate) async fn discard(self) {
        // It is of no use any more, however it goes.
        match self.to {
            To::Sqlite(connection) => drop(connection.close().await),
            To::Postgres(connection, _) => limits::closed(connection.close()).await,
        }
    }

    /// Begins to write: nobody else does until the end. Tables that a newer version than that of the migration `newest` has brought
    /// to its shape meanwhile are left to it; of SQLite's no other process changes any.
    pub(crate) async fn begin(&mut self, newest: i64) -> Result<(), StoreError> {
        self.begun_at = Instant::now();
        match &mut self.to {
            To::Sqlite(_) => self.execute("BEGIN IMMEDIATE", &[]).await.map(drop),
            To::Postgres(connection, limits) => {
                self.statements += 1;
                let limit = limits.statement_millis();
                let sql = format!(
                    "{BEGIN_POSTGRES}; SET LOCAL statement_timeout = {limit}; \
                     SET LOCAL idle_in_transaction_session_timeout = {limit}; {TURN_POSTGRES}"
                );
                let begin = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(&mut **connection);
                let begun = limits.answered(begin).await;
                let begun = said(connection, self.lacks_right.as_deref(), begun)?;
                let applied = begun.last().map(|row| row.try_get::<i64, _>(0)).transpose()?;
                if applied.is_some_and(|applied| applied > newest) { Err(StoreError::Newer) } else { Ok(()) }
            }
        }
    }
}

impl Row {
    fn get<'r, T>(&'r self, column: usize) -> Result<T, StoreError>
    where
        T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite> + sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres>,
    {
        Ok(match self {
            Self::Sqlite(row) => row.try_get(column)?,
            Self::Postgres(row) => row.try_get(column)?,
        })
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.get(column)
    }

    pub(crate) fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        self.get(column)
    }

    pub(crate) fn text(&self, column: usize) -> Result<String, StoreError> {
        self.get(column)
    }

    pub(crate) fn text_or_null(&self, column: usize) -> Result<Option<String>, StoreError> {
        self.get(column)
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<Vec<u8>, StoreError> {
        self.get(column)
    }

    pub(crate) fn bytes_or_null(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(column)
    }
}
