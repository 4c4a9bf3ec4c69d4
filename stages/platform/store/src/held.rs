//! What is held, told by idempotency keys, for whoever asks whether that is all that was acknowledged.

use std::collections::HashMap;

use crate::connection::{Arg, Connection};
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

/// By namespace and name; of one runtime, those of `only` where it is given.
pub(crate) async fn held(
    connection: &mut Connection,
    runtime: i64,
    only: Option<(&str, &str)>,
) -> Result<HashMap<(String, String), HeldApplication>, StoreError> {
    let all = "SELECT a.namespace, a.name, a.held_uid, a.listed, e.listing, e.kind, e.held_key FROM entities e \
               JOIN applications a ON a.id = e.application_id \
               WHERE a.runtime_id = $1 AND a.name <> '' AND e.held_key IS NOT NULL ORDER BY a.id, e.id";
    let one = "SELECT a.namespace, a.name, a.held_uid, a.listed, e.listing, e.kind, e.held_key FROM applications a \
               JOIN entities e ON a.id = e.application_id \
               WHERE a.runtime_id = $1 AND a.namespace = $2 AND a.name = $3 AND e.held_key IS NOT NULL";
    let rows = match only {
        None => connection.rows(all, &[Arg::Int(runtime)]).await?,
        Some((namespace, name)) => {
            connection.rows(one, &[Arg::Int(runtime), Arg::Text(namespace), Arg::Text(name)]).await?
        }
    };
    let mut found: HashMap<(String, String), HeldApplication> = HashMap::new();
    for row in rows {
        let (listed, listing) = (row.bytes(3)?, row.bytes(4)?);
        let is_application = row.text(5)?.is_empty();
        if !is_application && !listed.chunks_exact(8).any(|one| one == listing) {
            continue;
        }
        let key = row.bytes(6)?.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
        let held = found.entry((row.text(0)?, row.text(1)?)).or_default();
        held.uid = row.text(2)?;
        held.entities += 1;
        held.digest ^= key;
    }
    Ok(found)
}
