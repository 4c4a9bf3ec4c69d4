//! The same application wherever it runs: a page of names, each with all that have it but for that of their environment.

use crate::error::StoreError;
use crate::fleet::listing::{COLUMNS, ListedApplication, count, totals};
use crate::fleet::selection::{GroupBy, Query, Selection, order_of_groups};
use crate::rule::View;
use crate::store::Store;

/// Applications of a page at most.
pub const MATRIX_CELLS: u32 = 5_000;

/// A page of names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetMatrix {
    /// Applications, each in the group that is its name without that of its environment; those of a name stand together, by
    /// environment. As many as [`MATRIX_CELLS`]: some of the last names are left out.
    pub rows: Vec<ListedApplication>,
    /// How many names the selection leaves; zero behind the last page.
    pub names: u64,
    /// How many applications the selection leaves; alike.
    pub matching: u64,
    /// How many there are at all.
    pub total: u64,
    /// How many runtimes are known.
    pub runtimes: u64,
}

impl Store {
    /// The names of the applications that somebody sees of a selection, from behind `skip`, at most `limit`; whatever the
    /// selection groups by.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn matrix(
        &self,
        view: &View,
        selection: &Selection,
        skip: u64,
        limit: u32,
    ) -> Result<FleetMatrix, StoreError> {
        let mut connection = self.read().await?;
        let selection = Selection { group_by: GroupBy::Application, ..selection.clone() };
        let mut query = Query::groups(view, &selection, skip, limit);
        let most = query.int(MATRIX_CELLS.into());
        let order: Vec<String> =
            order_of_groups(&selection).iter().map(|column| format!("p.{column}")).collect();
        query.sql.push_str(&format!(
            "SELECT {COLUMNS}, p.in_group, (SELECT count(*) FROM groups), (SELECT count(*) FROM matching) FROM page p \
             JOIN matching m ON m.in_group = p.in_group JOIN applications a ON a.id = m.id \
             JOIN runtimes r ON r.id = a.runtime_id \
             ORDER BY {}, a.environment, r.name, a.namespace, a.name LIMIT {most}",
            order.join(", ")
        ));
        let mut matrix = FleetMatrix::default();
        for row in query.rows(&mut connection).await? {
            (matrix.names, matrix.matching) = (count(row.int(13)?), count(row.int(14)?));
            matrix.rows.push(ListedApplication { group: row.text(12)?, ..row.read()? });
        }
        (matrix.total, matrix.runtimes) = totals(&mut connection, view).await?;
        Ok(matrix)
    }
}
