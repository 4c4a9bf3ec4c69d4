//! Backups of a SQLite store while it is written, and back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;

use crate::connection::{Arg, Connection};
use crate::database::{Place, lock, sqlite, with_end};
use crate::error::StoreError;

/// Writes a copy of the store as it is now to a new file, complete or not at all.
///
/// # Errors
/// When the store is in Postgres, the file exists, or one of them cannot be read or written.
pub async fn backup(place: &Place, to: &Path) -> Result<(), StoreError> {
    let Place::Sqlite(path) = place else { return Err(StoreError::ForSqliteAlone) };
    let pool = open(path).await?;
    let done = copy(&pool, to).await;
    pool.close().await;
    done
}

/// Puts a backup in the place of the store, which is kept beside under the name that is given back.
///
/// # Errors
/// When the store is in Postgres or in use, the backup is none, or a file cannot be read or written.
pub async fn restore(place: &Place, from: &Path) -> Result<Option<PathBuf>, StoreError> {
    let Place::Sqlite(path) = place else { return Err(StoreError::ForSqliteAlone) };
    let no_backup = || StoreError::NoBackup(from.display().to_string());
    let partial = with_end(path, ".restoring");
    let file = |act, of: &Path| {
        let path = of.display().to_string();
        move |source| StoreError::File { act, path, source }
    };
    let _lock = lock(path)?;
    fs::copy(from, &partial).map_err(file("read", from))?;
    let whole = async {
        let pool = open(&partial).await?;
        let mut connection = Connection::Sqlite(pool.acquire().await?);
        let well = connection
            .row("PRAGMA integrity_check(1)", &[])
            .await?
            .map_or(Ok(String::new()), |row| row.text(0))?;
        connection.rows("SELECT version FROM _sqlx_migrations", &[]).await?;
        drop(connection);
        pool.close().await;
        Ok::<_, StoreError>(well == "ok")
    };
    if !whole.await.unwrap_or(false) {
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(with_end(&partial, end));
        }
        return Err(no_backup());
    }
    File::open(&partial).and_then(|file| file.sync_all()).map_err(file("write", &partial))?;
    let aside =
        path.exists().then(|| with_end(path, &format!(".replaced-{}", Timestamp::now().as_millisecond())));
    if let Some(aside) = &aside {
        for end in ["", "-wal", "-shm"] {
            let own = with_end(path, end);
            if own.exists() {
                fs::rename(&own, with_end(aside, end)).map_err(file("move", &own))?;
            }
        }
    }
    fs::rename(&partial, path).map_err(file("write", path))?;
    Ok(aside)
}

/// A copy beside the store, named after the moment, before its tables change.
pub(crate) async fn before_migration(pool: &SqlitePool, path: &Path) -> Result<(), StoreError> {
    let to = with_end(path, &format!(".before-migration-{}", Timestamp::now().as_millisecond()));
    copy(pool, &to).await?;
    tracing::info!(backup = %to.display(), "the store was backed up before its tables change");
    Ok(())
}

async fn open(path: &Path) -> Result<SqlitePool, StoreError> {
    let one = SqlitePoolOptions::new().max_connections(1);
    Ok(one.connect_with(sqlite(path).create_if_missing(false)).await?)
}

async fn copy(pool: &SqlitePool, to: &Path) -> Result<(), StoreError> {
    let name = to.display().to_string();
    if to.exists() {
        return Err(StoreError::Exists(name));
    }
    let partial = with_end(to, ".partial");
    let file = |act| {
        let path = name.clone();
        move |source| StoreError::File { act, path, source }
    };
    if partial.exists() {
        fs::remove_file(&partial).map_err(file("replace an unfinished"))?;
    }
    let mut connection = Connection::Sqlite(pool.acquire().await?);
    connection.execute("VACUUM INTO $1", &[Arg::Text(&partial.display().to_string())]).await?;
    File::open(&partial).and_then(|file| file.sync_all()).map_err(file("write"))?;
    fs::rename(&partial, to).map_err(file("write"))
}
