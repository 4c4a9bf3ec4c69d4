//! A real Postgres of the distribution, on a Unix socket in a folder of its own, ended when it is dropped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use stages_platform_store::{Place, StoreConfig};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::support::KEEP_ALL;

/// It may take so long on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    port: u16,
    /// The name of a database with the tables of a store, and nothing in them.
    tables: OnceCell<String>,
}

/// The folder of its programs.
fn programs() -> PathBuf {
    if let Some(folder) = std::env::var_os("LOADTEST_POSTGRES") {
        return folder.into();
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.extend(["/usr/bin", "/usr/local/bin", "/usr/libexec/postgresql"].map(PathBuf::from));
    let found = folders.into_iter().find(|folder| folder.join("initdb").exists());
    found.expect(
        "Postgres is not installed: run .ci/setup, or name the folder of its programs in LOADTEST_POSTGRES",
    )
}

/// It does not run as root: it does as its own user then, and ends with this process.
fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]);
    }
    command.arg("--").arg(program).stdin(Stdio::null());
    command
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

impl Server {
    pub(crate) async fn start() -> Self {
        let (programs, folder) = (programs(), TempDir::new().unwrap());
        if is_root() {
            let done = Command::new("chown").arg("postgres").arg(folder.path()).status().unwrap();
            assert!(done.success());
        }
        let data = folder.path().join("data");
        let made = command(&programs.join("initdb"))
            .args(["--username=test", "--auth=trust", "--no-sync", "--locale=C", "--encoding=UTF8", "-D"])
            .arg(&data)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        // Whoever is called so is asked for a password.
        let rules = "local all guest scram-sha-256\nlocal all all trust\n";
        std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        // A socket has a port in its name, and nothing listens on the network.
        let port = 5432;
        let child = command(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(folder.path())
            // Nothing here outlives the machine: what a test waits for is no disk.
            .args(["-c", "listen_addresses=", "-c", &format!("port={port}"), "-c", "fsync=off"])
            .current_dir(folder.path())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Self { child, folder, port, tables: OnceCell::new() };
        let answers = async {
            while PgConnection::connect(&server.url("postgres")).await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, answers).await;
        let log = std::fs::read_to_string(server.folder.path().join("log")).unwrap_or_default();
        assert!(came.is_ok(), "Postgres does not answer: {log}");
        server
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join(format!(".s.PGSQL.{}", self.port))
    }

    fn url(&self, database: &str) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://test@{folder}:{}/{database}", self.port)
    }

    /// A new database.
    pub(crate) async fn database(&self) -> String {
        self.made("").await
    }

    /// A new database with the tables of a store, which are made once: to make them anew takes longer than most of what is tried there.
    pub(crate) async fn store(&self) -> Place {
        let tables = self.tables.get_or_init(|| Box::pin(self.made_tables())).await;
        Place::Postgres(self.made(&format!("TEMPLATE {tables}")).await)
    }

    async fn made_tables(&self) -> String {
        let url = self.database().await;
        let name = url.rsplit_once('/').unwrap().1.to_owned();
        let config = StoreConfig { place: Place::Postgres(url), retention: KEEP_ALL };
        let registry = prometheus::Registry::new();
        let (store, writing) = Box::pin(config.build(&registry)).await.unwrap();
        drop(store);
        writing.finished().await;
        // A database is copied that nobody is connected to.
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        let left = async {
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1";
            loop {
                let connected: i64 =
                    sqlx::query_scalar(sql).bind(&name).fetch_one(&mut connection).await.unwrap();
                if connected == 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, left).await.expect("its connections end");
        name
    }

    /// A new database that orders texts as people who speak English do.
    pub(crate) async fn english_database(&self) -> String {
        self.made("TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'").await
    }

    /// A new database that has no letters but those of Western Europe.
    pub(crate) async fn latin_database(&self) -> String {
        self.made("TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'").await
    }

    async fn made(&self, how: &str) -> String {
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        let name = format!("d{:016x}", fastrand::u64(..));
        let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name} {how}"));
        sqlx::query(sql).execute(&mut connection).await.unwrap();
        self.url(&name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its children end when it does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
