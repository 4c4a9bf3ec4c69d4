//! A router, services behind it, and clients that speak to it.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Version};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use pipeline_core::{Service as _, ServiceContext, Shutdown};
use prometheus::{Registry, TextEncoder};
use stages_router::{Allowed, Limits, NamesConfig, Proxied, RouterConfig, Webhooks};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Waited for what is to happen, on a machine however busy.
pub(crate) const SOON: Duration = Duration::from_secs(120);
/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(crate) fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

pub(crate) fn empty() -> Body {
    Empty::new().boxed_unsync()
}

pub(crate) fn limits() -> Limits {
    Limits { idle: LONG, body: 1 << 40, headers: 16 << 10, requests: 1_000 }
}

/// A service at this address.
pub(crate) fn proxied(url: &str) -> Proxied {
    Proxied { url: url.parse().unwrap(), ca_file: None, insecure: false, limits: limits() }
}

/// Nothing behind it, and no time-out that fires.
pub(crate) fn config() -> RouterConfig {
    RouterConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        certificate: None,
        trusted: Vec::new(),
        connections: 1_000,
        head_timeout: LONG,
        keep_alive: LONG,
        write_timeout: LONG,
        drain_delay: Duration::ZERO,
        grace: SOON,
        connect_timeout: SOON,
        access_log: true,
        cors_origin: "https://platform.example".to_owned(),
        names: NamesConfig {
            // Nobody answers there, and nobody is asked.
            servers: vec!["127.0.0.1:9".parse().unwrap()],
            cluster_domain: None,
            namespace: Some("runtime".to_owned()),
        },
        app_proxy: None,
        workflows: None,
        webhooks: Webhooks { allowed: Vec::<Allowed>::new(), port: 80, limits: limits() },
    }
}

/// A router that runs.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: Shutdown,
    pub(crate) task: JoinHandle<()>,
    registry: Registry,
}

impl Running {
    pub(crate) async fn start(config: RouterConfig) -> Self {
        let registry = Registry::new();
        let router = config.build(&registry).await.unwrap();
        let (address, stop) = (router.address(), Shutdown::new());
        let given = ServiceContext::alone(stop.clone());
        let task = tokio::spawn(async move { Box::new(router).serve(given).await.unwrap() });
        Self { address, stop, task, registry }
    }

    /// Before these services.
    pub(crate) async fn before(app_proxy: Option<&Upstream>, workflows: Option<&Upstream>) -> Self {
        let of = |upstream: &Upstream| proxied(&upstream.url());
        Self::start(RouterConfig { app_proxy: app_proxy.map(of), workflows: workflows.map(of), ..config() })
            .await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        within(TcpStream::connect(self.address)).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Response<Incoming> {
        send(self.connect().await, request).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        self.answer(Request::get(path).header("host", "router").body(empty()).unwrap()).await
    }

    /// Status and text.
    pub(crate) async fn answer(&self, request: Request<Body>) -> (u16, String) {
        let response = self.send(request).await;
        (response.status().as_u16(), text(response).await)
    }

    pub(crate) fn metrics(&self) -> String {
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap()
    }

    /// Waits until the metrics hold this line.
    pub(crate) async fn counts(&self, line: &str) {
        eventually(line, async || self.metrics().lines().any(|found| found == line)).await;
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        within(self.task).await.unwrap();
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(SOON, future).await.expect("it takes too long")
}

pub(crate) async fn eventually(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(SOON, waiting).await.is_ok(), "it never came to {what}");
}

pub(crate) async fn text(response: Response<Incoming>) -> String {
    let bytes = within(response.into_body().collect()).await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Over a connection of its own, as HTTP/1.1.
pub(crate) async fn send(stream: TcpStream, request: Request<Body>) -> Response<Incoming> {
    try_send(stream, request).await.unwrap()
}

pub(crate) async fn try_send(
    stream: TcpStream,
    request: Request<Body>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection.with_upgrades());
    within(sender.send_request(request)).await
}

/// What a service saw of a request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
}

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
type Answers = Arc<dyn Fn(Request<Incoming>) -> Answering + Send + Sync>;

/// A service.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Upstream {
    /// It answers `ok` to everything, when it has read it.
    pub(crate) async fn recording() -> Self {
        Self::start("127.0.0.1:0", |request| async {
            let _ = request.into_body().collect().await;
            Response::new(full("ok"))
        })
        .await
    }

    pub(crate) async fn start<F>(
        address: &str,
        answers: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Seen>>>::default());
        let answers: Answers = Arc::new(move |request| Box::pin(answers(request)));
        let record = seen.clone();
        let task = tokio::spawn(async move {
            // Dropped with the task: a service that is gone answers nothing any more.
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (answers, record) = (answers.clone(), record.clone());
                connections.spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| {
                        record.lock().unwrap().push(Seen {
                            line: format!("{} {}", request.method(), request.uri()),
                            version: request.version(),
                            headers: request.headers().clone(),
                        });
                        let answer = answers(request);
                        async { Ok::<_, Infallible>(answer.await) }
                    });
                    let http = Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, seen, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|seen| seen.line.clone()).collect()
    }

    pub(crate) fn last(&self) -> Seen {
        self.seen.lock().unwrap().last().cloned().expect("it was asked")
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}
