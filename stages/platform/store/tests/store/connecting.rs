//! What is said where Postgres cannot be connected to, when a store is opened.

use std::error::Error as _;
use std::sync::Mutex;

use stages_platform_store::{Outcome, Place, create_token, tokens};
use tempfile::NamedTempFile;

use crate::postgres::Server;
use crate::proxy::Proxy;
use crate::servers::run;
use crate::support::{open, report};

async fn refused(url: &str) -> (String, Option<String>) {
    let error = tokens(&Place::Postgres(url.to_owned())).await.expect_err("nobody is there");
    (error.to_string(), error.source().map(ToString::to_string))
}

#[test]
fn where_a_store_is_is_told_without_user_and_password() {
    for (url, said) in [
        ("postgres://reader:hidden@db.example.com/fleet", "db.example.com:5432/fleet"),
        (
            "postgres://reader:hidden@%2Frun%2Fpostgresql:5433/fleet?sslmode=disable",
            "/run/postgresql:5433/fleet",
        ),
        ("postgres://db/fleet?user=reader@db&password=hidden", "db:5432/fleet"),
        (
            "postgres://reader:hidden@/fleet?host=/cloudsql/project:region:one",
            "/cloudsql/project:region:one:5432/fleet",
        ),
        ("reader:hidden@localhost", "of the server that is set"),
        ("postgres://reader:12/hidden@db/fleet", "of the server that is set"),
    ] {
        assert_eq!(Place::Postgres(url.to_owned()).to_string(), said);
    }
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "postgres://reader:hidden@db.example.com/fleet\n").unwrap();
    assert_eq!(Place::PostgresFile(file.path().into()).to_string(), "db.example.com:5432/fleet");
    assert_eq!(Place::PostgresFile("/none/url".into()).to_string(), "of the server that is set");
    assert_eq!(Place::Sqlite("/data/platform.db".into()).to_string(), "/data/platform.db");
}

#[tokio::test]
async fn a_closed_port_is_told_at_once_with_its_address_and_why() {
    // It is held, and nobody listens there.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let text = format!("cannot connect to Postgres at {address}");
    let why = "Connection refused (os error 111)".to_owned();
    assert_eq!(refused(&format!("postgres://reader:hidden@{address}/fleet")).await, (text, Some(why)));
}

#[tokio::test]
async fn an_address_that_is_none_of_postgres_is_refused_without_what_stands_in_it() {
    let text = "the URL of the store (platformServer.store.postgresUrl, or its file) is to be postgres://user:password@host/name, \
                with what is special in the password percent-encoded, such as %2F for /";
    for url in [
        "bogus:x",
        "mysql://reader:hidden@localhost/fleet",
        "reader:hidden@localhost",
        "postgres://reader:hid/den@localhost/fleet",
        "postgres://reader:12/hidden@localhost/fleet",
        "postgres://reader:12#hidden@localhost/fleet",
        "postgres://reader:12?hidden@localhost/fleet",
        "",
    ] {
        assert_eq!(refused(url).await, (text.to_owned(), None), "{url}");
    }
    for (url, why) in [
        ("postgres://reader:hidden@localhost:none/fleet", "invalid port number"),
        (
            "postgresql://localhost/fleet?sslmode=some",
            "error with configuration: unknown value \"some\" for `ssl_mode`",
        ),
    ] {
        assert_eq!(refused(url).await, (text.to_owned(), Some(why.to_owned())), "{url}");
    }
}

#[tokio::test]
async fn several_hosts_are_refused_and_what_to_name_instead_is_told() {
    let text = "the URL of the store (platformServer.store.postgresUrl, or its file) names several hosts, and one is connected to: name \
                the address that leads to whichever takes writes, as of a cluster, a Service or a proxy";
    for url in [
        "postgres://reader:hid,den@one,other/fleet",
        "postgres://one:5432,other:5433/fleet?target_session_attrs=read-write",
        "postgres:///fleet?host=one,other",
    ] {
        assert_eq!(refused(url).await, (text.to_owned(), None), "{url}");
    }
}

#[tokio::test]
async fn parameters_that_nothing_is_done_by_are_told_when_a_store_is_opened_and_their_values_are_not() {
    let server = Server::start().await;
    let url = format!("{}?channel_binding=require&sslpassword=hidden", server.database().await);
    let log = NamedTempFile::new().unwrap();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(Mutex::new(log.reopen().unwrap()));
    let guard = tracing::subscriber::set_default(subscriber.finish());
    let opened = open(&Place::Postgres(url)).await;
    drop(guard);
    let said = std::fs::read_to_string(log.path()).unwrap();
    let told = "nothing is done by these parameters of the URL of Postgres parameters=\"channel_binding, sslpassword\"";
    assert!(said.contains(told) && !said.contains("hidden"), "{said}");
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    opened.close().await;
}

#[tokio::test]
async fn a_server_that_lets_nobody_in_tells_neither_user_nor_password() {
    let server = Server::start().await;
    let url = server.database().await;
    let (place, name) = url.strip_prefix("postgres://test@").unwrap().rsplit_once('/').unwrap();
    let address = place.replace("%2F", "/");
    let text = format!(
        "Postgres at {address} does not let this user in (28000): see user and password of platformServer.store.postgresUrl, \
         and its pg_hba.conf"
    );
    assert_eq!(refused(&format!("postgres://reader:hidden@{place}/{name}")).await, (text, None));
    let text = format!("cannot connect to Postgres at {address}");
    let (said, why) = refused(&format!("postgres://test@{place}/none")).await;
    assert_eq!(said, text);
    let why = why.unwrap();
    assert!(why.starts_with("error returned from database: database \"none\" does not exist"), "{why}");
}

#[tokio::test]
async fn a_server_that_is_too_old_is_told_before_any_table_is_made_in_it() {
    let server = Server::start().await;
    let proxy = Proxy::start(&server).await;
    proxy.tell_version(*b"12");
    let (said, why) = refused(&proxy.url).await;
    let address = Place::Postgres(proxy.url.clone()).to_string();
    let address = address.rsplit_once('/').unwrap().0;
    let text = format!("Postgres at {address} is of version 12: 13 or newer is needed");
    assert_eq!((said, why), (text, None));
    proxy.tell_version(*b"13");
    let place = Place::Postgres(proxy.url.clone());
    let none = format!("there is no store {place}: start the platform, or make a token");
    assert_eq!(refused(&proxy.url).await, (none, None));
}

#[tokio::test]
async fn a_database_without_every_character_is_refused_when_it_is_new_and_told_of_when_it_is_in_use() {
    let server = Server::start().await;
    let place = Place::Postgres(server.latin_database().await);
    let error = create_token(&place, "prod").await.unwrap_err();
    let said = format!(
        "the database {place} is encoded as LATIN1, which has not every character that may be reported: make one with \
         CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
    );
    assert_eq!(error.to_string(), said);
    let none = format!("there is no store {place}: start the platform, or make a token");
    assert_eq!(tokens(&place).await.unwrap_err().to_string(), none);

    // As one that is in use for long.
    let url = server.database().await;
    let place = Place::Postgres(url.clone());
    open(&place).await.close().await;
    let latin =
        "UPDATE pg_database SET encoding = pg_char_to_encoding('LATIN1') WHERE datname = current_database()";
    run(&url, latin).await;
    let log = NamedTempFile::new().unwrap();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(Mutex::new(log.reopen().unwrap()));
    let guard = tracing::subscriber::set_default(subscriber.finish());
    let opened = open(&place).await;
    drop(guard);
    let said = std::fs::read_to_string(log.path()).unwrap();
    assert!(said.contains("the database of the store is not encoded as UTF8"), "{said}");
    assert_eq!(opened.keep(report("u", 1, 1)).await, Outcome::Kept);
    opened.close().await;
}
