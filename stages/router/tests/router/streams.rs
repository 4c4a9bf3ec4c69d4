//! What does not end soon: upgrades, event streams, gRPC, and large bodies both ways.

use std::convert::Infallible;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _, stream};
use http::{HeaderMap, Request, Response, Version};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use stages_router::RouterConfig;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Body, Running, Upstream, config, empty, eventually, proxied, within};

/// A body that a test writes.
fn written() -> (mpsc::Sender<Frame<Bytes>>, Body) {
    let (sender, receiver) = mpsc::channel(1);
    let frames = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<Frame<Bytes>>| {
        receiver.recv().await.map(|frame| (Ok::<_, Infallible>(frame), receiver))
    });
    (sender, StreamBody::new(frames).boxed_unsync())
}

fn data(text: &str) -> Frame<Bytes> {
    Frame::data(Bytes::copy_from_slice(text.as_bytes()))
}

#[tokio::test]
async fn a_web_socket_passes_both_ways_and_is_closed_by_either_side() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
                while let Some(Ok(message)) = socket.next().await {
                    if message.is_text() || message.is_binary() {
                        socket.send(message).await.unwrap();
                    }
                }
            });
        }
    });
    let running = Running::start(RouterConfig { app_proxy: Some(proxied(&url)), ..config() }).await;
    let connecting = tokio_tungstenite::client_async("ws://router/app-proxy/ws?a=b", running.connect().await);
    let (mut socket, response) = within(connecting).await.unwrap();
    assert_eq!(response.status(), 101);
    for message in [Message::text("hello"), Message::binary(vec![7; 1 << 20])] {
        socket.send(message.clone()).await.unwrap();
        assert_eq!(within(socket.next()).await.unwrap().unwrap(), message);
    }
    running.counts(r#"gitops_runtime_router_under_way{route="app_proxy"} 1"#).await;
    socket.close(None).await.unwrap();
    while within(socket.next()).await.is_some_and(|message| message.is_ok()) {}
    drop(socket);
    running.counts(r#"gitops_runtime_router_under_way{route="app_proxy"} 0"#).await;
    running.counts(r#"gitops_runtime_router_requests_total{route="app_proxy",status="1xx"} 1"#).await;
    running.end().await;
}

#[tokio::test]
async fn a_web_socket_that_outlives_the_grace_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        while socket.next().await.is_some_and(|message| message.is_ok()) {}
    });
    let grace = std::time::Duration::from_millis(100);
    let running = Running::start(RouterConfig { app_proxy: Some(proxied(&url)), grace, ..config() }).await;
    let connecting = tokio_tungstenite::client_async("ws://router/app-proxy/ws", running.connect().await);
    let (mut socket, _) = within(connecting).await.unwrap();
    running.stop.cancel();
    assert!(within(socket.next()).await.is_none_or(|message| message.is_err()));
    within(running.task).await.unwrap();
}

/// The service sends the next event when the test has read the one before: nothing waits for more on the way.
#[tokio::test]
async fn each_event_of_a_stream_arrives_before_the_next_one_is_sent() {
    let (sender, body) = written();
    let body = std::sync::Mutex::new(Some(body));
    let flows = Upstream::start("127.0.0.1:0", move |_| {
        let body = body.lock().unwrap().take().unwrap();
        async { Response::builder().header("content-type", "text/event-stream").body(body).unwrap() }
    })
    .await;
    let running = Running::before(None, Some(&flows)).await;
    let request =
        Request::get("/workflows/api/v1/stream/events/ns").header("host", "a").body(empty()).unwrap();
    let mut answer = running.send(request).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    for number in 0..50 {
        let event = format!("data: {number}\n\n");
        sender.send(data(&event)).await.unwrap();
        let frame = within(answer.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), event.as_bytes());
    }
    drop(sender);
    assert!(within(answer.frame()).await.is_none());
    assert_eq!(flows.lines(), ["GET /api/v1/stream/events/ns"]);
    running.end().await;
}

/// Frames of both sides in turn, then trailers, over HTTP/2 with prior knowledge on both sides.
#[tokio::test]
async fn a_grpc_stream_passes_both_ways_with_its_trailers() {
    let flows = Upstream::start("127.0.0.1:0", |request| async {
        let (sender, body) = written();
        tokio::spawn(async move {
            let mut asked = request.into_body();
            while let Some(Ok(frame)) = asked.frame().await {
                let Ok(bytes) = frame.into_data() else { break };
                let _ = sender.send(Frame::data(bytes)).await;
            }
            let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
            let _ = sender.send(Frame::trailers(trailers)).await;
        });
        Response::builder().header("content-type", "application/grpc").body(body).unwrap()
    })
    .await;
    let running = Running::before(None, Some(&flows)).await;
    let io = TokioIo::new(running.connect().await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let (asking, body) = written();
    let request = Request::post("http://router/workflows/workflow.WorkflowService/WatchWorkflows")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body)
        .unwrap();
    let mut answer = within(sender.send_request(request)).await.unwrap();
    for number in 0..20 {
        let message = format!("\0\0\0\0\u{2}{number:02}");
        asking.send(data(&message)).await.unwrap();
        let frame = within(answer.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), message.as_bytes());
    }
    drop(asking);
    let trailers = within(answer.frame()).await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["grpc-status"], "0");
    let seen = flows.last();
    assert_eq!((seen.version, seen.headers["te"].to_str().unwrap()), (Version::HTTP_2, "trailers"));
    let path = "/workflow.WorkflowService/WatchWorkflows";
    assert_eq!(seen.line, format!("POST http://{}{path}", flows.address));
    running.end().await;
}

/// The sender is ahead of the receiver by what fits into sockets and windows, and not by the body.
#[tokio::test]
async fn a_large_body_passes_both_ways_at_the_pace_of_who_reads_it() {
    const PIECES: usize = 256;
    let piece = Bytes::from(vec![b'x'; 256 << 10]);
    let (gate, gated) = tokio::sync::watch::channel(false);
    let counted = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = counted.clone();
    let proxy = Upstream::start("127.0.0.1:0", move |request| {
        let (mut gated, count) = (gated.clone(), count.clone());
        async move {
            gated.wait_for(|open| *open).await.unwrap();
            let mut body = request.into_body();
            let (sender, echoed) = written();
            tokio::spawn(async move {
                while let Some(Ok(frame)) = body.frame().await {
                    let Ok(bytes) = frame.into_data() else { break };
                    count.fetch_add(bytes.len(), std::sync::atomic::Ordering::Relaxed);
                    if sender.send(Frame::data(bytes)).await.is_err() {
                        break;
                    }
                }
            });
            Response::new(echoed)
        }
    })
    .await;
    let running = Running::before(Some(&proxy), None).await;
    let (sending, body) = written();
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (count, part) = (sent.clone(), piece.clone());
    tokio::spawn(async move {
        for _ in 0..PIECES {
            if sending.send(Frame::data(part.clone())).await.is_err() {
                break;
            }
            count.fetch_add(part.len(), std::sync::atomic::Ordering::Relaxed);
        }
    });
    let request = Request::post("/app-proxy/echo").header("host", "a").body(body).unwrap();
    let stream = running.connect().await;
    let answering = tokio::spawn(crate::support::send(stream, request));
    // It stops by itself while nobody reads: two looks in turn find the same.
    let mut before = usize::MAX;
    eventually("a sender that waits", async || {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        let now = sent.load(std::sync::atomic::Ordering::Relaxed);
        std::mem::replace(&mut before, now) == now && now > 0
    })
    .await;
    let ahead = sent.load(std::sync::atomic::Ordering::Relaxed);
    assert!(ahead < PIECES * piece.len() / 2, "{ahead} bytes are kept on the way");
    gate.send(true).unwrap();
    let mut answer = within(answering).await.unwrap();
    let mut read = 0;
    while let Some(frame) = within(answer.frame()).await {
        read += frame.unwrap().into_data().unwrap().len();
    }
    assert_eq!(read, PIECES * piece.len());
    assert_eq!(counted.load(std::sync::atomic::Ordering::Relaxed), read);
    running.end().await;
}
