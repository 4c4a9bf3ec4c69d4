//! `gitops-runtime app list` as a process, beside a bare read of the same rows.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use loadtest_sim::command::printed;
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use tokio::process::Command;

use crate::bodies::team;
use crate::platform::{Platform, RUNTIME};
use crate::times::Times;

/// Somebody at a command line, signed in.
pub(super) struct Desk<'a> {
    program: &'a Path,
    home: tempfile::TempDir,
}

/// How long something took, again and again.
pub(super) struct Listing {
    pub(super) what: String,
    pub(super) rows: usize,
    pub(super) times: Times,
}

impl<'a> Desk<'a> {
    /// Signs in with a key.
    pub(super) async fn sign_in(program: &'a Path, url: &str, key: &str) -> anyhow::Result<Self> {
        let home = tempfile::TempDir::new().context("make a folder")?;
        std::fs::write(home.path().join("key"), key).context("write the key")?;
        let desk = Self { program, home };
        desk.run(&["login", url, "--token-file", "key", "--name", "bench"]).await?;
        Ok(desk)
    }

    /// What a command prints.
    async fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(self.program);
        command.args(arguments).env_clear().env("HOME", self.home.path()).current_dir(self.home.path());
        printed(&mut command, &format!("run {}", arguments.join(" "))).await
    }

    /// Runs commands that list, so often; each is to show what the store has, all of it and in its order.
    pub(super) async fn list(&self, store: &Store, runs: usize) -> anyhow::Result<Vec<Listing>> {
        let team = format!("team={}", team(3));
        let commands: [(&[&str], usize); 5] = [
            (&["app", "list", "-o", "name"], store.names.len()),
            (&["app", "list"], store.names.len() + 1),
            (&["app", "list", "-o", "json"], store.names.len()),
            (&["app", "list", "-l", &team], store.of_a_team + 1),
            (&["app", "list", "--limit", "50"], store.names.len().min(50) + 1),
        ];
        let mut all = Vec::new();
        for (arguments, rows) in commands {
            let mut times = Times::new()?;
            for _ in 0..runs {
                let begun = Instant::now();
                let printed = self.run(arguments).await?;
                times.add(begun.elapsed())?;
                let shown = match arguments.contains(&"json") {
                    true => serde_json::from_str::<Vec<serde::de::IgnoredAny>>(&printed)?.len(),
                    false => printed.lines().count(),
                };
                ensure!(shown == rows, "{} shows {shown} rows, not {rows}", arguments.join(" "));
                if arguments.contains(&"name") {
                    ensure!(printed.lines().eq(&store.names), "the list is another than what the store has");
                }
            }
            all.push(Listing { what: arguments.join(" "), rows, times });
        }
        Ok(all)
    }
}

/// The platform's file, read without the platform.
pub(super) struct Store {
    pool: SqlitePool,
    /// Every application, as commands name it, in the order of lists.
    names: Vec<String>,
    of_a_team: usize,
}

/// What a table shows of an application.
const ROWS: &str = "SELECT a.namespace, a.name, a.health, a.health_message, a.sync, a.revision, a.deployed_at, a.reported_at, \
                    a.environment FROM applications a JOIN runtimes r ON r.id = a.runtime_id \
                    WHERE a.name <> '' AND a.deleted = 0 ORDER BY r.name, a.namespace, a.name";

impl Store {
    pub(super) async fn open(platform: &Platform) -> anyhow::Result<Self> {
        let options = SqliteConnectOptions::new().filename(platform.file()).read_only(true);
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        let mut names = Vec::new();
        for row in sqlx::query(ROWS).fetch_all(&pool).await? {
            let (namespace, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            names.push(format!("{RUNTIME}/{namespace}/{name}"));
        }
        let counted = "SELECT count(*) FROM applications WHERE deleted = 0 AND instr(labels, $1) > 0";
        let label = format!("\nteam={}\n", team(3));
        let of_a_team: i64 = sqlx::query_scalar(counted).bind(label).fetch_one(&pool).await?;
        Ok(Self { pool, names, of_a_team: usize::try_from(of_a_team)? })
    }

    /// How many applications there are.
    pub(super) fn applications(&self) -> usize {
        self.names.len()
    }

    /// How long it takes to read what a table shows, so often.
    pub(super) async fn read(&self, runs: usize) -> anyhow::Result<Listing> {
        let mut times = Times::new()?;
        for _ in 0..runs {
            let begun = Instant::now();
            let rows = sqlx::query(ROWS).fetch_all(&self.pool).await?;
            times.add(begun.elapsed())?;
            ensure!(rows.len() == self.names.len(), "the store has {} applications now", rows.len());
        }
        Ok(Listing { what: "a bare read of the store".to_owned(), rows: self.names.len(), times })
    }

    pub(super) async fn close(self) {
        self.pool.close().await;
    }
}
