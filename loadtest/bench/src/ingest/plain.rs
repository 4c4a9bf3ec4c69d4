//! The same texts into a SQLite file with its defaults: a commit each, and no log written ahead.

use std::io::Read as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use flate2::read::GzDecoder;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use crate::bodies::Body;

/// No longer than this.
const WITHIN: Duration = Duration::from_secs(20);

/// Inserts a second.
pub(super) async fn rate(bodies: &[Body]) -> anyhow::Result<f64> {
    let folder = tempfile::TempDir::new().context("make a folder")?;
    let options =
        SqliteConnectOptions::new().filename(folder.path().join("plain.db")).create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
    for sql in [
        "PRAGMA journal_mode = DELETE",
        "PRAGMA synchronous = FULL",
        "CREATE TABLE reports (key TEXT PRIMARY KEY)",
        "CREATE TABLE transitions (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL)",
    ] {
        sqlx::query(sql).execute(&pool).await?;
    }
    let (begun, mut done) = (Instant::now(), 0_u32);
    for body in bodies {
        let mut text = Vec::new();
        GzDecoder::new(&*body.gzip).read_to_end(&mut text)?;
        let mut transaction = pool.begin().await?;
        sqlx::query("INSERT INTO reports (key) VALUES ($1)")
            .bind(&body.key)
            .execute(&mut *transaction)
            .await?;
        sqlx::query("INSERT INTO transitions (at, body) VALUES ($1, $2)")
            .bind(i64::from(done))
            .bind(text)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        done += 1;
        if begun.elapsed() > WITHIN {
            break;
        }
    }
    let rate = f64::from(done) / begun.elapsed().as_secs_f64();
    pool.close().await;
    Ok(rate)
}
