//! What each route passes on, and what is answered where nobody is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{HeaderMap, Method, Request, Response, StatusCode};
use stages_client::CertificateFiles;
use stages_router::RouterConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

use crate::support::{LONG, Running, Upstream, config, empty, eventually, full, proxied, send, text, within};

#[tokio::test]
async fn the_path_is_kept_for_the_app_proxy_and_the_prefix_taken_away_for_workflows() {
    let (proxy, flows) = (Upstream::recording().await, Upstream::recording().await);
    let running = Running::before(Some(&proxy), Some(&flows)).await;
    for (path, line) in [
        ("/app-proxy", "GET /app-proxy"),
        ("/app-proxy/api/graphql?query=x%2Fy", "GET /app-proxy/api/graphql?query=x%2Fy"),
        ("/app-proxy/a%2Fb//c/", "GET /app-proxy/a%2Fb//c/"),
    ] {
        assert_eq!(running.get(path).await, (200, "ok".to_owned()), "{path}");
        assert_eq!(proxy.last().line, line);
    }
    for (path, line) in [
        ("/workflows", "GET /"),
        ("/workflows/", "GET /"),
        ("/workflows/api/v1/workflow-events/ns?a=1", "GET /api/v1/workflow-events/ns?a=1"),
    ] {
        assert_eq!(running.get(path).await.0, 200, "{path}");
        assert_eq!(flows.last().line, line);
    }
    assert_eq!(running.get("/").await, (404, "nothing is served at this path\n".to_owned()));
    assert_eq!(running.get("/healthz").await, (200, "ok".to_owned()));
    running.counts(r#"gitops_runtime_router_requests_total{route="app_proxy",status="2xx"} 3"#).await;
    running.counts(r#"gitops_runtime_router_refused_total{reason="nowhere"} 1"#).await;
    running.counts(r#"gitops_runtime_router_under_way{route="workflows"} 0"#).await;
    running.end().await;
}

fn cors(headers: &HeaderMap) -> Vec<&str> {
    ["origin", "methods", "headers", "credentials"]
        .into_iter()
        .filter_map(|what| headers.get(format!("access-control-allow-{what}")))
        .map(|value| value.to_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_browser_may_see_that_the_app_proxy_is_away() {
    const CORS: [&str; 4] = [
        "https://platform.example",
        "GET,HEAD,PUT,PATCH,POST,DELETE",
        "content-type,x-access-token,authorization",
        "true",
    ];
    // Bound, so that nobody else is given the port, and not listening.
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let away = proxied(&format!("http://{}", taken.local_addr().unwrap()));
    let settings = RouterConfig { app_proxy: Some(away.clone()), workflows: Some(away), ..config() };
    let running = Running::start(settings).await;
    let ask = async |method: Method, path: &str| {
        let request = Request::builder().method(method).uri(path).header("host", "a").body(empty()).unwrap();
        running.send(request).await
    };
    let preflight = ask(Method::OPTIONS, "/app-proxy/api").await;
    assert_eq!((preflight.status(), cors(preflight.headers())), (StatusCode::NO_CONTENT, CORS.to_vec()));
    assert_eq!(text(preflight).await, "");
    let answer = ask(Method::POST, "/app-proxy/api").await;
    assert_eq!((answer.status(), cors(answer.headers())), (StatusCode::SERVICE_UNAVAILABLE, CORS.to_vec()));
    assert_eq!(answer.headers()["retry-after"], "1");
    assert_eq!(text(answer).await, "the service cannot be connected to\n");
    let other = ask(Method::GET, "/workflows/").await;
    assert_eq!((other.status(), cors(other.headers())), (StatusCode::SERVICE_UNAVAILABLE, vec![]));
    running.end().await;

    // What a mesh in front of it answers in its place has no such headers either; what it says itself is its own.
    for status in [502, 503, 504, 500] {
        let proxy = Upstream::start("127.0.0.1:0", move |_| async move {
            Response::builder().status(status).body(full("of the mesh")).unwrap()
        })
        .await;
        let running = Running::before(Some(&proxy), None).await;
        let request = || Request::options("/app-proxy").header("host", "a").body(empty()).unwrap();
        let answer = running.send(request()).await;
        let expected = if status == 500 { (500, 0) } else { (204, 4) };
        assert_eq!((answer.status().as_u16(), cors(answer.headers()).len()), expected);
        let (got, body) = running.get("/app-proxy").await;
        assert_eq!((got, body.as_str()), (status, "of the mesh"));
        running.end().await;
    }
}

#[tokio::test]
async fn what_the_service_says_of_the_hop_between_is_not_passed_on() {
    let proxy = Upstream::start("127.0.0.1:0", |_| async {
        Response::builder()
            .header("connection", "x-inner")
            .header("x-inner", "1")
            .header("keep-alive", "timeout=1")
            .header("x-outer", "2")
            .body(full("ok"))
            .unwrap()
    })
    .await;
    let running = Running::before(Some(&proxy), None).await;
    let answer = running.send(Request::get("/app-proxy").header("host", "a").body(empty()).unwrap()).await;
    assert_eq!(answer.headers()["x-outer"], "2");
    for name in ["connection", "x-inner", "keep-alive"] {
        assert!(!answer.headers().contains_key(name), "{name}");
    }
    running.end().await;
}

/// Breaks off what it is sent on its first connections, and answers the next.
async fn breaking(times: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, asked) = (format!("http://{}", listener.local_addr().unwrap()), Arc::<AtomicUsize>::default());
    let count = asked.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 4096];
            let _ = stream.read(&mut bytes).await;
            if count.fetch_add(1, Ordering::SeqCst) >= times {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            }
        }
    });
    (url, asked)
}

#[tokio::test]
async fn what_changes_nothing_is_sent_again_and_what_does_is_not() {
    for (method, body, times, answered, asked) in [
        (Method::GET, "", 1, 200, 2),
        (Method::DELETE, "", 1, 200, 2),
        (Method::GET, "", 9, 502, 2),
        (Method::POST, "", 1, 502, 1),
        (Method::PUT, "body", 1, 502, 1),
    ] {
        let (url, count) = breaking(times).await;
        let running = Running::start(RouterConfig { app_proxy: Some(proxied(&url)), ..config() }).await;
        let request = Request::builder().method(method.clone()).uri("/app-proxy").header("host", "a");
        let (status, said) = running.answer(request.body(full(body)).unwrap()).await;
        assert_eq!((status, count.load(Ordering::SeqCst)), (answered, asked), "{method} {body}: {said}");
        if status == 502 {
            assert_eq!(said, "the service broke off before it answered\n");
        }
        running.end().await;
    }
}

#[tokio::test]
async fn it_speaks_tls_with_http_2_when_it_has_a_certificate() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (proxy, folder) = (Upstream::recording().await, tempfile::TempDir::new().unwrap());
    let made = rcgen::generate_simple_self_signed(["router".to_owned()]).unwrap();
    let files =
        CertificateFiles { certificate: folder.path().join("tls.crt"), key: folder.path().join("tls.key") };
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let settings =
        RouterConfig { certificate: Some(files), app_proxy: Some(proxied(&proxy.url())), ..config() };
    let running = Running::start(settings).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    for (protocol, version) in [("h2", http::Version::HTTP_2), ("http/1.1", http::Version::HTTP_11)] {
        let mut client =
            rustls::ClientConfig::builder().with_root_certificates(roots.clone()).with_no_client_auth();
        client.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        let stream =
            within(connector.connect("router".try_into().unwrap(), running.connect().await)).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
        let request = Request::get("https://router/app-proxy").version(version);
        let io = hyper_util::rt::TokioIo::new(stream);
        let response = if protocol == "h2" {
            let executor = hyper_util::rt::TokioExecutor::new();
            let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
            tokio::spawn(connection);
            within(sender.send_request(request.body(empty()).unwrap())).await.unwrap()
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            let request = request.header("host", "router").body(empty()).unwrap();
            within(sender.send_request(request)).await.unwrap()
        };
        assert_eq!((response.status().as_u16(), text(response).await), (200, "ok".to_owned()), "{protocol}");
        assert_eq!(proxy.last().headers["x-forwarded-proto"], "https");
        assert_eq!(proxy.last().version, http::Version::HTTP_11);
    }
    running.end().await;
}

#[tokio::test]
async fn a_stop_lets_what_is_under_way_end_and_takes_no_more() {
    let released = Arc::new(tokio::sync::Notify::new());
    let (waits, begun) = (released.clone(), Arc::new(tokio::sync::Notify::new()));
    let began = begun.clone();
    let proxy = Upstream::start("127.0.0.1:0", move |_| {
        let (waits, began) = (waits.clone(), began.clone());
        async move {
            began.notify_one();
            waits.notified().await;
            Response::new(full("done"))
        }
    })
    .await;
    let app_proxy = Some(proxied(&proxy.url()));
    let running = Running::start(RouterConfig { app_proxy, ..config() }).await;
    let stream = running.connect().await;
    let asking = tokio::spawn(async move {
        let request = Request::get("/app-proxy").header("host", "a").body(empty()).unwrap();
        text(send(stream, request).await).await
    });
    within(begun.notified()).await;
    running.stop.cancel();
    eventually("no more connections", async || {
        tokio::net::TcpStream::connect(running.address).await.is_err()
    })
    .await;
    released.notify_one();
    assert_eq!(within(asking).await.unwrap(), "done");
    within(running.task).await.unwrap();
}

#[tokio::test]
async fn it_is_not_ready_before_it_takes_no_more() {
    let proxy = Upstream::recording().await;
    let app_proxy = Some(proxied(&proxy.url()));
    let running = Running::start(RouterConfig { app_proxy, drain_delay: LONG, ..config() }).await;
    running.stop.cancel();
    eventually("its word", async || running.get("/readyz").await == (503, "stopping\n".to_owned())).await;
    assert_eq!(running.get("/healthz").await.0, 200);
    assert_eq!(running.get("/app-proxy").await, (200, "ok".to_owned()));
    running.task.abort();
}
