//! What the change of a server's tables waits for: a lock that others hold is waited for however long they do, and told.

use std::error::Error;
use std::pin::pin;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::limits::Limits;

/// Each lock that a session waits for, its table if it is of one, and the sessions that hold it.
const AWAITED: &str = "SELECT locktype, COALESCE(relation::regclass::text, ''), array_to_string(pg_blocking_pids(pid), ', ') \
    FROM pg_locks WHERE pid = $1 AND NOT granted";

/// Its kind, its table, and who holds it.
type AwaitedLock = (String, String, String);

/// What comes of changing tables, which a session of this number does.
pub(crate) async fn watched<T>(
    options: &PgConnectOptions,
    session: i32,
    limits: Limits,
    changing: impl Future<Output = T>,
) -> T {
    let mut changing = pin!(changing);
    let mut told = None;
    loop {
        if let Ok(done) = tokio::time::timeout(limits.lock, &mut changing).await {
            return done;
        }
        let awaited = tokio::select! {
            done = &mut changing => return done,
            awaited = limits.answered(awaited(options, session)) => awaited,
        };
        match awaited {
            Ok(Some(lock)) if told.as_ref() != Some(&lock) => {
                let (kind, table, sessions) = &lock;
                tracing::warn!(
                    lock = kind,
                    table,
                    sessions,
                    "the tables of the store change once other sessions of its server give a lock back"
                );
                told = Some(lock);
            }
            Ok(_) => {}
            Err(error) => {
                let error = &error as &(dyn Error + 'static);
                tracing::debug!(error, "what the change of the tables waits for is not known");
            }
        }
    }
}

/// The lock that a session waits for; `None`: none, it works.
async fn awaited(options: &PgConnectOptions, session: i32) -> Result<Option<AwaitedLock>, sqlx::Error> {
    let mut connection = options.connect().await?;
    let awaited = sqlx::query_as(AWAITED).bind(session).fetch_optional(&mut connection).await?;
    connection.close().await?;
    Ok(awaited)
}
