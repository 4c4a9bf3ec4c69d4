//! What changed since a place in the sequence of transitions, which is kept: a browser that was away goes on where it was.

use crate::error::StoreError;
use crate::fleet::listing::ApplicationName;
use crate::fleet::selection::Query;
use crate::rule::View;
use crate::store::Store;

/// Transitions that are looked through at most; whoever is further behind reads all anew.
const BEHIND: i64 = 5_000;
/// Names that are told at most.
const NAMES: i64 = 200;

/// What changed since a place in the sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The place that this goes to.
    pub upto: i64,
    /// Whose states changed.
    pub names: ChangedNames,
}

/// Whose states changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedNames {
    /// Of these applications.
    These(Vec<ApplicationName>),
    /// Of too many, or it is not kept any more.
    TooMany,
}

impl Store {
    /// The place of the newest transition.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn sequence(&self) -> Result<i64, StoreError> {
        let row = self.read().await?.row("SELECT COALESCE(max(id), 0) FROM transitions", &[]).await?;
        row.map_or(Ok(0), |row| row.int(0))
    }

    /// What changed behind a place, of what somebody sees.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn changed(&self, view: &View, after: i64) -> Result<Changed, StoreError> {
        let mut connection = self.read().await?;
        let sql = "SELECT COALESCE(max(id), 0), COALESCE(min(id), 0) FROM transitions";
        let (upto, oldest) = match connection.row(sql, &[]).await? {
            Some(row) => (row.int(0)?, row.int(1)?),
            None => (0, 0),
        };
        let lost = after > upto || after < oldest - 1 || upto.saturating_sub(after) > BEHIND;
        if lost {
            return Ok(Changed { upto, names: ChangedNames::TooMany });
        }
        let mut query = Query::default();
        let [after, upto_there, most] = [after, upto, NAMES + 1].map(|number| query.int(number));
        let seen = query.seen(view);
        query.sql = format!(
            "SELECT DISTINCT r.name, a.namespace, a.name FROM transitions t JOIN entities e ON e.id = t.entity_id \
                   JOIN applications a ON a.id = e.application_id JOIN runtimes r ON r.id = a.runtime_id \
                   WHERE t.id > {after} AND t.id <= {upto_there} AND {seen} LIMIT {most}"
        );
        let mut names = Vec::new();
        for row in query.rows(&mut connection).await? {
            names.push(ApplicationName {
                runtime: row.text(0)?,
                namespace: row.text(1)?,
                name: row.text(2)?,
            });
        }
        let many = i64::try_from(names.len()).unwrap_or(i64::MAX) > NAMES;
        let names = if many { ChangedNames::TooMany } else { ChangedNames::These(names) };
        Ok(Changed { upto, names })
    }
}
