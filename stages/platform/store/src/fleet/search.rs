//! Across the fleet: deployments of a selection, and resources by name, today's and past ones.

use crate::columns::from_columns;
use crate::error::StoreError;
use crate::fleet::condition::literal;
use crate::fleet::listing::ApplicationName;
use crate::fleet::selection::{Query, Selection};
use crate::report::{Millis, ResourceName};
use crate::rule::View;
use crate::store::Store;

/// A deployment of any application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetDeployment {
    /// Of which application.
    pub application: ApplicationName,
    /// When it began.
    pub started_at: Millis,
    /// When it ended.
    pub finished_at: Option<Millis>,
    /// How it stands.
    pub phase: String,
    /// What was said of that.
    pub message: String,
    /// What it deployed.
    pub revision: String,
    /// Who asked for it; empty for Argo CD itself.
    pub initiated_by: String,
    /// Who wrote the commit.
    pub author: String,
    /// What they said.
    pub commit_message: String,
    /// Its images, as a JSON list.
    pub images: String,
    /// The images of the deployment before it.
    pub images_before: Option<String>,
}

/// A resource that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundResource {
    /// Of which application.
    pub application: ApplicationName,
    /// Which one.
    pub name: ResourceName,
    /// Since when it is as it is.
    pub at: Millis,
    /// Its health, if it was told.
    pub health: Option<String>,
    /// What was said of its health.
    pub health_message: Option<String>,
    /// The status of its sync.
    pub sync: Option<String>,
    /// Whether it is gone.
    pub gone: bool,
}

/// What holds a text that a resource is looked for by.
const NAMES: &[&str] = &["e.name", "e.kind", "a.name"];
/// The same of a text such as `deployment/web`, as pages and `kubectl` write a resource: no name has a `/`.
const KIND_AND_NAME: &[&str] = &["e.kind || '/' || e.name"];

/// Begins a statement of [`FleetDeployment`]s, of the table `d`.
pub(super) const DEPLOYMENT: &str = "SELECT r.name, a.namespace, a.name, d.started_at, d.finished_at, d.phase, d.message, d.revision, d.initiated_by, \
     d.commit_author, d.commit_message, d.images, (SELECT b.images FROM deployments b \
     WHERE b.application_id = d.application_id AND b.started_at < d.started_at ORDER BY b.started_at DESC LIMIT 1) \
     FROM deployments d JOIN applications a ON a.id = d.application_id JOIN runtimes r ON r.id = a.runtime_id";

from_columns! {
    FleetDeployment {
        application, started_at, finished_at, phase, message, revision, initiated_by, author, commit_message, images,
        images_before
    }
}
from_columns! { FoundResource { application, name, at, health, health_message, sync, gone } }

impl Store {
    /// The deployments of the applications that somebody sees of a selection, the newest first, from behind `skip`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn deployments_of(
        &self,
        view: &View,
        selection: &Selection,
        skip: u64,
        limit: u32,
    ) -> Result<Vec<FleetDeployment>, StoreError> {
        let mut query = Query::matching(view, selection);
        let skip = query.int(i64::try_from(skip).unwrap_or(i64::MAX));
        let limit = query.int(limit.into());
        query.sql.push_str(&format!(
            "{DEPLOYMENT} WHERE d.application_id IN (SELECT id FROM matching) \
             ORDER BY d.started_at DESC, d.id DESC LIMIT {limit} OFFSET {skip}"
        ));
        query.all(&mut self.read().await?).await
    }

    /// Resources that somebody sees and whose name, kind or application holds the text, or both of the first where it is `kind/name`:
    /// those that are there first, the newest first.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn find_resources(
        &self,
        view: &View,
        text: &str,
        limit: u32,
    ) -> Result<Vec<FoundResource>, StoreError> {
        let mut query = Query::default();
        let pattern = (!text.is_empty()).then(|| query.text(format!("%{}%", literal(text))));
        let (limit, seen) = (query.int(limit.into()), query.seen(view));
        let columns = if text.contains('/') { KIND_AND_NAME } else { NAMES };
        query.sql = resources(&seen, pattern.as_deref().map(|pattern| (pattern, columns)), &limit);
        query.all(&mut self.read().await?).await
    }
}

/// Resources are looked up from their applications, in the order that the tables stand in: what somebody sees is decided once for
/// all of an application. They are put in their order by what stands beside their names, on SQLite in an index of its own, and of
/// those that come first alone it is read what they are in.
fn resources(seen: &str, pattern: Option<(&str, &[&str])>, limit: &str) -> String {
    let holds = pattern.map_or_else(String::new, |(pattern, columns)| {
        let holds = columns.iter().map(|name| format!("lower({name}) LIKE {pattern} ESCAPE '!'"));
        format!(" AND ({})", holds.collect::<Vec<_>>().join(" OR "))
    });
    format!(
        "WITH found AS (SELECT e.id AS id, e.since AS since, CASE WHEN a.deleted = 1 THEN a.deleted ELSE e.gone END AS gone \
         FROM applications a CROSS JOIN runtimes r CROSS JOIN entities e WHERE r.id = a.runtime_id \
         AND e.application_id = a.id AND e.kind <> '' AND a.name <> '' AND {seen}{holds} \
         ORDER BY gone, since DESC, id LIMIT {limit}) \
         SELECT r.name, a.namespace, a.name, e.api_version, e.kind, e.namespace, e.name, found.since, t.health, \
         t.health_message, t.sync, found.gone FROM found CROSS JOIN entities e CROSS JOIN transitions t \
         CROSS JOIN applications a CROSS JOIN runtimes r WHERE e.id = found.id AND t.id = e.current \
         AND a.id = e.application_id AND r.id = a.runtime_id ORDER BY found.gone, found.since DESC, found.id"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plans;

    #[tokio::test]
    async fn resources_are_looked_up_from_the_applications_that_somebody_sees() {
        let plans = Plans::open().await;
        for pattern in [Some(("'%web%'", NAMES)), Some(("'%service/web%'", KIND_AND_NAME)), None] {
            let lines = plans.of(&resources("replace(a.labels, 'x', '') <> a.labels", pattern, "200")).await;
            let steps: Vec<&str> =
                lines.iter().map(|line| line.split(" USING").next().unwrap_or(line)).collect();
            let (ordered, found) = ("USE TEMP B-TREE FOR ORDER BY", ["SCAN a", "SEARCH r", "SEARCH e"]);
            let read = ["SCAN found", "SEARCH e", "SEARCH t", "SEARCH a", "SEARCH r"];
            // Transitions are read of those alone that come first.
            let looked_up = [&["CO-ROUTINE found"][..], &found, &[ordered], &read].concat();
            assert_eq!(steps, looked_up, "{lines:#?}");
            let own = "SEARCH e USING COVERING INDEX entities_found (application_id=?)";
            assert!(lines.iter().any(|line| line == own), "{lines:#?}");
        }
        plans.close().await;
    }
}
