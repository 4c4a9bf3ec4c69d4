//! The ways from a visitor to the service: none between, and the tunnel, with TLS and without.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
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
use tokio_rustls::TlsConnector;

use super::delay;
use crate::visitor::Visitor;

/// A way stands within this time, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);
/// The name that visitors of the tunnel ask for.
const HOST: &str = "bench-mark.localhost";

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Direct,
    Own,
    /// With TLS of its own, from the client to the server and from the visitor to the server: both come to one port.
    OwnTls,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Own => "gitops-runtime",
            Self::OwnTls => "gitops-runtime (TLS)",
        }
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
        let mut way = Self { at: service, host: "localhost".to_owned(), tls: None, own: Vec::new(), folder };
        match kind {
            Kind::Direct => {
                if !far.is_zero() {
                    way.at = delay::start(service, far).await?;
                }
            }
            Kind::Own => way.own(program, service, far, false).await?,
            Kind::OwnTls => way.own(program, service, far, true).await?,
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
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
        let mut of_server = vec!["tunnelServer.requests=2000".to_owned()];
        let mut of_client = vec!["tunnelClient.connections=4".to_owned()];
        if is_tls {
            let authority = self.certificate().await?;
            let file = |name: &str| self.folder.path().join(name).display().to_string();
            of_server.push(format!("tunnelServer.tls.certificateFile={}", file("server.pem")));
            of_server.push(format!("tunnelServer.tls.keyFile={}", file("server.key")));
            of_client.push(format!("tunnelClient.caFile={}", file("authority.pem")));
            self.tls = Some(trusting(&authority)?);
        }
        let server = ["tunnel-server", "--single", "--listen", &listen.to_string()];
        let server = self.process(program, &server, &of_server)?;
        wait_for(listen).await?;
        let near = if far.is_zero() { listen } else { delay::start(listen, far).await? };
        let scheme = if is_tls { "https" } else { "http" };
        let client =
            self.client(program, "bench-mark", &format!("{scheme}://{near}"), service, &of_client)?;
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
        let Some(server) = self.own.first() else { bail!("there is no tunnel to stand idle beside") };
        let before = server.resident().context("read the memory of the tunnel server")?;
        let mut clients = Vec::with_capacity(tunnels);
        let to = format!("http://{}", self.at);
        let names: Vec<String> = (0..tunnels).map(|tunnel| format!("idle-t{tunnel}")).collect();
        // A few start at a time, so that each is served within its patience.
        for starting in names.chunks(STARTING) {
            for name in starting {
                clients.push(self.client(program, name, &to, service, &[])?);
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
        let Some(server) = self.own.first() else { bail!("there is no tunnel to connect to again") };
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

    fn process(&self, program: &Path, args: &[&str], settings: &[String]) -> anyhow::Result<Process> {
        let args = args.iter().copied().chain(["--serve", "127.0.0.1:0"]);
        Process::start(&Start::with_settings(program, args, settings, self.folder.path()))
    }

    /// A client of a tunnel of this name.
    fn client(
        &self,
        program: &Path,
        name: &str,
        to: &str,
        service: SocketAddr,
        settings: &[String],
    ) -> anyhow::Result<Process> {
        let service = format!("http://{service}");
        let args = ["tunnel-client", "--to", to, "--name", name, "--forward", &service];
        self.process(program, &args, settings)
    }

    /// A new authority, and a certificate of the server, as PEM files. Gives the authority.
    async fn certificate(&self) -> anyhow::Result<String> {
        let authority = Authority::new()?;
        let (certificate, key) =
            authority.signed([HOST, "localhost", "127.0.0.1"].map(str::to_owned).to_vec())?;
        for (name, text) in
            [("authority.pem", authority.pem()), ("server.pem", certificate), ("server.key", key)]
        {
            tokio::fs::write(self.folder.path().join(name), text).await.context("write a certificate")?;
        }
        Ok(authority.pem())
    }

    pub(super) async fn visitor(&self) -> anyhow::Result<Visitor> {
        Visitor::connect(self.at, &self.host, self.tls.as_ref()).await
    }

    /// Resident bytes of the server and of the client of the tunnel; `None` where there is none, or one of them has ended.
    pub(super) fn resident(&self) -> Option<[u64; 2]> {
        let [server, client] = self.own.as_slice() else { return None };
        Some([server.resident()?, client.resident()?])
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

async fn wait_for(address: SocketAddr) -> anyhow::Result<()> {
    let knock = async || Ok(TcpStream::connect(address).await.is_ok());
    let is_there = until(PATIENCE, Duration::from_millis(20), knock, |is_there| *is_there).await?;
    ensure!(is_there, "nobody listens on {address} within {PATIENCE:?}");
    Ok(())
}
