//! A bus of three servers that begin one after another, or of which one is killed: what the process does meanwhile, and what
//! it says.

use loadtest::nats::NatsServer;
use loadtest::port;
use loadtest::reporter::Metrics;
use loadtest::sim::Simulation;
use loadtest::sim::generate::Mix;
use serde_json::{Value, json};

use crate::runtime::{Line, Runtime, fleet, start, taken};

const SERVERS: usize = 3;
const APPLICATIONS: u32 = 20;
/// Reports when each application and its resource are reported once.
const ONCE: u64 = 40;

const REFUSED: &str = "the bus does not do what is asked of it; trying on";
const UNWRITTEN: &str = "what was acknowledged last of a shard is not in the ledger";
/// What is said once for as long as it lasts, and what is said when it is over.
const FAILED: [(&str, &str); 2] = [
    ("cannot write the ledger: it is kept in memory and tried again", "the ledger is written again"),
    (
        "cannot write down in the bucket which reports are about to be sent: they wait until it can be",
        "reports that are about to be sent are written down in the bucket again",
    ),
];

/// Servers of one cluster, to be started one by one.
struct Cluster {
    ports: Vec<u16>,
    servers: Vec<NatsServer>,
}

impl Cluster {
    fn new() -> Self {
        Self { ports: (0..SERVERS).map(|_| port::free().unwrap()).collect(), servers: Vec::new() }
    }

    /// Starts the next one.
    async fn next(&mut self) {
        let number = self.servers.len();
        let routes: Vec<String> = self.ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let settings = format!(
            "server_name: n{number}\ncluster {{ name: c, listen: \"127.0.0.1:{}\", routes: {routes:?} }}",
            self.ports[number]
        );
        self.servers.push(NatsServer::with(&settings).await.unwrap());
    }

    /// Settings of a reporter that keeps three copies; it reaches the servers that run, and is told of the others by them.
    fn settings(&self) -> Value {
        let urls: Vec<String> = self.servers.iter().map(NatsServer::url).collect();
        json!({"bus": {"url": urls.join(","), "copies": SERVERS, "timeout": "2s"}})
    }
}

/// Changes applications until the platform has taken so many more reports.
async fn changed(simulation: &Simulation, more: u64) {
    let mut chance = fastrand::Rng::with_seed(7);
    let until = simulation.platform.totals().taken + more;
    while simulation.platform.totals().taken < until {
        let before = simulation.platform.totals().taken;
        simulation.change(Mix::default(), &mut chance).unwrap();
        taken(simulation, before + 1).await;
    }
}

#[tokio::test]
async fn servers_that_begin_one_after_another_are_waited_for() {
    let simulation = fleet(APPLICATIONS, 1, |_| {}).await;
    let mut cluster = Cluster::new();
    cluster.next().await;
    let runtime = Runtime::serving(start(&simulation, &cluster.settings())).await;
    runtime.says(REFUSED).await;
    let (status, text) = runtime.page("/healthz").await;
    assert_eq!(status, 200, "a restart would not help: {text}");
    assert!(text.starts_with("degraded: bus: not ready for "), "{text}");
    assert_eq!(runtime.page("/readyz").await.0, 503);
    assert!(runtime.metrics().await.sum("gitops_runtime_health_state", &[("check", "bus")]) > 0.0);
    cluster.next().await;
    cluster.next().await;
    taken(&simulation, ONCE).await;
    runtime.answers("/readyz", |status, _| status == 200).await;
    let log = runtime.stop().await;
    let reasons: Vec<&str> =
        log.iter().filter(|line| line.message == REFUSED).map(|line| line.field("error")).collect();
    assert!(reasons.windows(2).all(|pair| pair[0] != pair[1]), "each reason is said once: {reasons:?}");
}

#[tokio::test]
async fn copies_take_every_row_and_a_server_that_is_killed_is_said_once() {
    let simulation = fleet(APPLICATIONS, 1, |_| {}).await;
    let mut cluster = Cluster::new();
    for _ in 0..SERVERS {
        cluster.next().await;
    }
    let runtime = Runtime::start(&simulation, &cluster.settings()).await;
    taken(&simulation, ONCE).await;
    changed(&simulation, 30).await;
    let failed = |log: &[Line]| {
        log.iter().filter(|line| FAILED.iter().any(|(failed, _)| line.message == *failed)).count()
    };
    assert_eq!(failed(&runtime.log()), 0, "nothing fails while all servers run: {:#?}", runtime.log());
    cluster.servers[0].kill().await.unwrap();
    changed(&simulation, 20).await;
    // The servers that are left agree on who leads, and what waits in memory is tried again.
    runtime
        .answers("/metrics", |_, text| Metrics::read(text).sum("gitops_runtime_ledger_waiting", &[]) < 1.0)
        .await;
    let log = runtime.stop().await;
    for (failed, over) in FAILED {
        let said = log.iter().map(|line| &*line.message).filter(|message| [failed, over].contains(message));
        let said: Vec<&str> = said.collect();
        assert!(said.windows(2).all(|pair| pair != [failed, failed]), "{log:#?}");
    }
    assert!(!log.iter().any(|line| line.message == UNWRITTEN), "{log:#?}");
}
