//! A `nats-server` of a test's own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::net::TcpSocket;

/// Version that `.ci/setup` installs.
const VERSION: &str = "2.15.0";

/// How long a server may take to start, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Killed when dropped.
pub(crate) struct Server {
    folder: TempDir,
    child: Child,
    /// Bound and not listening, so that nobody else is given the port while the server is away.
    _held: TcpSocket,
    pub(crate) port: u16,
}

impl Server {
    /// With JetStream and nothing else.
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// With further settings, in the server's own language.
    pub(crate) fn with(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = folder.path().join("jetstream");
        let config = format!(
            "host: 127.0.0.1\njetstream {{ store_dir: {storage:?} }}\nports_file_dir: {:?}\n{settings}\n",
            folder.path()
        );
        std::fs::write(folder.path().join("nats.conf"), config).unwrap();
        let held = TcpSocket::new_v4().unwrap();
        held.set_reuseaddr(true).unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = held.local_addr().unwrap().port();
        let child = spawn(folder.path(), port);
        let mut server = Self { folder, child, _held: held, port };
        server.ready();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills it, as a machine that fails would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Takes its storage away; it must have been killed.
    pub(crate) fn lose_storage(&self) {
        std::fs::remove_dir_all(self.folder.path().join("jetstream")).unwrap();
    }

    /// What its storage holds; it must have been killed.
    pub(crate) fn saved(&self) -> TempDir {
        let saved = tempfile::tempdir().unwrap();
        copy(&self.folder.path().join("jetstream"), saved.path());
        saved
    }

    /// Has the storage hold what it held; it must have been killed.
    pub(crate) fn restore(&self, saved: &TempDir) {
        self.lose_storage();
        copy(saved.path(), &self.folder.path().join("jetstream"));
    }

    /// Starts it again at the port it had.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.folder.path(), self.port);
        self.ready();
    }

    /// Kills it, and starts it again without what it stored; `away` waits until that was noticed.
    pub(crate) async fn forget_everything(&mut self, away: impl Future<Output = ()>) {
        self.kill();
        away.await;
        self.lose_storage();
        self.restart();
    }

    /// Changes its settings from the next start on.
    pub(crate) fn change(&self, from: &str, to: &str) {
        let file = self.folder.path().join("nats.conf");
        let settings = std::fs::read_to_string(&file).unwrap();
        assert!(settings.contains(from), "the settings say {from}");
        std::fs::write(file, settings.replace(from, to)).unwrap();
    }

    /// What it logged since it was made.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Waits until it listens: then it tells its ports in a file.
    fn ready(&mut self) {
        let ports = self.folder.path().join(format!("{}_{}.ports", name(), self.child.id()));
        let deadline = Instant::now() + PATIENCE;
        while !ports.exists() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the server ended: {}", self.log());
            assert!(Instant::now() < deadline, "the server does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Copies what is in a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

/// A connection of somebody else, who waits as patiently as a test does.
pub(crate) async fn client(url: &str) -> async_nats::jetstream::Context {
    let options =
        async_nats::ConnectOptions::new().connection_timeout(PATIENCE).request_timeout(Some(PATIENCE));
    let mut context = async_nats::jetstream::new(options.connect(url).await.unwrap());
    context.set_timeout(PATIENCE);
    context
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &Path, port: u16) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
    Command::new(program())
        .args(["--config", "nats.conf", "--port", &port.to_string()])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// The file that tells the ports is named after the program.
fn name() -> String {
    program().file_name().unwrap().to_str().unwrap().to_owned()
}

/// What `LOADTEST_NATS_SERVER` names, else what `.ci/setup` installed, else what is on `PATH`.
fn program() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if let Some(named) = variable("LOADTEST_NATS_SERVER") {
        assert!(named.is_file(), "LOADTEST_NATS_SERVER names no file");
        return named;
    }
    let caches = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cache = variable("LOADTEST_CACHE").or_else(|| Some(caches?.join("gitops-runtime")));
    let installed = cache.map(|cache| cache.join(format!("nats-server-{VERSION}/bin/nats-server")));
    let path = variable("PATH").unwrap_or_default();
    installed
        .into_iter()
        .chain(std::env::split_paths(&path).map(|folder| folder.join("nats-server")))
        .find(|file| file.is_file())
        .unwrap_or_else(|| {
            panic!("there is no nats-server: run .ci/setup, or name one by LOADTEST_NATS_SERVER")
        })
}

/// As `nats-server --version` tells it.
pub(crate) fn version() -> String {
    let told = Command::new(program()).arg("--version").output().unwrap().stdout;
    let told = String::from_utf8(told).unwrap();
    told.trim().rsplit_once("nats-server: v").unwrap().1.to_owned()
}
