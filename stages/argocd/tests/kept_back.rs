//! Calls whose turn does not come in time: what is said of them, and that nothing counts them. Alone in its process,
//! because what is said goes to the process's one log.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::io;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response as HttpResponse};
use futures::future::join_all;
use pipeline_core::{Backoff, Call, Meter, ObjectIndex, Reason, Sample, Samples};
use stages_argocd::client::{CallBudget, Config};
use stages_argocd::fetch::{self, Fetcher};
use stages_argocd::labels;
use stages_argocd::plan::{AppRef, Fetch, Response};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// What was said since this was asked last.
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

/// An Argo CD that answers trees, and never anything else; each call it gets is told.
async fn argocd() -> (String, mpsc::UnboundedReceiver<()>) {
    let (tell, told) = mpsc::unbounded_channel();
    let app =
        Router::new().fallback(move |request: axum::extract::Request| {
            let is_tree = request.uri().path().ends_with("/resource-tree");
            let _ = tell.send(());
            async move {
                if is_tree { "{}".into_response() } else { std::future::pending::<HttpResponse>().await }
            }
        });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (host, told)
}

/// Counts samples of Argo CD.
#[derive(Default)]
struct Counted(Mutex<Vec<Sample>>);

impl Meter for Counted {
    fn record(&self, sample: Sample) {
        self.0.lock().unwrap().push(sample);
    }
}

/// Calls an Argo CD within these bounds.
async fn fetcher(host: &str, concurrency: usize, per_second: Option<u32>) -> (Arc<Fetcher>, Arc<Counted>) {
    let config = Config {
        url: format!("http://{host}"),
        root_path: String::new(),
        access: stages_argocd::client::Access::Anonymous,
        http: stages_client::Config::new(Duration::from_secs(30), 64 << 20),
        concurrency,
        min_concurrency: 1,
        per_second: per_second.and_then(NonZeroU32::new),
        tries: 3,
        backoff: Backoff { min: Duration::from_millis(250), max: Duration::from_secs(10) },
    };
    let counted = Arc::new(Counted::default());
    let argocd = Arc::new(config.build(counted.clone()).await.unwrap());
    (
        Arc::new(fetch::Config::new(16 << 20, 2 << 20, 4 << 20).build(argocd, ObjectIndex::default(), None)),
        counted,
    )
}

fn app(n: usize) -> AppRef {
    AppRef { name: format!("app-{n}"), namespace: "apps".into(), project: "default".into() }
}

fn line(host: &str, act: &str, call: Call) -> String {
    let error = format!("cannot {act} at {host}: it was not its turn in time");
    format!(
        " WARN calls of argo cd are not made in time: more are wanted than argocd.requestsPerSecond and \
         argocd.concurrency let through error={error} error.sources=[it was not its turn in time] \
         reason=\"timeout\" subject=\"{}\"\n",
        call.as_str()
    )
}

/// One slot, and a call that never gives it back.
async fn no_slot(log: &Log) {
    let (host, mut told) = argocd().await;
    let (fetcher, counted) = fetcher(&host, 1, None).await;
    let first = tokio::spawn({
        let fetcher = fetcher.clone();
        async move {
            let budget = CallBudget::until(Instant::now() + Duration::from_secs(3_600));
            fetcher.fetch(&Fetch::ManagedResources { app: app(0), paced: false }, &budget, "argocd").await
        }
    });
    timeout(Duration::from_secs(60), told.recv()).await.unwrap().unwrap();
    for n in 1..3 {
        let calls = Samples::default();
        let budget = CallBudget::noted(Instant::now() + Duration::from_secs(1), calls.clone());
        let fetch = Fetch::ManagedResources { app: app(n), paced: false };
        assert_eq!(fetcher.fetch(&fetch, &budget, "argocd").await, Response::Failed(Reason::Timeout));
        assert_eq!(calls.take().len(), 0, "no call was made for the event");
        let said = log.take();
        let once = line(&host, "read managed resources", labels::MANAGED_RESOURCES);
        assert_eq!(said, if n == 1 { once } else { String::new() });
        // Whose time was over before has nothing to wait for, and that is nothing to say of the bounds.
        assert_eq!(fetcher.fetch(&fetch, &budget, "argocd").await, Response::Failed(Reason::Timeout));
        assert!(!log.take().contains("requestsPerSecond"));
    }
    assert_eq!(counted.0.lock().unwrap().len(), 0);
    assert!(told.try_recv().is_err(), "nothing was sent");
    first.abort();
}

/// One call in a second, of thirty that are wanted within two.
async fn no_budget(log: &Log) {
    let (host, mut told) = argocd().await;
    let (fetcher, counted) = fetcher(&host, 56, Some(1)).await;
    let calls = Samples::default();
    let budget = CallBudget::noted(Instant::now() + Duration::from_secs(2), calls.clone());
    let fetches: Vec<Fetch> = (0..30).map(|n| Fetch::ResourceTree { app: app(n), paced: false }).collect();
    let responses = join_all(fetches.iter().map(|fetch| fetcher.fetch(fetch, &budget, "argocd"))).await;
    let late = responses.iter().filter(|response| **response == Response::Failed(Reason::Timeout)).count();
    assert!(late >= 20, "{late} of 30 had no turn");
    let sent = std::iter::from_fn(|| told.try_recv().ok()).count();
    let (counted, noted) = (counted.0.lock().unwrap().len(), calls.take().len());
    assert_eq!(counted, noted);
    // One that the end cut off may be counted and not have got there.
    assert!((sent..=sent + 1).contains(&counted) && counted <= 10, "{counted} calls counted, {sent} sent");
    let said = log.take();
    let own: Vec<&str> =
        said.split_inclusive('\n').filter(|line| line.contains("requestsPerSecond")).collect();
    assert_eq!(own, [line(&host, "read the resource tree", labels::RESOURCE_TREE)]);
}

#[tokio::test]
async fn calls_whose_turn_does_not_come_are_said_for_what_they_are_and_counted_nowhere() {
    let log = Log::default();
    let to = log.clone();
    let lines = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(move || to.clone())
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .finish();
    tracing::subscriber::set_global_default(lines).unwrap();
    no_slot(&log).await;
    no_budget(&log).await;
}
