//! The service that visitors want.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Notify;

type Body = BoxBody<Bytes, Infallible>;

/// A service that answers by the path.
#[derive(Clone, Default)]
pub(crate) struct Service {
    /// Lets `/slow` go on, and `/held`.
    pub(crate) go: Arc<Notify>,
    /// Requests to them that have begun.
    pub(crate) begun: Arc<AtomicU64>,
    /// Bytes of `/endless` that somebody took.
    pub(crate) taken: Arc<AtomicU64>,
    /// Whether `/closing` ends its connection after an answer.
    pub(crate) closing: Arc<AtomicBool>,
}

impl Service {
    pub(crate) async fn start(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let answer = service_fn(move |request| {
                        let service = service.clone();
                        async move { Ok::<_, Infallible>(service.answer(request).await) }
                    });
                    let mut http = hyper::server::conn::http1::Builder::new();
                    drop(
                        http.half_close(true)
                            .serve_connection(TokioIo::new(stream), answer)
                            .with_upgrades()
                            .await,
                    );
                });
            }
        });
        address
    }

    async fn answer(&self, mut request: Request<Incoming>) -> Response<Body> {
        let full = |text: String| Full::new(Bytes::from(text)).boxed();
        match request.uri().path() {
            "/headers" => {
                let mut text = String::new();
                for (name, value) in request.headers() {
                    text.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
                }
                Response::new(full(text))
            }
            "/echo" => {
                let body = request.into_body();
                Response::new(body.map_err(|_| unreachable!("the body of a visitor is whole")).boxed())
            }
            "/length" | "/post" => {
                let body = request.into_body().collect().await;
                Response::new(full(
                    body.map_or_else(|_| "cut".to_owned(), |body| body.to_bytes().len().to_string()),
                ))
            }
            // A first piece, and the rest when it may go on.
            "/slow" => {
                self.begun.fetch_add(1, Ordering::SeqCst);
                let go = self.go.clone();
                let first = futures::stream::once(async { Ok(Frame::data(Bytes::from_static(b"first "))) });
                let second = futures::stream::once(async move {
                    go.notified().await;
                    Ok(Frame::data(Bytes::from_static(b"second")))
                });
                Response::new(BodyExt::boxed(StreamBody::new(first.chain(second))))
            }
            // Nothing at all until all that are held may go on.
            "/held" => {
                let go = self.go.notified();
                tokio::pin!(go);
                go.as_mut().enable();
                self.begun.fetch_add(1, Ordering::SeqCst);
                go.await;
                Response::new(full("held".to_owned()))
            }
            "/endless" => {
                let taken = self.taken.clone();
                let piece = Bytes::from(vec![b'x'; 64 << 10]);
                let stream = futures::stream::repeat_with(move || {
                    taken.fetch_add(64 << 10, Ordering::SeqCst);
                    Ok(Frame::data(piece.clone()))
                });
                Response::new(BodyExt::boxed(StreamBody::new(stream)))
            }
            "/big" => Response::new(full("x".repeat(1 << 20))),
            "/trailers" => {
                let data = Ok(Frame::data(Bytes::from_static(b"body")));
                let mut trailers = http::HeaderMap::new();
                trailers.insert("x-sum", "42".parse().unwrap());
                let stream = futures::stream::iter([data, Ok(Frame::trailers(trailers))]);
                let mut answer = Response::new(BodyExt::boxed(StreamBody::new(stream)));
                answer.headers_mut().insert(header::TRAILER, "x-sum".parse().unwrap());
                answer
            }
            "/closing" if self.closing.load(Ordering::SeqCst) => {
                let mut answer = Response::new(full("closing".to_owned()));
                answer.headers_mut().insert(header::CONNECTION, "close".parse().unwrap());
                answer
            }
            // Says back whatever comes, and `end` when nothing comes any more.
            "/upgrade" => {
                let upgraded = hyper::upgrade::on(&mut request);
                tokio::spawn(async move {
                    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
                    let mut io = TokioIo::new(upgraded.await.unwrap());
                    let mut bytes = [0; 1024];
                    loop {
                        let read = io.read(&mut bytes).await.unwrap();
                        if read == 0 {
                            break;
                        }
                        io.write_all(&bytes[..read]).await.unwrap();
                    }
                    io.write_all(b"end").await.unwrap();
                    io.shutdown().await.unwrap();
                });
                let mut answer = Response::new(full(String::new()));
                *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                answer.headers_mut().insert(header::CONNECTION, "upgrade".parse().unwrap());
                answer.headers_mut().insert(header::UPGRADE, "echo".parse().unwrap());
                answer
            }
            path => {
                let size = request.body().size_hint().exact().unwrap_or_default();
                Response::new(full(format!("{} {path} {size}", request.method())))
            }
        }
    }
}
