//! Workflows of Argo that runtimes told of, as far as somebody sees them: those of applications that they see, and those that rules
//! about workflows name.

use std::collections::HashMap;

use crate::columns::from_columns;
use crate::connection::{Arg, Row};
use crate::error::StoreError;
use crate::read;
use crate::rows::with_rows;
use crate::rule::View;
use crate::statement::{self, parameter};
use crate::store::Store;

/// Which workflows are listed: all of it holds, and what is `None` holds of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhichWorkflows {
    /// The runtime that told of them.
    pub runtime: Option<String>,
    /// Their namespace.
    pub namespace: Option<String>,
    /// Their uid.
    pub uid: Option<String>,
}

/// A workflow that was told of.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SeenWorkflow {
    /// Its number, which tells it from others of its runtime that are called alike.
    pub id: i64,
    /// The runtime.
    pub runtime: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The name of the application that it belongs to; empty: it belongs to none.
    pub application: String,
    /// Of its object, if there is one.
    text: Option<Vec<u8>>,
}

impl Store {
    /// Workflows that are there, by runtime, namespace, name and number, from behind `after`: those of applications that are seen, and
    /// those that are seen by themselves. [`Store::workflow_objects`] tells what they are: each may be a megabyte.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn workflows(
        &self,
        (of_applications, own): (&View, &View),
        which: &WhichWorkflows,
        (runtime, namespace, name, id): (&str, &str, &str, i64),
        limit: u32,
    ) -> Result<Vec<SeenWorkflow>, StoreError> {
        let mut values =
            vec![runtime.into(), namespace.into(), name.into(), id.into(), i64::from(limit).into()];
        let mut condition = String::new();
        let named = [("r.name", &which.runtime), ("e.namespace", &which.namespace), ("e.uid", &which.uid)];
        for (column, value) in named {
            if let Some(value) = value {
                condition.push_str(&format!(" AND {column} = {}", parameter(&mut values, &**value)));
            }
        }
        let (seen, own) = (of_applications.condition(&mut values), own.condition_of_workflows(&mut values));
        let sql = query(&format!("{condition} AND ((a.name <> '' AND {seen}) OR {own})"));
        statement::rows(&mut self.read().await?, sql, &values).await?.iter().map(Row::read).collect()
    }

    /// The objects of workflows, in their order, as JSON; empty: nothing is known of it.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn workflow_objects(&self, of: &[SeenWorkflow]) -> Result<Vec<String>, StoreError> {
        let digests: Vec<_> = of.iter().filter_map(|one| Some([Arg::Bytes(one.text.as_ref()?)])).collect();
        let rows = with_rows(&mut self.read().await?, OBJECTS, &digests).await?;
        let texts = rows.iter().map(|row| Ok((row.bytes(0)?, read::unpacked(row.int(1)?, &row.bytes(2)?)?)));
        let texts = texts.collect::<Result<HashMap<_, _>, StoreError>>()?;
        let object = |one: &SeenWorkflow| texts.get(one.text.as_ref()?).cloned();
        Ok(of.iter().map(|one| object(one).unwrap_or_default()).collect())
    }
}

/// In the order of lists, from behind `$1` to `$4`, at most `$5`. That they have any namespace says to SQLite in which index to
/// look.
fn query(condition: &str) -> String {
    format!(
        "SELECT r.name, e.namespace, e.name, e.uid, a.name, COALESCE(t.actual, t.object), e.id FROM entities e \
         CROSS JOIN applications a CROSS JOIN runtimes r CROSS JOIN transitions t WHERE a.id = e.application_id \
         AND r.id = a.runtime_id AND t.id = e.current AND e.kind = 'Workflow' AND e.api_version LIKE 'argoproj.io/%' \
         AND e.namespace >= '' AND e.gone = 0 AND (r.name, e.namespace, e.name, e.id) > ($1, $2, $3, $4){condition} \
         ORDER BY r.name, e.namespace, e.name, e.id LIMIT $5"
    )
}

const OBJECTS: &str =
    "SELECT digest, size, zstd FROM blobs WHERE digest IN (SELECT column1 FROM (VALUES ROWS) AS named)";

from_columns! { SeenWorkflow { runtime, namespace, name, uid, application, text, id } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plans;

    #[tokio::test]
    async fn workflows_are_found_without_a_look_at_any_other_entity() {
        let plans = Plans::open().await;
        let lines = plans.of(&query("")).await;
        let of = "USING INDEX entities_workflows";
        assert!(lines.iter().any(|line| line.contains(of)), "{lines:#?}");
        let lines = plans.of(&OBJECTS.replace("ROWS", "($1), ($2)")).await;
        assert!(lines.iter().any(|line| line.starts_with("SEARCH blobs USING INDEX")), "{lines:#?}");
        plans.close().await;
    }
}
