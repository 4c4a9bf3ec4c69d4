//! The client of Argo CD at a simulated one that works on so many calls at a time: a limit that learns beside one that
//! does not, in the same run.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::time::Duration;

use loadtest_sim::argocd::{ArgoCdSim, Config, Content, Kind};
use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::{Capacity, Worked};
use pipeline_core::{Call, NoMeter};
use stages_argocd::client::{self, ArgoCd, CallBudget};
use tokio::time::Instant;

const CAPACITY: Capacity = Capacity { workers: 8, service: Duration::from_millis(50) };
const PATH: &str = "/api/v1/applications/a/resource-tree?appNamespace=argocd";
/// More than it takes, whatever else the machine does.
const WITHIN: Duration = Duration::from_secs(120);

struct Peer {
    sim: ArgoCdSim,
    client: Arc<ArgoCd>,
}

impl Peer {
    async fn new(min: usize, max: usize) -> Self {
        // Another test of this process was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let config =
            Config { listen: Default::default(), root: String::new(), token: None, content: Content::Told };
        let sim = ArgoCdSim::start(config).await.unwrap();
        sim.set(Kind::ResourceTree, "a", 200, r#"{"nodes":[]}"#);
        sim.set_capacity(Some(CAPACITY));
        let config = client::Config {
            url: sim.url(),
            root_path: String::new(),
            token: None,
            http: client::HttpConfig::new(Duration::from_secs(30), 64 << 20),
            concurrency: max,
            min_concurrency: min,
            per_second: None,
            tries: 3,
            backoff: Duration::from_millis(250),
            longest_wait: Duration::from_secs(10),
        };
        let client = Arc::new(config.build(Arc::new(NoMeter)).await.unwrap());
        Self { sim, client }
    }

    /// So many calls, as many at once as the client lets through.
    async fn call(&self, calls: usize) -> Worked {
        let _ = self.sim.worked();
        let tasks: Vec<_> = (0..calls)
            .map(|_| {
                let client = self.client.clone();
                tokio::spawn(async move {
                    let budget = CallBudget::until(Instant::now() + WITHIN);
                    client.get(Call::ResourceTree, PATH, &budget, |reply| reply.into_body()).await
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        self.sim.worked()
    }
}

#[tokio::test]
async fn a_limit_that_learns_keeps_the_workers_busy_and_the_queue_short() {
    let (fixed, learning) = (Peer::new(60, 60).await, Peer::new(4, 60).await);
    tokio::join!(fixed.call(400), learning.call(400));
    let (fixed, learnt) = tokio::join!(fixed.call(400), learning.call(400));
    println!("8 workers, 50 ms each | most at once | longest queue | longest ms | workers busy");
    for (name, worked) in [("60 at once", &fixed), ("learnt", &learnt)] {
        println!(
            "{name:21} | {:12} | {:13} | {:10} | {:10.0} %",
            worked.most,
            worked.queue,
            worked.longest.as_millis(),
            worked.busy() * 100.0
        );
    }
    assert_eq!((fixed.calls, learnt.calls), (400, 400));
    assert!(fixed.queue >= 40, "{fixed:?}");
    assert!(learnt.queue <= 16 && learnt.most <= 24, "{learnt:?}");
    // How busy they are in time is the machine's affair as well.
    assert!(learnt.most >= CAPACITY.workers, "as many are asked as work: {learnt:?}");
}

#[tokio::test]
async fn an_argo_cd_that_says_too_many_is_asked_less_at_once() {
    let peer = Peer::new(2, 60).await;
    peer.sim.set_capacity(Some(Capacity { workers: 60, service: Duration::from_millis(20) }));
    peer.call(400).await;
    let before = peer.call(400).await;
    let budget = CallBudget::until(Instant::now() + WITHIN);
    for status in [429, 503] {
        peer.sim.faults().add(Rule::always(Fault::Status { status, retry_after: None }).times(1));
        let calls =
            (0..3).map(|_| peer.client.get(Call::ResourceTree, PATH, &budget, |reply| reply.into_body()));
        for answer in futures::future::join_all(calls).await {
            answer.unwrap();
        }
    }
    assert!(before.most > 16, "{before:?}");
    peer.sim.set_capacity(Some(Capacity { workers: 2, service: Duration::from_secs(1) }));
    let after = peer.call(8).await;
    assert!(after.most <= 4, "{after:?}");
}
