//! Takes away what is older than it is to be kept, in steps that are small beside a commit of reports.
//!
//! What an entity is in now is never taken away, however old, and neither is what it was in when the time that is kept began.

use std::time::Duration;

use crate::accounts;
use crate::connection::{Arg, Connection};
use crate::error::StoreError;
use crate::report::Millis;

/// How long what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Transitions, deployments that ended and drifts that ended.
    pub history: Duration,
    /// Idempotency keys: a report that is sent again later than this counts as new.
    pub keys: Duration,
    /// How often it is looked for what is older.
    pub interval: Duration,
}

/// What is older than these goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) history: Millis,
    pub(crate) keys: Millis,
    /// Sessions and links that ended before it.
    pub(crate) ended: Millis,
}

impl Cut {
    pub(crate) fn at(retention: &Retention, now: Millis) -> Self {
        let before = |age: Duration| now.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        Self { history: before(retention.history), keys: before(retention.keys), ended: now }
    }
}

/// One step: at most some hundred rows of each table. How many went; nothing means that it is done.
pub(crate) async fn step(connection: &mut Connection, cut: Cut) -> Result<u64, StoreError> {
    let (history, keys) = ([Arg::Int(cut.history)], [Arg::Int(cut.keys)]);
    let sql = "DELETE FROM reports WHERE (runtime_id, key) IN \
               (SELECT runtime_id, key FROM reports WHERE received_at < $1 ORDER BY received_at LIMIT 500)";
    let mut gone = connection.execute(sql, &keys).await?;
    let sql = "DELETE FROM drifts WHERE id IN (SELECT id FROM drifts WHERE ended < $1 LIMIT 200)";
    gone += connection.execute(sql, &history).await?;
    let sql =
        "DELETE FROM deployments WHERE id IN (SELECT id FROM deployments WHERE finished_at < $1 LIMIT 200)";
    gone += connection.execute(sql, &history).await?;
    let sql = "SELECT t.id, t.object, t.actual, t.desired, t.git, t.details FROM transitions t \
               JOIN entities e ON e.id = t.entity_id \
               WHERE t.received_at < $1 AND e.current <> t.id AND e.latest <> t.id \
               AND EXISTS (SELECT 1 FROM transitions n WHERE n.entity_id = t.entity_id AND n.id > t.id AND n.received_at < $1) \
               ORDER BY t.received_at LIMIT 100";
    for row in connection.rows(sql, &history).await? {
        for column in 1..=5 {
            if let Some(digest) = row.bytes_or_null(column)? {
                let digest = [Arg::Bytes(&digest)];
                connection.execute("UPDATE blobs SET refs = refs - 1 WHERE digest = $1", &digest).await?;
                connection.execute("DELETE FROM blobs WHERE digest = $1 AND refs <= 0", &digest).await?;
            }
        }
        gone += connection.execute("DELETE FROM transitions WHERE id = $1", &[Arg::Int(row.int(0)?)]).await?;
    }
    Ok(gone + accounts::retain(connection, cut.ended, cut.history).await?)
}
