//! Backups of a SQLite store while it is written, and back.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;

use crate::connection::{Arg, Connection};
use crate::database::{self, Place, private, sqlite, with_end};
use crate::error::StoreError;
use crate::file_lock::lock;

/// Of the file itself, of its log, and of the log's index.
const ENDS: [&str; 3] = ["", "-wal", "-shm"];
/// What the name of the copy ends with that is made before the store's tables change, while they do.
const BEGUN: &str = ".before-migration";
/// What the name of that copy ends with once they have changed, before the moment.
const BEFORE_MIGRATION: &str = ".before-migration-";

/// What is kept once a backup is restored takes places so far behind those that were told before: whoever goes on behind one of these
/// reads all anew, and nobody takes one of those for it. As many more are left out as there were seconds since 2026, so that a
/// backup that is restored again, where nobody knows how far the store before came, gives other places than it did before; and
/// no more than that, as a place is to stay a number of 32 bits, which is what GraphQL takes for an `Int`.
const AHEAD: i64 = 1_000_000;
/// The beginning of 2026, in seconds since 1970.
const YEAR_2026: i64 = 1_767_225_600;

/// How many places are left out by a restore at this moment.
fn ahead(now: Timestamp) -> i64 {
    AHEAD + (now.as_second() - YEAR_2026).max(0)
}

/// Writes a copy of the store as it is now to a new file, complete or not at all.
///
/// # Errors
/// When the store is in Postgres, the file exists, or one of them cannot be read or written.
pub async fn backup(place: &Place, to: &Path) -> Result<(), StoreError> {
    let Place::Sqlite(path) = place else { return Err(StoreError::ForSqliteAlone) };
    if !path.exists() {
        return Err(StoreError::NoStore(path.display().to_string()));
    }
    let pool = open(path).await?;
    let done = copy(&pool, to).await;
    pool.close().await;
    done
}

/// Puts a backup in the place of the store, which is kept beside under the name that is given back. The sequence of what is kept goes on
/// far behind where it ended in both.
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
    // What one that was killed left would be taken for the log of this one.
    remove(&partial, &ENDS)?;
    let mut backup = File::open(from).map_err(file("read", from))?;
    let mut copy = private(&partial).map_err(file("write", &partial))?;
    io::copy(&mut backup, &mut copy).map_err(file("read", from))?;
    // Before SQLite opens it: what is closed later takes its locks away.
    drop(copy);
    dies_at("copied");
    let whole = async {
        let pool = open(&partial).await?;
        let mut connection = Connection::from(pool.acquire().await?);
        let well = connection
            .row("PRAGMA integrity_check(1)", &[])
            .await?
            .map_or(Ok(String::new()), |row| row.text(0))?;
        let applied = database::applied(&mut connection).await?;
        drop(connection);
        pool.close().await;
        Ok::<_, StoreError>(applied.filter(|_| well == "ok"))
    };
    let refused = match whole.await {
        Ok(Some(applied)) if database::is_newer(&applied) => {
            Some(StoreError::NewerBackup(from.display().to_string()))
        }
        Ok(Some(_)) => None,
        Ok(None) | Err(_) => Some(no_backup()),
    };
    if let Some(refused) = refused {
        remove(&partial, &ENDS)?;
        return Err(refused);
    }
    let places = sequence(path).await.unwrap_or(0).max(sequence(&partial).await?);
    move_sequence(&partial, places.saturating_add(ahead(Timestamp::now()))).await?;
    File::open(&partial).and_then(|file| file.sync_all()).map_err(file("write", &partial))?;
    dies_at("checked");
    let aside =
        path.exists().then(|| with_end(path, &format!(".replaced-{}", Timestamp::now().as_millisecond())));
    if let Some(aside) = &aside {
        // Its log goes into the file itself. One that is damaged may not take it, and is set aside with its log.
        if let Ok(pool) = open(path).await {
            pool.close().await;
        }
        dies_at("settled");
        // The log goes first: what it gives the file in between stands in both.
        for end in ["-wal", ""] {
            let own = with_end(path, end);
            match link(&own, &with_end(aside, end)) {
                // There is none, or it is gone by now: SQLite, which has not ended yet where the store is damaged, removes
                // it once all of it is in the file.
                Err(error) if end == "-wal" && error.kind() == io::ErrorKind::NotFound => {}
                linked => linked.map_err(file("set aside", &own))?,
            }
        }
        dies_at("linked");
    }
    remove(path, &["-wal", "-shm"])?;
    dies_at("cleared");
    // Before this the store is the old one, and from here on the new one.
    fs::rename(&partial, path).map_err(file("write", path))?;
    dies_at("renamed");
    let folder = folder(path);
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(file("write", folder))?;
    Ok(aside)
}

/// Where the sequence ended by which a store numbers what it keeps.
async fn sequence(path: &Path) -> Result<i64, StoreError> {
    let pool = open(path).await?;
    let mut connection = Connection::from(pool.acquire().await?);
    let row = connection.row("SELECT seq FROM sqlite_sequence WHERE name = 'transitions'", &[]).await;
    drop(connection);
    pool.close().await;
    row?.map_or(Ok(0), |row| row.int(0))
}

async fn move_sequence(path: &Path, to: i64) -> Result<(), StoreError> {
    let pool = open(path).await?;
    let mut connection = Connection::from(pool.acquire().await?);
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'transitions'", &[]).await?;
    let sql = "INSERT INTO sqlite_sequence (name, seq) VALUES ('transitions', $1)";
    connection.execute(sql, &[Arg::Int(to)]).await?;
    drop(connection);
    pool.close().await;
    Ok(())
}

fn folder(of: &Path) -> &Path {
    of.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The same file under another name, where the file system has that, else a copy.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

fn remove(path: &Path, ends: &[&str]) -> Result<(), StoreError> {
    for path in ends.iter().map(|end| with_end(path, end)) {
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::File { act: "remove", path: path.display().to_string(), source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where a test wants to see what a death leaves.
#[cfg(not(test))]
const fn dies_at(_step: &str) {}
#[cfg(test)]
use tests::dies_at;

/// A copy beside the store before its tables change, of which `applied` says how far they have come. Where an earlier start began
/// this change and did not end it, its copy stays: it is how the store was.
pub(crate) async fn before_migration(
    pool: &SqlitePool,
    path: &Path,
    applied: &HashSet<i64>,
) -> Result<(), StoreError> {
    // It takes the place of the one of the last change, and may need its room.
    before_migrations(path)?.iter().try_for_each(|copy| remove(copy, &[""]))?;
    let to = with_end(path, BEGUN);
    if is_begun(&to, applied).await? {
        return Ok(());
    }
    let bytes = fs::metadata(path).map_or(0, |file| file.len());
    tracing::info!(copy = %to.display(), bytes, "the tables of the store change: it is copied first");
    let copied = async {
        remove(&to, &ENDS)?;
        copy(pool, &to).await
    };
    copied.await.map_err(|source| StoreError::NotCopied {
        path: to.display().to_string(),
        mebibytes: bytes.div_ceil(1024 * 1024),
        source: Box::new(source),
    })
}

/// Why a store that a newer version wrote is not opened, and how to go back: with the newest copy that this version can open. Of a
/// change that is not done yet it is the one without a moment.
pub(crate) async fn newer(path: &Path) -> StoreError {
    let mut copies = before_migrations(path).unwrap_or_default();
    // Moments have as many digits each.
    copies.sort();
    copies.push(with_end(path, BEGUN));
    for copy in copies.iter().rev() {
        if let Ok(Some(applied)) = applied_of(copy).await
            && !database::is_newer(&applied)
        {
            return StoreError::NewerWithCopy(copy.display().to_string());
        }
    }
    StoreError::Newer
}

/// Whether a copy is there, of the store before a change of which a part is `applied`.
async fn is_begun(copy: &Path, applied: &HashSet<i64>) -> Result<bool, StoreError> {
    let was = applied_of(copy).await?;
    Ok(was.is_some_and(|was| was.len() < applied.len() && was.is_subset(applied)))
}

/// The migrations that a copy has; `None`: there is no such copy, or no table in it.
async fn applied_of(copy: &Path) -> Result<Option<HashSet<i64>>, StoreError> {
    if !copy.exists() {
        return Ok(None);
    }
    let pool = open(copy).await?;
    let applied = match pool.acquire().await {
        Ok(connection) => database::applied(&mut Connection::from(connection)).await,
        Err(error) => Err(error.into()),
    };
    pool.close().await;
    applied
}

/// Once the tables have changed, the copy that was made before has the moment in its name.
pub(crate) fn migrated(path: &Path) -> Result<(), StoreError> {
    let copy = with_end(path, BEGUN);
    if !copy.exists() {
        return Ok(());
    }
    let to = with_end(path, &format!("{BEFORE_MIGRATION}{}", Timestamp::now().as_millisecond()));
    fs::rename(&copy, &to).map_err(|source| unwritten(&to.display().to_string(), source))?;
    tracing::info!(backup = %to.display(), "the store was backed up before its tables changed");
    Ok(())
}

/// The copies that earlier migrations of a store left.
fn before_migrations(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folder = folder(path);
    let unread = |source| StoreError::File { act: "read", path: folder.display().to_string(), source };
    let mut copies = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let other = entry.map_err(unread)?.path();
        let (Some(name), Some(of)) = (other.file_name(), path.file_name()) else { continue };
        let (name, of) = (name.to_string_lossy(), of.to_string_lossy());
        let moment = name.strip_prefix(&*of).and_then(|end| end.strip_prefix(BEFORE_MIGRATION));
        if moment.is_some_and(|moment| !moment.is_empty() && moment.bytes().all(|byte| byte.is_ascii_digit()))
        {
            copies.push(other);
        }
    }
    Ok(copies)
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
    let done = fill(pool, &partial, &name).await;
    // Under its name it is once the folder is written too: what is older may go then.
    let named = || fs::rename(&partial, to).and_then(|()| File::open(folder(to))?.sync_all());
    let done = done.and_then(|()| named().map_err(|source| unwritten(&name, source)));
    if done.is_err() {
        // Why it failed says more than that this does.
        let _ = remove(&partial, &ENDS);
    }
    done
}

/// Writes a copy to `partial`, which is to have a `name` once it is whole.
async fn fill(pool: &SqlitePool, partial: &Path, name: &str) -> Result<(), StoreError> {
    if partial.exists() {
        let replace =
            |source| StoreError::File { act: "replace an unfinished", path: name.to_owned(), source };
        fs::remove_file(partial).map_err(replace)?;
    }
    // SQLite writes into a file that is empty, and leaves its mode as it is.
    private(partial).map_err(|source| match folder(partial) {
        folder if folder.exists() => StoreError::Target { path: name.to_owned(), source },
        folder => StoreError::NoFolder(folder.display().to_string()),
    })?;
    let mut connection = Connection::from(pool.acquire().await?);
    connection.execute("VACUUM INTO $1", &[Arg::Text(&partial.display().to_string())]).await?;
    File::open(partial).and_then(|file| file.sync_all()).map_err(|source| unwritten(name, source))
}

fn unwritten(path: &str, source: io::Error) -> StoreError {
    StoreError::File { act: "write", path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;
    use crate::{Retention, StoreConfig, create_token, tokens};

    const STEPS: [&str; 6] = ["copied", "checked", "settled", "linked", "cleared", "renamed"];

    #[test]
    fn a_backup_that_is_restored_again_later_gives_other_places() {
        let at = |text: &str| ahead(text.parse().unwrap());
        assert_eq!(at("2026-01-01T00:00:10Z"), AHEAD + 10);
        assert_eq!(at("2026-01-02T00:00:10Z") - at("2026-01-01T00:00:10Z"), 86_400);
        assert_eq!(at("2001-01-01T00:00:00Z"), AHEAD, "by a clock that is nowhere");
    }

    pub(super) fn dies_at(step: &str) {
        if std::env::var("RESTORE_DIES_AT").is_ok_and(|wanted| wanted == step) {
            std::process::abort();
        }
    }

    /// The other process of the test below.
    #[tokio::test]
    #[ignore = "it is run by the test below, with what it is to do"]
    async fn restores_and_dies() {
        let of = |name: &str| PathBuf::from(std::env::var_os(name).unwrap());
        restore(&Place::Sqlite(of("RESTORE_TO")), &of("RESTORE_FROM")).await.unwrap();
    }

    /// The runtimes that have tokens in the store there.
    async fn runtimes(path: &Path) -> Vec<String> {
        let all = tokens(&Place::Sqlite(path.to_owned())).await.unwrap();
        all.into_iter().map(|token| token.runtime).collect()
    }

    /// Makes a store of a runtime, whose log is not in its file yet.
    async fn store(path: &Path, runtime: &str) {
        let folder = tempfile::TempDir::new().unwrap();
        let other = folder.path().join("other.db");
        let ages = Duration::from_secs(86_400);
        let retention = Retention { history: ages, keys: ages, interval: ages };
        let config = StoreConfig { place: Place::Sqlite(other.clone()), retention };
        let (store, writing) = config.build(&prometheus::Registry::new()).await.unwrap();
        create_token(&Place::Sqlite(other.clone()), runtime).await.unwrap();
        for end in ["", "-wal"] {
            fs::copy(with_end(&other, end), with_end(path, end)).unwrap();
        }
        drop(store);
        writing.finished().await;
    }

    #[tokio::test]
    async fn a_restore_that_dies_leaves_the_old_store_or_the_new_one() {
        for step in STEPS {
            let folder = tempfile::TempDir::new().unwrap();
            let (path, new, copy) = (
                folder.path().join("platform.db"),
                folder.path().join("new.db"),
                folder.path().join("copy.db"),
            );
            store(&path, "old").await;
            store(&new, "new").await;
            backup(&Place::Sqlite(new), &copy).await.unwrap();
            let ended = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "backup::tests::restores_and_dies", "--ignored"])
                .env("RESTORE_DIES_AT", step)
                .env("RESTORE_TO", &path)
                .env("RESTORE_FROM", &copy)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert_eq!(ended.code(), None, "{step}: it was killed");
            let expected = if step == "renamed" { "new" } else { "old" };
            assert_eq!(runtimes(&path).await, [expected], "{step}");
            let aside = restore(&Place::Sqlite(path.clone()), &copy).await.unwrap().unwrap();
            assert_eq!(runtimes(&path).await, ["new"], "{step}: again");
            assert_eq!(runtimes(&aside).await, [expected], "{step}: what was set aside");
        }
    }

    #[tokio::test]
    async fn a_damaged_store_is_set_aside_and_its_log_is_none_of_the_new_one() {
        let folder = tempfile::TempDir::new().unwrap();
        let (path, new, copy) =
            (folder.path().join("platform.db"), folder.path().join("new.db"), folder.path().join("copy.db"));
        store(&path, "old").await;
        store(&new, "new").await;
        backup(&Place::Sqlite(new), &copy).await.unwrap();
        let (damaged, log) = (vec![7; 8_192], vec![8; 8_192]);
        fs::write(&path, &damaged).unwrap();
        fs::write(with_end(&path, "-wal"), &log).unwrap();
        let aside = restore(&Place::Sqlite(path.clone()), &copy).await.unwrap().unwrap();
        assert_eq!(runtimes(&path).await, ["new"]);
        assert!(fs::read(&aside).unwrap() == damaged, "it is set aside as it was");
    }
}
