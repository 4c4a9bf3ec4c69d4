//! A NATS server of its own, with JetStream in a temporary folder: killed, started again at the same port, and without
//! what it had stored.
//!
//! takes: nothing, or settings in the server's own language - gives: its address
//! calls: `nats-server`, which `.ci/setup` installs - fails: when there is none, or it does not listen; the end of its log
//! stands in the error

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::PATIENCE;
use crate::child::{Child, Spec};
use crate::command::printed;
use crate::installed::{self, variable};
use crate::port;

/// The version that `.ci/setup` installs.
const VERSION: &str = "2.15.0";
/// How long it may take to name itself to whoever connects.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// Ports that are tried: another process may take one in the instant after it was found to be free.
const TRIES: u32 = 5;
/// The file of its settings.
const CONFIG: &str = "nats.conf";
/// The folder of what it stores.
const STORAGE: &str = "jetstream";

/// A running server. It is killed when this value is dropped, and when this program ends in any way.
#[derive(Debug)]
pub struct NatsServer {
    // Dropped before the folder it runs in.
    child: Child,
    folder: TempDir,
    address: SocketAddr,
}

impl NatsServer {
    /// With JetStream and nothing else, on a free port of loopback.
    pub async fn start() -> anyhow::Result<Self> {
        Self::with("").await
    }

    /// With further settings, in the server's own language.
    pub async fn with(settings: &str) -> anyhow::Result<Self> {
        let program = program()?;
        let mut tries = TRIES;
        loop {
            let folder = tempfile::tempdir().context("make a folder for nats-server")?;
            let port = port::free()?;
            let storage = folder.path().join(STORAGE);
            let config = format!(
                "host: 127.0.0.1\nport: {port}\njetstream {{ store_dir: {:?} }}\n{settings}\n",
                storage.display()
            );
            let file = folder.path().join(CONFIG);
            std::fs::write(&file, config).context("write the settings of nats-server")?;
            let spec =
                Spec::new("nats-server", &program, folder.path()).args([PathBuf::from("--config"), file]);
            let child = Child::start(&spec)?;
            let server = Self { child, folder, address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) };
            tries -= 1;
            match server.ready(PATIENCE).await {
                Ok(()) => return Ok(server),
                Err(error) if tries == 0 || server.child.is_running() => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Its address, as `nats://127.0.0.1:1234`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Where it listens, for whatever stands between.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The last lines of its log, over all starts.
    #[must_use]
    pub fn last_lines(&self, lines: usize) -> Vec<String> {
        self.child.last_lines(lines)
    }

    /// Kills it (SIGKILL), as a machine that fails does, and waits for its end.
    pub async fn kill(&self) -> anyhow::Result<()> {
        self.child.kill().await
    }

    /// Stops it in order (SIGTERM), and waits for its end.
    pub async fn stop(&self) -> anyhow::Result<()> {
        self.child.stop().await
    }

    /// Takes away everything that it stored; it must have ended.
    pub async fn lose_storage(&self) -> anyhow::Result<()> {
        if self.child.is_running() {
            bail!("a server that runs holds what it stored; kill it first");
        }
        let storage = self.folder.path().join(STORAGE);
        tokio::fs::remove_dir_all(storage).await.context("remove what nats-server stored")
    }

    /// Changes what its settings say, for its next start, or until it is told to read them again.
    pub fn change(&self, from: &str, to: &str) -> anyhow::Result<()> {
        let file = self.folder.path().join(CONFIG);
        let settings = std::fs::read_to_string(&file).context("read the settings of nats-server")?;
        if !settings.contains(from) {
            bail!("the settings of nats-server do not say {from}");
        }
        std::fs::write(file, settings.replace(from, to)).context("write the settings of nats-server")
    }

    /// Has it read its settings again while it runs: connections that they allow stay.
    pub async fn reload(&self) -> anyhow::Result<()> {
        let reload = format!("reload={}", self.child.id());
        let mut tell = tokio::process::Command::new(program()?);
        printed(tell.args(["--signal", &reload]), "have nats-server read its settings again").await.map(drop)
    }

    /// Starts it again, at the port that it had and with what it stored; it is stopped in order if it runs.
    pub async fn restart(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.child.restart().await?;
            let started = self.ready(deadline.saturating_duration_since(Instant::now())).await;
            // Whoever took its port meanwhile may leave it again.
            if started.is_ok() || self.child.is_running() || Instant::now() >= deadline {
                return started;
            }
        }
    }

    async fn ready(&self, within: Duration) -> anyhow::Result<()> {
        let address = self.address;
        self.child.ready(within, async move || names_itself(address).await).await.map(drop)
    }
}

/// Whether a NATS server listens there: it speaks first.
async fn names_itself(address: SocketAddr) -> bool {
    let hear = async {
        let mut stream = TcpStream::connect(address).await?;
        let mut word = [0; 5];
        stream.read_exact(&mut word).await?;
        Ok::<_, std::io::Error>(&word == b"INFO ")
    };
    matches!(tokio::time::timeout(ANSWERS_WITHIN, hear).await, Ok(Ok(true)))
}

/// What `LOADTEST_NATS_SERVER` names, else what `.ci/setup` installed, else what is on `PATH`.
pub fn program() -> anyhow::Result<PathBuf> {
    if let Some(named) = variable("LOADTEST_NATS_SERVER") {
        if !named.is_file() {
            bail!("LOADTEST_NATS_SERVER names no file: {}", named.display());
        }
        return Ok(named);
    }
    let installed =
        installed::folder().map(|cache| cache.join(format!("nats-server-{VERSION}/bin/nats-server")));
    let path = variable("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
    installed
        .into_iter()
        .chain(others)
        .find(|file| file.is_file())
        .context("there is no nats-server: run .ci/setup, or name one by LOADTEST_NATS_SERVER")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks the server, and gives the first word of its answer.
    async fn asked(server: &NatsServer, what: &str) -> String {
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
        let (reader, mut writer) = TcpStream::connect(server.address()).await.unwrap().into_split();
        let mut lines = BufReader::new(reader).lines();
        assert!(lines.next_line().await.unwrap().unwrap().contains("\"jetstream\":true"));
        let (kind, body) = what.split_once(' ').unwrap();
        let request = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB $JS.API.{kind} answer {}\r\n{body}\r\n",
            body.len()
        );
        writer.write_all(request.as_bytes()).await.unwrap();
        loop {
            let line = lines.next_line().await.unwrap().expect("it says no more");
            if line.starts_with('{') {
                return line;
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_server_comes_back_at_its_port_with_or_without_what_it_stored() {
        let server = NatsServer::start().await.unwrap();
        let (url, address) = (server.url(), server.address());
        let made = asked(&server, r#"STREAM.CREATE.s {"name":"s","subjects":["s"]}"#).await;
        assert!(made.contains("\"did_create\":true"), "{made}");

        server.kill().await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
        server.restart().await.unwrap();
        assert_eq!((server.url(), server.address()), (url, address));
        let kept = asked(&server, "STREAM.INFO.s {}").await;
        assert!(kept.contains("\"name\":\"s\""), "{kept}");
        let refused = server.lose_storage().await.unwrap_err();
        assert_eq!(refused.to_string(), "a server that runs holds what it stored; kill it first");

        server.kill().await.unwrap();
        server.lose_storage().await.unwrap();
        server.restart().await.unwrap();
        let lost = asked(&server, "STREAM.INFO.s {}").await;
        assert!(lost.contains("stream not found"), "{lost}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn settings_that_are_none_are_told_with_the_end_of_the_log() {
        let error = NatsServer::with("no_such_setting: 1").await.unwrap_err().to_string();
        assert!(
            error.starts_with("nats-server ended before it was ready (exit status: 1); the end of "),
            "{error}"
        );
        assert!(error.contains("no_such_setting"), "{error}");
    }
}
