//! An Argo CD that answers as a test says, and a fetcher that calls it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response as HttpResponse};
use futures::future::BoxFuture;
use pipeline_core::{Backoff, Call, Digest, Key, Meter, ObjectIndex, Outcome, Sample, Version};
use stages_argocd::client::{self, ArgoCd, CallBudget};
use stages_argocd::fetch::{self, Fetcher};
use stages_argocd::labels;
use stages_argocd::plan::{AppRef, Fetch, ManifestsKey, Purpose, Response};
use stages_argocd::settings;
use stages_argocd::sources::Sources;
use tokio::net::TcpListener;
use tokio::time::Instant;

/// A server that notes what it is asked for.
pub(crate) struct Server {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers the `n`th request, from 0, with `answer(n, path and query)`.
    pub(crate) async fn new<R: IntoResponse>(
        response: impl Fn(usize, &str) -> R + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::waiting(move |n, request| {
            let response = response(n, &path_of(&request)).into_response();
            Box::pin(async move { response })
        })
        .await
    }

    /// As [`Server::new`], for answers that take time or look at the whole request.
    pub(crate) async fn waiting(
        response: impl Fn(usize, Request) -> BoxFuture<'static, HttpResponse> + Clone + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        let app = Router::new().fallback(move |request: Request| {
            let n = {
                let mut log = log.lock().unwrap();
                log.push(path_of(&request));
                log.len() - 1
            };
            response(n, request)
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, asked }
    }

    /// Paths and queries, in the order they came.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn host(&self) -> &str {
        self.address.split_once("://").unwrap().1
    }

    /// A configuration that calls it and does not wait long between tries.
    pub(crate) fn config(&self) -> client::Config {
        client::Config { backoff: quick(), ..calling(&self.address) }
    }
}

/// Tries that hardly wait for each other.
pub(crate) fn quick() -> Backoff {
    Backoff { min: Duration::from_millis(1), max: Duration::from_secs(10) }
}

/// Argo CD at `url`, called as it usually is.
pub(crate) fn calling(url: impl Into<String>) -> client::Config {
    client::Config {
        url: url.into(),
        root_path: String::new(),
        access: client::Access::Anonymous,
        http: stages_client::Config::new(Duration::from_secs(30), 64 << 20),
        concurrency: 56,
        min_concurrency: 4,
        per_second: None,
        tries: 3,
        backoff: Backoff { min: Duration::from_millis(250), max: Duration::from_secs(10) },
    }
}

/// Answers kept as they usually are.
pub(crate) fn kept() -> fetch::Config {
    fetch::Config::new(16 << 20, 2 << 20, 4 << 20)
}

/// Settings looked for as they usually are.
pub(crate) fn looking() -> settings::Config {
    settings::Config::new(Duration::from_secs(30))
}

fn path_of(request: &Request) -> String {
    request.uri().path_and_query().unwrap().to_string()
}

/// Keeps every sample.
#[derive(Default)]
pub(crate) struct Samples(Mutex<Vec<(Call, Outcome)>>);

impl Samples {
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.0.lock().unwrap().iter().map(|(_, outcome)| *outcome).collect()
    }

    pub(crate) fn all(&self) -> Vec<(Call, Outcome)> {
        self.0.lock().unwrap().clone()
    }
}

impl Meter for Samples {
    fn record(&self, sample: Sample) {
        assert_eq!(sample.call.peer(), labels::ARGOCD);
        self.0.lock().unwrap().push((sample.call, sample.outcome));
    }
}

/// A fetcher, and what it can be looked into by.
pub(crate) struct Rig {
    pub(crate) fetcher: Fetcher,
    pub(crate) argocd: Arc<ArgoCd>,
    pub(crate) seen: ObjectIndex,
    pub(crate) samples: Arc<Samples>,
}

impl Rig {
    pub(crate) async fn new(config: client::Config, kept: fetch::Config) -> Self {
        Self::with_seen(config, kept, ObjectIndex::default()).await
    }

    /// One that asks Git as well.
    pub(crate) async fn with_sources(server: &Server, sources: Arc<dyn Sources>) -> Self {
        Self::with(server.config(), kept(), ObjectIndex::default(), Some(sources)).await
    }

    pub(crate) async fn with_seen(config: client::Config, kept: fetch::Config, seen: ObjectIndex) -> Self {
        Self::with(config, kept, seen, None).await
    }

    async fn with(
        config: client::Config,
        kept: fetch::Config,
        seen: ObjectIndex,
        sources: Option<Arc<dyn Sources>>,
    ) -> Self {
        let samples = Arc::new(Samples::default());
        let argocd = Arc::new(config.build(samples.clone()).await.unwrap());
        let fetcher = kept.build(argocd.clone(), seen.clone(), sources);
        Self { fetcher, argocd, seen, samples }
    }

    pub(crate) async fn of(server: &Server) -> Self {
        Self::new(server.config(), kept()).await
    }

    pub(crate) async fn fetch(&self, fetch: &Fetch) -> Response {
        self.fetcher.fetch(fetch, &budget(), "argocd").await
    }
}

/// A minute, which no test needs.
pub(crate) fn budget() -> CallBudget {
    CallBudget::until(Instant::now() + Duration::from_secs(60))
}

pub(crate) fn app(name: &str) -> AppRef {
    AppRef { name: name.to_owned(), namespace: "apps".to_owned(), project: "default".to_owned() }
}

pub(crate) fn managed(name: &str) -> Fetch {
    Fetch::ManagedResources { app: app(name), paced: false }
}

pub(crate) fn manifests(uid: &str, revision: &str) -> Fetch {
    Fetch::Manifests {
        app: app("store"),
        revision: Some(revision.to_owned()),
        purpose: Purpose::Desired,
        cache: Some(ManifestsKey {
            uid: uid.to_owned(),
            sources: Digest::of(b"sources"),
            revisions: vec![revision.to_owned()],
        }),
        fresh: false,
        sources: None,
    }
}

pub(crate) fn commit(name: &str, repo_url: &str, revision: &str) -> Fetch {
    Fetch::RevisionMetadata {
        app: app(name),
        repo_url: repo_url.to_owned(),
        revision: revision.to_owned(),
        source_index: 0,
    }
}

pub(crate) fn parent(namespace: &str, name: &str) -> Fetch {
    Fetch::Parent { namespace: namespace.to_owned(), name: name.to_owned() }
}

pub(crate) fn see(seen: &ObjectIndex, namespace: &str, name: &str, version: u64) {
    seen.note(&Key::new(namespace, name).unwrap(), &"uid".into(), Version(version));
}

/// An error as Argo CD's gateway writes it.
pub(crate) fn refusal(code: u32, text: &str) -> HttpResponse {
    let body = format!(r#"{{"error":"{text}","code":{code},"message":"{text}"}}"#);
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

pub(crate) fn body(text: &str) -> Response {
    Response::Body(text.to_owned().into())
}
