//! What changed since a place in the sequence of transitions, and of what is told of their commits, which is kept: a browser that
//! was away goes on where it was.

use crate::error::StoreError;
use crate::fleet::listing::ApplicationName;
use crate::fleet::selection::Query;
use crate::rule::View;
use crate::store::Store;

/// The newest place of all, and the oldest of a transition.
const PLACES: &str = "SELECT COALESCE(max(newest), 0), COALESCE(max(oldest), 0) FROM \
    (SELECT max(id) AS newest, min(id) AS oldest FROM transitions UNION ALL SELECT max(place), 0 FROM changes) AS places";
/// Places that are looked through at most; whoever is further behind reads all anew.
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
    /// The newest place.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn sequence(&self) -> Result<i64, StoreError> {
        let row = self.read().await?.row(PLACES, &[]).await?;
        row.map_or(Ok(0), |row| row.int(0))
    }

    /// What changed behind a place, of what somebody sees.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn changed(&self, view: &View, after: i64) -> Result<Changed, StoreError> {
        let mut connection = self.read().await?;
        let (upto, oldest) = match connection.row(PLACES, &[]).await? {
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
            "SELECT r.name, a.namespace, a.name FROM applications a JOIN runtimes r ON r.id = a.runtime_id \
             WHERE a.id IN (SELECT e.application_id FROM transitions t JOIN entities e ON e.id = t.entity_id \
             WHERE t.id > {after} AND t.id <= {upto_there} \
             UNION SELECT n.id FROM changes c JOIN applications n ON n.runtime_id = c.runtime_id \
             AND n.namespace = c.namespace AND n.name = c.name WHERE c.place > {after} AND c.place <= {upto_there}) \
             AND {seen} LIMIT {most}"
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
