//! What a process without an engine says of itself: whether it lives, whether it is ready, and what it counts.

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use pipeline_core::{Given, Service as _, Shutdown, StageError};
use pipeline_http::serve::ServeConfig;
use prometheus::{Registry, TextEncoder};
use tokio::task::JoinHandle;

use crate::config::Config;

/// The pages, while they are served.
pub(super) struct Pages {
    ended: Shutdown,
    served: Option<JoinHandle<Result<(), StageError>>>,
}

impl Pages {
    /// Serves them on `serve.address`, if there is one; `judge` says why it is not ready.
    pub(super) async fn start(
        config: &Config,
        registry: Registry,
        judge: impl Fn() -> Result<(), &'static str> + Clone + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let ended = Shutdown::new();
        let served = match *config.serve.address {
            Some(address) => {
                let serve = ServeConfig::new(address.to_string(), "serve.address");
                let server = Box::new(serve.build_bare(routes(registry, judge)).await?);
                Some(tokio::spawn(server.serve(Given::alone(ended.clone()))))
            }
            None => None,
        };
        Ok(Self { ended, served })
    }

    /// Ends them, when what they tell of has ended.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.ended.cancel();
        match self.served {
            Some(served) => served.await.context("serve")?.context("serve"),
            None => Ok(()),
        }
    }
}

fn routes(
    registry: Registry,
    judge: impl Fn() -> Result<(), &'static str> + Clone + Send + Sync + 'static,
) -> Router {
    let ready = async move || match judge() {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    };
    let metrics = async move || {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap_or_default();
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
    };
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
}
