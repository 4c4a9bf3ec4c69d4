//! What holds of SQLite's file: one process, backups, restores, damage.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pipeline_core::ExposeSecret as _;
use stages_platform_store::{
    By, ChangedNames, CommitOf, Place, Role, Rule, Scope, SourceChange, StoreConfig, StoreError, View,
    backup, create_token, restore, revoke_token, tokens,
};
use tempfile::TempDir;

use crate::support::{KEEP_ALL, open, report};

fn config(path: &Path) -> StoreConfig {
    StoreConfig { place: Place::Sqlite(path.to_owned()), retention: KEEP_ALL }
}

async fn refused(path: &Path) -> String {
    config(path).build(&prometheus::Registry::new()).await.expect_err("it is refused").to_string()
}

/// Opens it, which changes its tables, and closes it again.
async fn once(path: &Path) {
    let (store, writing) = config(path).build(&prometheus::Registry::new()).await.unwrap();
    drop(store);
    writing.finished().await;
}

/// Runs statements in a file, which is made where there is none.
async fn sqlite(path: &Path, sql: &'static str) {
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}?mode=rwc", path.display())).await.unwrap();
    sqlx::raw_sql(sql).execute(&pool).await.unwrap();
    pool.close().await;
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

/// What was told after the backup has the places that are told again after it.
#[tokio::test]
async fn whoever_was_told_more_than_a_backup_has_reads_all_anew_once_it_is_restored() {
    let folder = TempDir::new().unwrap();
    let (path, copy) = (folder.path().join("platform.db"), folder.path().join("copy.db"));
    let place = Place::Sqlite(path);
    for kept_before in [3, 0] {
        let opened = open(&place).await;
        let begin = opened.store.sequence().await.unwrap();
        for version in 1..=kept_before {
            opened.keep(report("u", version, version)).await;
        }
        backup(&place, &copy).await.unwrap();
        for version in 4..=6 {
            opened.keep(report("u", version, version)).await;
        }
        let told = opened.store.sequence().await.unwrap();
        assert_eq!(told, begin + kept_before + 3);
        opened.close().await;
        restore(&place, &copy).await.unwrap();
        let opened = open(&place).await;
        let is_told = async || {
            let changed = opened.store.changed(&View::ALL, told).await.unwrap();
            assert_eq!(changed.names, ChangedNames::TooMany, "{changed:?}");
        };
        is_told().await;
        for version in 14..=17 {
            opened.keep(report("u", version, version)).await;
        }
        is_told().await;
        opened.close().await;
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(folder.path().join(format!("platform.db{end}")));
        }
        fs::remove_file(&copy).unwrap();
    }
}

#[tokio::test]
async fn a_backup_that_has_no_place_to_go_to_is_told_of_that_place() {
    let folder = TempDir::new().unwrap();
    let place = Place::Sqlite(folder.path().join("platform.db"));
    let none = format!(
        "there is no store {}: start the platform, or make a token",
        folder.path().join("platform.db").display()
    );
    let to_copy = backup(&place, &folder.path().join("copy.db")).await;
    assert_eq!(to_copy.unwrap_err().to_string(), none, "nor is it the backup that is missing then");
    open(&place).await.close().await;
    let to = async |path: &Path| {
        let error = backup(&place, path).await.unwrap_err();
        (error.to_string(), error.source().map(ToString::to_string))
    };
    let copy = folder.path().join("none/copy.db");
    let text = format!(
        "there is no folder {} for the backup: make it, or name a file in another",
        copy.parent().unwrap().display()
    );
    assert_eq!(to(&copy).await, (text, None));
    // Nobody can make a file below one, whoever they are.
    let copy = folder.path().join("platform.db/copy.db");
    let text = format!("cannot write the backup {}: name a file that can be written", copy.display());
    assert_eq!(to(&copy).await, (text, Some("Not a directory (os error 20)".to_owned())));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_store_and_its_copies_are_read_by_their_owner_alone() {
    let folder = TempDir::new().unwrap();
    let of = |name: &str| folder.path().join(name);
    let (path, copy) = (of("platform.db"), of("copy.db"));
    let place = Place::Sqlite(path.clone());
    let opened = open(&place).await;
    opened.keep(report("u", 1, 1)).await;
    assert_eq!([&path, &of("platform.db-wal"), &of("platform.db-shm")].map(|path| mode(path)), [0o600; 3]);
    backup(&place, &copy).await.unwrap();
    assert_eq!(mode(&copy), 0o600);
    opened.close().await;
    // A platform makes it as well, where no token was made before.
    let (store, writing) = config(&of("other.db")).build(&prometheus::Registry::new()).await.unwrap();
    assert_eq!(mode(&of("other.db")), 0o600);
    drop(store);
    writing.finished().await;
    // A backup that others could read is none of a store's that they can.
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
    restore(&place, &copy).await.unwrap();
    assert_eq!(mode(&path), 0o600);
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
    let text = "this store is in Postgres: back it up with pg_dump, restore it with pg_restore, and before the platform starts run \
                SELECT setval('transitions_id_seq', nextval('transitions_id_seq') + 1000000 + \
                floor(extract(epoch FROM now()))::bigint - 1767225600), so that nobody takes what comes for what they were told before";
    assert_eq!(backup(&server, &other).await.unwrap_err().to_string(), text);
    assert_eq!(restore(&server, &other).await.unwrap_err().to_string(), text);
    let opened = open(&place).await;
    assert_eq!(opened.versions().await, (vec![1], 1));
    opened.close().await;
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "the store, its locks, and what was to be restored: {left:?}");
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
            era: 0,
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
async fn a_store_of_a_newer_version_is_refused_with_the_way_back() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    open(&Place::Sqlite(path.clone())).await.close().await;
    becomes_newer(&path).await;
    let text = "the store was written by a newer version of gitops-runtime: run that one, or restore an earlier backup";
    assert_eq!(refused(&path).await, text);
    // The newest copy is one of a newer version as well, and the one before it is not.
    let copies = [
        "platform.db.before-migration-16",
        "platform.db.before-migration-17",
        "platform.db.before-migration-18",
    ]
    .map(|name| folder.path().join(name));
    for copy in &copies[..2] {
        open(&Place::Sqlite(copy.clone())).await.close().await;
    }
    fs::copy(&path, &copies[2]).unwrap();
    let text = format!(
        "the store was written by a newer version of gitops-runtime: run that one, or go back to how it was before that with \
         `gitops-runtime platform restore {}`",
        copies[1].display()
    );
    assert_eq!(refused(&path).await, text);
}

#[tokio::test]
async fn a_backup_of_a_newer_version_is_refused_and_the_store_stays() {
    let folder = TempDir::new().unwrap();
    let (path, copy) = (folder.path().join("platform.db"), folder.path().join("copy.db"));
    let place = Place::Sqlite(path.clone());
    open(&place).await.close().await;
    backup(&place, &copy).await.unwrap();
    becomes_newer(&copy).await;
    let text = format!(
        "the backup {} was written by a newer version of gitops-runtime: restore an earlier one, or run that version",
        copy.display()
    );
    assert_eq!(restore(&place, &copy).await.unwrap_err().to_string(), text);
    open(&place).await.close().await;
}

/// A change of the tables that this version does not know.
async fn becomes_newer(path: &Path) {
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let sql = "INSERT INTO _sqlx_migrations SELECT 999, description, installed_on, success, checksum, execution_time \
               FROM _sqlx_migrations WHERE version = 1";
    sqlx::query(sql).execute(&pool).await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn the_copy_before_a_change_of_the_tables_has_the_room_of_the_last_one_and_without_it_nothing_changes()
{
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    sqlite(&path, OF_VERSION_1).await;
    let last = folder.path().join("platform.db.before-migration-1");
    fs::write(&last, "").unwrap();
    // Where the copy is written to, nothing can be.
    let partial = folder.path().join("platform.db.before-migration.partial");
    fs::create_dir(&partial).unwrap();
    let text = format!(
        "the store is as it was: before its tables change it is copied to {}, which takes 1 MiB of room there, and the copy cannot \
         be written",
        folder.path().join("platform.db.before-migration").display()
    );
    assert_eq!(refused(&path).await, text);
    assert!(!last.exists(), "its room is the new one's");
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let applied: i64 =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(&pool).await.unwrap();
    assert_eq!(applied, 1);
    pool.close().await;
    fs::remove_dir(&partial).unwrap();
    once(&path).await;
}

/// A store as version 1 of the tables had it: one application, whose Deployment drifted and was deployed again.
const OF_VERSION_1: &str = include_str!("0001.sql");

#[tokio::test]
async fn a_store_of_the_first_tables_is_copied_before_they_change_and_has_all_it_had() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    let place = Place::Sqlite(path.clone());
    sqlite(&path, OF_VERSION_1).await;
    let older = "the store was written by an older version of gitops-runtime: start the platform once, which migrates it";
    assert_eq!(create_token(&place, "prod").await.unwrap_err().to_string(), older);

    once(&path).await;
    let opened = open(&place).await;
    let told: Vec<_> =
        opened.timeline().await.into_iter().map(|one| (one.version, one.sync, one.current)).collect();
    let (out, synced) = (Some("OutOfSync".to_owned()), Some("Synced".to_owned()));
    let expected = [(Some(1), out, false), (Some(1), synced.clone(), true), (Some(2), synced.clone(), true)];
    assert_eq!(told, expected);
    let drifts = opened.store.drifts(opened.runtime.id, ("argocd", "shop")).await.unwrap();
    assert_eq!((drifts.len(), drifts[0].ended), (1, true));
    let deployments = opened.store.deployments(opened.runtime.id, ("argocd", "shop")).await.unwrap();
    assert_eq!((deployments.len(), &*deployments[0].initiated_by), (1, "ada"));
    let found = opened.store.find_resources(&View::ALL, "", 10).await.unwrap();
    let found: Vec<_> = found.iter().map(|one| (&*one.name.name, one.at, one.gone)).collect();
    assert_eq!(found, [("web", 1_500, false)]);
    // What is reported from now on joins it.
    opened.keep(report("u", 3, 3_000)).await;
    assert_eq!(opened.timeline().await.len(), 4);
    opened.close().await;

    let copies: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    let is_copy =
        |path: &&std::path::PathBuf| path.display().to_string().contains("platform.db.before-migration-");
    let copies: Vec<_> = copies.iter().filter(is_copy).collect();
    assert_eq!(copies.len(), 1, "one copy, though it was opened twice");
    let url = format!("sqlite://{}", copies[0].display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    let versions: Vec<i64> =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations").fetch_all(&pool).await.unwrap();
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM transitions").fetch_one(&pool).await.unwrap();
    assert_eq!((versions, kept), (vec![1], 3), "as it was");
    pool.close().await;
}

#[tokio::test]
async fn of_copies_before_a_change_of_the_tables_the_newest_stays_and_none_that_was_cut_short() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    sqlite(&path, OF_VERSION_1).await;
    let others =
        ["platform.db.before-migration-mine", "other.db.before-migration-1", "platform.db.before-migration-"];
    let earlier = ["platform.db.before-migration-1", "platform.db.before-migration-22"];
    fs::write(folder.path().join("platform.db.before-migration.partial"), "of a start that was cut short")
        .unwrap();
    for name in others.iter().chain(&earlier) {
        fs::write(folder.path().join(name), "of an earlier start").unwrap();
    }
    once(&path).await;
    let names =
        fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let (kept, new): (Vec<_>, Vec<_>) =
        names.filter(|name| name.contains("before-migration")).partition(|name| others.contains(&&**name));
    assert_eq!(kept.len(), 3, "what is named otherwise is not its own");
    assert!(matches!(&new[..], [one] if !earlier.contains(&&**one)), "{new:?}");
}

#[tokio::test]
async fn a_change_of_the_tables_that_is_begun_again_keeps_the_copy_of_how_they_were() {
    let folder = TempDir::new().unwrap();
    let (path, begun) =
        (folder.path().join("platform.db"), folder.path().join("platform.db.before-migration"));
    let versions = async |path: &std::path::Path| -> Vec<i64> {
        let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
        let all = sqlx::query_scalar("SELECT version FROM _sqlx_migrations").fetch_all(&pool).await.unwrap();
        pool.close().await;
        all
    };
    let copied = async || {
        let names = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let copies: Vec<_> =
            names.filter(|path| path.display().to_string().contains("before-migration-")).collect();
        assert_eq!(copies.len(), 1, "{copies:?}");
        versions(&copies[0]).await
    };
    // An earlier start left one change of the tables undone, and was stopped.
    sqlite(&path, OF_VERSION_1).await;
    sqlite(&begun, OF_VERSION_1).await;
    once(&path).await;
    let all = versions(&path).await.len();
    let undone = "DROP INDEX deployments_succeeded; DELETE FROM _sqlx_migrations WHERE version = 30;";
    sqlite(&path, undone).await;
    sqlite(&begun, OF_VERSION_1).await;
    once(&path).await;
    assert_eq!(copied().await, [1], "as it was before the first start");
    // One that was begun when the store was as it is now may be older than the store.
    sqlite(&path, undone).await;
    fs::copy(&path, &begun).unwrap();
    sqlite(&begun, "CREATE TABLE old (a)").await;
    once(&path).await;
    assert_eq!(copied().await.len(), all - 1);
    let there = "SELECT * FROM old";
    let names = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    for copy in names.filter(|path| path.display().to_string().contains("before-migration-")) {
        let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", copy.display())).await.unwrap();
        assert!(sqlx::query(there).fetch_all(&pool).await.is_err(), "it is made anew");
        pool.close().await;
    }
}

#[tokio::test]
async fn a_copy_that_cannot_be_finished_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    once(&path).await;
    // SQLite cannot begin what it is to copy.
    let mut damaged = fs::read(&path).unwrap();
    damaged[1_024..].fill(0xff);
    fs::write(&path, damaged).unwrap();
    let copy = folder.path().join("copy.db");
    stages_platform_store::backup(&Place::Sqlite(path), &copy).await.unwrap_err();
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("copy.db")), "{names:?}");
}

/// A store as version 8 of the tables had it: two rules of three, a key of two, a session, and what was done.
const OF_VERSION_8: &str = include_str!("0008.sql");

#[tokio::test]
async fn a_store_of_the_version_before_has_all_it_had_and_gives_no_number_twice() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    sqlite(&path, OF_VERSION_8).await;
    let (store, writing) = config(&path).build(&prometheus::Registry::new()).await.unwrap();
    let now = 1_795_000_000_000;
    let by = By { who: "lin".to_owned(), how: "session" };
    let numbers = async || -> Vec<i64> { store.rules().await.unwrap().iter().map(|rule| rule.id).collect() };
    let lin = store.access("lin", 1).await.unwrap().unwrap();
    let seen = store.seen_runtime(&lin, "prod").await.unwrap();
    assert_eq!(seen.as_deref(), Some("prod"), "by the first rule, through the team");
    crate::accounts::each_has_a_uid(&store, ["ada", "lin"]).await;
    let session = crate::support::digest("one");
    assert_eq!(store.session(session, now).await.unwrap().as_deref(), Some("lin"));
    let key = format!("goak_{}", "ab".repeat(32)).into();
    let known = store.key(&key, now).await.unwrap().map(|key| (key.owner, key.scope));
    assert_eq!(known, Some(("lin".to_owned(), Scope::Read)));
    let subject = store.subject_of("lin", "https://provider.example").await.unwrap();
    assert_eq!(subject.as_deref(), Some("0001"));
    let acts: Vec<i64> = store.audit(i64::MAX, 100).await.unwrap().iter().map(|act| act.id).collect();
    assert_eq!(acts, (1..=10).rev().collect::<Vec<_>>());
    // The third rule and the second key were taken away by the version before.
    assert_eq!(numbers().await, [1, 2]);
    let rule = Rule { id: 0, ..store.rules().await.unwrap()[0].clone() };
    assert!(store.add_rule(&by, &rule, now).await.unwrap());
    assert_eq!(numbers().await, [1, 2, 4]);
    assert!(store.remove_rule(&by, 4, now).await.unwrap());
    assert!(store.add_rule(&by, &rule, now).await.unwrap());
    assert_eq!(numbers().await, [1, 2, 5]);
    store.add_key(&by, "new", Scope::Read, now + 60_000, now).await.unwrap();
    let keys: Vec<i64> = store.keys(Some("lin")).await.unwrap().iter().map(|key| key.id).collect();
    assert_eq!(keys, [1, 3]);
    // What is somebody's still goes with them.
    assert!(store.remove_person(&by, "lin", now).await.unwrap());
    assert_eq!(store.session(session, now).await.unwrap(), None);
    assert_eq!(store.keys(None).await.unwrap().len(), 0);
    drop(store);
    writing.finished().await;
    // Opened once more: the tables are those of this version.
    once(&path).await;
}

/// From version 8 of the tables to version 9, as it stood when that was the newest: an application that was deployed.
const FROM_8_TO_9: [&str; 2] = [
    include_str!("../../migrations/sqlite/0009_numbers.sql"),
    "INSERT INTO _sqlx_migrations VALUES (9, 'numbers', '2026-11-25 12:00:00', 1, \
     X'b265b1a81d4c98ce89587256f8ed6f526b8044209a0b2386aa58ff3bf2753a2b33356ae75cfad779a413b4ea0dfeb156', 1000); \
     INSERT INTO applications (id, runtime_id, namespace, name) VALUES (1, 1, 'argocd', 'shop'); \
     INSERT INTO deployments VALUES (1, 1, 1000, 2000, 'Succeeded', 'abc', 'ada', 'Ada', 'raise it', '', '[]', '');",
];

#[tokio::test]
async fn deployments_of_the_version_before_are_kept_and_told_with_what_they_brought_from_now_on() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    for sql in [OF_VERSION_8, FROM_8_TO_9[0], FROM_8_TO_9[1]] {
        sqlite(&path, sql).await;
    }
    let (store, writing) = config(&path).build(&prometheus::Registry::new()).await.unwrap();
    let shop = ("argocd", "shop");
    let brought = async || {
        let all = store.deployments(1, shop).await.unwrap();
        let commits = |one: &stages_platform_store::Deployment| {
            one.changes.iter().map(|source| source.commits.len()).sum::<usize>()
        };
        all.iter().map(|one| (one.started_at, &*one.phase == "Succeeded", commits(one))).collect::<Vec<_>>()
    };
    assert_eq!(brought().await, [(1_000, true, 0)]);
    let commits = vec![CommitOf::default(), CommitOf::default()];
    let source = SourceChange { commits, ..SourceChange::default() };
    store.keep_changes(1, shop, 1_000, vec![source]).await.unwrap();
    assert_eq!(brought().await, [(1_000, true, 2)]);
    // Who was an admin is one by no group.
    store.keep_admins_of("", 1).await.unwrap();
    assert_eq!(store.account("ada").await.unwrap().unwrap().role, Role::Admin);
    drop(store);
    writing.finished().await;
}

#[tokio::test]
async fn tokens_are_made_and_taken_away_while_a_platform_starts_and_runs() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("platform.db");
    let place = Place::Sqlite(path.clone());
    let none = format!("there is no store {}: start the platform, or make a token", path.display());
    assert_eq!(tokens(&place).await.unwrap_err().to_string(), none);
    // All at once, of a store that is not there yet.
    let registry = prometheus::Registry::new();
    let (first, second, built) = tokio::join!(
        create_token(&place, "one"),
        create_token(&place, "two"),
        config(&path).build(&registry)
    );
    let ((store, writing), first, second) = (built.unwrap(), first.unwrap(), second.unwrap());
    for (token, name) in [(&first, "one"), (&second, "two")] {
        assert_eq!(store.runtime(token).await.unwrap().unwrap().name, name);
    }
    let all = tokens(&place).await.unwrap();
    assert_eq!(all.iter().map(|token| &*token.runtime).collect::<Vec<_>>(), ["one", "two"]);
    assert!(first.expose_secret().starts_with(&all[0].name) && all[0].name.len() == 13);
    revoke_token(&place, &all[0].name).await.unwrap();
    assert_eq!(store.runtime(&first).await.unwrap(), None);
    assert!(store.runtime(&second).await.unwrap().is_some());
    let gone = revoke_token(&place, &all[0].name).await.unwrap_err().to_string();
    let none = format!(
        "there is no token {}: `gitops-runtime platform token list` shows those that there are",
        all[0].name
    );
    assert_eq!(gone, none);
    for odd in [second.expose_secret(), "one", "gort_", "gort_0123abc", "gort_0123abcg", ""] {
        let text = revoke_token(&place, odd).await.unwrap_err().to_string();
        assert_eq!(
            text,
            "a token is named as `gitops-runtime platform token list` shows it, such as gort_0123abcd"
        );
    }
    drop(store);
    writing.finished().await;
}
