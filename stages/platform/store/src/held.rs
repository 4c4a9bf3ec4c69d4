//! What is held, told by idempotency keys, for whoever asks whether that is all that was acknowledged.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::columns::from_columns;
use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::rows::with_rows;
use crate::store::Store;

/// Applications whose keys are read at a time, so that none of those who read waits long for a connection, and few keys are in memory.
const AT_ONCE: usize = 64;

/// What is held of an application: the protocol stands in `compare.rs` of `stages-report`, which asks.
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
pub struct NumberedApplication {
    pub(crate) id: i64,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A state of an object, as whoever compares names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectState<'a> {
    /// Its namespace; empty: it has none.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its life.
    pub uid: &'a str,
    /// The version of the state.
    pub version: i64,
}

from_columns! { NumberedApplication { id, namespace, name } }

/// The applications of a runtime.
const OF_RUNTIME: &str = "SELECT id, namespace, name FROM applications WHERE runtime_id = $1 AND name <> ''";

/// What finds the applications of a runtime by a range of their keys, `namespace/name`, in the order of these texts byte for byte: the
/// index `applications_key` is of this very expression.
const KEY_IN_SQLITE: &str = "(namespace || '/' || name)";
const KEY_IN_POSTGRES: &str = r#"((namespace || '/' || name) COLLATE "C")"#;
/// No key comes behind it.
const END: &str = "\u{10ffff}";

fn between(key: &str) -> String {
    format!(
        "SELECT id, namespace, name FROM applications WHERE runtime_id = $1 AND {key} > $2 AND {key} <= $3 AND name <> '' \
         ORDER BY {key} LIMIT $4"
    )
}

/// What finds applications by their names, each told by its number among those that are asked for.
const NAMED: &str = "SELECT named.column1, a.id FROM (VALUES ROWS) AS named CROSS JOIN applications a \
    WHERE a.runtime_id = named.column2 AND a.namespace = named.column3 AND a.name = named.column4";
const HELD: &str = "SELECT a.id, a.held_uid, a.listed FROM (VALUES ROWS) AS named CROSS JOIN applications a \
    WHERE a.id = named.column1";
const KEYS: &str = "SELECT e.application_id, e.listing, e.kind, e.held_key FROM (VALUES ROWS) AS named CROSS JOIN entities e \
    WHERE e.application_id = named.column1 AND e.held_key IS NOT NULL";
/// Of objects, each told by its number, those that are held.
const OBJECTS: &str = "SELECT named.column1 FROM (VALUES ROWS) AS named CROSS JOIN entities e \
    JOIN applications a ON a.id = e.application_id JOIN transitions t ON t.id = e.current \
    WHERE e.name = named.column2 AND e.name <> '' AND e.namespace = named.column3 AND e.uid = named.column4 \
    AND COALESCE(e.version, 0) >= named.column5 AND e.kind <> '' AND t.deleted = 0 AND a.runtime_id = named.column6";

impl Store {
    /// The applications of a runtime, held or not, in no order.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn numbered_applications(&self, runtime: i64) -> Result<Vec<NumberedApplication>, StoreError> {
        self.read().await?.all(OF_RUNTIME, &[Arg::Int(runtime)]).await
    }

    /// The applications of a runtime whose keys, `namespace/name`, come behind the first and not behind the second (`None`: to the
    /// end), in the order of these texts byte for byte; no more than so many.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn placed_between(
        &self,
        runtime: i64,
        (after, upto): (&str, Option<&str>),
        most: u32,
    ) -> Result<Vec<NumberedApplication>, StoreError> {
        let mut connection = self.read().await?;
        let sql = between(if connection.is_sqlite() { KEY_IN_SQLITE } else { KEY_IN_POSTGRES });
        let upto = upto.unwrap_or(END);
        let values = [Arg::Int(runtime), Arg::Text(after), Arg::Text(upto), Arg::Int(most.into())];
        connection.rows_of(sql, &values).await?.iter().map(Row::read).collect()
    }

    /// The applications of these namespaces and names, in their order; `None`: there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn find(
        &self,
        runtime: i64,
        names: &[(&str, &str)],
    ) -> Result<Vec<Option<NumberedApplication>>, StoreError> {
        let row = |(number, &(namespace, name))| {
            [Arg::Int(number), Arg::Int(runtime), Arg::Text(namespace), Arg::Text(name)]
        };
        let rows: Vec<_> = (0..).zip(names).map(row).collect();
        let mut found = vec![None; names.len()];
        for row in with_rows(&mut self.read().await?, NAMED, &rows).await? {
            let place = usize::try_from(row.int(0)?).unwrap_or(usize::MAX);
            if let (Some(found), Some((namespace, name))) = (found.get_mut(place), names.get(place)) {
                let (namespace, name) = ((*namespace).to_owned(), (*name).to_owned());
                *found = Some(NumberedApplication { id: row.int(1)?, namespace, name });
            }
        }
        Ok(found)
    }

    /// What is held of these, in their order; `None`: nothing.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn held(
        &self,
        of: &[&NumberedApplication],
    ) -> Result<Vec<Option<HeldApplication>>, StoreError> {
        let mut all = Vec::with_capacity(of.len());
        for some in of.chunks(AT_ONCE) {
            all.extend(held(&mut self.read().await?, some).await?);
        }
        Ok(all)
    }

    /// Whether each of these objects is held of a runtime in this life, in a state of this version or a later one, and not as gone: under
    /// whichever application.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn holds(&self, runtime: i64, objects: &[ObjectState<'_>]) -> Result<Vec<bool>, StoreError> {
        let mut rows = Vec::with_capacity(objects.len());
        for (number, one) in (0..).zip(objects) {
            let [name, namespace, uid] = [one.name, one.namespace, one.uid].map(Arg::Text);
            rows.push([Arg::Int(number), name, namespace, uid, Arg::Int(one.version), Arg::Int(runtime)]);
        }
        let mut holds = vec![false; objects.len()];
        for row in with_rows(&mut self.read().await?, OBJECTS, &rows).await? {
            if let Some(held) = usize::try_from(row.int(0)?).ok().and_then(|place| holds.get_mut(place)) {
                *held = true;
            }
        }
        Ok(holds)
    }
}

/// What is held of applications, in their order; `None`: nothing.
async fn held(
    connection: &mut Connection,
    of: &[&NumberedApplication],
) -> Result<Vec<Option<HeldApplication>>, StoreError> {
    // Each once: the keys of one that is asked for twice would be counted twice.
    let ids: BTreeSet<_> = of.iter().map(|one| one.id).collect();
    let ids: Vec<_> = ids.into_iter().map(|id| [Arg::Int(id)]).collect();
    let mut held = HashMap::new();
    for row in with_rows(connection, HELD, &ids).await? {
        let one = HeldApplication { uid: row.text(1)?, ..HeldApplication::default() };
        let listed: HashSet<[u8; 8]> = row.bytes(2)?.as_chunks().0.iter().copied().collect();
        held.insert(row.int(0)?, (one, listed));
    }
    for row in with_rows(connection, KEYS, &ids).await? {
        let Some((held, listed)) = held.get_mut(&row.int(0)?) else { continue };
        if row.text(2)?.is_empty() || listed.contains(&*row.bytes(1)?) {
            held.entities += 1;
            held.digest ^= row.bytes(3)?.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
        }
    }
    let held = |one: &&NumberedApplication| {
        held.get(&one.id).map(|(held, _)| held).filter(|held| held.entities > 0).cloned()
    };
    Ok(of.iter().map(held).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Place};
    use crate::group;
    use crate::limits::Limits;
    use crate::plan::Plans;
    use crate::rows;

    #[tokio::test]
    async fn what_is_held_of_many_applications_is_read_with_two_statements() {
        let folder = tempfile::TempDir::new().unwrap();
        let place = Place::Sqlite(folder.path().join("platform.db"));
        let database = Database::open(&place, Limits::default()).await.unwrap();
        let mut connection = database.to_write().await.unwrap();
        let runtime = "INSERT INTO runtimes (id, name, created_at) VALUES (1, 'prod', 0)";
        connection.execute(runtime, &[]).await.unwrap();
        for number in 0..60 {
            let one = group::delivery(number, group::report(&format!("shop{number}"), None));
            group::keep(&mut connection, &[&one], 2).await.unwrap();
        }
        let all: Vec<NumberedApplication> = connection.all(OF_RUNTIME, &[Arg::Int(1)]).await.unwrap();
        let before = connection.statements();
        let twice: Vec<_> = all.iter().chain(&all).collect();
        let held = held(&mut connection, &twice).await.unwrap();
        assert_eq!(connection.statements() - before, 2);
        assert_eq!(held.iter().flatten().filter(|held| held.entities == 1).count(), 120);
        drop(connection);
        database.close().await;
    }

    #[tokio::test]
    async fn what_is_compared_is_found_without_looking_through_a_table() {
        let plans = Plans::open().await;
        for (sql, columns) in [(NAMED, 4), (HELD, 1), (KEYS, 1), (OBJECTS, 6)] {
            let lines = plans.of(&rows::text(sql, 64, columns)).await;
            let asked = ["SCAN named", "SCAN 64-ROW VALUES CLAUSE"];
            let mut through = lines.iter().filter(|line| line.starts_with("SCAN "));
            assert!(through.all(|line| asked.contains(&&**line)), "{sql}: {lines:?}");
        }
        let lines = plans.of(&between(KEY_IN_SQLITE)).await;
        let range =
            "SEARCH applications USING INDEX applications_key (runtime_id=? AND <expr>>? AND <expr><?)";
        assert_eq!(lines, [range], "neither what is outside the range is read, nor is anything sorted");
        plans.close().await;
    }
}
