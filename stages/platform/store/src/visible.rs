//! Applications of all runtimes, as far as somebody sees them.

use crate::act::Value;
use crate::connection::Row;
use crate::error::StoreError;
use crate::read::Application;
use crate::rule::View;
use crate::store::Store;

impl Store {
    /// Those that somebody sees, by runtime, namespace and name, from behind `after`; of one runtime, or of all.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn visible(
        &self,
        view: &View,
        runtime: Option<&str>,
        after: (&str, &str, &str),
        limit: u32,
    ) -> Result<Vec<(String, Application)>, StoreError> {
        let values = vec![
            after.0.into(),
            after.1.into(),
            after.2.into(),
            runtime.unwrap_or("").into(),
            i64::from(limit).into(),
        ];
        let condition = "(r.name, a.namespace, a.name) > ($1, $2, $3) AND ($4 = '' OR r.name = $4)";
        self.seen(view, condition, "LIMIT $5", values).await
    }

    /// One of them by its runtime, namespace and name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn visible_one(
        &self,
        view: &View,
        (runtime, namespace, name): (&str, &str, &str),
    ) -> Result<Option<Application>, StoreError> {
        let values = vec![runtime.into(), namespace.into(), name.into()];
        let found = self.seen(view, "r.name = $1 AND a.namespace = $2 AND a.name = $3", "", values).await?;
        Ok(found.into_iter().next().map(|(_, one)| one))
    }

    async fn seen(
        &self,
        view: &View,
        condition: &'static str,
        end: &'static str,
        mut values: Vec<Value>,
    ) -> Result<Vec<(String, Application)>, StoreError> {
        let view = view.condition(&mut values);
        let sql = format!(
            "SELECT r.name, a.namespace, a.name, t.uid, t.sync, t.health, t.health_message, t.revision, t.deleted, e.at \
             FROM runtimes r JOIN applications a ON a.runtime_id = r.id \
             JOIN entities e ON e.application_id = a.id AND e.kind = '' JOIN transitions t ON t.id = e.current \
             WHERE a.name <> '' AND {condition} AND {view} ORDER BY r.name, a.namespace, a.name {end}"
        );
        let values: Vec<_> = values.iter().map(Value::arg).collect();
        let one = |row: Row| {
            let application = Application {
                namespace: row.text(1)?,
                name: row.text(2)?,
                uid: row.text(3)?,
                sync: row.text_or_null(4)?,
                health: row.text_or_null(5)?,
                health_message: row.text_or_null(6)?,
                revision: row.text_or_null(7)?,
                deleted: row.int(8)? != 0,
                at: row.int(9)?,
            };
            Ok((row.text(0)?, application))
        };
        self.read().await?.rows_of(sql, &values).await?.into_iter().map(one).collect()
    }

    /// The number of the runtime of that name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn runtime_named(&self, name: &str) -> Result<Option<i64>, StoreError> {
        let name = [crate::connection::Arg::Text(name)];
        let row = self.read().await?.row("SELECT id FROM runtimes WHERE name = $1", &name).await?;
        row.map(|row| row.int(0)).transpose()
    }
}
