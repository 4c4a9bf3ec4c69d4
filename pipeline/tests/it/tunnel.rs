//! The roles `tunnel-server` and `tunnel-client` as processes: a visitor, a server, a client and a service.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::routing::{get, post};
use loadtest::process::Start;
use loadtest::sim::port;
use loadtest::sim::server::serve;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::platform::Platform;
use crate::runtime::{PROGRAM, Runtime, SOON, eventually, http_client};
use crate::visitors::Visitors;

const HOST: &str = "shop-web.tunnels.example.com";
const TOKEN: &str = "canary-that-opens";

/// A service, and where the server of its tunnel is to be.
struct World {
    folder: TempDir,
    port: u16,
    service: String,
    /// Requests to `/slow` that have begun.
    begun: Arc<AtomicU64>,
    /// Lets them end.
    go: Arc<Notify>,
}

impl World {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("tokens"), format!("shop-web {TOKEN}\n")).unwrap();
        std::fs::write(folder.path().join("token"), format!("{TOKEN}\n")).unwrap();
        std::fs::write(folder.path().join("wrong"), "canary-that-does-not\n").unwrap();
        let (begun, go) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
        let (counting, waiting) = (begun.clone(), go.clone());
        let slow = async move || {
            counting.fetch_add(1, Ordering::SeqCst);
            waiting.notified().await;
            "slow"
        };
        let length = async |request: Request| {
            axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap().len().to_string()
        };
        let routes = Router::new()
            .route("/quick", get(async || "ok"))
            .route("/slow", get(slow))
            .route("/length", post(length).layer(axum::extract::DefaultBodyLimit::disable()));
        let service = serve(routes).await.unwrap();
        Self { folder, port: port::free().unwrap(), service, begun, go }
    }

    async fn run(&self, args: &[&str]) -> Runtime {
        let more = ["--set", "log.format=json", "--serve", "127.0.0.1:0"];
        Runtime::serving(Start {
            program: PROGRAM.into(),
            args: args.iter().copied().chain(more).map(Into::into).collect(),
            env: Vec::new(),
            directory: self.folder.path().to_path_buf(),
        })
        .await
    }

    async fn server(&self) -> Runtime {
        let listen = format!("127.0.0.1:{}", self.port);
        let args = ["--listen", &listen, "--domain", "tunnels.example.com", "--tokens-file", "tokens"];
        let args = ["tunnel-server"].into_iter().chain(args).chain([
            "--set",
            "tunnelServer.drainDelay=500ms",
            "--set",
            "tunnelServer.checkInterval=200ms",
        ]);
        self.run(&args.collect::<Vec<_>>()).await
    }

    /// A client as the chart starts it.
    async fn client(&self) -> Runtime {
        let to = format!("tunnelClient.to=http://127.0.0.1:{}", self.port);
        let args = ["--set", &to, "--name", "shop-web", "--token-file", "token", "--forward", &self.service];
        let client = self.run(&["tunnel-client"].into_iter().chain(args).collect::<Vec<_>>()).await;
        client.answers("/readyz", |status, _| status == 200).await;
        client
    }

    fn get(&self, client: &reqwest::Client, path: &str) -> reqwest::RequestBuilder {
        client.get(format!("http://127.0.0.1:{}{path}", self.port)).header("host", HOST)
    }

    /// Runs it to its end, which is none of a success; gives what it said.
    async fn fails(&self, args: &[&str]) -> String {
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(SOON, command.output()).await.unwrap().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        said.lines().last().unwrap_or_default().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_one_machine_a_tunnel_is_opened_without_settings() {
    let world = World::start().await;
    let listen = format!("127.0.0.1:{}", world.port);
    let server = world.run(&["tunnel-server", "--single", "--listen", &listen]).await;
    let to = format!("http://{listen}");
    let client =
        world.run(&["tunnel-client", "--to", &to, "--forward", &world.service, "--name", "try-it"]).await;
    client.answers("/readyz", |status, _| status == 200).await;
    assert_eq!(client.page("/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(server.page("/readyz").await, (200, "ready\n".to_owned()));
    let http = http_client();
    let visit = |method, path: &str| {
        http.request(method, format!("{to}{path}")).header("host", format!("try-it.localhost:{}", world.port))
    };
    assert_eq!(visit(reqwest::Method::GET, "/quick").send().await.unwrap().text().await.unwrap(), "ok");
    let large = visit(reqwest::Method::POST, "/length").body(vec![b'x'; 5 << 20]).send().await.unwrap();
    assert_eq!(large.text().await.unwrap(), (5 << 20).to_string());
    server.counts("gitops_runtime_tunnel_server_requests_total", &[("outcome", "answered")], 2.0).await;
    client.counts("gitops_runtime_tunnel_client_connections", &[], 2.0).await;
    assert!(client.counted("gitops_runtime_tunnel_client_visits_total", &[("outcome", "led")]).await >= 1.0);
    client.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_is_there_again_and_visitors_are_answered() {
    let world = World::start().await;
    let (server, client) = (world.server().await, world.client().await);
    let visitors = Visitors::start(4, |client| world.get(client, "/quick"));
    visitors.go_on().await;
    client.kill().await;
    let client = world.client().await;
    visitors.go_on().await;
    server.kill().await;
    let server = world.server().await;
    visitors.go_on().await;
    client.answers("/readyz", |status, _| status == 200).await;
    assert!(client.counted("gitops_runtime_tunnel_client_failures_total", &[]).await >= 1.0);
    drop(visitors.failed().await);
    client.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_another_takes_over_from_is_stopped_and_no_request_fails() {
    let world = World::start().await;
    let (server, mut client) = (world.server().await, world.client().await);
    let visitors = Visitors::start(4, |client| world.get(client, "/quick"));
    visitors.go_on().await;
    for _ in 0..2 {
        let newer = world.client().await;
        client.says("a newer client has taken this tunnel over; waiting beside it").await;
        // Whoever updates a Deployment waits for each of its pods.
        client.answers("/readyz", |status, _| status == 200).await;
        visitors.go_on().await;
        let older = std::mem::replace(&mut client, newer);
        older.stop().await;
        visitors.go_on().await;
    }
    assert_eq!(visitors.failed().await, Vec::<String>::new());
    // A server that is told to stop ends what was begun.
    let http = http_client();
    let slow = tokio::spawn(world.get(&http, "/slow").send());
    eventually("it has begun", || world.begun.load(Ordering::SeqCst) == 1).await;
    let stopping = tokio::spawn(server.stop());
    eventually("it takes no connection", || std::net::TcpStream::connect(("127.0.0.1", world.port)).is_err())
        .await;
    world.go.notify_one();
    let answer = slow.await.unwrap().unwrap();
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap()), (200, "slow".to_owned()));
    stopping.await.unwrap();
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_may_not_have_the_tunnel_is_told_so_and_it_is_logged() {
    let world = World::start().await;
    let (server, client) = (world.server().await, world.client().await);
    let to = format!("http://127.0.0.1:{}", world.port);
    let other = ["tunnel-client", "--to", &to, "--name", "shop-web", "--forward", &world.service];
    let with = |token: &'static str| other.into_iter().chain(["--token-file", token]).collect::<Vec<_>>();
    let refused = format!(
        "gitops-runtime: keep the tunnel shop-web open: 127.0.0.1:{} refused the tunnel with 401 Unauthorized: this token does not open shop-web",
        world.port
    );
    assert_eq!(world.fails(&with("wrong")).await, refused);
    assert_eq!(world.fails(&other).await, refused);
    let line = server.says("a client of a tunnel was refused").await;
    assert_eq!(
        (line.field("tunnel"), line.field("reason"), line.level.as_str()),
        ("shop-web", "credential", "WARN")
    );
    server.counts("gitops_runtime_tunnel_server_refused_total", &[("reason", "credential")], 2.0).await;
    // Whose line is taken out of the file is closed, and told.
    std::fs::write(world.folder.path().join("tokens"), "").unwrap();
    server.logs("the token is revoked", |line| line.field("reason") == "revoked").await;
    client.answers("/readyz", |status, _| status == 503).await;
    let lines: Vec<String> =
        [&server, &client].iter().flat_map(|runtime| runtime.process().lines().all()).collect();
    assert!(lines.iter().all(|line| !line.contains("canary")), "{lines:?}");
    client.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_platform_says_which_runtime_has_which_tunnel_until_its_token_is_revoked() {
    let (world, platform) = (World::start().await, Platform::start().await);
    std::fs::copy(platform.token_file(), world.folder.path().join("token")).unwrap();
    let other = platform.command(&["token", "create", "--runtime", "other"]).await.unwrap();
    std::fs::write(world.folder.path().join("wrong"), &other).unwrap();
    let (listen, url) = (format!("127.0.0.1:{}", world.port), platform.url());
    let args = ["tunnel-server", "--listen", &listen, "--domain", "localhost", "--platform-url", &url];
    let check = ["--set", "tunnelServer.checkInterval=200ms"];
    let server = world.run(&args.into_iter().chain(check).collect::<Vec<_>>()).await;
    let to = format!("http://{listen}");
    let client = ["tunnel-client", "--to", &to, "--name", "default-prod", "--forward", &world.service];
    let with = |token: &'static str| client.into_iter().chain(["--token-file", token]).collect::<Vec<_>>();
    let refused = format!(
        "gitops-runtime: keep the tunnel default-prod open: {listen} refused the tunnel with 401 Unauthorized: this token does not open default-prod"
    );
    assert_eq!(world.fails(&with("wrong")).await, refused);
    let running = world.run(&with("token")).await;
    running.answers("/readyz", |status, _| status == 200).await;
    let visit = http_client().get(format!("{to}/quick")).header("host", "default-prod.localhost");
    assert_eq!(visit.send().await.unwrap().text().await.unwrap(), "ok");
    let listed = platform.command(&["token", "list"]).await.unwrap();
    let name = listed.lines().find(|line| line.ends_with("prod")).and_then(|line| line.split(' ').next());
    platform.command(&["token", "revoke", name.unwrap()]).await.unwrap();
    server.logs("the token is revoked", |line| line.field("reason") == "revoked").await;
    running.answers("/readyz", |status, _| status == 503).await;
    let token = std::fs::read_to_string(platform.token_file()).unwrap();
    let lines: Vec<String> =
        [&server, &running].iter().flat_map(|runtime| runtime.process().lines().all()).collect();
    assert!(
        lines.iter().all(|line| !line.contains(token.trim()) && !line.contains(other.trim())),
        "{lines:?}"
    );
    running.stop().await;
    server.stop().await;
}

#[tokio::test]
async fn what_tunnels_cannot_start_with_is_said() {
    let world = World::start().await;
    for (args, why) in [
        (
            &["tunnel-server"][..],
            "tunnelServer.domain is not set: set it (--domain) to what hosts of tunnels end in, or try it on this machine with --single",
        ),
        (
            &["tunnel-server", "--domain", "tunnels.example.com"],
            "nothing says who may open a tunnel: set tunnelServer.tokensFile (--tokens-file) to a file with a name and a token in each line, or ask a platform (--platform-url)",
        ),
        (
            &["tunnel-server", "--single", "--listen", "0.0.0.0:8080"],
            "whoever reaches this server could open any tunnel: name a file of tokens with --tokens-file, or listen on 127.0.0.1 alone",
        ),
        (
            &["tunnel-client"],
            "tunnelClient.to is not set: set it (--to) to the address of a tunnel server, such as https://tunnels.example.com",
        ),
        (
            &["tunnel-client", "--to", "http://localhost:1"],
            "tunnelClient.forward is not set: set it (--forward) to what visitors are led to, such as http://localhost:3000",
        ),
        (
            &["tunnel-client", "--to", "http://localhost:1", "--forward", "https://localhost"],
            "the address to forward to begins with http:// and names a host, such as http://localhost:3000",
        ),
    ] {
        assert_eq!(world.fails(args).await, format!("gitops-runtime: {why}"));
    }
}
