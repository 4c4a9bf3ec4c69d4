//! Clients and services that are slow, large or many.

use std::time::Duration;

use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use stages_router::RouterConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Running, Upstream, config, empty, eventually, full, proxied, text, try_send, within};

/// A time that is over soon.
const SHORT: Duration = Duration::from_millis(200);

/// All that comes until the connection ends.
async fn rest(stream: &mut tokio::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = within(stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn who_does_not_end_a_head_is_cut_off_and_keeps_nobody_out() {
    let proxy = Upstream::recording().await;
    let settings = RouterConfig {
        app_proxy: Some(proxied(&proxy.url())),
        head_timeout: SHORT,
        connections: 8,
        ..config()
    };
    let running = Running::start(settings).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = running.connect().await;
        // Its place may have been given to another one at once.
        let _ = stream.write_all(b"GET /app-proxy/slow HTTP/1.1\r\nHost: a\r\nX: ").await;
        slow.push(stream);
    }
    // Whoever is slow to be read on a busy machine is cut off as well, and comes again.
    eventually("an answer", async || {
        let request = Request::get("/app-proxy").header("host", "router").body(empty()).unwrap();
        let answer = try_send(running.connect().await, request).await;
        answer.is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    for stream in &mut slow {
        let said = rest(stream).await;
        assert!(!said.contains("200"), "{said}");
    }
    let lines = proxy.lines();
    assert!(!lines.is_empty() && lines.iter().all(|line| !line.contains("slow")), "{lines:?}");
    running.end().await;
}

#[tokio::test]
async fn a_byte_now_and_then_does_not_keep_a_head_open() {
    let running = Running::start(RouterConfig { head_timeout: SHORT, ..config() }).await;
    let (mut read, mut write) = running.connect().await.into_split();
    let dribbling = tokio::spawn(async move {
        write.write_all(b"GET / HTTP/1.1\r\n").await?;
        loop {
            write.write_all(b"X: y\r\n").await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        #[expect(unreachable_code, reason = "it says what the block is")]
        std::io::Result::Ok(())
    });
    let mut bytes = Vec::new();
    let _ = within(read.read_to_end(&mut bytes)).await;
    assert!(within(dribbling).await.unwrap().is_err(), "it is told that nobody reads");
    running.end().await;
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_its_time_and_no_longer() {
    let running = Running::start(RouterConfig { keep_alive: SHORT, ..config() }).await;
    let mut stream = running.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.ends_with("ok"));
    running.end().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_and_an_answer_that_does_not_are_given_up() {
    let proxy = Upstream::start("127.0.0.1:0", |request| async move {
        if request.uri().path() == "/app-proxy/never" {
            std::future::pending::<()>().await;
        }
        let _ = http_body_util::BodyExt::collect(request.into_body()).await;
        Response::new(full("ok"))
    })
    .await;
    let mut behind = proxied(&proxy.url());
    behind.limits.idle = SHORT;
    let running = Running::start(RouterConfig { app_proxy: Some(behind), ..config() }).await;
    let mut stream = running.connect().await;
    stream.write_all(b"POST /app-proxy HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc").await.unwrap();
    let said = rest(&mut stream).await;
    assert!(
        said.starts_with("HTTP/1.1 408 ") && said.ends_with("the body did not arrive in time\n"),
        "{said}"
    );
    let late = running.get("/app-proxy/never").await;
    assert_eq!(late, (504, "the service did not answer in time\n".to_owned()));
    running.end().await;
}

#[tokio::test]
async fn each_route_takes_as_many_requests_as_it_may_and_other_routes_go_on() {
    let proxy = Upstream::start("127.0.0.1:0", |_| async { std::future::pending().await }).await;
    let flows = Upstream::recording().await;
    let mut behind = proxied(&proxy.url());
    behind.limits.requests = 1;
    let settings = RouterConfig {
        app_proxy: Some(behind),
        workflows: Some(proxied(&flows.url())),
        grace: SHORT,
        ..config()
    };
    let running = Running::start(settings).await;
    let mut first = running.connect().await;
    first.write_all(b"GET /app-proxy HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    running.counts(r#"gitops_runtime_router_under_way{route="app_proxy"} 1"#).await;
    eventually("its place", async || !proxy.lines().is_empty()).await;
    let request = Request::get("/app-proxy").header("host", "a").body(empty()).unwrap();
    let answer = running.send(request).await;
    assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    assert_eq!(text(answer).await, "as many requests are under way as this route takes; try again\n");
    assert_eq!(running.get("/workflows/x").await.0, 200);
    running.end().await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_cut_off() {
    let proxy = Upstream::start("127.0.0.1:0", |_| async { Response::new(full(vec![0; 64 << 20])) }).await;
    let settings = RouterConfig { app_proxy: Some(proxied(&proxy.url())), write_timeout: SHORT, ..config() };
    let running = Running::start(settings).await;
    let mut stream = running.connect().await;
    stream.write_all(b"GET /app-proxy HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    running.counts(r#"gitops_runtime_router_under_way{route="app_proxy"} 1"#).await;
    running.counts(r#"gitops_runtime_router_under_way{route="app_proxy"} 0"#).await;
    assert!(rest(&mut stream).await.len() < 64 << 20);
    running.end().await;
}

#[tokio::test]
async fn a_client_of_http_2_that_gives_no_room_to_what_the_router_itself_answers_keeps_no_place() {
    let proxy = Upstream::recording().await;
    let mut behind = proxied(&proxy.url());
    (behind.limits.requests, behind.limits.body) = (1, 4);
    let settings = RouterConfig { app_proxy: Some(behind), write_timeout: SHORT, ..config() };
    let running = Running::start(settings).await;
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(0)
        .handshake(TokioIo::new(running.connect().await))
        .await
        .unwrap();
    tokio::spawn(connection);
    // How long it is shows as it comes.
    let pieces =
        futures::stream::iter(["abc", "def"]).map(|piece| Ok(hyper::body::Frame::data(piece.into())));
    let body = http_body_util::StreamBody::new(pieces).boxed_unsync();
    let large = Request::post("http://a/app-proxy").body(body).unwrap();
    let refused = within(sender.send_request(large)).await.unwrap();
    let events = Request::get("http://a/webhooks/_access/events").body(empty()).unwrap();
    let events = within(sender.send_request(events)).await.unwrap();
    assert_eq!((refused.status().as_u16(), events.status().as_u16()), (413, 200));
    running.counts(r#"gitops_runtime_router_under_way{route="app_proxy"} 0"#).await;
    running.counts(r#"gitops_runtime_router_under_way{route="itself"} 0"#).await;
    assert_eq!(running.get("/app-proxy").await.0, 200);
    // Until its client goes, or reads on, a connection that is being ended has all its grace.
    drop((refused, events, sender));
    running.end().await;
}

#[tokio::test]
async fn a_client_of_http_2_that_gives_its_answer_no_room_keeps_no_place() {
    let (proxy, flows) = (
        Upstream::start("127.0.0.1:0", |_| async { Response::new(full(vec![0; 64 << 20])) }).await,
        // What says nothing for longer than a client may take nothing goes on.
        Upstream::start("127.0.0.1:0", |_| async {
            let later = futures::stream::once(async {
                tokio::time::sleep(SHORT * 5).await;
                Ok(hyper::body::Frame::data(bytes::Bytes::from_static(b"after all")))
            });
            Response::new(http_body_util::StreamBody::new(later).boxed_unsync())
        })
        .await,
    );
    let settings = RouterConfig {
        app_proxy: Some(proxied(&proxy.url())),
        workflows: Some(proxied(&flows.url())),
        write_timeout: SHORT,
        ..config()
    };
    let running = Running::start(settings).await;
    let io = TokioIo::new(running.connect().await);
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1 << 10)
        .handshake(io)
        .await
        .unwrap();
    tokio::spawn(connection);
    let url = |path: &str| Request::get(format!("http://a{path}")).body(empty()).unwrap();
    let silent = within(sender.send_request(url("/workflows/x"))).await.unwrap();
    let stalled = within(sender.send_request(url("/app-proxy"))).await.unwrap();
    assert_eq!((silent.status().as_u16(), stalled.status().as_u16()), (200, 200));
    running.counts(r#"gitops_runtime_router_under_way{route="app_proxy"} 0"#).await;
    // Whoever reads on is told that it was cut off, and other requests of the connection go on.
    assert!(within(stalled.into_body().collect()).await.is_err());
    assert_eq!(text(silent).await, "after all");
    running.end().await;
}
