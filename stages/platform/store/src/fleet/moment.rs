//! An application and its resources as they were at a moment: what was last reported by then.

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::read::blob;
use crate::report::{Millis, Pods, ResourceName, group_of};
use crate::store::Store;

/// Resources of one application that are read at most.
const RESOURCES: i64 = 5_000;

/// What was last reported of an application by a moment.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ObjectAt {
    /// When that was said first.
    pub at: Millis,
    /// The object, as JSON.
    pub object: Option<String>,
    /// What was said beside it, as JSON.
    pub details: Option<String>,
    /// Its health, if it was told.
    pub health: Option<String>,
    /// What was said of its health.
    pub health_message: Option<String>,
    /// The status of its sync.
    pub sync: Option<String>,
    /// Its revision.
    pub revision: Option<String>,
    /// Whether it was gone.
    pub deleted: bool,
}

/// A resource, as it was last reported by a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceAt {
    /// Which one.
    pub name: ResourceName,
    /// Since when it was so.
    pub at: Millis,
    /// Its health, if it was told.
    pub health: Option<String>,
    /// What was said of its health.
    pub health_message: Option<String>,
    /// The status of its sync.
    pub sync: Option<String>,
    /// Of a ReplicaSet: its pods.
    pub pods: Option<Pods>,
    /// What owned it when it was last reported, as `group/kind/name`; empty where that is not known.
    pub owner: String,
    /// Whether it was gone.
    pub deleted: bool,
    /// Whether its manifest differs from the one at the earlier moment.
    pub changed: bool,
}

/// The manifests of a resource, as they were last reported by a moment.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ManifestsAt {
    /// What ran.
    pub actual: Option<String>,
    /// What it should have been.
    pub desired: Option<String>,
    /// What it should have been, as it stood in Git.
    pub git: Option<String>,
}

impl Store {
    /// What was last reported of an application by a moment, or at all.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn object_at(
        &self,
        application: i64,
        at: Option<Millis>,
    ) -> Result<Option<ObjectAt>, StoreError> {
        let now = "SELECT t.at, t.object, t.details, t.health, t.health_message, t.sync, t.revision, t.deleted \
                   FROM entities e JOIN transitions t ON t.id = e.current WHERE e.application_id = $1 AND e.kind = ''";
        let then = "SELECT t.at, t.object, t.details, t.health, t.health_message, t.sync, t.revision, t.deleted \
                    FROM entities e JOIN transitions t ON t.entity_id = e.id WHERE e.application_id = $1 AND e.kind = '' \
                    AND t.at <= $2 ORDER BY t.at DESC, t.id DESC LIMIT 1";
        let mut connection = self.read().await?;
        let found = match at {
            None => connection.row(now, &[Arg::Int(application)]).await?,
            Some(at) => connection.row(then, &[Arg::Int(application), Arg::Int(at)]).await?,
        };
        let Some(row) = found else { return Ok(None) };
        let (object, details) = (row.bytes_or_null(1)?, row.bytes_or_null(2)?);
        Ok(Some(ObjectAt {
            at: row.int(0)?,
            object: text(&mut connection, object).await?,
            details: text(&mut connection, details).await?,
            health: row.text_or_null(3)?,
            health_message: row.text_or_null(4)?,
            sync: row.text_or_null(5)?,
            revision: row.text_or_null(6)?,
            deleted: row.int(7)? != 0,
        }))
    }

    /// The resources of an application at a moment, or now, those that are gone last; what differs from the state at `from` is
    /// marked.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn resources_at(
        &self,
        application: i64,
        at: Option<Millis>,
        from: Option<Millis>,
    ) -> Result<Vec<ResourceAt>, StoreError> {
        let mut arguments =
            vec![Arg::Int(application), Arg::Int(from.unwrap_or(Millis::MIN)), Arg::Int(RESOURCES)];
        let (state, others) = match at {
            // Of one that was reported under several versions of its API the one counts that was reported of last.
            None => (
                "e.current".to_owned(),
                " AND NOT EXISTS (SELECT 1 FROM entities o \
                 WHERE o.application_id = e.application_id AND o.kind = e.kind AND o.name = e.name AND o.namespace = e.namespace \
                 AND o.listing = e.listing AND (o.at, o.id) > (e.at, e.id))",
            ),
            Some(at) => {
                arguments.push(Arg::Int(at));
                (last("$4"), "")
            }
        };
        let sql = format!(
            "SELECT e.api_version, e.kind, e.namespace, e.name, t.at, t.health, t.health_message, t.sync, t.deleted, \
             COALESCE(t.actual, t.object), COALESCE(b.actual, b.object), e.owner, t.pods_ready, t.pods_wanted, t.pods_revision FROM entities e \
             JOIN transitions t ON t.id = {state} LEFT JOIN transitions b ON b.id = {} \
             WHERE e.application_id = $1 AND e.kind <> ''{others} ORDER BY t.deleted, e.kind, e.namespace, e.name, e.id LIMIT $3",
            last("$2")
        );
        let rows = self.read().await?.rows_of(sql, &arguments).await?;
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            all.push(ResourceAt {
                name: row.read()?,
                at: row.int(4)?,
                health: row.text_or_null(5)?,
                health_message: row.text_or_null(6)?,
                sync: row.text_or_null(7)?,
                pods: pods(&row, 12)?,
                owner: row.text(11)?,
                deleted: row.int(8)? != 0,
                changed: from.is_some() && row.bytes_or_null(9)? != row.bytes_or_null(10)?,
            });
        }
        Ok(all)
    }

    /// The manifests of a resource of an application at a moment; of its API the group is known alone.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn manifests_at(
        &self,
        application: i64,
        (group, kind, namespace, name): (&str, &str, &str, &str),
        at: Millis,
    ) -> Result<Option<ManifestsAt>, StoreError> {
        let sql = format!(
            "SELECT e.api_version, t.actual, t.desired, t.git, t.object, t.deleted, t.uid FROM entities e \
             JOIN transitions t ON t.id = {} \
             WHERE e.application_id = $1 AND e.kind = $2 AND e.namespace = $3 AND e.name = $4 ORDER BY t.at DESC, t.id DESC",
            last("$5")
        );
        let arguments =
            [Arg::Int(application), Arg::Text(kind), Arg::Text(namespace), Arg::Text(name), Arg::Int(at)];
        let mut connection = self.read().await?;
        for row in connection.rows_of(sql, &arguments).await? {
            if group_of(&row.text(0)?) != group {
                continue;
            }
            let [actual, desired, git, object] = [1, 2, 3, 4].map(|column| row.bytes_or_null(column));
            let (desired, git) = (desired?, git?);
            // A resource that Git alone has is reported as it should be, in its namespace: what is on the cluster has an identity.
            let is_there = !row.text(6)?.is_empty();
            let object = object?.filter(|_| is_there);
            let actual = if row.int(5)? != 0 { None } else { actual?.or(object) };
            return Ok(Some(ManifestsAt {
                actual: text(&mut connection, actual).await?,
                desired: text(&mut connection, desired).await?,
                git: text(&mut connection, git).await?,
            }));
        }
        Ok(None)
    }
}

/// The last state of an entity `e` by a moment, which is a parameter.
fn last(at: &str) -> String {
    format!(
        "(SELECT x.id FROM transitions x WHERE x.entity_id = e.id AND x.at <= {at} ORDER BY x.at DESC, x.id DESC LIMIT 1)"
    )
}

/// Of the three columns of which the first is named.
fn pods(row: &Row, first: usize) -> Result<Option<Pods>, StoreError> {
    let number = |column| row.int_or_null(first + column);
    let [ready, wanted, revision] = [number(0)?, number(1)?, number(2)?];
    Ok(ready.zip(wanted).map(|(ready, wanted)| Pods { ready, wanted, revision }))
}

/// A text that is kept, by its digest.
pub(super) async fn text(
    connection: &mut Connection,
    digest: Option<Vec<u8>>,
) -> Result<Option<String>, StoreError> {
    match digest {
        Some(digest) => blob(connection, &digest).await.map(Some),
        None => Ok(None),
    }
}
