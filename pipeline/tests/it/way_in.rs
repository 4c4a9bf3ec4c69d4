//! The whole way in, as processes: visitors, servers of tunnels that find each other by a real NATS server, a client, a router
//! and a service.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::routing::get;
use loadtest::nats::NatsServer;
use loadtest::process::Start;
use loadtest::sim::port;
use loadtest::sim::server::serve;
use loadtest::sim::wait_for;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::runtime::{PROGRAM, Runtime, SOON, http_client};
use crate::visitors::Visitors;

const HOST: &str = "shop-web.tunnels.example.com";
const TOKEN: &str = "canary-that-opens";

/// A service below /app-proxy, and what leads to it.
struct World {
    folder: TempDir,
    service: String,
    /// Lets the stream of events go on.
    go: Arc<Notify>,
}

impl World {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("tokens"), format!("shop-web {TOKEN}\n")).unwrap();
        std::fs::write(folder.path().join("token"), format!("{TOKEN}\n")).unwrap();
        let go = Arc::new(Notify::new());
        let waiting = go.clone();
        // The second event is written when the first was read.
        let events = async move || {
            let stream = futures::stream::unfold(0_u8, move |number| {
                let waiting = waiting.clone();
                async move {
                    if number == 1 {
                        waiting.notified().await;
                    }
                    let event = Bytes::from(format!("data: {number}\n\n"));
                    (number < 2).then_some((Ok::<_, std::io::Error>(event), number + 1))
                }
            });
            ([("content-type", "text/event-stream")], Body::from_stream(stream))
        };
        let who = async |headers: HeaderMap| {
            let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
            format!("{:?} {:?}", text("x-forwarded-for"), text("x-forwarded-host"))
        };
        let routes = Router::new()
            .route("/app-proxy/quick", get(async || "ok"))
            .route("/app-proxy/who", get(who))
            .route("/app-proxy/events", get(events))
            .route("/app-proxy/echo", get(echo));
        let service = serve(routes).await.unwrap();
        Self { folder, service, go }
    }

    async fn run(&self, args: &[&str]) -> Runtime {
        let sets = ["log.format=json", "serve.address=127.0.0.1:0"];
        Runtime::serving(Start::with_settings(PROGRAM, args, sets, self.folder.path())).await
    }

    async fn router(&self, port: u16) -> Runtime {
        let listen = format!("127.0.0.1:{port}");
        let router = self
            .run(&[
                "router",
                "--listen",
                &listen,
                "--app-proxy-url",
                &self.service,
                "--workflows-url",
                "",
                "--set",
                "router.trustedProxies=127.0.0.0/8",
                "--set",
                "router.dns.servers=127.0.0.1:9",
            ])
            .await;
        router.says("taking requests").await;
        router
    }

    async fn server(&self, port: u16, more: &[&str]) -> Runtime {
        let listen = format!("127.0.0.1:{port}");
        let args = [
            "tunnel-server",
            "--listen",
            &listen,
            "--domain",
            "tunnels.example.com",
            "--tokens-file",
            "tokens",
            "--set",
            "tunnelServer.drainDelay=500ms",
            "--set",
            "tunnelServer.trustedProxies=127.0.0.0/8",
        ];
        let server = self.run(&args.into_iter().chain(more.iter().copied()).collect::<Vec<_>>()).await;
        server.says("taking clients of tunnels and their visitors").await;
        server
    }

    async fn client(&self, to: u16, router: u16, more: &[&str]) -> Runtime {
        let to = format!("tunnelClient.to=http://127.0.0.1:{to}");
        let forward = format!("http://127.0.0.1:{router}");
        let args = [
            "tunnel-client",
            "--set",
            &to,
            "--name",
            "shop-web",
            "--token-file",
            "token",
            "--forward",
            &forward,
        ];
        let client = self.run(&args.into_iter().chain(more.iter().copied()).collect::<Vec<_>>()).await;
        client.answers("/readyz", |status, _| status == 200).await;
        client
    }
}

/// Upgrades, and sends back what it is sent.
async fn echo(mut request: axum::extract::Request) -> axum::response::Response {
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut io = hyper_util::rt::TokioIo::new(upgraded.await.unwrap());
        let mut bytes = [0; 1024];
        while let Ok(read @ 1..) = io.read(&mut bytes).await {
            io.write_all(&bytes[..read]).await.unwrap();
        }
    });
    axum::response::Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", "echo")
        .body(Body::empty())
        .unwrap()
}

fn visit(http: &reqwest::Client, port: u16, path: &str) -> reqwest::RequestBuilder {
    http.get(format!("http://127.0.0.1:{port}{path}")).header("host", HOST)
}

async fn text(request: reqwest::RequestBuilder) -> (u16, String) {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Whether a visitor at a port gets the service's answer, sooner or later.
async fn led(http: &reqwest::Client, port: u16) {
    let what = format!("visitors at {port} to be led through");
    let look = async || visit(http, port, "/app-proxy/quick").send().await;
    let is_led =
        |answer: &reqwest::Result<reqwest::Response>| answer.as_ref().is_ok_and(|one| one.status() == 200);
    let answer = wait_for(&what, look, is_led).await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "ok");
}

/// One name for several servers: a connection goes to the first that takes it, beginning with another each time.
async fn one_name(servers: Vec<u16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut turn = 0;
        while let Ok((mut near, _)) = listener.accept().await {
            turn += 1;
            let order: Vec<u16> = (0..servers.len()).map(|at| servers[(at + turn) % servers.len()]).collect();
            tokio::spawn(async move {
                for server in order {
                    if let Ok(mut far) = TcpStream::connect(("127.0.0.1", server)).await {
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                        return;
                    }
                }
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_is_led_through_server_client_and_router_to_the_service() {
    let world = World::start().await;
    let (front, back) = (port::free().unwrap(), port::free().unwrap());
    let router = world.router(back).await;
    let server = world.server(front, &[]).await;
    let client = world.client(front, back, &[]).await;
    let http = http_client();
    let who = visit(&http, front, "/app-proxy/who").header("x-forwarded-for", "198.51.100.7");
    let (status, said) = text(who).await;
    assert_eq!(status, 200);
    assert!(
        said.contains("198.51.100.7") && said.contains(HOST),
        "the service knows who asked, and for what: {said}"
    );
    assert_eq!(text(visit(&http, front, "/elsewhere")).await.0, 404, "the router has no such route");
    // Events arrive as they are written.
    let mut events = visit(&http, front, "/app-proxy/events").send().await.unwrap();
    assert_eq!(events.chunk().await.unwrap().unwrap(), "data: 0\n\n");
    world.go.notify_one();
    assert_eq!(events.chunk().await.unwrap().unwrap(), "data: 1\n\n");
    assert!(events.chunk().await.unwrap().is_none());
    // An upgrade passes both ways.
    let mut socket = TcpStream::connect(("127.0.0.1", front)).await.unwrap();
    let ask = format!(
        "GET /app-proxy/echo HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
    );
    socket.write_all(ask.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tokio::time::timeout(SOON, socket.read_u8()).await.unwrap().unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    for word in ["hello", "again"] {
        socket.write_all(word.as_bytes()).await.unwrap();
        let mut back = vec![0; word.len()];
        tokio::time::timeout(SOON, socket.read_exact(&mut back)).await.unwrap().unwrap();
        assert_eq!(back, word.as_bytes());
    }
    drop(socket);
    // Each in turn is killed, and is there again.
    router.kill().await;
    let router = world.router(back).await;
    led(&http, front).await;
    client.kill().await;
    let client = world.client(front, back, &[]).await;
    led(&http, front).await;
    server.kill().await;
    let server = world.server(front, &[]).await;
    led(&http, front).await;
    for runtime in [&router, &client, &server] {
        assert!(runtime.process().lines().all().iter().all(|line| !line.contains("canary")));
    }
    client.stop().await;
    server.stop().await;
    router.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_behind_one_name_pass_visitors_on_and_one_may_be_killed() {
    let (world, nats) = (World::start().await, NatsServer::start().await.unwrap());
    let back = port::free().unwrap();
    let router = world.router(back).await;
    let mut servers = Vec::new();
    let mut ports = Vec::new();
    for _ in 0..3 {
        let (front, peers, url) = (port::free().unwrap(), port::free().unwrap(), nats.url());
        let peers = format!("tunnelServer.peers.listen=127.0.0.1:{peers}");
        servers.push(world.server(front, &["--bus", &url, "--set", &peers]).await);
        ports.push((front, peers));
    }
    let fronts: Vec<u16> = ports.iter().map(|(front, _)| *front).collect();
    // The client has all its connections to the first, then whoever is there.
    let client =
        world.client(fronts[0], back, &["--set", "tunnelClient.allow=198.51.100.0/24,127.0.0.1"]).await;
    let http = http_client();
    for front in &fronts {
        led(&http, *front).await;
    }
    // Who may visit is the same everywhere, by the real address.
    for front in &fronts {
        let from = |address: &str| visit(&http, *front, "/app-proxy/who").header("x-forwarded-for", address);
        let (status, said) = text(from("198.51.100.7")).await;
        assert!(status == 200 && said.contains("198.51.100.7"), "{status} {said}");
        assert_eq!(
            text(from("203.0.113.7")).await,
            (403, "this address may not visit this host\n".to_owned())
        );
    }
    // Another client of the tunnel is refused, wherever it comes.
    let to = format!("http://127.0.0.1:{}", fronts[1]);
    let forward = format!("http://127.0.0.1:{back}");
    let to = format!("tunnelClient.to={to}");
    let other =
        ["tunnel-client", "--set", &to, "--name", "shop-web", "--token-file", "token", "--forward", &forward];
    let other =
        world.run(&other.into_iter().chain(["--set", "tunnelClient.id=another"]).collect::<Vec<_>>()).await;
    servers[1].logs("it is refused", |line| line.field("reason") == "taken").await;
    other.answers("/readyz", |status, _| status == 503).await;
    other.kill().await;
    // Nobody but a server is led through the port of servers.
    let peers: SocketAddr = ports[0].1.split_once('=').unwrap().1.parse().unwrap();
    let mut stranger = TcpStream::connect(peers).await.unwrap();
    let mut ask = vec![1];
    ask.extend_from_slice(&[7; 32]);
    for text in ["shop-web", "198.51.100.7:1"] {
        ask.push(text.len() as u8);
        ask.extend_from_slice(text.as_bytes());
    }
    stranger.write_all(&ask).await.unwrap();
    assert_eq!(tokio::time::timeout(SOON, stranger.read_u8()).await.unwrap().unwrap(), 1);
    servers[0].says("somebody who is no server of tunnels asked for one").await;
    // The bus may be away: what is known stays known.
    nats.kill().await.unwrap();
    for front in &fronts {
        led(&http, *front).await;
    }
    nats.restart().await.unwrap();
    client.stop().await;
    let name = one_name(fronts.clone()).await;
    let client = world.client(name, back, &[]).await;
    for front in &fronts {
        led(&http, *front).await;
    }
    let visitors = Visitors::start(1, |http| visit(http, name, "/app-proxy/quick"));
    visitors.go_on().await;
    servers.remove(0).kill().await;
    visitors.go_on().await;
    for front in &fronts[1..] {
        led(&http, *front).await;
    }
    drop(visitors.failed().await);
    client.stop().await;
    for server in servers {
        server.stop().await;
    }
    router.stop().await;
}

/// So many servers have the tunnel, and are told to end at once, while visitors come to another.
async fn handed_over(servers: usize) {
    let (world, nats) = (World::start().await, NatsServer::start().await.unwrap());
    let (back, last) = (port::free().unwrap(), port::free().unwrap());
    let router = world.router(back).await;
    let on_the_bus = async |front: u16| {
        let peers = format!("tunnelServer.peers.listen=127.0.0.1:{}", port::free().unwrap());
        world.server(front, &["--bus", &nats.url(), "--set", &peers]).await
    };
    // Nobody else is there yet: all of the tunnel is at these.
    let (mut leaving, mut fronts) = (Vec::new(), Vec::new());
    for _ in 0..servers {
        let front = port::free().unwrap();
        leaving.push(on_the_bus(front).await);
        fronts.push(front);
    }
    fronts.push(last);
    let client = world.client(one_name(fronts).await, back, &[]).await;
    let staying = on_the_bus(last).await;
    let http = http_client();
    led(&http, last).await;
    let visitors = Visitors::start(1, |http| visit(http, last, "/app-proxy/quick"));
    visitors.go_on().await;
    let lines: Vec<_> = leaving.iter().map(|server| server.process().lines().clone()).collect();
    futures::future::join_all(leaving.into_iter().map(Runtime::stop)).await;
    visitors.go_on().await;
    assert_eq!(visitors.failed().await, Vec::<String>::new());
    for lines in lines {
        let cut_off = "requests that did not finish in time are cut off";
        assert!(!lines.any(cut_off), "{:#?}", lines.all());
    }
    client.stop().await;
    staying.stop().await;
    router.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_told_to_end_hands_its_tunnel_over_and_cuts_nobody_off() {
    handed_over(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_that_are_told_to_end_at_once_hand_their_tunnel_over_and_cut_nobody_off() {
    handed_over(2).await;
}

#[tokio::test]
async fn a_server_on_a_bus_must_know_how_others_reach_it() {
    let (world, nats) = (World::start().await, NatsServer::start().await.unwrap());
    let listen = format!("127.0.0.1:{}", port::free().unwrap());
    let mut command = tokio::process::Command::new(PROGRAM);
    command
        .args([
            "tunnel-server",
            "--listen",
            &listen,
            "--domain",
            "tunnels.example.com",
            "--tokens-file",
            "tokens",
        ])
        .args(["--bus", &nats.url()])
        .current_dir(world.folder.path())
        .kill_on_drop(true);
    let output = tokio::time::timeout(SOON, command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        said.lines().last(),
        Some(
            "gitops-runtime: tunnelServer.peers.address is not set: set it to the address that other servers reach this one \
             at, such as its pod's"
        )
    );
}
