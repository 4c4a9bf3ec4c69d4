//! What a process without an engine says of itself: whether it lives, whether it is ready, and what it counts.

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use pipeline_core::{Service as _, ServiceContext, Shutdown, StageError};
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
    /// Serves them on `serve.address`, if there is one; `judge` says why it is not ready, as long as it is not told to `stop`.
    pub(super) async fn start(
        config: &Config,
        registry: Registry,
        stop: &Shutdown,
        judge: impl Fn() -> Result<(), &'static str> + Clone + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let ended = Shutdown::new();
        let served = match *config.serve.address {
            Some(address) => {
                let serve = ServeConfig::new(address.to_string(), "serve.address");
                let server = Box::new(serve.build_bare(routes(registry, stop, judge)).await?);
                Some(tokio::spawn(server.serve(ServiceContext::alone(ended.clone()))))
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

/// The pages, such as stand beside what else a process answers.
pub(super) fn routes(
    registry: Registry,
    stop: &Shutdown,
    judge: impl Fn() -> Result<(), &'static str> + Clone + Send + Sync + 'static,
) -> Router {
    let leaving = stop.clone();
    let ready = async move || match judge() {
        _ if leaving.is_cancelled() => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned()),
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    };
    metrics(registry).route("/healthz", get(async || "ok\n")).route("/readyz", get(ready))
}

/// What the process counts.
pub(super) fn metrics(registry: Registry) -> Router {
    let metrics = async move || {
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap_or_default();
        ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
    };
    Router::new().route("/metrics", get(metrics))
}
