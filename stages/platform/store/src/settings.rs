//! What is set on pages rather than in files: how long what is kept. It holds from one start to the next, above the file.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::audit::By;
use crate::connection::{Arg, Connection};
use crate::error::StoreError;
use crate::report::{DAY, Millis};
use crate::retention::{DEPLOYED, Retention};
use crate::statement::Statement;
use crate::store::Store;

const RETENTION: &str = "retention";
/// Under this name stands when the clock was last believed, in milliseconds since 1970; it is set on no page.
pub(crate) const BELIEVED_CLOCK: &str = "believed-clock";
/// And under this one the moment that clocks have said is over since then, and are not believed yet.
pub(crate) const DOUBTED_CLOCK: &str = "doubted-clock";
/// Of each application the last that succeeded stay.
const OLD_DEPLOYMENTS: &str = "SELECT CAST(COALESCE(sum(ended - CASE WHEN succeeded < $2 THEN succeeded ELSE $2 END), 0) AS BIGINT) \
    FROM (SELECT count(*) AS ended, count(*) FILTER (WHERE phase = 'Succeeded') AS succeeded FROM deployments \
    WHERE finished_at < $1 GROUP BY application_id) AS old";
/// The longest that is kept.
const MOST_DAYS: u32 = 3_650;

/// How long what is kept, as it is set on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetentionDays {
    /// Days of states, deployments and drifts.
    pub history: u32,
    /// Days of idempotency keys.
    pub keys: u32,
}

/// What goes when history is kept for less long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooOld {
    /// Deployments that ended before, without those that stay.
    pub deployments: u64,
    /// Drifts that ended before.
    pub drifts: u64,
    /// Entries of the audit log.
    pub acts: u64,
}

impl RetentionDays {
    /// Whether it can be kept so.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(self) -> Result<(), &'static str> {
        let well = |days: u32| (1..=MOST_DAYS).contains(&days);
        match (well(self.history), well(self.keys)) {
            (true, true) if self.keys <= self.history => Ok(()),
            (true, true) => Err("keys of reports are kept for no longer than the history"),
            _ => Err("what is kept is kept for 1 to 3650 days"),
        }
    }

    /// With the rest of what was set in the file.
    #[must_use]
    pub fn over(self, default: Retention) -> Retention {
        let days = |days: u32| Duration::from_secs(u64::from(days) * 86_400);
        Retention { history: days(self.history), keys: days(self.keys), interval: default.interval }
    }
}

/// What is set under a name; `None`: nothing is.
pub(crate) async fn setting<T: DeserializeOwned>(
    connection: &mut Connection,
    name: &str,
) -> Result<Option<T>, StoreError> {
    let body =
        connection.one::<String>("SELECT body FROM settings WHERE name = $1", &[Arg::Text(name)]).await?;
    Ok(body.map(|body| serde_json::from_str(&body)).transpose()?)
}

/// How long what is kept: as a page of whichever process set it, or else by default.
pub(crate) async fn retention(
    connection: &mut Connection,
    default: Retention,
) -> Result<Retention, StoreError> {
    let days = setting::<RetentionDays>(connection, RETENTION).await?;
    Ok(days.map_or(default, |days| days.over(default)))
}

/// Sets that, instead of what was set before.
pub(crate) fn set_setting(name: &str, body: &str) -> Statement {
    let sql = "INSERT INTO settings (name, body) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET body = excluded.body";
    Statement::must(sql, [name.into(), body.into()])
}

/// Takes it back.
pub(crate) fn drop_setting(name: &str) -> Statement {
    Statement::may("DELETE FROM settings WHERE name = $1", [name.into()])
}

impl Store {
    /// How long what is kept, as it was set on a page; `None`: as the file says.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn retention_days(&self) -> Result<Option<RetentionDays>, StoreError> {
        setting(&mut self.read().await?, RETENTION).await
    }

    /// How long what is kept: as it was set on a page, or else as the file says.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn retention(&self) -> Result<Retention, StoreError> {
        retention(&mut self.read().await?, self.default_retention).await
    }

    /// Keeps how long what is kept from now on, or with `None` that it is as the file says: what is too old for that goes at once.
    ///
    /// # Errors
    /// [`StoreError`] when it is as it was.
    pub async fn keep_retention_days(
        &self,
        by: &By,
        days: Option<RetentionDays>,
        now: Millis,
    ) -> Result<(), Arc<StoreError>> {
        let statements = match days {
            Some(days) => {
                let body = serde_json::to_string(&days).map_err(StoreError::from)?;
                let said = format!("history {} d, keys {} d", days.history, days.keys);
                vec![set_setting(RETENTION, &body), by.did("retention.set", &said, now)]
            }
            None => vec![drop_setting(RETENTION), by.did("retention.reset", "as the file says", now)],
        };
        self.change(statements).await?;
        self.retention_set.notify_one();
        Ok(())
    }

    /// What goes if history is kept for so many days.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn older_than(&self, days: u32, now: Millis) -> Result<TooOld, StoreError> {
        let cut = Arg::Int(now.saturating_sub(i64::from(days) * DAY));
        let mut connection = self.read().await?;
        let mut count = async |sql: &'static str, arguments: &[Arg<'_>]| {
            connection.one::<u64>(sql, arguments).await.map(Option::unwrap_or_default)
        };
        Ok(TooOld {
            deployments: count(OLD_DEPLOYMENTS, &[cut, Arg::Int(DEPLOYED)]).await?,
            drifts: count("SELECT count(*) FROM drifts WHERE ended < $1", &[cut]).await?,
            acts: count("SELECT count(*) FROM audit WHERE at < $1", &[cut]).await?,
        })
    }
}
