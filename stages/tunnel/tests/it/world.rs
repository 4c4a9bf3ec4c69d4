//! A server, and clients of it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Service as _, ServiceContext, Shutdown, StageError};
use stages_client::Token;
use stages_tunnel::{
    Board, Client, ClientConfig, CredentialsFile, Dial, Name, Networks, Ready, ServerConfig, Times,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::service::Service;

/// Nothing takes longer unless it never comes.
pub(crate) const BOUND: Duration = Duration::from_secs(120);

/// Sooner than whatever is given up after a minute.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) const DOMAIN: &str = "tunnels.example.com";

/// Waits until `done` is.
pub(crate) async fn eventually(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let until = tokio::time::Instant::now() + BOUND;
    while !done().await {
        assert!(tokio::time::Instant::now() < until, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A server with a file of tokens.
pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) metrics: prometheus::Registry,
    stop: Shutdown,
    serving: JoinHandle<Result<(), StageError>>,
}

/// A client that runs.
pub(crate) struct Running {
    pub(crate) stop: Shutdown,
    pub(crate) ready: Ready,
    pub(crate) ended: JoinHandle<Result<(), StageError>>,
}

impl Running {
    pub(crate) async fn is_ready(&self) {
        eventually("the tunnel is ready", async || self.ready.is_ready()).await;
    }

    /// Why it ended on its own.
    pub(crate) async fn error(self) -> String {
        tokio::time::timeout(BOUND, self.ended).await.unwrap().unwrap().unwrap_err().to_string()
    }

    pub(crate) async fn stopped(self) {
        self.stop.cancel();
        tokio::time::timeout(BOUND, self.ended).await.unwrap().unwrap().unwrap();
    }
}

pub(crate) fn times() -> Times {
    // The client looks whether all is well so often that a test need not wait.
    Times {
        ping: Duration::from_millis(300),
        silence: Duration::from_secs(60),
        young: Duration::ZERO,
        check: Duration::from_millis(100),
        ..Times::default()
    }
}

pub(crate) fn server_config(address: SocketAddr) -> ServerConfig {
    ServerConfig {
        address,
        domain: DOMAIN.to_owned(),
        tls: None,
        trusted: Networks::read("127.0.0.0/8").unwrap(),
        streams: 256,
        connections: 1_000,
        drain_delay: Duration::ZERO,
        grace: Duration::from_secs(60),
        times: times(),
    }
}

/// With a connection for each request: what stops is not kept waiting by one that nobody uses.
pub(crate) fn client() -> reqwest::Client {
    stages_client::install_crypto();
    let client = reqwest::Client::builder().tls_certs_only([]).pool_max_idle_per_host(0).no_proxy();
    client.build().unwrap()
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// With a client that leads visitors to a service.
    pub(crate) async fn served() -> (Self, Service, Running) {
        let (world, service) = (Self::start().await, Service::default());
        let client = world.client(service.start().await, |_| {});
        client.is_ready().await;
        (world, service, client)
    }

    pub(crate) async fn with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::beside(None, change).await
    }

    /// With other servers, which say on a board what they have.
    pub(crate) async fn beside(
        board: Option<Arc<dyn Board>>,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        // Visitors need it as well, and a client of the tunnel, which sees to it, may come later or never.
        stages_client::install_crypto();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("tokens"),
            "account1-runtime1 good-token\naccount2-runtime1 other-token\n",
        )
        .unwrap();
        let mut config = server_config("127.0.0.1:0".parse().unwrap());
        change(&mut config);
        Self::run(folder, config, board).await
    }

    async fn run(folder: tempfile::TempDir, config: ServerConfig, board: Option<Arc<dyn Board>>) -> Self {
        let credentials = CredentialsFile::open(&folder.path().join("tokens")).await.unwrap();
        let metrics = prometheus::Registry::new();
        let mut server = config.build(Arc::new(credentials), &metrics).await.unwrap();
        if let Some(board) = board {
            server = server.beside("127.0.0.1:0".parse().unwrap(), None, board).await.unwrap();
        }
        let (address, stop) = (server.address(), Shutdown::new());
        let serving = tokio::spawn(Box::new(server).serve(ServiceContext::alone(stop.clone())));
        Self { folder, address, metrics, stop, serving }
    }

    /// Stops it, and starts another in the same place.
    pub(crate) async fn restarted(self) -> Self {
        let (folder, address) = self.stopped().await;
        Self::run(folder, server_config(address), None).await
    }

    pub(crate) async fn stopped(self) -> (tempfile::TempDir, SocketAddr) {
        self.stop.cancel();
        tokio::time::timeout(BOUND, self.serving).await.unwrap().unwrap().unwrap();
        (self.folder, self.address)
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.folder.path().join("tokens")
    }

    pub(crate) fn client_config(&self, service: SocketAddr) -> ClientConfig {
        let url = format!("http://{}", self.address).parse().unwrap();
        ClientConfig {
            dial: Dial::new(&url, None, Duration::from_secs(30)).unwrap(),
            protocol: stages_tunnel::Protocol::Native,
            name: Name::read("account1-runtime1").unwrap(),
            token: Token::literal("good-token"),
            forward: format!("http://{service}").parse().unwrap(),
            connections: 2,
            id: "one".to_owned(),
            generation: 1,
            allowed: String::new(),
            grace: Duration::from_secs(60),
            standby: false,
            times: times(),
        }
    }

    pub(crate) fn client(&self, service: SocketAddr, change: impl FnOnce(&mut ClientConfig)) -> Running {
        let mut config = self.client_config(service);
        change(&mut config);
        run(config.build(&prometheus::Registry::new()).unwrap())
    }

    /// How often something of this reason was refused.
    pub(crate) fn refused(&self, reason: &str) -> u64 {
        let line = format!("gitops_runtime_tunnel_server_refused_total{{reason=\"{reason}\"}} ");
        let text = prometheus::TextEncoder::new().encode_to_string(&self.metrics.gather()).unwrap();
        text.lines().find_map(|text| text.strip_prefix(&line)).expect("the series").parse().unwrap()
    }

    pub(crate) fn visit(&self, path: &str) -> reqwest::RequestBuilder {
        self.request(reqwest::Method::GET, path)
    }

    pub(crate) fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        client().request(method, url).header("host", format!("account1-runtime1.{DOMAIN}"))
    }

    /// Status and text.
    pub(crate) async fn answer(&self, path: &str) -> (u16, String) {
        let answer = self.visit(path).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Writes `request`, with the visitor's host, and gives the connection.
    pub(crate) async fn raw(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = request.replace("\r\n\r\n", &format!("\r\nHost: account1-runtime1.{DOMAIN}\r\n\r\n"));
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

pub(crate) fn run(client: Client) -> Running {
    let (stop, ready) = (Shutdown::new(), client.ready());
    let ended = tokio::spawn(Box::new(client).serve(ServiceContext::alone(stop.clone())));
    Running { stop, ready, ended }
}

/// Reads until `end` was read, or nothing more comes.
pub(crate) async fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut all = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let read = tokio::time::timeout(BOUND, stream.read(&mut bytes)).await.unwrap().unwrap();
        all.extend_from_slice(&bytes[..read]);
        let text = String::from_utf8_lossy(&all).into_owned();
        if read == 0 || (!end.is_empty() && text.contains(end)) {
            return text;
        }
    }
}
