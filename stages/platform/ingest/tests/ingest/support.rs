//! A platform of its own for each test, and a client.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use pipeline_core::ExposeSecret as _;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use serde_json::{Value, json};
use stages_platform_ingest::IngestConfig;
use stages_platform_store::{
    ApplicationName, KnownApplication, Place, Retention, Runtime, Store, StoreConfig, Transition, View,
    create_token,
};
use tempfile::TempDir;

/// A platform that serves.
pub(crate) struct Platform {
    pub(crate) store: Store,
    pub(crate) runtime: Runtime,
    pub(crate) token: String,
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
    pub(crate) registry: prometheus::Registry,
    pub(crate) client: reqwest::Client,
    pub(crate) routes: axum::Router,
}

/// What came back.
#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Value,
}

pub(crate) fn config() -> IngestConfig {
    IngestConfig {
        max_body: 1 << 20,
        max_unpacked: 4 << 20,
        body_timeout: Duration::from_secs(120),
        runtime_requests: 64,
        runtime_bytes: 64 << 20,
        all_bytes: 128 << 20,
    }
}

pub(crate) async fn start(config: IngestConfig) -> Platform {
    let folder = TempDir::new().unwrap();
    let place = Place::Sqlite(folder.path().join("platform.db"));
    let token = create_token(&place, "prod").await.unwrap();
    let ages = Duration::from_secs(365_000 * 86_400);
    let retention = Retention { history: ages, keys: ages, interval: ages };
    let registry = prometheus::Registry::new();
    let (store, _writing) = StoreConfig { place, retention }.build(&registry).await.unwrap();
    let runtime = store.runtime(&token).await.unwrap().unwrap();
    let routes = config.build(store.clone(), &registry).routes();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = routes.clone();
    tokio::spawn(async move { axum::serve(listener, served).await });
    // Whoever was first has installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
    let token = token.expose_secret().to_owned();
    Platform { store, runtime, token, address, folder, registry, client, routes }
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

impl Platform {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// As the incumbent posts: gzipped, the token as it is.
    pub(crate) async fn report(&self, body: &Value) -> Reply {
        self.report_with(body, &[]).await
    }

    pub(crate) async fn report_with(&self, body: &Value, headers: &[(&str, &str)]) -> Reply {
        let mut request = self.client.post(self.url("/2.0/api/events"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header("authorization", &self.token).header(CONTENT_ENCODING, "gzip");
        Self::reply(request.body(gzip(body.to_string().as_bytes()))).await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Reply {
        let mut request = self.client.post(self.url(path)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Self::reply(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        Self::reply(self.client.get(self.url(path)).bearer_auth(&self.token)).await
    }

    async fn reply(request: reqwest::RequestBuilder) -> Reply {
        let response = request.send().await.unwrap();
        let after = |headers: &HeaderMap| Some(headers.get("retry-after")?.to_str().unwrap().to_owned());
        let (status, retry_after) = (response.status().as_u16(), after(response.headers()));
        let text = response.text().await.unwrap();
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        Reply { status, retry_after, body }
    }

    /// What is known of the application `shop`.
    pub(crate) async fn shop(&self) -> KnownApplication {
        let runtime = self.runtime.name.clone();
        let name = ApplicationName { runtime, namespace: "argocd".to_owned(), name: "shop".to_owned() };
        self.store.known(&View::ALL, &name).await.unwrap().unwrap()
    }

    pub(crate) async fn timeline(&self, application: (&str, &str)) -> Vec<Transition> {
        self.store.timeline(self.runtime.id, application, i64::MAX, 100_000).await.unwrap()
    }
}

pub(crate) fn taken() -> Reply {
    Reply { status: 200, retry_after: None, body: json!({}) }
}

pub(crate) fn refused(status: u16, message: &str) -> Reply {
    Reply { status, retry_after: None, body: json!({"message": message}) }
}
