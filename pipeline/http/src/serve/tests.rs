//! The pages over real HTTP, and clients that behave badly.

use std::num::NonZeroU32;
use std::time::Instant;

use pipeline_core::{LaneCounts, ObjectIndex, Reason, Shutdown, SourceNote, Uid, Version};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::connections::HEAD_BYTES;
use super::*;
use pipeline_core::CircuitState;
use pipeline_observe::health::HealthLimits;
use pipeline_observe::metrics::MetricsConfig;

/// Two shards, the second of which waits for its sink.
fn looked() -> Status {
    let counts = LaneCounts { observed: 3, acked: 1, waiting: 2, paused: true, ..LaneCounts::default() };
    let counts = LaneCounts { oldest: Duration::from_millis(2500), ..counts };
    Status {
        uptime: Duration::from_secs(9),
        shards: vec![(0, LaneCounts::default()), (1, counts)],
        circuit: CircuitState::Open { until: Duration::ZERO, reason: Reason::ServerError },
    }
}

struct Running {
    address: SocketAddr,
    stop: Shutdown,
    served: Served,
    seen: ObjectIndex,
    task: JoinHandle<Result<(), StageError>>,
}

fn config() -> ServeConfig {
    ServeConfig::new("127.0.0.1:0", "serve.listen")
}

fn served(seen: &ObjectIndex) -> Served {
    let keys = seen.clone();
    working(Arc::new(move || keys.keys()))
}

fn working(keys: Keys) -> Served {
    let works = WorkingProcess { ledger: Ledger::memory(), keys, engine: Arc::new(looked) };
    Served { works: Arc::new(OnceLock::from(works)), ..starting() }
}

/// What there is before the process works.
fn starting() -> Served {
    Served {
        health: Health::new(HealthLimits::default(), [0, 1], Instant::now()),
        metrics: Metrics::new(&MetricsConfig::new([0, 1], "0.0.0")),
        sharding: Sharding::Jump { shards: NonZeroU32::new(2).unwrap() },
        works: Arc::default(),
        routes: Vec::new(),
    }
}

async fn run(config: ServeConfig) -> Running {
    let seen = ObjectIndex::default();
    let served = served(&seen);
    let server = config.build(served.clone()).await.unwrap();
    let (address, stop) = (server.address(), Shutdown::new());
    let task = tokio::spawn(Box::new(server).serve(pipeline_core::ServiceContext::alone(stop.clone())));
    Running { address, stop, served, seen, task }
}

impl Running {
    fn become_ready(&self) {
        self.served.health.note(&SourceNote::Listed { objects: 0 }, Instant::now());
        [0, 1].into_iter().for_each(|shard| self.served.health.shard(shard, true, Instant::now()));
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let response = client().get(format!("http://{}{path}", self.address)).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn json(&self, path: &str) -> Value {
        let (status, text) = self.get(path).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Sends bytes, and reads until the server closes.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        // A reset after the answer is a close as well.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn client() -> reqwest::Client {
    // Whoever is first installs it; the client wants one even for plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn text(status: u16, text: &str) -> (u16, String) {
    (status, text.to_owned())
}

#[tokio::test]
async fn an_address_for_metrics_alone_serves_nothing_else() {
    let running = run(ServeConfig { metrics_only: true, ..config() }).await;
    assert_eq!(running.get("/metrics").await.0, 200);
    for path in ["/", "/healthz", "/readyz", "/status", "/app-distribution"] {
        assert_eq!(running.get(path).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn a_process_that_does_not_work_yet_says_why() {
    let seen = ObjectIndex::default();
    let served = starting();
    let server = config().build(served.clone()).await.unwrap();
    let (address, stop) = (server.address(), Shutdown::new());
    let task = tokio::spawn(Box::new(server).serve(pipeline_core::ServiceContext::alone(stop.clone())));
    let running = Running { address, stop, served, seen, task };
    running.served.health.bus(pipeline_observe::health::Link::Joining, Instant::now());
    let (status, line) = running.get("/healthz").await;
    assert_eq!(status, 200);
    assert!(line.starts_with("degraded: bus: not ready for ") && line.ends_with("before it is\n"), "{line}");
    let (status, line) = running.get("/readyz").await;
    assert_eq!(status, 503);
    assert!(line.starts_with("not ready: the bus is not ready yet; "), "{line}");
    let (status, text) = running.get("/metrics").await;
    assert_eq!(status, 200);
    assert!(text.contains("gitops_runtime_health_state{check=\"bus\"} 1\n"), "{text}");
    let page = running.json("/status").await;
    assert_eq!((&page["ready"], &page["ledger"], &page["shards"]), (&json!(false), &Value::Null, &json!([])));
    assert_eq!(page["total"]["observed"], 0);
    let page = running.json("/app-distribution").await;
    assert_eq!(page["default"]["apps"], json!({}));
    let page = running.json("/app-distribution?replicas=2").await;
    assert_eq!(page["objects"], 0);
    running.stop().await;
}

#[tokio::test]
async fn health_is_a_line_or_all_checks() {
    let running = run(config()).await;
    assert_eq!(running.get("/healthz").await, text(200, "ok\n"));
    let open = CircuitState::Open { until: Duration::ZERO, reason: Reason::Unreachable };
    // However slow the machine is, it is open for less than a second.
    running.served.health.circuit(open, Instant::now() + Duration::from_secs(3600));
    let degraded = "degraded: sink: the circuit has been open for 0 s (unreachable)\n";
    assert_eq!(running.get("/healthz").await, text(200, degraded));
    let full = running.json("/healthz?full=true").await;
    assert_eq!(full["state"], "degraded");
    let states: Vec<(&str, &str)> = full["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| (check["check"].as_str().unwrap(), check["state"].as_str().unwrap()))
        .collect();
    let expected = [
        ("source", "ok"),
        ("lanes", "ok"),
        ("sink", "degraded"),
        ("ledger", "ok"),
        ("settings", "ok"),
        ("argocd", "ok"),
        ("bus", "ok"),
    ];
    assert_eq!(states, expected);

    running.become_ready();
    running.served.health.shard(1, false, Instant::now());
    let (status, line) = running.get("/healthz").await;
    assert_eq!(
        (status, line.as_str()),
        (
            503,
            "failing: lanes: shard 1 does not run; sink: the circuit has been open for 0 s (unreachable)\n"
        )
    );
    assert_eq!(running.get("/healthz?full=1").await.0, 503);
    running.stop().await;
}

#[tokio::test]
async fn readiness_says_what_is_missing() {
    let running = run(config()).await;
    let missing = "not ready: the first list is not complete; not every shard runs\n";
    assert_eq!(running.get("/readyz").await, text(503, missing));
    running.become_ready();
    assert_eq!(running.get("/readyz").await, text(200, "ready\n"));
    running.stop().await;
}

#[tokio::test]
async fn metrics_hold_what_health_and_the_ledger_say_now() {
    let running = run(config()).await;
    running.become_ready();
    let key = Key::new("argocd", "store").unwrap();
    running
        .served
        .works
        .get()
        .unwrap()
        .ledger
        .update(&key, |_| Some(pipeline_core::Record::new("uid".into())));
    running.served.metrics.lane(0, &LaneCounts { observed: 4, acked: 4, ..LaneCounts::default() });
    let response = client().get(format!("http://{}/metrics", running.address)).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let body = response.text().await.unwrap();
    for line in [
        "gitops_runtime_ready 1",
        "gitops_runtime_ledger_records 1",
        "gitops_runtime_events_acked_total{shard=\"0\"} 4",
        "# TYPE gitops_runtime_events_acked_total counter",
    ] {
        assert!(body.lines().any(|found| found == line), "{line}");
    }
    assert!(!body.contains("store"));
    running.stop().await;
}

#[tokio::test]
async fn status_holds_the_engine_and_the_ledger() {
    let running = run(config()).await;
    let status = running.json("/status").await;
    assert_eq!((&status["ready"], &status["health"]), (&json!(false), &json!("ok")));
    assert_eq!(status["ledger"]["storage"], "memory");
    assert_eq!(status["ledger"]["last_commit_seconds"], Value::Null);
    assert_eq!(status["circuit"], json!({ "state": "open", "reason": "server_error" }));
    assert_eq!(status["uptime_seconds"], 9.0);
    let shard = &status["shards"][1];
    assert_eq!((&shard["shard"], &shard["waiting"], &shard["balance"]), (&json!(1), &json!(2), &json!(0)));
    assert_eq!((&shard["oldest_unreported_seconds"], &shard["paused"]), (&json!(2.5), &json!(true)));
    assert_eq!(status["total"]["observed"], 3);
    running.stop().await;
}

#[tokio::test]
async fn applications_are_shown_by_shard() {
    let running = run(config()).await;
    assert_eq!(
        running.json("/app-distribution").await,
        json!({ "default": { "distribution": { "0": 0, "1": 0 }, "apps": {} } })
    );
    let uid: Uid = "uid".into();
    for n in 0..40 {
        running.seen.note(&Key::new("argocd", &format!("app-{n}")).unwrap(), &uid, Version(1));
    }
    let found = running.json("/app-distribution?shardings=fnv-modulo,jump:3").await;
    let names: Vec<&String> = found.as_object().unwrap().keys().collect();
    assert_eq!(names, ["default", "fnv-modulo", "jump:3"]);
    for (name, shards) in [("default", 2), ("fnv-modulo", 2), ("jump:3", 3)] {
        let (distribution, apps) = (&found[name]["distribution"], &found[name]["apps"]);
        let sum: u64 = distribution.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!((sum, distribution.as_object().unwrap().len()), (40, shards));
        assert!(apps["argocd/app-7"].as_u64().unwrap() < shards as u64);
    }
    running.stop().await;
}

#[tokio::test]
async fn shardings_that_are_unknown_or_too_many_are_refused() {
    let running = run(config()).await;
    let many = ["jump"; 9].join(",");
    let long = "x".repeat(257);
    for (asked, message) in [
        (
            "murmur",
            "`murmur` is no sharding: `default`, `jump`, `jump:N`, `fnv-modulo` or `fnv-modulo:N` with N at least 1\n",
        ),
        (
            "jump,jump:0",
            "`jump:0` is no sharding: `default`, `jump`, `jump:N`, `fnv-modulo` or `fnv-modulo:N` with N at least 1\n",
        ),
        ("jump:4000000000", "`jump:4000000000` has more than 1024 shards\n"),
        (&many, "`shardings` takes at most 8 names\n"),
        (&long, "`shardings` takes at most 256 bytes\n"),
    ] {
        assert_eq!(running.get(&format!("/app-distribution?shardings={asked}")).await, text(400, message));
    }
    running.stop().await;
}

#[tokio::test]
async fn replicas_that_are_not_there_yet_are_previewed() {
    let running = run(config()).await;
    let uid: Uid = "uid".into();
    for n in 0..60 {
        running.seen.note(&Key::new("argocd", &format!("app-{n}")).unwrap(), &uid, Version(1));
    }
    let found = running.json("/app-distribution?replicas=3&from=2").await;
    let sum =
        |of: &str| found["replicas"].as_array().unwrap().iter().map(|own| own[of].as_u64().unwrap()).sum();
    assert_eq!(
        (found["replicas"].as_array().unwrap().len(), sum("objects"), sum("resources")),
        (3, 60_u64, 0_u64)
    );
    assert_eq!((&found["way"], &found["uncounted"]), (&json!("leases"), &json!(60)));
    let moved = found["moved"]["objects"].as_u64().unwrap();
    assert_eq!(found["moved"]["from"], 2);
    assert_eq!(Some(moved), found["replicas"][2]["objects"].as_u64(), "only the new one takes");
    for (asked, message) in [
        ("replicas=0", "`replicas` is to be a number from 1 to 256, and not `0`\n"),
        ("replicas=3&shardings=jump", "ask for `shardings` or for `replicas`, one at a time\n"),
        (
            "from=3",
            "`from`, `shards` and `way` are asked with `replicas`, the number of replicas that there would be\n",
        ),
    ] {
        assert_eq!(running.get(&format!("/app-distribution?{asked}")).await, text(400, message));
    }
    running.stop().await;
}

#[tokio::test]
async fn only_reading_what_is_there_is_answered() {
    let running = run(config()).await;
    let (status, index) = running.get("/").await;
    assert_eq!(status, 200);
    for page in ["/healthz", "/readyz", "/metrics", "/status", "/app-distribution"] {
        assert!(index.contains(page));
        assert_eq!(
            client().post(format!("http://{}{page}", running.address)).send().await.unwrap().status(),
            405
        );
    }
    assert_eq!(running.get("/debug/pprof").await, text(404, "no such page: / lists them\n"));
    let with_body =
        client().get(format!("http://{}/healthz", running.address)).body("x").send().await.unwrap();
    assert_eq!(
        (with_body.status().as_u16(), with_body.text().await.unwrap().as_str()),
        (413, "no page takes a request body\n")
    );
    running.stop().await;
}

#[tokio::test]
async fn an_address_in_use_is_named_with_its_setting_and_flag() {
    let running = run(config()).await;
    for (flag, named) in [(None, "--set serve.listen=HOST:PORT"), (Some("--listen"), "--listen")] {
        let taken = ServeConfig { flag, ..ServeConfig::new(running.address.to_string(), "serve.listen") };
        let error = taken.build(running.served.clone()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot listen on {}: the address is in use; stop the process that listens there, or change the setting \
                 `serve.listen` (`{named}`)",
                running.address
            )
        );
    }
    for listen in ["nonsense", "127.0.0.1:99999", "203.0.113.1:80"] {
        let config = ServeConfig::new(listen, "serve.listen");
        let error = config.build(running.served.clone()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cannot listen on {listen}: the setting `serve.listen` is to be `host:port` with a host of this machine"
            )
        );
    }
    running.stop().await;
}

#[tokio::test]
async fn too_large_a_head_is_refused() {
    let running = run(config()).await;
    // One that ends is read as far as there is room for it, which may be a little more.
    let request = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nlong: {}", "x".repeat(HEAD_BYTES));
    assert!(running.raw(request.as_bytes()).await.starts_with("HTTP/1.1 431 "));
    assert_eq!(running.get("/healthz").await.0, 200);
    running.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_head_is_cut_off() {
    let running = run(ServeConfig { head_timeout: Duration::from_millis(50), ..config() }).await;
    assert!(!running.raw(b"GET /healthz HTT").await.contains("200"));
    running.stop().await;
}

#[tokio::test]
async fn idle_clients_do_not_keep_others_out() {
    let config = ServeConfig { connections: 2, head_timeout: Duration::from_millis(100), ..config() };
    let running = run(config).await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(TcpStream::connect(running.address).await.unwrap());
    }
    assert_eq!(running.get("/healthz").await, text(200, "ok\n"));
    running.stop().await;
}

/// Half of them have said nothing yet, the others have had an answer and ask nothing more.
#[tokio::test]
async fn a_probe_is_answered_beside_as_many_idle_connections_as_there_are_places_and_more() {
    let hour = Duration::from_secs(3600);
    let running = run(ServeConfig { head_timeout: hour, connection_age: hour, ..config() }).await;
    running.become_ready();
    let mut idle = Vec::new();
    for number in 0..2 * 256 {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
            let mut first = [0; 8];
            let answered = tokio::time::timeout(Duration::from_secs(30), stream.read_exact(&mut first)).await;
            assert!(answered.is_ok_and(|read| read.is_ok()), "connection {number} is not answered");
        }
        idle.push(stream);
    }
    let probe = tokio::time::timeout(Duration::from_secs(30), running.get("/healthz")).await;
    assert_eq!(probe.map(|(status, _)| status), Ok(200), "the probe is not answered");
    running.stop().await;
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_given_up() {
    let seen = ObjectIndex::default();
    let (started, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let keys = Arc::new(move || {
        let _ = wait.lock().unwrap().recv();
        Vec::new()
    });
    let served = working(keys);
    let config = ServeConfig { request_timeout: Duration::from_millis(50), ..config() };
    let server = config.build(served.clone()).await.unwrap();
    let (address, stop) = (server.address(), Shutdown::new());
    let task = tokio::spawn(Box::new(server).serve(pipeline_core::ServiceContext::alone(stop.clone())));
    let running = Running { address, stop, served, seen, task };
    let slow = running.get("/app-distribution").await;
    assert_eq!(slow, text(503, "the answer was not ready in time\n"));
    assert_eq!(running.get("/healthz").await.0, 200);
    drop(started);
    running.stop().await;
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_frees_the_address() {
    // What is under way would have an hour.
    let running = run(ServeConfig { grace: Duration::from_secs(3600), ..config() }).await;
    let address = running.address;
    let keeping = client();
    let url = format!("http://{address}/healthz");
    assert_eq!(keeping.get(&url).send().await.unwrap().text().await.unwrap(), "ok\n");
    let stopped = tokio::time::timeout(Duration::from_secs(120), running.stop());
    stopped.await.expect("an idle connection holds nothing up");
    assert!(keeping.get(&url).send().await.is_err());
    let again = ServeConfig::new(address.to_string(), "serve.listen");
    assert!(again.build(served(&ObjectIndex::default())).await.is_ok());
}

#[tokio::test]
async fn a_further_route_is_shown_beside_the_first() {
    let route = ServedRoute {
        name: "audit".into(),
        health: Health::new(HealthLimits::default(), [0], Instant::now()),
        metrics: Metrics::new(&MetricsConfig::new([0], "0.0.0")),
        works: Arc::default(),
    };
    let seen = ObjectIndex::default();
    let served = Served { routes: vec![route.clone()], ..served(&seen) };
    let server = config().build(served.clone()).await.unwrap();
    let (address, stop) = (server.address(), Shutdown::new());
    let task = tokio::spawn(Box::new(server).serve(pipeline_core::ServiceContext::alone(stop.clone())));
    let running = Running { address, stop, served, seen, task };
    running.become_ready();
    let missing = "the first list is not complete; not every shard runs; the ledger is not open";
    assert_eq!(running.get("/readyz").await, text(503, &format!("not ready: {missing}\n")));
    assert_eq!(running.json("/status").await["routes"][0]["ledger"], Value::Null);
    assert!(route.works.set(WorkingRoute { ledger: Ledger::memory(), engine: Arc::new(looked) }).is_ok());
    route.health.note(&SourceNote::Listed { objects: 0 }, Instant::now());
    route.health.shard(0, true, Instant::now());
    assert_eq!(running.get("/readyz").await, text(200, "ready\n"));

    let open = CircuitState::Open { until: Duration::ZERO, reason: Reason::Timeout };
    route.health.circuit(open, Instant::now() + Duration::from_secs(3600));
    let degraded = "degraded: route audit: sink: the circuit has been open for 0 s (timeout)\n";
    assert_eq!(running.get("/healthz").await, text(200, degraded));
    let full = running.json("/healthz?full=1").await;
    let own = full["checks"].as_array().unwrap().iter().filter(|check| check["route"] == "audit");
    let own: Vec<&str> = own.map(|check| check["check"].as_str().unwrap()).collect();
    assert_eq!(own, ["lanes", "sink", "ledger"]);
    let status = running.json("/status").await;
    let told = &status["routes"][0];
    assert_eq!((&told["route"], &told["ledger"]["storage"]), (&json!("audit"), &json!("memory")));
    assert_eq!((&told["total"]["observed"], &status["total"]["observed"]), (&json!(3), &json!(3)));
    let (_, metrics) = running.get("/metrics").await;
    let state = "gitops_runtime_health_state{check=\"sink\",route=";
    for line in [format!("{state}\"audit\"}} 1"), format!("{state}\"default\"}} 0")] {
        assert!(metrics.lines().any(|found| found == line), "{line}");
    }
    running.stop().await;
}
