//! The ways from a visitor to the service: none between, this product's tunnel, and those of others where they are installed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use loadtest_sim::port;
use loadtest_sim::process::{Process, Start};
use tokio::process::{Child, Command};

use super::delay;
use super::visitor::Visitor;

/// A way stands within this time, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
/// The name that visitors of this product's tunnel ask for.
const HOST: &str = "bench-mark.localhost";

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Direct,
    Own,
    Rathole,
    Chisel,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Own => "gitops-runtime",
            Self::Rathole => "rathole (WebSocket)",
            Self::Chisel => "chisel (SSH)",
        }
    }

    /// The program of others, by a variable or by the PATH; what is said where there is none.
    pub(super) fn installed(self) -> Result<PathBuf, String> {
        let (name, variable) = match self {
            Self::Rathole => ("rathole", "LOADTEST_RATHOLE"),
            Self::Chisel => ("chisel", "LOADTEST_CHISEL"),
            Self::Direct | Self::Own => return Ok(PathBuf::new()),
        };
        if let Some(path) = std::env::var_os(variable) {
            return Ok(path.into());
        }
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file());
        found.ok_or_else(|| format!("not measured: {name} is not installed; {variable} names it elsewhere"))
    }
}

/// A way that stands.
pub(super) struct Way {
    pub(super) at: SocketAddr,
    pub(super) host: String,
    own: Vec<Process>,
    others: Vec<Child>,
    folder: tempfile::TempDir,
}

impl Way {
    /// Makes it; `far` is how long it takes from the client to the server of a tunnel.
    pub(super) async fn make(
        kind: Kind,
        program: &Path,
        service: SocketAddr,
        far: Duration,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::TempDir::new().context("make a folder")?;
        let other = kind.installed().map_err(anyhow::Error::msg)?;
        let mut way =
            Self { at: service, host: "localhost".to_owned(), own: Vec::new(), others: Vec::new(), folder };
        match kind {
            Kind::Direct => {
                if !far.is_zero() {
                    way.at = delay::start(service, far).await?;
                }
            }
            Kind::Own => way.own(program, service, far).await?,
            Kind::Rathole => way.rathole(&other, service, far).await?,
            Kind::Chisel => way.chisel(&other, service, far).await?,
        }
        way.stands().await?;
        Ok(way)
    }

    async fn own(&mut self, program: &Path, service: SocketAddr, far: Duration) -> anyhow::Result<()> {
        let listen = loopback()?;
        let start = |args: Vec<String>| {
            Process::start(&Start {
                program: program.to_path_buf(),
                args: args.into_iter().map(Into::into).collect(),
                env: vec![("GITOPS_RUNTIME_SERVE__ADDRESS".to_owned(), "127.0.0.1:0".to_owned())],
                directory: self.folder.path().to_path_buf(),
            })
        };
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let server = text(&[
            "tunnel-server",
            "--single",
            "--listen",
            &listen.to_string(),
            "--serve",
            "127.0.0.1:0",
            "--set",
            "tunnelServer.requests=2000",
        ]);
        let server = start(server)?;
        wait_for(listen).await?;
        let near = if far.is_zero() { listen } else { delay::start(listen, far).await? };
        let client = text(&[
            "tunnel-client",
            "--to",
            &format!("http://{near}"),
            "--name",
            "bench-mark",
            "--forward",
            &format!("http://{service}"),
            "--serve",
            "127.0.0.1:0",
            "--set",
            "tunnelClient.connections=4",
        ]);
        let client = start(client)?;
        self.own = vec![server, client];
        (self.at, self.host) = (listen, HOST.to_owned());
        Ok(())
    }

    async fn rathole(&mut self, program: &Path, service: SocketAddr, far: Duration) -> anyhow::Result<()> {
        let (listen, visit) = (loopback()?, loopback()?);
        let transport = |side: &str| {
            format!("[{side}.transport]\ntype = \"websocket\"\n[{side}.transport.websocket]\ntls = false\n")
        };
        let server = format!(
            "[server]\nbind_addr = \"{listen}\"\ndefault_token = \"t\"\n{}[server.services.s]\nbind_addr = \"{visit}\"\n",
            transport("server")
        );
        self.other(program, "server.toml", &server, &["--server"]).await?;
        wait_for(listen).await?;
        let near = if far.is_zero() { listen } else { delay::start(listen, far).await? };
        let client = format!(
            "[client]\nremote_addr = \"{near}\"\ndefault_token = \"t\"\n{}[client.services.s]\nlocal_addr = \"{service}\"\n",
            transport("client")
        );
        self.other(program, "client.toml", &client, &["--client"]).await?;
        self.at = visit;
        Ok(())
    }

    async fn chisel(&mut self, program: &Path, service: SocketAddr, far: Duration) -> anyhow::Result<()> {
        let (listen, visit) = (loopback()?, loopback()?);
        let port = listen.port().to_string();
        self.spawn(program, &["server", "--host", "127.0.0.1", "--port", &port, "--reverse"])?;
        wait_for(listen).await?;
        let near = if far.is_zero() { listen } else { delay::start(listen, far).await? };
        let remote = format!("R:{visit}:{service}");
        self.spawn(program, &["client", &format!("http://{near}"), &remote])?;
        self.at = visit;
        Ok(())
    }

    async fn other(&mut self, program: &Path, name: &str, text: &str, args: &[&str]) -> anyhow::Result<()> {
        let path = self.folder.path().join(name);
        tokio::fs::write(&path, text).await.context("write the settings of another tunnel")?;
        let path = path.display().to_string();
        let args: Vec<&str> = args.iter().copied().chain([path.as_str()]).collect();
        self.spawn(program, &args)
    }

    fn spawn(&mut self, program: &Path, args: &[&str]) -> anyhow::Result<()> {
        let child = Command::new(program)
            .args(args)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        self.others.push(child.with_context(|| format!("start {}", program.display()))?);
        Ok(())
    }

    /// Waits until a visitor is answered.
    async fn stands(&self) -> anyhow::Result<()> {
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let asked = async { self.visitor().await?.get("/bytes/1").await };
            match tokio::time::timeout(Duration::from_secs(10), asked).await {
                Ok(Ok(_)) => return Ok(()),
                _ if tokio::time::Instant::now() < until => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Ok(Err(error)) => return Err(error.context("wait for a way to stand")),
                Err(_) => bail!("a way does not stand within {PATIENCE:?}"),
            }
        }
    }

    pub(super) async fn visitor(&self) -> anyhow::Result<Visitor> {
        Visitor::connect(self.at, &self.host).await
    }

    /// Resident bytes of the server and of the client of this product's tunnel.
    pub(super) fn resident(&self) -> Option<(u64, u64)> {
        let [server, client] = self.own.as_slice() else { return None };
        Some((server.resident()?, client.resident()?))
    }

    pub(super) async fn end(self) -> anyhow::Result<()> {
        for process in self.own.into_iter().rev() {
            process.kill().await?;
        }
        Ok(())
    }
}

fn loopback() -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?)))
}

async fn wait_for(address: SocketAddr) -> anyhow::Result<()> {
    let until = tokio::time::Instant::now() + PATIENCE;
    while tokio::net::TcpStream::connect(address).await.is_err() {
        if tokio::time::Instant::now() > until {
            bail!("nobody listens on {address} within {PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
