//! What holds of SQLite's file: one process, backups, restores, damage.

use std::fs;
use std::path::Path;

use stages_platform_store::{Place, StoreConfig, StoreError, backup, restore};
use tempfile::TempDir;

use crate::support::{KEEP_ALL, open, report};

fn config(path: &Path) -> StoreConfig {
    StoreConfig { place: Place::Sqlite(path.to_owned()), retention: KEEP_ALL }
}

async fn refused(path: &Path) -> String {
    config(path).build(&prometheus::Registry::new()).await.expect_err("it is refused").to_string()
}

#[tokio::test]
async fn a_second_process_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    let opened = open(&Place::Sqlite(path.clone())).await;
    let text = format!("another process has the store {} open: stop it first", path.display());
    assert_eq!(refused(&path).await, text);
    assert_eq!(restore(&Place::Sqlite(path.clone()), &path).await.unwrap_err().to_string(), text);
    opened.close().await;
    open(&Place::Sqlite(path)).await.close().await;
}

#[tokio::test]
async fn a_backup_made_while_reports_arrive_is_restored_as_it_was() {
    let folder = TempDir::new().unwrap();
    let (path, copy) = (folder.path().join("platform.db"), folder.path().join("copy.db"));
    let place = Place::Sqlite(path.clone());
    let opened = open(&place).await;
    for version in 1..=20 {
        opened.keep(report("u", version, version)).await;
    }
    let (made, ()) = tokio::join!(backup(&place, &copy), async {
        for version in 21..=40 {
            opened.keep(report("u", version, version)).await;
        }
    });
    made.unwrap();
    let text = format!("{} exists: name a file that does not", copy.display());
    assert_eq!(backup(&place, &copy).await.unwrap_err().to_string(), text);
    opened.close().await;

    let aside = restore(&place, &copy).await.unwrap().expect("there was a store");
    assert!(aside.exists());
    let opened = open(&place).await;
    let (versions, current) = opened.versions().await;
    assert!((20..=40).contains(&versions.len()), "{versions:?}");
    assert_eq!((versions, current), ((1..=current).collect::<Vec<_>>(), current));
    opened.keep(report("u", 100, 100)).await;
    assert_eq!(opened.versions().await.1, 100);
    opened.close().await;
}

#[tokio::test]
async fn what_is_no_backup_is_refused_and_the_store_stays() {
    let folder = TempDir::new().unwrap();
    let (path, other) = (folder.path().join("platform.db"), folder.path().join("other"));
    let place = Place::Sqlite(path.clone());
    let opened = open(&place).await;
    opened.keep(report("u", 1, 1)).await;
    opened.close().await;
    for content in [
        &b""[..],
        b"not a database, and longer than any header of one would be: more than a hundred bytes of text",
    ] {
        fs::write(&other, content).unwrap();
        let text = format!("{} is no backup of a store, or is damaged", other.display());
        assert_eq!(restore(&place, &other).await.unwrap_err().to_string(), text);
    }
    let server = Place::Postgres("postgres://nobody@localhost/none".to_owned());
    let text = "this store is in Postgres: back it up with pg_dump, and restore it with pg_restore";
    assert_eq!(backup(&server, &other).await.unwrap_err().to_string(), text);
    assert_eq!(restore(&server, &other).await.unwrap_err().to_string(), text);
    let opened = open(&place).await;
    assert_eq!(opened.versions().await, (vec![1], 1));
    opened.close().await;
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "the store, its lock, and what was to be restored: {left:?}");
}

#[tokio::test]
async fn a_damaged_file_is_told_and_nothing_is_acknowledged() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    fs::write(&path, vec![7; 8192]).unwrap();
    let text = "the store is damaged: stop the platform, and restore a backup with `gitops-runtime platform restore`";
    assert_eq!(refused(&path).await, text);

    fs::remove_file(&path).unwrap();
    let place = Place::Sqlite(path.clone());
    let opened = open(&place).await;
    for version in 1..=1_000 {
        opened.keep(report("u", version, version)).await;
    }
    opened.close().await;
    // Everything but the first pages, where the tables are named and begin.
    let mut bytes = fs::read(&path).unwrap();
    assert!(bytes.len() > 512 * 1024);
    bytes.iter_mut().skip(256 * 1024).for_each(|byte| *byte = 0xa5);
    fs::write(&path, bytes).unwrap();
    let (store, writing) = config(&path).build(&prometheus::Registry::new()).await.unwrap();
    let mut refusals = 0;
    for version in 1_001..=1_060 {
        let delivery = stages_platform_store::Delivery {
            runtime: 1,
            key: crate::support::digest(&version.to_string()),
            keyed: true,
            epoch: None,
            report: report("u", version, version),
        };
        if let Err(error) = store.keep(vec![delivery]).await {
            assert!(matches!(*error, StoreError::Damaged(_)), "{error:?}");
            assert!(!store.is_writable());
            refusals += 1;
        }
    }
    assert!(refusals > 0, "the damage was never met");
    drop(store);
    writing.finished().await;
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    open(&Place::Sqlite(path.clone())).await.close().await;
    let url = format!("sqlite://{}", path.display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    let sql = "INSERT INTO _sqlx_migrations SELECT 999, description, installed_on, success, checksum, execution_time \
               FROM _sqlx_migrations WHERE version = 1";
    sqlx::query(sql).execute(&pool).await.unwrap();
    pool.close().await;
    let text = "the store was written by a newer version of gitops-runtime: run that one, or restore an earlier backup";
    assert_eq!(refused(&path).await, text);
}

#[tokio::test]
async fn a_store_that_lacks_a_migration_is_copied_before_it_has_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    let place = Place::Sqlite(path.clone());
    let opened = open(&place).await;
    opened.keep(report("u", 1, 1)).await;
    opened.close().await;
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    for sql in [
        "DROP TABLE sessions",
        "DROP TABLE users",
        "DROP TABLE links",
        "DELETE FROM _sqlx_migrations WHERE version = 3",
    ] {
        sqlx::query(sql).execute(&pool).await.unwrap();
    }
    pool.close().await;
    let opened = open(&place).await;
    assert_eq!(opened.versions().await, (vec![1], 1));
    assert!(!opened.store.has_accounts().await.unwrap());
    opened.close().await;
    let copies = fs::read_dir(folder.path()).unwrap().filter(|file| {
        let name = file.as_ref().unwrap().file_name().into_string().unwrap();
        name.starts_with("platform.db.before-migration-")
    });
    assert_eq!(copies.count(), 1);
}
