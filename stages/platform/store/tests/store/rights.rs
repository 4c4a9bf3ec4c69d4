//! Users of Postgres who may do little there.

use stages_platform_store::{Outcome, Place, StoreConfig, StoreError, create_token};

use crate::postgres::Server;
use crate::servers::run;
use crate::support::{KEEP_ALL, open, report};

#[tokio::test]
async fn a_user_needs_the_right_to_make_tables_and_is_told_which() {
    let server = Server::start().await;
    let url = server.database().await;
    // As it is without that since version 15.
    run(&url, "CREATE ROLE plain LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
    let place = Place::Postgres(url.replacen("test@", "plain@", 1));
    let error = create_token(&place, "prod").await.unwrap_err();
    assert!(matches!(error, StoreError::NoRight(_)), "{error:?}");
    // Nor is there any schema for them.
    run(&url, "REVOKE USAGE ON SCHEMA public FROM PUBLIC").await;
    let error = create_token(&place, "prod").await.unwrap_err();
    assert!(matches!(error, StoreError::NoRight(_)), "{error:?}");
    assert!(error.to_string().contains("GRANT USAGE, CREATE ON SCHEMA public TO it"), "{error}");

    run(&url, "GRANT USAGE, CREATE ON SCHEMA public TO plain").await;
    let opened = open(&place).await;
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    assert_eq!(opened.versions().await, (vec![1], 1));
    opened.close().await;
}

#[tokio::test]
async fn tables_of_somebody_else_are_told_as_that_when_they_are_to_change() {
    let server = Server::start().await;
    let url = server.database().await;
    open(&Place::Postgres(url.clone())).await.close().await;
    // As an older version left the last of its changes, and as a dump is put back by another user.
    let before =
        "DELETE FROM _sqlx_migrations WHERE version = 35; ALTER TABLE runtimes DROP COLUMN reporter_at";
    run(&url, before).await;
    run(&url, "CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain").await;
    run(&url, "GRANT ALL ON ALL TABLES IN SCHEMA public TO plain").await;
    let place = Place::Postgres(url.replacen("test@", "plain@", 1));
    let config = StoreConfig { place, retention: KEEP_ALL };
    let error = config.build(&prometheus::Registry::new()).await.unwrap_err();
    assert!(matches!(error, StoreError::NoRight(_)), "{error:?}");
}
