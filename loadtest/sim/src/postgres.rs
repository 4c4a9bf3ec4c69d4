//! A real Postgres of the distribution, on a Unix socket in a folder of its own, ended when it is dropped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

use crate::command::printed;
use crate::process::is_root;
use crate::{PATIENCE, until};

/// A running server, with the database `postgres`.
#[derive(Debug)]
pub struct PostgresServer {
    child: Child,
    folder: TempDir,
    programs: PathBuf,
}

/// The folder of its programs.
fn programs() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("LOADTEST_POSTGRES") {
        return Ok(folder.into());
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let elsewhere = ["/usr/bin", "/usr/local/bin", "/usr/libexec/postgresql"].map(PathBuf::from);
    let mut folders = versions.map(|version| version.path().join("bin")).chain(elsewhere);
    folders.find(|folder| folder.join("initdb").exists()).context(
        "Postgres is not installed: run .ci/setup, or name the folder of its programs in LOADTEST_POSTGRES",
    )
}

/// It does not run as root: it does as its own user then, and ends with this process.
fn command(program: &Path, folder: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root()? {
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]);
    }
    command.arg("--").arg(program).stdin(Stdio::null()).current_dir(folder);
    Ok(command)
}

impl PostgresServer {
    /// Starts one, and waits until it answers.
    ///
    /// # Errors
    /// Postgres is not installed, or does not start.
    pub async fn start() -> anyhow::Result<Self> {
        let (programs, folder) = (programs()?, TempDir::new().context("make a folder")?);
        if is_root()? {
            let done = Command::new("chown").arg("postgres").arg(folder.path()).status();
            ensure!(
                done.context("give a folder to postgres")?.success(),
                "a folder cannot be given to postgres"
            );
        }
        let data = folder.path().join("data");
        let made = command(&programs.join("initdb"), folder.path())?
            .args(["--username=test", "--auth=trust", "--locale=C", "--encoding=UTF8", "-D"])
            .arg(&data)
            .output()
            .context("run initdb")?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let child = command(&programs.join("postgres"), folder.path())?
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            .args(["-c", "listen_addresses="])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start Postgres")?;
        let server = Self { child, folder, programs };
        let ask = async || Ok(server.run("SELECT 1").await.is_ok());
        let answers = until(PATIENCE, Duration::from_millis(100), ask, |answers| *answers).await?;
        ensure!(answers, "Postgres does not answer");
        Ok(server)
    }

    /// What a statement answers: a line for each row.
    ///
    /// # Errors
    /// What the server says instead.
    pub async fn run(&self, sql: &str) -> anyhow::Result<String> {
        let mut psql = tokio::process::Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--username=test"]);
        psql.arg("--host").arg(self.folder.path()).args(["--dbname=postgres", "--command", sql]);
        Ok(printed(&mut psql, "ask Postgres").await?.trim_end().to_owned())
    }

    /// The bytes of what is kept there.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn size(&self) -> anyhow::Result<u64> {
        let size = self.run("SELECT pg_database_size(current_database())").await?;
        size.parse().context("read how much Postgres keeps")
    }

    /// How it is reached.
    #[must_use]
    pub fn url(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://test@{folder}:5432/postgres")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // Its children end when it does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
