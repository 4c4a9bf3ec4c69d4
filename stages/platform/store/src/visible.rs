//! Applications of all runtimes, as far as somebody sees them.

use std::collections::HashSet;

use crate::connection::{Arg, Connection, Row};
use crate::error::StoreError;
use crate::fleet::{self, ApplicationName, Condition, ResourceAt, literal};
use crate::read::Application;
use crate::registration::Registration;
use crate::report::Millis;
use crate::rule::{Access, View, has_label};
use crate::statement::{self, Value, parameter};
use crate::store::Store;

/// Which applications are listed: all of it holds, and what is `None` holds of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Which {
    /// The runtime that reports them.
    pub runtime: Option<String>,
    /// Their namespace.
    pub namespace: Option<String>,
    /// Their Argo CD project.
    pub project: Option<String>,
    /// Their name.
    pub name: Option<String>,
    /// How their name begins.
    pub prefix: Option<String>,
    /// Labels that they have, each with its value.
    pub labels: Vec<(String, String)>,
    /// Whether they are gone.
    pub deleted: Option<bool>,
    /// What else holds of them.
    pub conditions: Vec<Condition>,
}

/// An application, with the runtime that reports it and where it comes from and goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenApplication {
    /// The runtime.
    pub runtime: String,
    /// How it is.
    pub state: Application,
    /// Its Argo CD project.
    pub project: String,
    /// Where it runs, as people say it.
    pub environment: String,
    /// The cluster and the namespace that it goes to.
    pub destination: (String, String),
    /// The repository and the path that it comes from.
    pub source: (String, String),
    /// Its labels, by name.
    pub labels: Vec<(String, String)>,
    /// Who wrote its commit.
    pub author: String,
    /// What they said.
    pub message: String,
    /// How its last operation stands.
    pub phase: String,
    /// What was said of its last operation.
    pub phase_message: String,
    /// When it was last deployed with success.
    pub deployed_at: Option<Millis>,
}

/// Applications of which something was kept since a place in the sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedApplications {
    /// The place that this goes to.
    pub upto: i64,
    /// As they are now; `None`: they are too many, or it is not kept any more.
    pub applications: Option<Vec<SeenApplication>>,
}

impl Store {
    /// Those that somebody sees, by runtime, namespace and name, from behind `after`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn visible(
        &self,
        view: &View,
        which: &Which,
        after: (&str, &str, &str),
        limit: u32,
    ) -> Result<Vec<SeenApplication>, StoreError> {
        let (mut values, condition) = chosen(which, after);
        let most = parameter(&mut values, i64::from(limit));
        self.seen(view, &condition, Some(&most), values).await
    }

    /// Where pages of so many rows end of what [`Store::visible`] gives: the first so many of these pages that are full.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn ends(
        &self,
        view: &View,
        which: &Which,
        after: (&str, &str, &str),
        (rows, pages): (u32, u32),
    ) -> Result<Vec<ApplicationName>, StoreError> {
        let (mut values, condition) = chosen(which, after);
        let rows = parameter(&mut values, i64::from(rows));
        let most = format!("({rows} * {})", parameter(&mut values, i64::from(pages)));
        let view = view.condition(&mut values);
        let mut connection = self.read().await?;
        let page = page(&connection, NAMES, (&view, &condition, &most));
        let sql = format!(
            "SELECT runtime, namespace, name FROM (SELECT page.*, row_number() OVER (ORDER BY runtime, namespace, name) AS place \
             FROM ({page}) AS page) AS placed WHERE place % {rows} = 0 ORDER BY place"
        );
        statement::rows(&mut connection, sql, &values).await?.iter().map(Row::read).collect()
    }

    /// Those that somebody sees of which something was kept behind a place of the sequence, by runtime, namespace and name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn visible_changed(
        &self,
        view: &View,
        which: &Which,
        after: i64,
    ) -> Result<ChangedApplications, StoreError> {
        let mut connection = self.read().await?;
        let (upto, is_kept) = fleet::upto(&mut connection, after).await?;
        if !is_kept {
            return Ok(ChangedApplications { upto, applications: None });
        }
        let mut values = vec![after.into(), upto.into(), (fleet::NAMES + 1).into()];
        let condition = conditions(which, &mut values);
        let view = view.condition(&mut values);
        let rows = statement::rows(&mut connection, changed(&view, &condition), &values).await?;
        let is_much = i64::try_from(rows.len()).is_ok_and(|rows| rows > fleet::NAMES);
        let applications =
            if is_much { None } else { Some(rows.iter().map(seen).collect::<Result<_, _>>()?) };
        Ok(ChangedApplications { upto, applications })
    }

    /// One of them by its runtime, namespace and name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn visible_one(
        &self,
        view: &View,
        (runtime, namespace, name): (&str, &str, &str),
    ) -> Result<Option<SeenApplication>, StoreError> {
        let values = vec![runtime.into(), namespace.into(), name.into()];
        let found = self.seen(view, "r.name = $1 AND a.namespace = $2 AND a.name = $3", None, values).await?;
        Ok(found.into_iter().next())
    }

    /// What an application that somebody sees lists now, by kind, namespace and name; where it lists nothing, all that was
    /// reported of it and is not gone. `None`: they see no such application.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn resources_of(
        &self,
        view: &View,
        name: &ApplicationName,
    ) -> Result<Option<Vec<ResourceAt>>, StoreError> {
        let Some(known) = self.known(view, name).await? else { return Ok(None) };
        let mut all = self.resources_at(known.id, None, None).await?;
        let sql = "SELECT listed FROM applications WHERE id = $1";
        let listed: Option<Vec<u8>> = self.read().await?.one(sql, &[Arg::Int(known.id)]).await?;
        let listed = listed.unwrap_or_default();
        let listed: HashSet<&[u8]> = listed.chunks_exact(8).collect();
        all.retain(|one| match listed.is_empty() {
            true => !one.deleted,
            false => listed.contains(&one.name.listing().0[..]),
        });
        Ok(Some(all))
    }

    async fn seen(
        &self,
        view: &View,
        condition: &str,
        most: Option<&str>,
        mut values: Vec<Value>,
    ) -> Result<Vec<SeenApplication>, StoreError> {
        let view = view.condition(&mut values);
        let mut connection = self.read().await?;
        let sql = match most {
            Some(most) => page(&connection, COLUMNS, (&view, condition, most)),
            None => query(COLUMNS, &view, condition, None),
        };
        statement::rows(&mut connection, sql, &values).await?.iter().map(seen).collect()
    }

    /// The name of the runtime that is called so, or told by that id; `None`: there is none of which somebody sees anything.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn seen_runtime(
        &self,
        access: &Access,
        name_or_id: &str,
    ) -> Result<Option<String>, StoreError> {
        let Some(name) = self.runtime_called(name_or_id).await? else { return Ok(None) };
        let is_seen =
            access.is_shown(&name) || !self.with_seen(&access.view(), Some(&name)).await?.is_empty();
        Ok(is_seen.then_some(name))
    }

    /// Every runtime that has a token or is registered and of which somebody sees anything, by name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn seen_registrations(&self, access: &Access) -> Result<Vec<Registration>, StoreError> {
        let mut all = self.registrations(None).await?;
        if all.iter().any(|one| !access.is_shown(&one.name)) {
            let with_seen = self.with_seen(&access.view(), None).await?;
            all.retain(|one| access.is_shown(&one.name) || with_seen.contains(&one.name));
        }
        Ok(all)
    }

    /// The names of all runtimes, or of one, that have an application which is seen.
    async fn with_seen(&self, view: &View, only: Option<&str>) -> Result<HashSet<String>, StoreError> {
        let mut values = vec![only.unwrap_or("").into()];
        let seen = view.condition(&mut values);
        let sql = format!(
            "SELECT r.name FROM runtimes r WHERE ($1 = '' OR r.name = $1) AND EXISTS (SELECT 1 FROM applications a \
             WHERE a.runtime_id = r.id AND a.name <> '' AND a.deleted = 0 AND {seen})"
        );
        statement::rows(&mut self.read().await?, sql, &values).await?.iter().map(Row::read).collect()
    }

    /// The number of the runtime of that name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn runtime_named(&self, name: &str) -> Result<Option<i64>, StoreError> {
        self.read().await?.one("SELECT id FROM runtimes WHERE name = $1", &[Arg::Text(name)]).await
    }
}

/// Behind `$1`, `$2` and `$3`, so that an index of applications leads there: of the runtimes behind the first all are.
const BEHIND: &str = "r.name >= $1 AND (a.namespace, a.name) > \
                      (CASE WHEN r.name = $1 THEN $2 ELSE '' END, CASE WHEN r.name = $1 THEN $3 ELSE '' END)";

/// Which applications are chosen from behind a place, with what that is compared to: the place is of the first three values.
fn chosen(which: &Which, after: (&str, &str, &str)) -> (Vec<Value>, String) {
    let mut values = vec![after.0.into(), after.1.into(), after.2.into()];
    let mut condition = BEHIND.to_owned();
    condition.push_str(&conditions(which, &mut values));
    (values, condition)
}

/// What is asked of applications, after other conditions, whose values stand before those of these.
fn conditions(which: &Which, values: &mut Vec<Value>) -> String {
    let mut all = String::new();
    let named = [
        ("r.name", &which.runtime),
        ("a.namespace", &which.namespace),
        ("a.project", &which.project),
        ("a.name", &which.name),
    ];
    for (column, value) in named {
        if let Some(value) = value {
            all.push_str(&format!(" AND {column} = {}", parameter(values, &**value)));
        }
    }
    if let Some(prefix) = &which.prefix {
        let pattern = parameter(values, Value::Text(format!("{}%", literal(prefix))));
        all.push_str(&format!(" AND a.name LIKE {pattern} ESCAPE '!'"));
    }
    for (key, value) in &which.labels {
        all.push_str(&format!(" AND {}", has_label(key, value, values)));
    }
    if let Some(deleted) = which.deleted {
        all.push_str(&format!(" AND a.deleted = {}", parameter(values, i64::from(deleted))));
    }
    for condition in &which.conditions {
        all.push_str(&format!(" AND {}", condition.sql(values)));
    }
    all
}

/// In the order in which they are read of a row.
const COLUMNS: &str = "r.name AS runtime, a.namespace, a.name, t.uid, t.sync, t.health, t.health_message, t.revision, \
    t.deleted, e.at, a.project, a.environment, a.cluster, a.destination, a.repository, a.path, a.labels, a.author, a.message, \
    a.phase, a.phase_message, a.deployed_at";
/// No more than what an application is found by.
const NAMES: &str = "r.name AS runtime, a.namespace, a.name";
/// How the tables belong together.
const TOGETHER: &str =
    "a.runtime_id = r.id AND e.application_id = a.id AND e.kind = '' AND t.id = e.current AND a.name <> ''";

/// In the order of lists. The tables stand in the order that they are read in, which SQLite keeps to where it is told by `CROSS`:
/// it would begin with all entities else, on every page.
fn query(columns: &str, view: &str, condition: &str, most: Option<&str>) -> String {
    let end = most.map_or_else(String::new, |most| format!("LIMIT {most}"));
    format!(
        "SELECT {columns} FROM runtimes r CROSS JOIN applications a CROSS JOIN entities e CROSS JOIN transitions t \
         WHERE {TOGETHER} AND {condition} AND {view} ORDER BY r.name, a.namespace, a.name {end}"
    )
}

/// The same for Postgres, which knows of no order but that of the runtimes where it looks up the applications of each, and would
/// read all of a runtime's for each page: here it reads no more of any than the page may have.
fn of_each_runtime(columns: &str, view: &str, condition: &str, most: &str) -> String {
    format!(
        "SELECT page.* FROM runtimes r CROSS JOIN LATERAL (SELECT {columns} \
         FROM applications a CROSS JOIN entities e CROSS JOIN transitions t WHERE {TOGETHER} AND {condition} AND {view} \
         ORDER BY a.namespace, a.name LIMIT {most}) AS page ORDER BY r.name, page.namespace, page.name LIMIT {most}"
    )
}

/// At most so many of what somebody sees and a condition leaves, in the order of lists.
fn page(connection: &Connection, columns: &str, (view, condition, most): (&str, &str, &str)) -> String {
    match connection.is_sqlite() {
        true => query(columns, view, condition, Some(most)),
        false => of_each_runtime(columns, view, condition, most),
    }
}

/// Those of which something was kept behind the place `$1` and up to `$2`: these few are found first, and what belongs to each by
/// its number.
fn changed(view: &str, condition: &str) -> String {
    let touched = fleet::touched("$1", "$2");
    format!(
        "SELECT {COLUMNS} FROM ({touched}) AS touched CROSS JOIN applications a CROSS JOIN runtimes r CROSS JOIN entities e \
         CROSS JOIN transitions t WHERE a.id = touched.id AND {TOGETHER}{condition} AND {view} \
         ORDER BY r.name, a.namespace, a.name LIMIT $3"
    )
}

fn seen(row: &Row) -> Result<SeenApplication, StoreError> {
    let label = |line: &str| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    Ok(SeenApplication {
        runtime: row.text(0)?,
        state: row.read_from(1)?,
        project: row.text(10)?,
        environment: row.text(11)?,
        destination: (row.text(12)?, row.text(13)?),
        source: (row.text(14)?, row.text(15)?),
        labels: row.text(16)?.lines().filter_map(label).collect(),
        author: row.text(17)?,
        message: row.text(18)?,
        phase: row.text(19)?,
        phase_message: row.text(20)?,
        deployed_at: row.int_or_null(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plans;

    #[tokio::test]
    async fn a_page_is_read_from_where_it_begins_and_not_sorted() {
        let plans = Plans::open().await;
        let of_one = "r.name = $1 AND a.namespace = $2 AND a.name = $3";
        let of_some = format!("{BEHIND} AND r.name = $4 AND a.deleted = 0");
        for (condition, most) in [(BEHIND, Some("10")), (&*of_some, Some("10")), (of_one, None)] {
            let lines = plans.of(&query(COLUMNS, "1 = 1", condition, most)).await;
            assert_eq!(lines.len(), 4, "a line for each table, and none for sorting: {lines:#?}");
            assert!(lines.iter().all(|line| line.starts_with("SEARCH ")), "{lines:#?}");
            assert!(lines[1].contains("runtime_id=? AND "), "{lines:#?}");
        }
        plans.close().await;
    }

    #[tokio::test]
    async fn what_changed_is_found_without_looking_through_a_table() {
        let plans = Plans::open().await;
        let lines = plans.of(&changed("1 = 1", "")).await;
        let through: Vec<_> = lines.iter().filter(|line| line.starts_with("SCAN ")).collect();
        assert_eq!(through, ["SCAN touched"], "{lines:#?}");
        plans.close().await;
    }
}
