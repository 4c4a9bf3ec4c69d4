//! A pooler such as PgBouncer between the store and Postgres: what it is asked for, and what is said of one that does not do.

use std::time::Duration;

use sqlx::migrate::Migrate as _;
use sqlx::{Connection as _, PgConnection};
use stages_platform_store::{Delivery, Outcome, Place, StoreError, tokens};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::postgres::Server;
use crate::proxy::Proxy;
use crate::support::{digest, open, report};

#[tokio::test]
async fn a_pooler_is_asked_for_nothing_that_it_does_not_know() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let place = Place::Postgres(format!("postgres://reader@{address}/fleet?sslmode=disable"));
    let hears = async {
        let (mut client, _) = listener.accept().await.unwrap();
        let length = client.read_u32().await.unwrap();
        let mut said = vec![0; usize::try_from(length).unwrap() - 4];
        client.read_exact(&mut said).await.unwrap();
        said
    };
    let (said, told) = tokio::join!(hears, tokens(&place));
    assert!(told.is_err(), "nobody answers");
    // The version of the protocol, and names with their values.
    let texts: Vec<_> = said[4..].split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let mut names: Vec<&str> =
        texts.chunks_exact(2).map(|pair| &*pair[0]).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    assert_eq!(names, ["DateStyle", "TimeZone", "application_name", "client_encoding", "database", "user"]);
}

/// One that gives each transaction another connection has it meet statements of others, and miss its own.
#[tokio::test]
async fn a_pooler_that_keeps_no_connection_for_a_session_is_named_as_the_reason() {
    let server = Server::start().await;
    let proxy = Proxy::start(&server).await;
    let opened = open(&Place::Postgres(proxy.url.clone())).await;
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    proxy.forget();
    let delivery = Delivery {
        runtime: opened.runtime.id,
        key: digest("b"),
        keyed: true,
        epoch: None,
        era: 0,
        report: report("u", 2, 2),
    };
    let error = opened.store.keep(vec![delivery.clone()]).await.unwrap_err();
    assert!(matches!(*error, StoreError::Pooled(_)), "{error:?}");
    assert_eq!(opened.store.keep(vec![delivery]).await.unwrap(), [Outcome::Kept], "over another connection");
    opened.close().await;
}

/// One that gives each transaction another connection takes a lock over one, and gives it back over another, if at all.
#[tokio::test]
async fn a_lock_that_a_pooler_left_behind_keeps_nobody_from_tables_of_this_version() {
    let server = Server::start().await;
    let url = server.database().await;
    let place = Place::Postgres(url.clone());
    open(&place).await.close().await;
    let mut left = PgConnection::connect(&url).await.unwrap();
    left.lock().await.unwrap();
    let opened = tokio::time::timeout(Duration::from_secs(120), Box::pin(open(&place))).await.unwrap();
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    opened.close().await;
    left.close().await.unwrap();
}
