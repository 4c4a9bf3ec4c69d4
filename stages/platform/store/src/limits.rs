//! How long Postgres is waited for: a host that is gone ends no connection, and whoever waits for it would wait for as long as the
//! system sends again what nobody takes, some quarter of an hour.
//!
//! What did not answer in time may have been done all the same, a commit above all. It is told as a failure, so nobody is told that
//! it was kept, and whoever sends it again sends it under the same key.

use std::io;
use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Postgres};

/// An idle connection that is taken up again answers within this time, or another takes its place.
const PING: Duration = Duration::from_secs(3);
/// A connection that is of no use any more is closed within this time, or left alone.
const CLOSE: Duration = Duration::from_secs(5);

/// How long Postgres is waited for. SQLite has no host that could be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long the server works at a statement, and how long it keeps a transaction open, with the lock that all writers take
    /// turns by, while it is told nothing more: it may be the client that is gone.
    pub statement: Duration,
    /// How long a statement is waited for here: longer, so that a server which is there is the one to tell.
    pub answer: Duration,
    /// A lock that the change of its tables waits for is told of after so long. It is waited for without end.
    pub lock: Duration,
    /// A connection over which nothing was written for so long is asked whether it lives before anything is.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            statement: Duration::from_secs(30),
            answer: Duration::from_secs(35),
            lock: Duration::from_secs(10),
            idle: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Milliseconds of [`Self::statement`]; 0 would be none.
    pub(crate) fn statement_millis(&self) -> u128 {
        self.statement.as_millis().max(1)
    }

    /// What comes of it within the time of an answer.
    pub(crate) async fn answered<T>(
        &self,
        asked: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        within(self.answer, asked).await
    }

    /// Connections of a pool that do not answer when they are taken from it or given back do not stay in it. One that is given back
    /// may still be at work for somebody who has gone, and ends that in time.
    pub(crate) fn watch(self, pool: PoolOptions<Postgres>) -> PoolOptions<Postgres> {
        let (taken, given_back) = (PING.min(self.answer), self.answer);
        pool.test_before_acquire(false)
            .after_connect(move |connection, _| Box::pin(self.limited(connection)))
            .before_acquire(move |connection, _| Box::pin(answers(connection, taken)))
            .after_release(move |connection, _| Box::pin(answers(connection, given_back)))
    }

    /// Whether an idle connection answers.
    pub(crate) async fn lives(&self, connection: &mut PgConnection) -> bool {
        answers(connection, PING.min(self.answer)).await.is_ok()
    }

    /// Limits the statements of a connection, in a transaction or not.
    pub(crate) async fn limited(self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let sql = format!("SET statement_timeout = {}", self.statement_millis());
        self.answered(sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection)).await.map(drop)
    }
}

/// Takes the limit of a connection's statements away: tables that are large may be brought to another shape for an hour.
pub(crate) async fn unlimited(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("SET statement_timeout = 0").execute(connection).await.map(drop)
}

async fn answers(connection: &mut PgConnection, limit: Duration) -> Result<bool, sqlx::Error> {
    within(limit, connection.ping()).await.map(|()| true)
}

async fn within<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
    tokio::time::timeout(limit, asked).await.unwrap_or_else(late)
}

/// Closes a connection; one whose server takes nothing any more is closed by the system alone.
pub(crate) async fn closed(closing: impl Future<Output = Result<(), sqlx::Error>>) {
    // It is of no use any more, however it goes.
    let _ = within(CLOSE, closing).await;
}
