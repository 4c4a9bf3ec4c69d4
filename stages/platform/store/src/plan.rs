//! How SQLite finds what a query asks for, in a store that was just made.

use sqlx::Row as _;
use sqlx::sqlite::SqlitePool;

use crate::database::{Database, Place};
use crate::limits::Limits;

/// A store whose queries are explained.
pub(crate) struct Plans {
    pool: SqlitePool,
    _folder: tempfile::TempDir,
}

impl Plans {
    pub(crate) async fn open() -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("platform.db");
        Database::open(&Place::Sqlite(path.clone()), Limits::default()).await.unwrap().close().await;
        let pool = SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
        Self { pool, _folder: folder }
    }

    /// A line for each step of a query.
    pub(crate) async fn of(&self, sql: &str) -> Vec<String> {
        let explained = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let rows = sqlx::query(explained).fetch_all(&self.pool).await.unwrap();
        rows.iter().map(|row| row.get("detail")).collect()
    }

    pub(crate) async fn close(self) {
        self.pool.close().await;
    }
}
