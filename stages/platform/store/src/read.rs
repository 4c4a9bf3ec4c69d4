//! What is read of the store: applications as they are, and what happened to them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::change::{self, SourceChange};
use crate::columns::from_columns;
use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::report::{EntityName, Millis, ResourceName};
use crate::store::Store;

/// The largest text that is unpacked.
const TEXT: usize = 256 << 20;

/// An application as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Application {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its incarnation.
    pub uid: String,
    /// The status of its sync.
    pub sync: Option<String>,
    /// The status of its health.
    pub health: Option<String>,
    /// What is said of its health.
    pub health_message: Option<String>,
    /// Its revision.
    pub revision: Option<String>,
    /// Whether it is gone.
    pub deleted: bool,
    /// When it was last reported.
    #[serde(serialize_with = "time")]
    pub at: Millis,
}

/// A state that an entity was reported in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// Grows with each that is kept.
    pub id: i64,
    /// Of which resource; `None`: of the application.
    pub resource: Option<ResourceName>,
    /// When it was first reported so.
    #[serde(serialize_with = "time")]
    pub at: Millis,
    /// When it was last reported so.
    #[serde(serialize_with = "time")]
    pub last_at: Millis,
    /// How many reports said the same.
    pub reports: i64,
    /// Whether it is the entity's state now.
    pub current: bool,
    /// The incarnation.
    pub uid: String,
    /// The object's `resourceVersion`.
    pub version: Option<i64>,
    /// Whether it tells an end.
    pub deleted: bool,
    /// The status of sync.
    pub sync: Option<String>,
    /// The status of health.
    pub health: Option<String>,
    /// What is said of health.
    pub health_message: Option<String>,
    /// The revision.
    pub revision: Option<String>,
}

/// An operation that deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// When it began.
    #[serde(serialize_with = "time")]
    pub started_at: Millis,
    /// How it stands.
    pub phase: String,
    /// What it deployed.
    pub revision: String,
    /// Who asked for it.
    pub initiated_by: String,
    /// Who wrote the commit.
    pub commit_author: String,
    /// Whether it has ended.
    pub ended: bool,
    /// The commits that it brought, as far as they are known.
    pub changes: Vec<SourceChange>,
}

/// A time during which an entity was out of sync.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// When it began.
    #[serde(serialize_with = "time")]
    pub onset: Millis,
    /// Whether it has ended.
    pub ended: bool,
    /// How many states of it were kept.
    pub repeats: i64,
}

fn time<S: serde::Serializer>(at: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text_of(*at))
}

/// As reports have it: in UTC, with milliseconds.
fn text_of(at: Millis) -> String {
    let at = Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH);
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The numbers of all its states stand in an index, and the newest alone are read. By the number itself Postgres would look through
/// the states of all applications from the newest on, and through all there are for one that is quiet.
const TIMELINE: &str = "SELECT t.id, e.api_version, e.kind, e.namespace, e.name, t.at, t.last_at, t.reports, e.current, t.uid, \
    t.version, t.deleted, t.sync, t.health, t.health_message, t.revision \
    FROM (SELECT n.id FROM applications a JOIN entities o ON o.application_id = a.id JOIN transitions n ON n.entity_id = o.id \
    WHERE a.runtime_id = $1 AND a.namespace = $2 AND a.name = $3 AND n.id < $4 ORDER BY n.id + 0 DESC LIMIT $5) AS newest \
    CROSS JOIN transitions t CROSS JOIN entities e WHERE t.id = newest.id AND e.id = t.entity_id ORDER BY t.id DESC";

from_columns! { Application { namespace, name, uid, sync, health, health_message, revision, deleted, at } }

impl Store {
    /// Applications of a runtime by namespace and name, from behind `after`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn applications(
        &self,
        runtime: i64,
        after: (&str, &str),
        limit: u32,
    ) -> Result<Vec<Application>, StoreError> {
        let sql = "SELECT a.namespace, a.name, t.uid, t.sync, t.health, t.health_message, t.revision, t.deleted, e.at \
                   FROM applications a JOIN entities e ON e.application_id = a.id AND e.kind = '' \
                   JOIN transitions t ON t.id = e.current \
                   WHERE a.runtime_id = $1 AND a.name <> '' AND (a.namespace > $2 OR (a.namespace = $2 AND a.name > $3)) \
                   ORDER BY a.namespace, a.name LIMIT $4";
        let arguments = [Arg::Int(runtime), Arg::Text(after.0), Arg::Text(after.1), Arg::Int(limit.into())];
        self.read().await?.all(sql, &arguments).await
    }

    /// What happened to an application and its resources, the newest first, from before the number `before`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn timeline(
        &self,
        runtime: i64,
        (namespace, name): (&str, &str),
        before: i64,
        limit: u32,
    ) -> Result<Vec<Transition>, StoreError> {
        let arguments = [
            Arg::Int(runtime),
            Arg::Text(namespace),
            Arg::Text(name),
            Arg::Int(before),
            Arg::Int(limit.into()),
        ];
        let rows = self.read().await?.rows(TIMELINE, &arguments).await?;
        let one = |row: Row| {
            let id = row.int(0)?;
            Ok(Transition {
                id,
                resource: row.read_from(1)?,
                at: row.int(5)?,
                last_at: row.int(6)?,
                reports: row.int(7)?,
                current: row.int_or_null(8)? == Some(id),
                uid: row.text(9)?,
                version: row.int_or_null(10)?,
                deleted: row.int(11)? != 0,
                sync: row.text_or_null(12)?,
                health: row.text_or_null(13)?,
                health_message: row.text_or_null(14)?,
                revision: row.text_or_null(15)?,
            })
        };
        rows.into_iter().map(one).collect()
    }

    /// Every entity of a runtime, with the number of the transition that it is in.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn entities(&self, runtime: i64) -> Result<Vec<(EntityName, i64)>, StoreError> {
        let sql = "SELECT a.namespace, a.name, e.api_version, e.kind, e.namespace, e.name, e.current FROM entities e \
                   JOIN applications a ON a.id = e.application_id WHERE a.runtime_id = $1 ORDER BY e.id";
        self.read().await?.all(sql, &[Arg::Int(runtime)]).await
    }

    /// What was reported in a transition for the last time that it was, as it stood under `data`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn payload(&self, runtime: i64, transition: i64) -> Result<Option<Value>, StoreError> {
        let sql = "SELECT t.last_at, t.object_is_json, t.object, t.actual, t.desired, t.git, t.details FROM transitions t \
                   JOIN entities e ON e.id = t.entity_id JOIN applications a ON a.id = e.application_id \
                   WHERE t.id = $1 AND a.runtime_id = $2";
        let arguments = [Arg::Int(transition), Arg::Int(runtime)];
        let mut connection = self.read().await?;
        let Some(row) = connection.row(sql, &arguments).await? else { return Ok(None) };
        let mut texts = [const { None }; 5];
        for (text, column) in texts.iter_mut().zip(2..) {
            if let Some(digest) = row.bytes_or_null(column)? {
                *text = Some(blob(&mut connection, &digest).await?);
            }
        }
        let [object, actual, desired, git, details] = texts;
        let mut payload: Map<String, Value> =
            details.map_or(Ok(Map::new()), |details| serde_json::from_str(&details))?;
        payload.insert("timestamp".to_owned(), text_of(row.int(0)?).into());
        if let Some(object) = object {
            let object = match row.int(1)? {
                0 => STANDARD.encode(object).into(),
                _ => serde_json::from_str(&object)?,
            };
            payload.insert("object".to_owned(), object);
        }
        if let Some(Value::Object(source)) = payload.get_mut("source") {
            let texts = [("actualManifest", actual), ("desiredManifest", desired), ("gitManifest", git)];
            for (name, text) in texts {
                if let Some(text) = text {
                    source.insert(name.to_owned(), text.into());
                }
            }
        }
        Ok(Some(payload.into()))
    }

    /// The deployments of an application, the newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn deployments(
        &self,
        runtime: i64,
        (namespace, name): (&str, &str),
    ) -> Result<Vec<Deployment>, StoreError> {
        let sql = "SELECT d.started_at, d.phase, d.revision, d.initiated_by, d.commit_author, d.finished_at, \
                   c.sources FROM deployments d JOIN applications a ON a.id = d.application_id \
                   LEFT JOIN changes c ON c.runtime_id = a.runtime_id AND c.namespace = a.namespace AND c.name = a.name \
                   AND c.started_at = d.started_at \
                   WHERE a.runtime_id = $1 AND a.namespace = $2 AND a.name = $3 ORDER BY d.started_at DESC LIMIT 100";
        let one = |row: Row| {
            Ok(Deployment {
                started_at: row.int(0)?,
                phase: row.text(1)?,
                revision: row.text(2)?,
                initiated_by: row.text(3)?,
                commit_author: row.text(4)?,
                ended: row.int_or_null(5)?.is_some(),
                changes: change::column(&row, 6)?,
            })
        };
        let arguments = [Arg::Int(runtime), Arg::Text(namespace), Arg::Text(name)];
        self.read().await?.rows(sql, &arguments).await?.into_iter().map(one).collect()
    }

    /// When an application was out of sync, the newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn drifts(
        &self,
        runtime: i64,
        (namespace, name): (&str, &str),
    ) -> Result<Vec<Drift>, StoreError> {
        let sql = "SELECT d.onset, d.ended, d.repeats FROM drifts d JOIN entities e ON e.id = d.entity_id \
                   JOIN applications a ON a.id = e.application_id \
                   WHERE a.runtime_id = $1 AND a.namespace = $2 AND a.name = $3 AND e.kind = '' \
                   ORDER BY d.onset DESC, d.id DESC LIMIT 100";
        let one = |row: Row| {
            Ok(Drift { onset: row.int(0)?, ended: row.int_or_null(1)?.is_some(), repeats: row.int(2)? })
        };
        let arguments = [Arg::Int(runtime), Arg::Text(namespace), Arg::Text(name)];
        self.read().await?.rows(sql, &arguments).await?.into_iter().map(one).collect()
    }
}

/// A text that is kept, by its digest.
pub(crate) async fn blob(connection: &mut Connection, digest: &[u8]) -> Result<String, StoreError> {
    let sql = "SELECT size, zstd FROM blobs WHERE digest = $1";
    let row = connection.row(sql, &[Arg::Bytes(digest)]).await?.ok_or_else(StoreError::missing)?;
    unpacked(row.int(0)?, &row.bytes(1)?)
}

/// A text of so many bytes, as it was kept.
pub(crate) fn unpacked(size: i64, packed: &[u8]) -> Result<String, StoreError> {
    let size = usize::try_from(size).unwrap_or(TEXT).min(TEXT);
    let text = zstd::bulk::decompress(packed, size).map_err(StoreError::Unreadable)?;
    String::from_utf8(text).map_err(|error| StoreError::Unreadable(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plans;

    #[tokio::test]
    async fn a_timeline_reads_no_state_that_it_does_not_tell() {
        let plans = Plans::open().await;
        let lines = plans.of(TIMELINE).await;
        let of = "USING COVERING INDEX transitions_at (entity_id=?)";
        assert!(lines.iter().any(|line| line.ends_with(of)), "{lines:#?}");
        let of = "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)";
        assert!(lines.iter().any(|line| line == of), "{lines:#?}");
        plans.close().await;
    }
}
