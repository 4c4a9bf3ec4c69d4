//! What visitors come through, as processes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use axum::Router;
use axum::routing::get;
use reqwest::Client;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use loadtest_sim::nats::NatsServer;
use loadtest_sim::process::{Process, Start};
use loadtest_sim::server::serve;
use loadtest_sim::{port, until};

use super::backends::Backends;
use super::visits::{client, is_answered, request};

/// What visitors ask for, and what they are answered.
pub(super) const HOST: &str = "load-test.tunnels.example.com";
pub(super) const PATH: &str = "/app-proxy/quick";
pub(super) const ANSWER: &str = "ok";

const TOKEN: &str = "opens-it";
/// A start may take so long, and so may an end: what is under way is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);
/// From a pod's SIGTERM until nothing new is sent to it.
const TOLD: Duration = Duration::from_millis(500);

/// Something on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Server,
    Client,
    Router,
    Bus,
}

impl Part {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "tunnel server",
            Self::Client => "tunnel client",
            Self::Router => "router",
            Self::Bus => "bus",
        }
    }
}

/// A process and where it listens; a client of tunnels listens nowhere.
struct Running {
    process: Process,
    port: Option<u16>,
}

/// Two of each, the oldest first, and what they are found by.
pub(super) struct World {
    program: PathBuf,
    http: Client,
    folder: TempDir,
    nats: NatsServer,
    /// Where what visitors are led to is.
    service: String,
    servers: Backends,
    /// By which clients of tunnels come to them.
    network: Backends,
    routers: Backends,
    running: [VecDeque<Running>; 3],
}

impl World {
    /// Starts all of it.
    pub(super) async fn start(program: PathBuf) -> anyhow::Result<Self> {
        let folder = TempDir::new().context("make a folder")?;
        for (file, text) in [("tokens", format!("load-test {TOKEN}\n")), ("token", format!("{TOKEN}\n"))] {
            std::fs::write(folder.path().join(file), text).with_context(|| format!("write {file}"))?;
        }
        let service = serve(Router::new().route(PATH, get(async || ANSWER))).await?;
        let (servers, network) = (Backends::listen().await?, Backends::listen().await?);
        network.add(servers.port);
        let mut world = Self {
            program,
            http: client()?,
            folder,
            nats: NatsServer::start().await?,
            service,
            servers,
            network,
            routers: Backends::listen().await?,
            running: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
        };
        for part in [Part::Router, Part::Server, Part::Client] {
            for _ in 0..2 {
                world.one_more(part).await?;
            }
        }
        Ok(world)
    }

    /// Where visitors come.
    pub(super) fn entrance(&self) -> u16 {
        self.servers.port
    }

    /// Waits until as many visitors as come in a second were led, one after another without a gap.
    pub(super) async fn is_led(&self, rate: u32) -> anyhow::Result<()> {
        let (until, request) = (Instant::now() + PATIENCE, request(&self.http, self.entrance()));
        let mut led = 0;
        while led < rate {
            let request = request.try_clone().context("ask again")?;
            led = if is_answered(request).await { led + 1 } else { 0 };
            ensure!(Instant::now() < until, "visitors are not led through within {PATIENCE:?}");
            if led == 0 {
                sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Kills one that visitors come through, and starts it again.
    pub(super) async fn kill(&mut self, part: Part) -> anyhow::Result<()> {
        if part == Part::Bus {
            self.nats.kill().await?;
            return self.nats.restart().await;
        }
        let running = self.in_use(part)?;
        running.process.kill().await?;
        if let Some(port) = running.port {
            self.forget(part, port);
        }
        self.one_more(part).await
    }

    /// Loses the connections of clients of tunnels without telling anybody, as a network does that drops packets.
    pub(super) fn silence(&self) {
        self.network.silence();
    }

    /// Starts another one beside one that visitors come through, as a Deployment does, then tells that to end, and waits for its end.
    pub(super) async fn replace(&mut self, part: Part) -> anyhow::Result<()> {
        let Running { mut process, port } = self.in_use(part)?;
        self.one_more(part).await?;
        process.signal("TERM").await?;
        if let Some(port) = port {
            sleep(TOLD).await;
            self.forget(part, port);
        }
        let ended = process.wait(PATIENCE).await?;
        ensure!(ended.success(), "a {} that was told to end {ended}", part.name());
        Ok(())
    }

    /// Ends all of it.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        for one in self.running.into_iter().flatten() {
            ensure!(one.process.lines().panics().is_empty(), "panics: {:?}", one.process.lines().panics());
            one.process.kill().await?;
        }
        self.nats.stop().await
    }

    fn of(&mut self, part: Part) -> anyhow::Result<&mut VecDeque<Running>> {
        let [servers, clients, routers] = &mut self.running;
        Ok(match part {
            Part::Server => servers,
            Part::Client => clients,
            Part::Router => routers,
            Part::Bus => bail!("there is one bus"),
        })
    }

    /// Takes one that visitors come through: of clients the newest has the tunnel, of the others each has a share.
    fn in_use(&mut self, part: Part) -> anyhow::Result<Running> {
        let all = self.of(part)?;
        let one = if part == Part::Client { all.pop_back() } else { all.pop_front() };
        one.with_context(|| format!("there is no {}", part.name()))
    }

    fn forget(&self, part: Part, port: u16) {
        match part {
            Part::Server => self.servers.remove(port),
            Part::Router => self.routers.remove(port),
            Part::Client | Part::Bus => {}
        }
    }

    async fn one_more(&mut self, part: Part) -> anyhow::Result<()> {
        let listen = port::free()?;
        let (command, setting) = self.command(part, listen)?;
        let settings = ["serve.address=127.0.0.1:0", &setting];
        let start = Start::with_settings(&self.program, command.split(' '), settings, self.folder.path());
        let port = (part != Part::Client).then_some(listen);
        let mut process = Process::start(&start)?;
        let health = process.address(PATIENCE).await?;
        let ask = async || Ok(self.is_ready(health.port()).await);
        let is_ready = until(PATIENCE, LOOK, ask, |is_ready| *is_ready).await?;
        let said = process.lines();
        ensure!(is_ready, "a {} is not ready within {PATIENCE:?}: {:?}", part.name(), said.all());
        if let Some(port) = port {
            match part {
                Part::Router => self.routers.add(port),
                _ => self.servers.add(port),
            }
        }
        self.of(part)?.push_back(Running { process, port });
        Ok(())
    }

    /// Whether a process says that it is ready.
    async fn is_ready(&self, port: u16) -> bool {
        let asked = self.http.get(format!("http://127.0.0.1:{port}/readyz"));
        asked.send().await.is_ok_and(|answer| answer.status() == 200)
    }

    /// What starts one, with a blank between two words, and a setting of it.
    fn command(&self, part: Part, listen: u16) -> anyhow::Result<(String, String)> {
        let at = |port: u16| format!("127.0.0.1:{port}");
        let listen = at(listen);
        Ok(match part {
            Part::Server => (
                format!(
                    "tunnel-server --listen {listen} --domain tunnels.example.com --tokens-file tokens --bus {}",
                    self.nats.url()
                ),
                format!("tunnelServer.peers.listen={}", at(port::free()?)),
            ),
            Part::Client => (
                format!(
                    "tunnel-client --name load-test --token-file token --forward http://{}",
                    at(self.routers.port)
                ),
                format!("tunnelClient.to=http://{}", at(self.network.port)),
            ),
            Part::Router => (
                format!("router --listen {listen} --app-proxy-url {} --workflows-url=", self.service),
                "router.dns.servers=127.0.0.1:9".to_owned(),
            ),
            Part::Bus => bail!("there is one bus"),
        })
    }
}
