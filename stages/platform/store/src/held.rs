//! What is held, told by idempotency keys, for whoever asks whether that is all that was acknowledged.

use std::collections::HashSet;

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;

/// What is held of an application: see the compare protocol of the reporter's sink.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldApplication {
    /// Its incarnation.
    pub uid: String,
    /// How many of its entities count: itself, and the resources that its last report lists.
    pub entities: u64,
    /// The exclusive or of what their keys come to.
    pub digest: u128,
}

/// An application, by its number in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub(crate) id: i64,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Those of a runtime, held or not.
pub(crate) async fn placed(connection: &mut Connection, runtime: i64) -> Result<Vec<Placed>, StoreError> {
    let sql = "SELECT id, namespace, name FROM applications WHERE runtime_id = $1 AND name <> ''";
    let one = |row: Row| Ok(Placed { id: row.int(0)?, namespace: row.text(1)?, name: row.text(2)? });
    connection.rows(sql, &[Arg::Int(runtime)]).await?.into_iter().map(one).collect()
}

/// One, by its name.
pub(crate) async fn find(
    connection: &mut Connection,
    runtime: i64,
    (namespace, name): (&str, &str),
) -> Result<Option<Placed>, StoreError> {
    let sql = "SELECT id FROM applications WHERE runtime_id = $1 AND namespace = $2 AND name = $3";
    let row = connection.row(sql, &[Arg::Int(runtime), Arg::Text(namespace), Arg::Text(name)]).await?;
    let one = |id| Placed { id, namespace: namespace.to_owned(), name: name.to_owned() };
    row.map(|row| row.int(0)).transpose().map(|id| id.map(one))
}

/// What is held of an application; `None`: nothing.
pub(crate) async fn held(
    connection: &mut Connection,
    application: &Placed,
) -> Result<Option<HeldApplication>, StoreError> {
    let id = [Arg::Int(application.id)];
    let sql =
        "SELECT listing, kind, held_key FROM entities WHERE application_id = $1 AND held_key IS NOT NULL";
    let entities = connection.rows(sql, &id).await?;
    if entities.is_empty() {
        return Ok(None);
    }
    let sql = "SELECT held_uid, listed FROM applications WHERE id = $1";
    let Some(row) = connection.row(sql, &id).await? else { return Ok(None) };
    let (uid, listed) = (row.text(0)?, row.bytes(1)?);
    let listed: HashSet<&[u8]> = listed.chunks_exact(8).collect();
    let mut held = HeldApplication { uid, ..HeldApplication::default() };
    for row in entities {
        let is_application = row.text(1)?.is_empty();
        if is_application || listed.contains(&*row.bytes(0)?) {
            let key = row.bytes(2)?;
            held.entities += 1;
            held.digest ^= key.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
        }
    }
    Ok((held.entities > 0).then_some(held))
}

/// Whether an object is held in this life, in a state of this version or a later one, and not as gone: under whichever
/// application.
pub(crate) async fn holds(
    connection: &mut Connection,
    runtime: i64,
    (namespace, name, uid): (&str, &str, &str),
    version: i64,
) -> Result<bool, StoreError> {
    let sql = "SELECT e.id FROM entities e JOIN applications a ON a.id = e.application_id \
               JOIN transitions t ON t.id = e.current WHERE e.name = $1 AND e.name <> '' AND e.namespace = $2 AND e.uid = $3 \
               AND COALESCE(e.version, 0) >= $4 AND e.kind <> '' AND t.deleted = 0 AND a.runtime_id = $5";
    let arguments =
        [Arg::Text(name), Arg::Text(namespace), Arg::Text(uid), Arg::Int(version), Arg::Int(runtime)];
    Ok(connection.row(sql, &arguments).await?.is_some())
}
