//! A way in that is visited while Prometheus looks on: tunnel server, tunnel client, router and a service, and one that is away.

use std::net::SocketAddr;
use std::path::Path;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use loadtest::port;
use loadtest::process::{Process, Start};
use loadtest::sim::local_client;
use loadtest::sim::server::serve;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::prometheus::SOON;

/// All of it, while it runs.
pub(crate) struct Ways {
    processes: Vec<Process>,
    /// Where each serves its figures.
    pub(crate) targets: Vec<SocketAddr>,
    visiting: JoinHandle<()>,
    _folder: TempDir,
}

impl Ways {
    /// Starts it, and visitors who come until it ends.
    pub(crate) async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        // A stream that stays open: the first piece, and nothing more.
        let hold = async || {
            let first = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from("x"))]);
            Body::from_stream(futures::StreamExt::chain(first, futures::stream::pending()))
        };
        let routes =
            Router::new().route("/app-proxy/quick", get(async || "ok")).route("/app-proxy/hold", get(hold));
        let service = serve(routes).await.unwrap();
        let (front, back) = (port::free().unwrap(), port::free().unwrap());
        let (server, router) = (format!("127.0.0.1:{front}"), format!("127.0.0.1:{back}"));
        let (to, forward) = (format!("http://{server}"), format!("http://{router}"));
        let away = format!("http://127.0.0.1:{}", port::free().unwrap());
        let mut ways = Self {
            processes: Vec::new(),
            targets: Vec::new(),
            visiting: tokio::spawn(visit(front)),
            _folder: folder,
        };
        let names = ["--set", "router.dns.servers=127.0.0.1:9"];
        let roles: [&[&str]; 3] = [
            &["router", "--listen", &router, "--app-proxy-url", &service, "--workflows-url", &away],
            &["tunnel-server", "--single", "--listen", &server, "--serve", "127.0.0.1:0"],
            &[
                "tunnel-client",
                "--to",
                &to,
                "--name",
                "try-it",
                "--forward",
                &forward,
                "--serve",
                "127.0.0.1:0",
            ],
        ];
        for (number, role) in roles.into_iter().enumerate() {
            let more: &[&str] = if number == 0 { &names } else { &[] };
            let mut process = Process::start(&Start {
                program: Path::new(env!("CARGO_BIN_EXE_gitops-runtime")).to_path_buf(),
                args: role.iter().chain(more).map(Into::into).collect(),
                env: vec![("GITOPS_RUNTIME_SERVE__ADDRESS".to_owned(), "127.0.0.1:0".to_owned())],
                directory: ways._folder.path().to_path_buf(),
            })
            .unwrap();
            ways.targets.push(process.address(SOON).await.unwrap());
            ways.processes.push(process);
        }
        ways
    }

    /// What all of them expose.
    pub(crate) async fn pages(&self) -> String {
        let mut pages = String::new();
        for target in &self.targets {
            let page = reqwest::get(format!("http://{target}/metrics")).await.unwrap();
            pages.push_str(&page.text().await.unwrap());
        }
        pages
    }

    pub(crate) async fn end(self) {
        self.visiting.abort();
        for process in self.processes {
            process.kill().await.unwrap();
        }
    }
}

/// Visits through the tunnel, all the time: what is there, what is away, what there is not; and holds one stream open.
async fn visit(front: u16) {
    let client = local_client().build().unwrap();
    let ask =
        |path: &str| client.get(format!("http://127.0.0.1:{front}{path}")).header("host", "try-it.localhost");
    let mut held = None;
    loop {
        if held.is_none() {
            held = ask("/app-proxy/hold").send().await.ok().filter(|answer| answer.status() == 200);
        }
        for path in ["/app-proxy/quick", "/workflows/api", "/elsewhere"] {
            let _ = ask(path).send().await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
