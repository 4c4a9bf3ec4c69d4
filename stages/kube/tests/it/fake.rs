//! A small Kubernetes API server: real HTTP on a free port, answers as the test says.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::serve::Listener;
use axum::{Router, serve};
use futures::StreamExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub(crate) const ALL: &str = "/apis/example.org/v1/widgets";
pub(crate) const HOME: &str = "/apis/example.org/v1/namespaces/home/widgets";

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    /// How many requests of this kind (list, watch, get) came before.
    pub(crate) nth: usize,
}

impl Asked {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is asked without what objects hold.
    fn accepts_metadata(&self) -> bool {
        let accept = self.headers.get("accept").and_then(|accept| accept.to_str().ok());
        accept.is_some_and(|accept| accept.contains("PartialObjectMetadataList"))
    }

    pub(crate) fn kind(&self) -> &'static str {
        if self.get("watch") == Some("true") {
            "watch"
        } else if self.path.ends_with("/widgets") && self.accepts_metadata() {
            "newest"
        } else if self.path.ends_with("/widgets") {
            "list"
        } else {
            "get"
        }
    }
}

/// What is answered.
pub(crate) enum Answer {
    Json(String),
    Status(u16),
    RetryAfter(u16, u32),
    Raw(u16, String),
    /// A body that goes on as long as the sender lives; an error cuts it short.
    Stream(mpsc::UnboundedReceiver<io::Result<String>>),
    /// Nothing, ever.
    Hang,
}

/// A body that breaks off after `text`; the connection closes before the head when there is none.
pub(crate) fn cut(text: &str) -> Answer {
    let (sender, receiver) = mpsc::unbounded_channel();
    if !text.is_empty() {
        sender.send(Ok(text.to_owned())).unwrap();
    }
    sender.send(Err(io::Error::other("cut"))).unwrap();
    Answer::Stream(receiver)
}

/// Sends lines into a watch; dropped, it ends the watch cleanly.
pub(crate) struct Feed(mpsc::UnboundedSender<io::Result<String>>);

impl Feed {
    pub(crate) fn change(&self, kind: &str, object: &str) {
        self.text(&format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"));
    }

    pub(crate) fn text(&self, text: &str) {
        self.0.send(Ok(text.to_owned())).expect("the watch is open");
    }

    pub(crate) fn cut(self) {
        self.0.send(Err(io::Error::other("cut"))).expect("the watch is open");
    }
}

pub(crate) fn stream() -> (Feed, Answer) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Feed(sender), Answer::Stream(receiver))
}

pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// The newest version of its store, as a list of nothing says it.
    pub(crate) newest: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Handler = Box<dyn FnMut(&Asked) -> Answer + Send>;

impl Fake {
    pub(crate) async fn start(handler: impl FnMut(&Asked) -> Answer + Send + 'static) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), handler).await
    }

    /// Always lists the same, and tells of no change.
    pub(crate) async fn listing(version: u64, items: &[String]) -> Self {
        let items = items.to_vec();
        Self::start(move |asked| match asked.kind() {
            "list" => list(version, &items),
            _ => Answer::Hang,
        })
        .await
    }

    /// As `start`, at an address that is held for it.
    pub(crate) async fn start_at(
        address: SocketAddr,
        handler: impl FnMut(&Asked) -> Answer + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        Self::serve(address, listener, Box::new(handler))
    }

    pub(crate) async fn start_tls(
        acceptor: TlsAcceptor,
        handler: impl FnMut(&Asked) -> Answer + Send + 'static,
    ) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        Self::serve(address, Tls { tcp, acceptor }, Box::new(handler))
    }

    fn serve<L>(address: SocketAddr, listener: L, handler: Handler) -> Self
    where
        L: Listener,
        L::Addr: std::fmt::Debug,
    {
        let asked = Arc::new(Mutex::new(Vec::new()));
        // A store that has counted far, unless the test says otherwise.
        let newest = Arc::new(AtomicU64::new(1 << 50));
        let state = (asked.clone(), Arc::new(Mutex::new(handler)), newest.clone());
        let app = Router::new().fallback(move |request: Request| {
            let (log, handler, newest) = state.clone();
            let (parts, _) = request.into_parts();
            async move { answer(&log, &handler, &newest, parts).await }
        });
        let task = tokio::spawn(async move { serve(listener, app).await.unwrap() });
        Self { address, asked, newest, task }
    }

    pub(crate) fn asked(&self, kind: &str) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|asked| asked.kind() == kind).cloned().collect()
    }
}

async fn answer(
    log: &Mutex<Vec<Asked>>,
    handler: &Mutex<Handler>,
    newest: &AtomicU64,
    request: Parts,
) -> Response {
    let query = request.uri.query().unwrap_or_default();
    let mut asked = Asked {
        path: request.uri.path().to_owned(),
        query: axum::extract::Query::<Vec<(String, String)>>::try_from_uri(
            &format!("http://x/?{query}").parse().unwrap(),
        )
        .unwrap()
        .0,
        headers: request.headers,
        nth: 0,
    };
    let answer = {
        let mut log = log.lock().unwrap();
        asked.nth = log.iter().filter(|before| before.kind() == asked.kind()).count();
        log.push(asked.clone());
        match asked.kind() {
            "newest" => list(newest.load(Ordering::Relaxed), &[]),
            _ => (handler.lock().unwrap())(&asked),
        }
    };
    let status = |code| StatusCode::from_u16(code).unwrap();
    match answer {
        Answer::Json(text) => ([("content-type", "application/json")], text).into_response(),
        Answer::Status(code) => {
            (status(code), format!("{{\"kind\":\"Status\",\"code\":{code}}}")).into_response()
        }
        Answer::RetryAfter(code, seconds) => {
            (status(code), [("retry-after", seconds.to_string())]).into_response()
        }
        Answer::Raw(code, text) => (status(code), text).into_response(),
        Answer::Stream(receiver) => {
            let chunks = futures::stream::unfold(receiver, |mut receiver| async {
                receiver.recv().await.map(|chunk| (chunk, receiver))
            });
            Body::from_stream(chunks.boxed()).into_response()
        }
        Answer::Hang => std::future::pending().await,
    }
}

/// A listener whose connections speak TLS; those that fail to are dropped.
struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// A widget's JSON.
pub(crate) fn app(namespace: &str, name: &str, uid: &str, version: u64) -> String {
    format!(
        r#"{{"apiVersion":"example.org/v1","kind":"Widget","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}"}},"spec":{{}}}}"#
    )
}

/// A whole list.
pub(crate) fn list(version: u64, items: &[String]) -> Answer {
    page(version, "", items)
}

/// One page of a list; `next` is the continue token, empty on the last page.
pub(crate) fn page(version: u64, next: &str, items: &[String]) -> Answer {
    Answer::Json(format!(
        r#"{{"kind":"WidgetList","apiVersion":"example.org/v1","metadata":{{"continue":"{next}","resourceVersion":"{version}"}},"items":[{}]}}"#,
        items.join(",")
    ))
}

/// The page that was asked for, of `items`; a token is the index of the next object.
pub(crate) fn paged(asked: &Asked, version: u64, items: &[String]) -> Answer {
    let limit: usize = asked.get("limit").unwrap().parse().unwrap();
    let from: usize = asked.get("continue").map_or(0, |token| token.parse().unwrap());
    let to = (from + limit).min(items.len());
    let next = if to < items.len() { to.to_string() } else { String::new() };
    page(version, &next, &items[from..to])
}
