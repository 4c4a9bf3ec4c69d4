//! The ways from a visitor to the service: none between, this product's tunnel, and those of others where they are installed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use loadtest_sim::certificate::Authority;
use loadtest_sim::process::{Process, Start};
use loadtest_sim::{port, until};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_rustls::TlsConnector;

use super::delay;
use super::service::Service;
use crate::visitor::Visitor;

/// A way stands within this time, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
/// The name that visitors of this product's tunnel ask for.
const HOST: &str = "bench-mark.localhost";
/// What opens the file of a certificate and its key.
const PASSWORD: &str = "bench";

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Direct,
    Own,
    Rathole,
    /// With TLS of its own, from the client to the server and from the visitor to the server: both come to one port.
    OwnTls,
    /// With TLS from its client to its server; visitors have none.
    RatholeTls,
    /// The same, and visitors speak TLS to the service, as it has none for them: the like of [`Kind::OwnTls`].
    RatholeBothTls,
    /// The same without WebSocket frames.
    RatholeBareTls,
    Chisel,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Own => "gitops-runtime",
            Self::OwnTls => "gitops-runtime (TLS)",
            Self::Rathole => "rathole (WebSocket)",
            Self::RatholeTls => "rathole (WebSocket, TLS)",
            Self::RatholeBothTls => "rathole (WebSocket, TLS; visitors too)",
            Self::RatholeBareTls => "rathole (TLS)",
            Self::Chisel => "chisel (SSH)",
        }
    }

    /// The program of others, by a variable or by the PATH; what is said where there is none.
    pub(super) fn installed(self) -> Result<PathBuf, String> {
        let (name, variable) = match self {
            Self::Rathole | Self::RatholeTls | Self::RatholeBothTls | Self::RatholeBareTls => {
                ("rathole", "LOADTEST_RATHOLE")
            }
            Self::Chisel => ("chisel", "LOADTEST_CHISEL"),
            Self::Direct | Self::Own | Self::OwnTls => return Ok(PathBuf::new()),
        };
        if let Some(path) = std::env::var_os(variable) {
            return Ok(path.into());
        }
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file());
        found.ok_or_else(|| format!("not measured: {name} is not installed; {variable} names it elsewhere"))
    }
}

/// Clients of idle tunnels that start at a time.
const STARTING: usize = 8;

/// What tunnels cost that nobody visits, in resident bytes.
pub(super) struct Idle {
    pub(super) tunnels: usize,
    /// Of the server, without them.
    pub(super) before: u64,
    /// Of the server, with them.
    pub(super) after: u64,
    /// Of all their clients together.
    pub(super) of_clients: u64,
    /// Of the server, once streams are held open through them too.
    pub(super) visited: u64,
}

/// A way that stands.
pub(super) struct Way {
    pub(super) at: SocketAddr,
    pub(super) host: String,
    /// Where visitors speak TLS.
    tls: Option<TlsConnector>,
    own: Vec<Process>,
    others: Vec<Child>,
    folder: tempfile::TempDir,
}

impl Way {
    /// Makes it; `far` is how long it takes from the client to the server of a tunnel.
    pub(super) async fn make(
        kind: Kind,
        program: &Path,
        service: &Service,
        far: Duration,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::TempDir::new().context("make a folder")?;
        let other = kind.installed().map_err(anyhow::Error::msg)?;
        let (service, tls) = match kind {
            Kind::RatholeBothTls => (service.secure, Some(trusting(&service.authority)?)),
            _ => (service.at, None),
        };
        let mut way = Self {
            at: service,
            host: "localhost".to_owned(),
            tls,
            own: Vec::new(),
            others: Vec::new(),
            folder,
        };
        match kind {
            Kind::Direct => {
                if !far.is_zero() {
                    way.at = delay::start(service, far).await?;
                }
            }
            Kind::Own => way.own(program, service, far, false).await?,
            Kind::OwnTls => way.own(program, service, far, true).await?,
            Kind::Rathole | Kind::RatholeTls | Kind::RatholeBothTls | Kind::RatholeBareTls => {
                way.rathole(kind, &other, service, far).await?;
            }
            Kind::Chisel => way.chisel(&other, service, far).await?,
        }
        answers(way.at, &way.host, way.tls.as_ref()).await?;
        Ok(way)
    }

    async fn own(
        &mut self,
        program: &Path,
        service: SocketAddr,
        far: Duration,
        is_tls: bool,
    ) -> anyhow::Result<()> {
        let listen = loopback()?;
        let mut server = text(&["tunnel-server", "--single", "--listen", &listen.to_string()]);
        server.extend(text(&["--serve", "127.0.0.1:0", "--set", "tunnelServer.requests=2000"]));
        let mut client = Vec::new();
        if is_tls {
            let authority = self.certificate().await?;
            let file = |name: &str| self.folder.path().join(name).display().to_string();
            server.extend(text(&[
                "--set",
                &format!("tunnelServer.tls.certificateFile={}", file("server.pem")),
            ]));
            server.extend(text(&["--set", &format!("tunnelServer.tls.keyFile={}", file("server.key"))]));
            client.extend(text(&["--set", &format!("tunnelClient.caFile={}", file("authority.pem"))]));
            self.tls = Some(trusting(&authority)?);
        }
        let server = self.process(program, server)?;
        wait_for(listen).await?;
        let near = if far.is_zero() { listen } else { delay::start(listen, far).await? };
        let scheme = if is_tls { "https" } else { "http" };
        client.extend(text(&["--set", "tunnelClient.connections=4"]));
        let client =
            self.process(program, client_of("bench-mark", &format!("{scheme}://{near}"), service, client))?;
        self.own = vec![server, client];
        (self.at, self.host) = (listen, HOST.to_owned());
        Ok(())
    }

    /// More tunnels that nobody visits, each a process with as many connections as it has by default; then so many streams are
    /// held open through them, the same number through each.
    pub(super) async fn idle(
        &self,
        program: &Path,
        service: SocketAddr,
        tunnels: usize,
        streams: usize,
    ) -> anyhow::Result<Idle> {
        let Some(server) = self.own.first() else {
            bail!("idle tunnels are measured of this product's alone")
        };
        let before = server.resident().context("read the memory of the tunnel server")?;
        let mut clients = Vec::with_capacity(tunnels);
        let to = format!("http://{}", self.at);
        let names: Vec<String> = (0..tunnels).map(|tunnel| format!("idle-t{tunnel}")).collect();
        // A few start at a time, so that each is served within its patience.
        for starting in names.chunks(STARTING) {
            for name in starting {
                clients.push(self.process(program, client_of(name, &to, service, Vec::new()))?);
            }
            for name in starting {
                answers(self.at, &format!("{name}.localhost"), None).await?;
            }
        }
        let after = server.resident().context("read the memory of the tunnel server")?;
        let of_clients: Option<u64> = clients.iter().map(Process::resident).sum();
        let of_clients = of_clients.context("read the memory of the clients")?;
        let mut held = Vec::with_capacity(streams);
        for name in names.iter().cycle().take(streams) {
            let mut visitor = Visitor::connect(self.at, &format!("{name}.localhost"), None).await?;
            visitor.hold().await?;
            held.push(visitor);
        }
        let visited = server.resident().context("read the memory of the tunnel server")?;
        for client in clients {
            client.kill().await?;
        }
        Ok(Idle { tunnels, before, after, of_clients, visited })
    }

    /// A client that connects and is gone, so often: the resident bytes of the server before and after.
    pub(super) async fn reconnect(&self, times: usize) -> anyhow::Result<(u64, u64)> {
        let Some(server) = self.own.first() else {
            bail!("only this product's tunnel is connected to again")
        };
        let resident = || server.resident().context("read the memory of the tunnel server");
        // What the first of them makes is there before it is measured.
        self.knock(times.div_ceil(20)).await?;
        let before = resident()?;
        self.knock(times).await?;
        Ok((before, resident()?))
    }

    async fn knock(&self, times: usize) -> anyhow::Result<()> {
        for generation in 1..=times {
            let mut stream = TcpStream::connect(self.at).await.context("connect to the tunnel server")?;
            let head = format!(
                "GET /~tunnel/1 HTTP/1.1\r\nHost: {}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                 Authorization: Bearer any\r\nTunnel-Name: comes-again\r\nTunnel-Client: again\r\n\
                 Tunnel-Generation: {generation}\r\n\r\n",
                self.at
            );
            stream.write_all(head.as_bytes()).await.context("open a tunnel")?;
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.context("read what opening a tunnel is answered")?;
            ensure!(
                answer == *b"HTTP/1.1 101",
                "opening a tunnel is answered {}",
                String::from_utf8_lossy(&answer)
            );
        }
        Ok(())
    }

    fn process(&self, program: &Path, args: Vec<String>) -> anyhow::Result<Process> {
        Process::start(&Start {
            program: program.to_path_buf(),
            args: args.into_iter().map(Into::into).collect(),
            env: vec![("GITOPS_RUNTIME_SERVE__ADDRESS".to_owned(), "127.0.0.1:0".to_owned())],
            directory: self.folder.path().to_path_buf(),
        })
    }

    /// A new authority, and a certificate of the server: as PEM files, and in one file as rathole wants it. Gives the authority.
    async fn certificate(&self) -> anyhow::Result<String> {
        let authority = Authority::new()?;
        let (certificate, key) = authority.signed(text(&[HOST, "localhost", "127.0.0.1"]))?;
        for (name, text) in
            [("authority.pem", authority.pem()), ("server.pem", certificate), ("server.key", key)]
        {
            tokio::fs::write(self.folder.path().join(name), text).await.context("write a certificate")?;
        }
        Ok(authority.pem())
    }

    async fn rathole(
        &mut self,
        kind: Kind,
        program: &Path,
        service: SocketAddr,
        far: Duration,
    ) -> anyhow::Result<()> {
        let (listen, visit) = (loopback()?, loopback()?);
        let is_tls = kind != Kind::Rathole;
        let (mut of_server, mut of_client) = (String::new(), String::new());
        if is_tls {
            self.certificate().await?;
            let pack =
                ["pkcs12", "-export", "-in", "server.pem", "-inkey", "server.key", "-out", "server.p12"];
            let packed = Command::new("openssl")
                .args(pack)
                .args(["-passout", &format!("pass:{PASSWORD}")])
                .current_dir(self.folder.path())
                .output()
                .await
                .context("run openssl, which rathole's TLS needs a file of: install it")?;
            ensure!(packed.status.success(), "openssl: {}", String::from_utf8_lossy(&packed.stderr));
            of_server = format!(
                "[server.transport.tls]\npkcs12 = \"server.p12\"\npkcs12_password = \"{PASSWORD}\"\n"
            );
            of_client =
                "[client.transport.tls]\ntrusted_root = \"authority.pem\"\nhostname = \"localhost\"\n"
                    .to_owned();
        }
        let transport = |side: &str, tls: &str| {
            let (name, frames) = match kind {
                Kind::RatholeBareTls => ("tls", String::new()),
                _ => ("websocket", format!("[{side}.transport.websocket]\ntls = {is_tls}\n")),
            };
            format!("[{side}.transport]\ntype = \"{name}\"\n{tls}{frames}")
        };
        let server = format!(
            "[server]\nbind_addr = \"{listen}\"\ndefault_token = \"t\"\n{}[server.services.s]\nbind_addr = \"{visit}\"\n",
            transport("server", &of_server)
        );
        self.other(program, "server.toml", &server, &["--server"]).await?;
        wait_for(listen).await?;
        let near = if far.is_zero() { listen } else { delay::start(listen, far).await? };
        let client = format!(
            "[client]\nremote_addr = \"{near}\"\ndefault_token = \"t\"\n{}[client.services.s]\nlocal_addr = \"{service}\"\n",
            transport("client", &of_client)
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

    pub(super) async fn visitor(&self) -> anyhow::Result<Visitor> {
        Visitor::connect(self.at, &self.host, self.tls.as_ref()).await
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

/// Waits until a visitor is answered.
async fn answers(at: SocketAddr, host: &str, tls: Option<&TlsConnector>) -> anyhow::Result<()> {
    let ask = async || {
        let asked = async { Visitor::connect(at, host, tls).await?.get("/bytes/1").await };
        Ok(tokio::time::timeout(Duration::from_secs(10), asked).await)
    };
    let asked = until(PATIENCE, Duration::from_millis(50), ask, |asked| matches!(asked, Ok(Ok(_)))).await?;
    let answered = asked.with_context(|| format!("a way does not stand within {PATIENCE:?}"))?;
    answered.map(drop).context("wait for a way to stand")
}

fn text(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Arguments of a client of this product's tunnel.
fn client_of(name: &str, to: &str, service: SocketAddr, more: Vec<String>) -> Vec<String> {
    let mut all = text(&["tunnel-client", "--to", to, "--name", name, "--forward"]);
    all.extend(text(&[&format!("http://{service}"), "--serve", "127.0.0.1:0"]));
    all.extend(more);
    all
}

/// What visitors of a certificate of this authority connect by.
fn trusting(authority: &str) -> anyhow::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority.as_bytes()).context("read the authority")?;
    roots.add(authority).context("trust the authority")?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("speak TLS")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn loopback() -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?)))
}

async fn wait_for(address: SocketAddr) -> anyhow::Result<()> {
    let knock = async || Ok(TcpStream::connect(address).await.is_ok());
    let is_there = until(PATIENCE, Duration::from_millis(20), knock, |is_there| *is_there).await?;
    ensure!(is_there, "nobody listens on {address} within {PATIENCE:?}");
    Ok(())
}
