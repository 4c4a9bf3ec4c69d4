//! What a store does on a server that others set up, read, and bring to other versions.

use std::sync::Mutex;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use stages_platform_store::{
    By, Delivery, Limits, Place, RetentionDays, Scope, StoreConfig, StoreError, create_token, tokens,
};
use tempfile::NamedTempFile;
use tokio::task::JoinSet;

use crate::postgres::Server;
use crate::support::{KEEP_ALL, Opened, digest, open, report};

/// It may take so long on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// More than a store reads over at a time.
const READERS: usize = 12;

pub(crate) async fn run(url: &str, sql: &'static str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn newest(url: &str) -> i64 {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let sql = "SELECT max(version) FROM _sqlx_migrations";
    sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn whoever_makes_a_token_changes_no_tables_that_a_platform_has() {
    let server = Server::start().await;
    let url = server.database().await;
    let place = Place::Postgres(url.clone());
    let none = format!("there is no store {place}: start the platform, or make a token");
    assert_eq!(tokens(&place).await.unwrap_err().to_string(), none);
    create_token(&place, "prod").await.unwrap();
    assert_eq!(tokens(&place).await.unwrap().len(), 1);
    let opened = open(&place).await;
    let known = newest(&url).await;
    // As an older version left them.
    run(&url, "DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)")
        .await;
    let error = create_token(&place, "other").await.unwrap_err();
    assert!(matches!(error, StoreError::Older), "{error:?}");
    assert_eq!(newest(&url).await, known - 1, "they are as they were");
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (100000, 'newer', true, '\\x00', 0)";
    run(&url, newer).await;
    let error = tokens(&place).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer), "{error:?}");
    // A platform that was left behind writes nothing that a newer one reads otherwise.
    let (runtime, key, report) = (opened.runtime.id, digest("a"), report("u", 1, 1));
    let delivery = Delivery { runtime, key, keyed: true, epoch: None, era: 0, report };
    assert!(!opened.store.is_newer(), "nothing was to be written");
    let error = opened.store.keep(vec![delivery.clone()]).await.unwrap_err();
    assert!(matches!(*error, StoreError::Newer), "{error:?}");
    assert!(opened.store.is_newer());
    assert_eq!(opened.timeline().await, []);
    // It was gone back to how it was before that.
    run(&url, "DELETE FROM _sqlx_migrations WHERE version = 100000").await;
    opened.store.keep(vec![delivery]).await.unwrap();
    assert!(!opened.store.is_newer());
    opened.close().await;
}

#[tokio::test]
async fn a_lock_that_the_change_of_the_tables_waits_for_is_told_and_waited_for() {
    let server = Server::start().await;
    let url = server.database().await;
    let log = NamedTempFile::new().unwrap();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(Mutex::new(log.reopen().unwrap()));
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let mut other = PgConnection::connect(&url).await.unwrap();
    let session: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut other).await.unwrap();
    let made = "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL, \
                installed_on TIMESTAMPTZ NOT NULL DEFAULT now(), success BOOLEAN NOT NULL, checksum BYTEA NOT NULL, \
                execution_time BIGINT NOT NULL)";
    for sql in [made, "BEGIN; LOCK TABLE _sqlx_migrations IN SHARE MODE"] {
        sqlx::raw_sql(sql).execute(&mut other).await.unwrap();
    }

    let limits = Limits { lock: Duration::from_millis(50), ..Limits::default() };
    let config = StoreConfig { place: Place::Postgres(url), retention: KEEP_ALL };
    let registry = prometheus::Registry::new();
    let mut opening = Box::pin(config.build_within(&registry, limits));
    let waits = format!(
        "the tables of the store change once other sessions of its server give a lock back lock=\"relation\" \
         table=\"_sqlx_migrations\" sessions=\"{session}\""
    );
    let said = || std::fs::read_to_string(log.path()).unwrap().matches(&waits).count();
    let told = async {
        while said() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        _ = &mut opening => panic!("it opens while the lock is held"),
        told = tokio::time::timeout(PATIENCE, told) => told.expect("the lock is told"),
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    let (store, writing) = tokio::time::timeout(PATIENCE, opening).await.unwrap().unwrap();
    drop(store);
    writing.finished().await;
}

#[tokio::test]
async fn what_is_acknowledged_is_on_the_disk_however_the_database_is_set() {
    let server = Server::start().await;
    let url = server.database().await;
    let opened = open(&Place::Postgres(url.clone())).await;
    let watched = "CREATE TABLE watched (commits TEXT, isolation TEXT); CREATE FUNCTION watch() RETURNS trigger AS \
        'BEGIN INSERT INTO watched VALUES (current_setting(''synchronous_commit''), current_setting(''transaction_isolation'')); \
        RETURN NEW; END' LANGUAGE plpgsql; CREATE TRIGGER watches AFTER INSERT ON transitions FOR EACH ROW EXECUTE FUNCTION watch();";
    run(&url, watched).await;
    opened.close().await;
    let mut expected = Vec::new();
    for (commits, kept) in [("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")] {
        let set = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = {commits}', current_database()); \
             EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$"
        );
        let mut connection = PgConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let opened = open(&Place::Postgres(url.clone())).await;
        let version = i64::try_from(expected.len()).unwrap() + 1;
        opened.keep(report("u", version, version)).await;
        expected.push((kept.to_owned(), "read committed".to_owned()));
        opened.close().await;
    }
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let sql = "SELECT commits, isolation FROM watched";
    let told: Vec<(String, String)> = sqlx::query_as(sql).fetch_all(&mut connection).await.unwrap();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_a_server_refuses_is_told_as_what_it_is() {
    let server = Server::start().await;
    let url = server.database().await;
    let opened = open(&Place::Postgres(url.clone())).await;
    let mut connection = PgConnection::connect(&url).await.unwrap();
    for (code, expected) in [
        // Of a pooler or a proxy, and of memory or connections that are all in use.
        ("XX000", "the store refused a statement"),
        ("53200", "the store cannot be reached"),
        ("53100", "the store's disk is full: make room, or shorten platformServer.retention"),
        (
            "XX001",
            "the store is damaged: stop the platform, and restore a backup with `gitops-runtime platform restore`",
        ),
    ] {
        let fails = format!(
            "CREATE OR REPLACE FUNCTION fail() RETURNS trigger AS 'BEGIN RAISE EXCEPTION ''no'' USING ERRCODE = ''{code}''; END' \
             LANGUAGE plpgsql; CREATE OR REPLACE TRIGGER fails BEFORE INSERT ON transitions FOR EACH ROW EXECUTE FUNCTION fail()"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(fails)).execute(&mut connection).await.unwrap();
        let (runtime, key, report) = (opened.runtime.id, digest(code), report("u", 1, 1));
        let delivery = Delivery { runtime, key, keyed: true, epoch: None, era: 0, report };
        let error = opened.store.keep(vec![delivery]).await.unwrap_err();
        assert_eq!(error.to_string(), expected, "{code}");
    }
    connection.close().await.unwrap();
    opened.close().await;
}

/// A dump that is put back later once more gives other places than it did.
#[tokio::test]
async fn what_is_run_after_a_restore_gives_places_that_grow_with_time() {
    let server = Server::start().await;
    let url = server.database().await;
    let opened = open(&Place::Postgres(url.clone())).await;
    opened.close().await;
    let text = StoreError::ForSqliteAlone.to_string();
    let (_, sql) = text.split_once("before the platform starts run ").unwrap();
    let (sql, _) = sql.split_once(", so that").unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let dumped = "SELECT setval('transitions_id_seq', 7)";
    sqlx::query_scalar::<_, i64>(dumped).fetch_one(&mut connection).await.unwrap();
    let moved = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(sql.to_owned()));
    let place = moved.fetch_one(&mut connection).await.unwrap();
    // By as much more as there were seconds since 2026.
    let since = jiff::Timestamp::now().as_second() - 1_767_225_600;
    assert!((1_000_008 + since - 60..=1_000_009 + since).contains(&place), "{place}, {since}");
    connection.close().await.unwrap();
}

impl Opened {
    async fn reads(&self) -> JoinSet<()> {
        let mut reading = JoinSet::new();
        for _ in 0..READERS {
            let (store, runtime) = (self.store.clone(), self.runtime.id);
            reading.spawn(async move {
                store.timeline(runtime, ("argocd", "shop"), i64::MAX, 1).await.ok();
            });
        }
        reading
    }
}

#[tokio::test]
async fn who_asks_is_known_and_what_is_told_is_kept_while_all_that_is_read_waits() {
    let server = Server::start().await;
    let url = server.database().await;
    let place = Place::Postgres(url.clone());
    let opened = open(&place).await;
    let token = create_token(&place, "other").await.unwrap();
    let opened = crate::accounts::with_ada(opened).await;
    let ada = By { who: "ada".to_owned(), how: "session" };
    let pass = opened.store.add_pass(&ada, Scope::Full, "prod", None, 0).await.unwrap().unwrap();
    let mut other = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE transitions IN ACCESS EXCLUSIVE MODE")
        .execute(&mut other)
        .await
        .unwrap();
    let mut reading = opened.reads().await;
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'transitions'::regclass";
    let wait = async {
        while sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut other).await.unwrap() < 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap();
    assert_eq!(opened.store.runtime(&token).await.unwrap().unwrap().name, "other");
    assert_eq!(opened.store.pass(&pass, 1).await.unwrap().unwrap().access.who, "ada");
    let days = Some(RetentionDays { history: 90, keys: 7 });
    opened.store.keep_retention_days(&crate::accounts::by(), days, 0).await.unwrap();
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    while reading.join_next().await.is_some() {}
    opened.close().await;
}
