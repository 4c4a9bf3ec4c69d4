//! Postgres lets in somebody else than before, or by another password, and the file that holds the URL says so.

use std::path::Path;
use std::time::Duration;

use stages_platform_store::{Delivery, Outcome, Place, StoreError, create_token};
use tempfile::TempDir;

use crate::postgres::Server;
use crate::servers::run;
use crate::support::{Opened, digest, open, report};

/// It may take so long on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Writes the URL with another user into a file.
fn set(file: &Path, url: &str, user: &str) {
    std::fs::write(file, format!("{}\n", url.replacen("test@", &format!("{user}@"), 1))).unwrap();
}

fn second(opened: &Opened) -> Delivery {
    let (key, report) = (digest("b"), report("u", 2, 2));
    Delivery { runtime: opened.runtime.id, key, keyed: true, epoch: None, era: 0, report }
}

#[tokio::test]
async fn another_password_is_taken_over_once_it_stands_in_the_file() {
    let server = Server::start().await;
    let (url, other) = (server.database().await, server.database().await);
    run(&url, "CREATE ROLE guest LOGIN SUPERUSER PASSWORD 'one'").await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("url");
    set(&file, &url, "guest:one");
    let opened = open(&Place::PostgresFile(file.clone())).await;
    let token = create_token(&opened.place, "other").await.unwrap();
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    assert_eq!(opened.versions().await, (vec![1], 1));

    run(&url, "ALTER ROLE guest PASSWORD 'two'").await;
    // What is connected goes on until it ends, as all of it does some time.
    run(&url, "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = 'guest'").await;
    let refused = async {
        loop {
            match opened.store.keep(vec![second(&opened)]).await {
                // Of the connection that has ended.
                Err(error) if matches!(*error, StoreError::Away(_)) => {}
                kept => break kept.unwrap_err(),
            }
        }
    };
    let error = tokio::time::timeout(PATIENCE, refused).await.unwrap();
    assert!(matches!(*error, StoreError::NotLetIn { .. }), "{error:?}");
    assert!(!error.to_string().contains("guest"), "{error}");

    // Another database is another store.
    set(&file, &other, "guest:two");
    let error = opened.store.keep(vec![second(&opened)]).await.unwrap_err();
    assert!(matches!(*error, StoreError::Moved { .. }), "{error:?}");
    assert!(!error.to_string().contains("guest"), "{error}");

    set(&file, &url, "guest:two");
    assert_eq!(opened.store.keep(vec![second(&opened)]).await.unwrap(), [Outcome::Kept]);
    assert_eq!(opened.versions().await, (vec![1, 2], 2));
    assert_eq!(opened.store.runtime(&token).await.unwrap().unwrap().name, "other");
    opened.close().await;
}

#[tokio::test]
async fn another_user_is_taken_over_when_the_one_before_is_gone() {
    let server = Server::start().await;
    let url = server.database().await;
    let made =
        "CREATE ROLE earlier LOGIN; CREATE ROLE later LOGIN; GRANT ALL ON SCHEMA public TO earlier, later";
    run(&url, made).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("url");
    set(&file, &url, "earlier");
    let opened = open(&Place::PostgresFile(file.clone())).await;
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    assert_eq!(opened.versions().await, (vec![1], 1));

    // What is connected stays so, and may do nothing any more.
    set(&file, &url, "later");
    run(&url, "REASSIGN OWNED BY earlier TO later; DROP OWNED BY earlier; DROP ROLE earlier").await;
    let kept = async { while opened.store.keep(vec![second(&opened)]).await.is_err() {} };
    tokio::time::timeout(PATIENCE, kept).await.unwrap();
    let timeline = || opened.store.timeline(opened.runtime.id, ("argocd", "shop"), i64::MAX, 10);
    let read = async { while timeline().await.is_err() {} };
    tokio::time::timeout(PATIENCE, read).await.unwrap();
    assert_eq!(opened.versions().await, (vec![1, 2], 2));
    opened.close().await;
}

#[tokio::test]
async fn another_user_is_taken_over_when_the_one_before_may_sign_in_and_do_nothing() {
    let server = Server::start().await;
    let url = server.database().await;
    let made =
        "CREATE ROLE former LOGIN; CREATE ROLE latter LOGIN; GRANT ALL ON SCHEMA public TO former, latter";
    run(&url, made).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("url");
    set(&file, &url, "former");
    let opened = open(&Place::PostgresFile(file.clone())).await;
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    assert_eq!(opened.versions().await, (vec![1], 1));

    run(&url, "REASSIGN OWNED BY former TO latter; DROP OWNED BY former").await;
    let error = opened.store.keep(vec![second(&opened)]).await.unwrap_err();
    assert!(matches!(*error, StoreError::NoRight(_)), "{error:?}");
    set(&file, &url, "latter");
    assert_eq!(opened.store.keep(vec![second(&opened)]).await.unwrap(), [Outcome::Kept]);
    let timeline = || opened.store.timeline(opened.runtime.id, ("argocd", "shop"), i64::MAX, 10);
    let read = async { while timeline().await.is_err() {} };
    tokio::time::timeout(PATIENCE, read).await.unwrap();
    assert_eq!(opened.versions().await, (vec![1, 2], 2));
    opened.close().await;
}
