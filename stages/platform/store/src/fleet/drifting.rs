//! How often applications drifted, and what of them differs from Git now.

use std::collections::BTreeMap;

use crate::columns::from_columns;
use crate::error::StoreError;
use crate::fleet::moment::text;
use crate::fleet::selection::Query;
use crate::report::Millis;
use crate::store::Store;

/// A resource that began to differ no longer than this before its application differs with it. One that has differed for longer, while
/// its application did not, is its application's no more, as after a prune that nobody reports, or is not compared.
pub const DRIFT_TOGETHER: Millis = 60_000;

/// Drift of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drifting {
    /// How often it began to differ from Git.
    pub times: u64,
    /// What of it began to last, of what differs still.
    pub last: Option<DriftingResource>,
}

/// A resource that is not as Git says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftingResource {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Since when it is so.
    pub onset: Millis,
    /// What tells its manifests from any others.
    pub manifests: DriftManifests,
}

/// Which two texts are kept of what runs and of what should: their digests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct DriftManifests {
    /// What runs.
    pub actual: Option<Vec<u8>>,
    /// What should run.
    pub desired: Option<Vec<u8>>,
}

from_columns! { DriftManifests { actual, desired } }
from_columns! { DriftingResource { kind, name, onset, manifests } }

impl Store {
    /// Of each of these applications how often it drifted since then, and what of it differs now.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn drifting(
        &self,
        applications: &[i64],
        since: Millis,
    ) -> Result<BTreeMap<i64, Drifting>, StoreError> {
        let mut all: BTreeMap<i64, Drifting> = BTreeMap::new();
        if applications.is_empty() {
            return Ok(all);
        }
        let mut connection = self.read().await?;
        let mut query = Query::default();
        let (of, since) = (these(&mut query, applications), query.int(since));
        query.sql = format!(
            "SELECT e.application_id, count(*) FROM entities e JOIN drifts d ON d.entity_id = e.id \
             WHERE e.application_id IN ({of}) AND e.kind = '' AND d.onset >= {since} GROUP BY e.application_id"
        );
        for row in query.rows(&mut connection).await? {
            all.entry(row.int(0)?).or_default().times = row.read_from(1)?;
        }
        let mut query = Query::default();
        let of = these(&mut query, applications);
        // However many of an application differ, one of them comes back.
        query.sql = format!(
            "WITH own AS (SELECT e.application_id AS application, max(d.onset) AS onset FROM entities e \
             JOIN drifts d ON d.entity_id = e.id AND d.ended IS NULL \
             WHERE e.application_id IN ({of}) AND e.kind = '' GROUP BY e.application_id) \
             SELECT d.application, d.kind, d.name, d.onset, COALESCE(t.actual, t.object), t.desired \
             FROM (SELECT e.application_id AS application, e.kind, e.name, d.onset, e.current, \
             row_number() OVER (PARTITION BY e.application_id ORDER BY d.onset DESC, e.id) AS place \
             FROM entities e JOIN drifts d ON d.entity_id = e.id AND d.ended IS NULL \
             JOIN own ON own.application = e.application_id AND d.onset >= own.onset - {DRIFT_TOGETHER} \
             WHERE e.application_id IN ({of}) AND e.kind <> '' AND e.gone = 0) AS d \
             JOIN transitions t ON t.id = d.current WHERE d.place = 1"
        );
        for row in query.rows(&mut connection).await? {
            all.entry(row.int(0)?).or_default().last = Some(row.read_from(1)?);
        }
        Ok(all)
    }

    /// What runs of a resource that drifts, and what should.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn drift_manifests(
        &self,
        manifests: &DriftManifests,
    ) -> Result<(Option<String>, Option<String>), StoreError> {
        let DriftManifests { actual, desired } = manifests.clone();
        let mut connection = self.read().await?;
        Ok((text(&mut connection, actual).await?, text(&mut connection, desired).await?))
    }
}

fn these(query: &mut Query, applications: &[i64]) -> String {
    applications.iter().map(|id| query.int(*id)).collect::<Vec<_>>().join(", ")
}
