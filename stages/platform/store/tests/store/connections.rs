//! Connections to Postgres that are of no use any more.

use std::time::Duration;

use pipeline_core::Reason;
use sqlx::Connection as _;
use stages_platform_store::{Delivery, Outcome, Place, StoreError};

use crate::support::{digest, open, report};

/// Its transaction begins, and the lock that the writers take turns by does not come.
pub(crate) async fn a_connection_that_cannot_begin_is_not_used_again(url: &str) {
    let mut other = sqlx::PgConnection::connect(url).await.unwrap();
    let sql =
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = 200', current_database()); END $$";
    sqlx::query(sql).execute(&mut other).await.unwrap();
    let opened = open(&Place::Postgres(url.to_owned())).await;
    opened.keep(report("u", 1, 1)).await;
    sqlx::query("SELECT pg_advisory_lock(7450119)").execute(&mut other).await.unwrap();
    let delivery = |key: &str, version| Delivery {
        runtime: opened.runtime.id,
        key: digest(key),
        keyed: true,
        epoch: None,
        era: 0,
        report: report("u", version, version),
    };
    for _ in 0..3 {
        let error = opened.store.keep(vec![delivery("b", 2)]).await.unwrap_err();
        assert!(matches!(*error, StoreError::Away(_)), "{error:?}");
    }
    sqlx::query("SELECT pg_advisory_unlock(7450119)").execute(&mut other).await.unwrap();
    assert_eq!(opened.store.keep(vec![delivery("b", 2)]).await.unwrap(), [Outcome::Kept]);
    // The server ends the connections of the store under it.
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(sql).execute(&mut other).await.unwrap();
    let again = async { while opened.store.keep(vec![delivery("c", 3)]).await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(120), again).await.unwrap();
    assert_eq!(opened.versions().await, (vec![1, 2, 3], 3));
    opened.close().await;
}

/// A server that was the first before another took over takes no reports any more, and ends no connection.
pub(crate) async fn a_connection_to_a_server_that_takes_nothing_is_not_used_again(url: &str) {
    let opened = open(&Place::Postgres(url.to_owned())).await;
    opened.keep(report("u", 1, 1)).await;
    let mut other = sqlx::PgConnection::connect(url).await.unwrap();
    let only_read = async |other: &mut sqlx::PgConnection, only: &str| {
        let sql = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {only}', current_database()); END $$"
        );
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(other).await.unwrap();
    };
    only_read(&mut other, "on").await;
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(sql).execute(&mut other).await.unwrap();
    let delivery = || Delivery {
        runtime: opened.runtime.id,
        key: digest("b"),
        keyed: true,
        epoch: None,
        era: 0,
        report: report("u", 2, 2),
    };
    // The first may be of a connection that has ended.
    for number in 0..3 {
        let error = opened.store.keep(vec![delivery()]).await.unwrap_err();
        let is_ended = number == 0 && matches!(*error, StoreError::Away(_));
        assert!(is_ended || matches!(*error, StoreError::ReadOnly(_)), "{error:?}");
        assert_eq!(error.reason(), Reason::Unreachable, "it is tried again");
    }
    only_read(&mut other, "off").await;
    let again = async { while opened.store.keep(vec![delivery()]).await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(120), again).await.unwrap();
    opened.close().await;
}
