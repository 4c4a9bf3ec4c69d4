//! What changed since a place in the sequence of transitions, and of what is told of their commits, which is kept: a browser that
//! was away goes on where it was.

use crate::connection::Connection;
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
/// Applications that are told at most.
pub(crate) const NAMES: i64 = 200;

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

/// The newest place, and whether all behind another one is kept, and not too much to look through.
pub(crate) async fn upto(connection: &mut Connection, after: i64) -> Result<(i64, bool), StoreError> {
    let (upto, oldest): (i64, i64) = connection.one(PLACES, &[]).await?.unwrap_or_default();
    let is_kept = after <= upto && after >= oldest - 1 && upto.saturating_sub(after) <= BEHIND;
    Ok((upto, is_kept))
}

/// A statement for the applications, each once by its number, of which something was kept behind one place and up to another:
/// both are parameters.
pub(crate) fn touched(after: &str, upto: &str) -> String {
    format!(
        "SELECT e.application_id AS id FROM transitions t JOIN entities e ON e.id = t.entity_id \
         WHERE t.id > {after} AND t.id <= {upto} UNION SELECT n.id FROM changes c JOIN applications n \
         ON n.runtime_id = c.runtime_id AND n.namespace = c.namespace AND n.name = c.name \
         WHERE c.place > {after} AND c.place <= {upto}"
    )
}

impl Store {
    /// The newest place.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn sequence(&self) -> Result<i64, StoreError> {
        Ok(self.read().await?.one(PLACES, &[]).await?.unwrap_or_default())
    }

    /// What changed behind a place, of what somebody sees.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn changed(&self, view: &View, after: i64) -> Result<Changed, StoreError> {
        let mut connection = self.read().await?;
        let (upto, is_kept) = upto(&mut connection, after).await?;
        if !is_kept {
            return Ok(Changed { upto, names: ChangedNames::TooMany });
        }
        let mut query = Query::default();
        let [after, upto_there, most] = [after, upto, NAMES + 1].map(|number| query.int(number));
        let seen = query.seen(view);
        let touched = touched(&after, &upto_there);
        query.sql = format!(
            "SELECT r.name, a.namespace, a.name FROM applications a JOIN runtimes r ON r.id = a.runtime_id \
             WHERE a.id IN ({touched}) AND {seen} LIMIT {most}"
        );
        let names: Vec<ApplicationName> = query.all(&mut connection).await?;
        let many = i64::try_from(names.len()).unwrap_or(i64::MAX) > NAMES;
        let names = if many { ChangedNames::TooMany } else { ChangedNames::These(names) };
        Ok(Changed { upto, names })
    }
}
