//! The engine's watch and shards are connected by a real `nats-server`.
//!
//! Time is paused in most of these tests, and would leap ahead whenever the engine waits for the server. So here it goes on in
//! small steps, each of which takes real time: about two hundred times as fast as a clock.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_nats::HeaderMap;
use pipeline_bus::Bus;
use pipeline_bus::jetstream::{Access, Config, Credentials, JetStream, connect};
use pipeline_core::Shutdown;
use tokio::runtime::Runtime;
use tokio_util::task::AbortOnDropHandle;

use crate::server::{Server, client};

/// One step of the paused clock, and how long it takes.
const STEP: (Duration, Duration) = (Duration::from_millis(200), Duration::from_millis(1));

/// Of so many events of one shard, those that it takes in before it has done with any: the server delivers no more without an
/// acknowledgement. The rest waits on the stream, where newer states replace older ones.
pub(crate) fn undone(events: u64) -> u64 {
    events.min(1000)
}

/// What the bus may add to a time, eighteen seconds of a busy machine: in memory the same is measured without any.
pub(crate) const SLACK: Duration = Duration::from_secs(3600);

/// How long the server knows what was published, so that it takes a repetition for one.
const WINDOW: Duration = Duration::from_millis(100);

/// The connections' own, whose time is real.
static REAL: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
});

/// The server, for as long as the test.
pub(crate) struct BusServer {
    server: Server,
    _clock: AbortOnDropHandle<()>,
}

impl BusServer {
    /// What the bus runs on may go.
    pub(crate) fn end(self) {}

    /// A connection of another engine's.
    pub(crate) fn connect(&self) -> JetStream {
        self.connect_with(|_| ())
    }

    /// The same with other settings.
    pub(crate) fn connect_with(&self, change: impl FnOnce(&mut Config) + Send + 'static) -> JetStream {
        let mut config = settings(self.server.url());
        change(&mut config);
        let connect = async move { connect(config, &Shutdown::new()).await.unwrap() };
        std::thread::spawn(move || REAL.block_on(connect)).join().unwrap()
    }

    /// Publishes as anybody could, and waits until the server has taken it.
    pub(crate) async fn publish(&self, subject: String, headers: HeaderMap, bytes: Vec<u8>) {
        let url = self.server.url();
        let published = REAL.spawn(async move {
            let context = client(&url).await;
            context.publish_with_headers(subject, headers, bytes.into()).await.unwrap().await.unwrap();
        });
        published.await.unwrap();
    }

    /// Removes a durable, with all that waits for it.
    pub(crate) async fn remove_durable(&self, stream: &'static str, name: &str) {
        let (url, name) = (self.server.url(), name.to_owned());
        let removed = REAL.spawn(async move {
            client(&url).await.delete_consumer_from_stream(name, stream).await.unwrap();
        });
        removed.await.unwrap();
    }

    /// Messages that were kept aside.
    pub(crate) async fn aside(&self) -> u64 {
        let url = self.server.url();
        let asked = REAL.spawn(async move {
            let context = client(&url).await;
            let stream = context.get_stream("gitops-runtime_parked").await.unwrap();
            stream.cached_info().state.messages
        });
        asked.await.unwrap()
    }
}

pub(crate) fn bus() -> (Arc<dyn Bus>, BusServer) {
    let kept = server();
    (Arc::new(kept.connect()), kept)
}

/// A server to which engines connect as they like.
pub(crate) fn server() -> BusServer {
    let server = Server::start();
    BusServer { server, _clock: AbortOnDropHandle::new(tokio::spawn(steps())) }
}

/// Called before a source repeats what it showed: for the engine there are repetitions where the server's memory ends.
pub(crate) fn before_a_repeat() {
    // Long enough for a server that does not run for a while.
    std::thread::sleep(WINDOW * 20);
}

fn settings(url: String) -> Config {
    let (heartbeat, timeout) = (Duration::from_secs(3600), Duration::from_secs(3600));
    let (urls, credentials) = (vec![url], Credentials::None);
    Config {
        access: Access { urls, timeout, credentials, tls: None, inbox_prefix: None },
        prefix: "gitops-runtime".to_owned(),
        replicas: 1,
        max_bytes: 1 << 30,
        reports_max_bytes: 256 << 20,
        duplicate_window: WINDOW,
        ack_wait: Duration::from_secs(30),
        max_ack_pending: 1_000,
        heartbeat,
    }
}

async fn steps() {
    let (step, took) = STEP;
    loop {
        // The paused clock stands still while another thread works.
        tokio::task::spawn_blocking(move || std::thread::sleep(took)).await.unwrap();
        tokio::time::sleep(step).await;
    }
}
