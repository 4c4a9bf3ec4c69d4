//! How often applications drifted, and what of them differs from Git now.

use std::collections::BTreeMap;

use crate::error::StoreError;
use crate::fleet::listing::count;
use crate::fleet::moment::text;
use crate::fleet::selection::Query;
use crate::report::Millis;
use crate::store::Store;

/// Drift of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drifting {
    /// How often it began to differ from Git.
    pub times: u64,
    /// What of it began to last, of what differs still.
    pub last: Option<DriftingResource>,
}

/// A resource that is not as Git says.
#[derive(Clone, PartialEq, Eq)]
pub struct DriftingResource {
    /// Its kind,
    pub kind: String,
    /// and its name.
    pub name: String,
    /// Since when it is so.
    pub onset: Millis,
    /// What runs,
    pub actual: Option<String>,
    /// and what should.
    pub desired: Option<String>,
}

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
            all.entry(row.int(0)?).or_default().times = count(row.int(1)?);
        }
        let mut query = Query::default();
        let of = these(&mut query, applications);
        query.sql = format!(
            "SELECT e.application_id, e.kind, e.name, d.onset, COALESCE(t.actual, t.object), t.desired \
             FROM entities e JOIN drifts d ON d.entity_id = e.id AND d.ended IS NULL JOIN transitions t ON t.id = e.current \
             WHERE e.application_id IN ({of}) AND e.kind <> '' AND t.deleted = 0 ORDER BY d.onset DESC, e.id"
        );
        for row in query.rows(&mut connection).await? {
            let known = all.entry(row.int(0)?).or_default();
            if known.last.is_none() {
                let (actual, desired) = (row.bytes_or_null(4)?, row.bytes_or_null(5)?);
                known.last = Some(DriftingResource {
                    kind: row.text(1)?,
                    name: row.text(2)?,
                    onset: row.int(3)?,
                    actual: text(&mut connection, actual).await?,
                    desired: text(&mut connection, desired).await?,
                });
            }
        }
        Ok(all)
    }
}

fn these(query: &mut Query, applications: &[i64]) -> String {
    applications.iter().map(|id| query.int(*id)).collect::<Vec<_>>().join(", ")
}

/// Without the manifests: what is printed may end in a log.
impl std::fmt::Debug for DriftingResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, name, onset, .. } = self;
        f.debug_struct("DriftingResource")
            .field("kind", kind)
            .field("name", name)
            .field("onset", onset)
            .finish_non_exhaustive()
    }
}
