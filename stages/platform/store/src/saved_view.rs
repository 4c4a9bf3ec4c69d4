//! Views that people save: a filter of a list, which is the query of its address, under a name of their own.

use std::sync::Arc;

use crate::audit::By;
use crate::columns::from_columns;
use crate::connection::Arg;
use crate::error::StoreError;
use crate::report::Millis;
use crate::statement::Statement;
use crate::store::Store;

/// Views that somebody may have.
pub const SAVED_VIEWS: usize = 50;

/// A view that somebody saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    /// Its name, of which its owner has no other.
    pub name: String,
    /// The query of the address that it stands for, without `?`.
    pub query: String,
}

from_columns! { SavedView { name, query } }

impl Store {
    /// Somebody's own views, by name.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn saved_views(&self, owner: &str) -> Result<Vec<SavedView>, StoreError> {
        let sql = "SELECT v.name, v.query FROM saved_views v JOIN users u ON u.id = v.user_id WHERE u.name = $1 \
                   ORDER BY lower(v.name), v.name";
        self.read().await?.all(sql, &[Arg::Text(owner)]).await
    }

    /// Keeps a view of whoever asks, instead of theirs of that name; `false`: they have [`SAVED_VIEWS`] others. One that is kept
    /// as it is already is no act.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn save_view(&self, by: &By, view: &SavedView, now: Millis) -> Result<bool, Arc<StoreError>> {
        if self.saved_views(&by.who).await.map_err(Arc::new)?.contains(view) {
            return Ok(true);
        }
        let sql = "INSERT INTO saved_views (user_id, name, query, created_at) SELECT u.id, $2, $3, $4 FROM users u \
                   WHERE u.name = $1 AND (SELECT count(*) FROM saved_views v WHERE v.user_id = u.id AND v.name <> $2) < $5 \
                   ON CONFLICT (user_id, name) DO UPDATE SET query = excluded.query";
        let most = i64::try_from(SAVED_VIEWS).unwrap_or(i64::MAX);
        let SavedView { name, query } = view;
        let values = [(&*by.who).into(), (&**name).into(), (&**query).into(), now.into(), most.into()];
        self.whether(vec![Statement::must(sql, values), by.did("view.save", name, now)]).await
    }

    /// Takes a view of whoever asks away; `false`: they have none of that name.
    ///
    /// # Errors
    /// [`StoreError`] when it is still there.
    pub async fn remove_view(&self, by: &By, name: &str, now: Millis) -> Result<bool, Arc<StoreError>> {
        let sql =
            "DELETE FROM saved_views WHERE name = $2 AND user_id = (SELECT id FROM users WHERE name = $1)";
        let removed = Statement::must(sql, [(&*by.who).into(), name.into()]);
        self.whether(vec![removed, by.did("view.remove", name, now)]).await
    }
}
