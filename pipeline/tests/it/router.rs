//! The role `router` as a process: large bodies in little memory, told to stop and killed while it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::routing::{get, post};
use futures::StreamExt as _;
use loadtest::process::Start;
use loadtest::sim::port;
use loadtest::sim::server::serve;
use tempfile::TempDir;

use crate::runtime::{Line, PROGRAM, Runtime, eventually, http_client};

const PIECE: usize = 64 << 10;
/// Of 64 KiB: 128 MiB.
const PIECES: usize = 2_048;
/// What the process may have in memory beyond what it had: far below a body.
const FLAT: u64 = 24 << 20;

struct Behind {
    folder: TempDir,
    port: u16,
    service: String,
}

impl Behind {
    /// A service that counts what it is sent, sends as much, and answers at once elsewhere.
    async fn start() -> Self {
        let up = async |request: Request| {
            let mut body = request.into_body().into_data_stream();
            let mut read = 0;
            while let Some(Ok(bytes)) = body.next().await {
                read += bytes.len();
            }
            read.to_string()
        };
        let down = async || {
            let piece = Bytes::from(vec![b'x'; PIECE]);
            let pieces =
                futures::stream::iter((0..PIECES).map(move |_| Ok::<_, std::io::Error>(piece.clone())));
            Body::from_stream(pieces)
        };
        let quick = async || {
            tokio::time::sleep(Duration::from_millis(5)).await;
            "ok"
        };
        let routes = Router::new()
            .route("/app-proxy/up", post(up))
            .route("/app-proxy/down", get(down))
            .route("/app-proxy/quick", get(quick));
        let service = serve(routes).await.unwrap();
        Self { folder: TempDir::new().unwrap(), port: port::free().unwrap(), service }
    }

    async fn router(&self) -> Runtime {
        let listen = format!("127.0.0.1:{}", self.port);
        let args = ["router", "--listen", &listen, "--app-proxy-url", &self.service, "--workflows-url", ""];
        let sets = ["serve.address=127.0.0.1:0", "log.format=json", "router.dns.servers=127.0.0.1:9"];
        let start = Start::with_settings(PROGRAM, args, sets, self.folder.path());
        let runtime = Runtime::serving(start).await;
        eventually("it takes requests", || {
            runtime.process().lines().any("taking requests") && runtime.process().id().is_some()
        })
        .await;
        runtime
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_pass_in_little_memory_and_the_log_holds_no_query() {
    let behind = Behind::start().await;
    let (router, client) = (behind.router().await, http_client());
    let small = client.get(behind.url("/app-proxy/quick?access_token=canary")).bearer_auth("canary");
    assert_eq!(small.send().await.unwrap().text().await.unwrap(), "ok");
    let before = router.process().resident().unwrap();
    let most = Arc::new(AtomicU64::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let passing = async {
        let piece = Bytes::from(vec![b'x'; PIECE]);
        let pieces =
            futures::stream::iter((0..PIECES / 2).map(move |_| Ok::<_, std::io::Error>(piece.clone())));
        let up = client.post(behind.url("/app-proxy/up")).body(reqwest::Body::wrap_stream(pieces));
        let answer = up.send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), (PIECES / 2 * PIECE).to_string());
        let mut answer = client.get(behind.url("/app-proxy/down")).send().await.unwrap();
        let mut read = 0;
        while let Some(bytes) = answer.chunk().await.unwrap() {
            read += bytes.len();
        }
        assert_eq!(read, PIECES * PIECE);
        over.store(true, Ordering::Relaxed);
    };
    let looking = async {
        while !over.load(Ordering::Relaxed) {
            most.fetch_max(router.process().resident().unwrap(), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::join!(passing, looking);
    let more = most.load(Ordering::Relaxed).saturating_sub(before);
    assert!(more < FLAT, "{more} bytes more than the {before} at the beginning");
    let bodies = (PIECES * PIECE) as f64;
    router
        .counts("gitops_runtime_router_bytes_total", &[("route", "app_proxy"), ("way", "out")], bodies)
        .await;
    let path = |line: &Line, path: &str| line.message == "answered" && line.field("path") == path;
    router.logs("the access log", |line| path(line, "/app-proxy/down")).await;
    assert!(router.log().iter().any(|line| path(line, "/app-proxy/quick")));
    let lines = router.process().lines().all();
    assert!(lines.iter().all(|line| !line.contains("canary")), "{lines:?}");
    router.stop().await;
}

/// Asks until it is told to stop; how many answers there were, and how many tries without one.
async fn asking(url: String, client: reqwest::Client, stop: Arc<AtomicBool>) -> (u64, u64) {
    let (mut answered, mut failed) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let answer = client.get(&url).send().await;
        match answer {
            Ok(answer) => {
                // Whatever is answered is the whole of it.
                assert_eq!(answer.status(), 200);
                match answer.text().await {
                    Ok(text) => {
                        assert_eq!(text, "ok");
                        answered += 1;
                    }
                    Err(_) => failed += 1,
                }
            }
            Err(_) => {
                failed += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
    (answered, failed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_killed_under_load_is_there_again_and_who_is_told_to_stop_ends_what_it_began() {
    let behind = Behind::start().await;
    let mut router = behind.router().await;
    let stop = Arc::new(AtomicBool::new(false));
    let asking = (0..8).map(|_| {
        // Each with connections of its own, and some that are idle.
        tokio::spawn(asking(behind.url("/app-proxy/quick"), http_client(), stop.clone()))
    });
    let asking: Vec<_> = asking.collect();
    let route = [("route", "app_proxy"), ("status", "2xx")];
    router.counts("gitops_runtime_router_requests_total", &route, 50.0).await;
    router.kill().await;
    router = behind.router().await;
    router.counts("gitops_runtime_router_requests_total", &route, 50.0).await;
    let lines = router.stop().await;
    let answered: Vec<bool> = lines
        .iter()
        .filter(|line| line.message == "answered")
        .map(|line| line.fields["complete"].as_bool().unwrap())
        .collect();
    assert!(answered.len() >= 50 && answered.iter().all(|complete| *complete), "what was begun was ended");
    router = behind.router().await;
    router.counts("gitops_runtime_router_requests_total", &route, 50.0).await;
    stop.store(true, Ordering::Relaxed);
    for task in asking {
        let (answered, _) = task.await.unwrap();
        assert!(answered > 0);
    }
    router.stop().await;
}
