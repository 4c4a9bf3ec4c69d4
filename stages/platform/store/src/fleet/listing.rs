//! A page of a list, and where an application stands in it: both of one table, so that they never disagree.

use crate::columns::from_columns;
use crate::connection::{Connection, Row};
use crate::error::StoreError;
use crate::fleet::selection::{Query, Selection, order};
use crate::report::Millis;
use crate::rule::View;
use crate::store::Store;

/// Which application, across all runtimes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationName {
    /// The runtime that reports it.
    pub runtime: String,
    /// The namespace of the object.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// An application in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedApplication {
    /// Which one.
    pub name: ApplicationName,
    /// Its health, `Unknown` where nothing was said.
    pub health: String,
    /// The status of its sync, alike.
    pub sync: String,
    /// Where it runs.
    pub environment: String,
    /// Its Argo CD project.
    pub project: String,
    /// The version of its first image.
    pub version: String,
    /// The revision that it is at.
    pub revision: String,
    /// Who wrote that revision.
    pub author: String,
    /// What they said.
    pub message: String,
    /// When it was last deployed with success.
    pub deployed_at: Option<Millis>,
    /// The group that it stands in.
    pub group: String,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Its rows.
    pub rows: Vec<ListedApplication>,
    /// The groups of these rows, with how many of the selection stand in each.
    pub groups: Vec<(String, u64)>,
    /// How many the selection leaves; zero behind the last page.
    pub matching: u64,
    /// How many there are at all.
    pub total: u64,
    /// How many runtimes are known.
    pub runtimes: u64,
}

/// Where an application stands in a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Position {
    /// From one; `None`: the selection leaves it out.
    pub position: Option<u64>,
    /// How many the selection leaves.
    pub matching: u64,
    /// Who stands before it.
    pub previous: Option<ApplicationName>,
    /// Who stands after it.
    pub next: Option<ApplicationName>,
}

from_columns! { ApplicationName { runtime, namespace, name } }

/// The columns of a listed application, of the tables `a` and `r`.
pub(super) const COLUMNS: &str = "r.name, a.namespace, a.name, a.health, a.sync, a.environment, a.project, a.version, \
                                  a.revision, a.author, a.message, a.deployed_at";

// Of [`COLUMNS`], without the group.
from_columns! {
    ListedApplication {
        name, health, sync, environment, project, version, revision, author, message, deployed_at; group: String::new()
    }
}

pub(super) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// How many applications and runtimes somebody sees.
pub(super) async fn totals(connection: &mut Connection, view: &View) -> Result<(u64, u64), StoreError> {
    let rows = Query::totals(view).rows(connection).await?;
    rows.first().map_or(Ok((0, 0)), Row::read)
}

impl Store {
    /// The rows that somebody sees of a selection, from behind `skip`, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn list(
        &self,
        view: &View,
        selection: &Selection,
        skip: u64,
        limit: u32,
    ) -> Result<Page, StoreError> {
        let mut connection = self.read().await?;
        let mut query = Query::page(view, selection, skip, limit);
        query.sql.push_str(&format!(
            "SELECT {COLUMNS}, p.in_group, p.of_group, (SELECT count(*) FROM matching) FROM page p \
             JOIN applications a ON a.id = p.id JOIN runtimes r ON r.id = a.runtime_id ORDER BY {}",
            order("p", selection)
        ));
        let mut page = Page::default();
        for row in query.rows(&mut connection).await? {
            let group = row.text(12)?;
            if page.groups.last().is_none_or(|(name, _)| *name != group) {
                page.groups.push((group.clone(), count(row.int(13)?)));
            }
            page.matching = count(row.int(14)?);
            page.rows.push(ListedApplication { group, ..row.read()? });
        }
        (page.total, page.runtimes) = totals(&mut connection, view).await?;
        Ok(page)
    }

    /// Where an application stands in what somebody sees of a selection.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn position(
        &self,
        view: &View,
        selection: &Selection,
        name: &ApplicationName,
    ) -> Result<Position, StoreError> {
        let query = Query::place(view, selection, name);
        let rows = query.rows(&mut self.read().await?).await?;
        let Some(row) = rows.first() else { return Ok(Position::default()) };
        let beside = |first: usize| -> Result<Option<ApplicationName>, StoreError> {
            let Some(runtime) = row.text_or_null(first)? else { return Ok(None) };
            Ok(Some(ApplicationName { runtime, namespace: row.text(first + 1)?, name: row.text(first + 2)? }))
        };
        Ok(Position {
            position: Some(count(row.int(1)?)).filter(|position| *position > 0),
            matching: count(row.int(0)?),
            previous: beside(2)?,
            next: beside(5)?,
        })
    }
}
