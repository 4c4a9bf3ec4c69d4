//! An Argo CD that has nothing but logs: of each pod a line at a time, with when it was written, or as fast as somebody reads.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use loadtest_sim::Listen;
use loadtest_sim::server::Server;
use serde_json::json;

/// Pods that are named so write as fast as somebody reads, without an end.
pub(super) const ENDLESS: &str = "endless";
/// Lines of such a pod that are sent together.
const TOGETHER: u64 = 100;
/// Fills a line up to the length of an ordinary one.
const FILLING: &str = "GET /api/v1/orders/0190f3c2-7a51-7d3e-9b1c-3f5a8c6e2d10 200 in 12 ms, 4 items, for a customer of the shop";

/// How much the other pods write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writing {
    /// Lines of each.
    pub(super) lines: u64,
    /// From one line to the next.
    pub(super) every: Duration,
}

#[derive(Debug)]
struct Shared {
    begun: Instant,
    writing: Writing,
    /// Bytes of endless pods.
    endless: AtomicU64,
}

/// One that runs.
pub(super) struct ArgoCd {
    server: Server,
    shared: Arc<Shared>,
}

impl ArgoCd {
    pub(super) async fn start(writing: Writing) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared { begun: Instant::now(), writing, endless: AtomicU64::new(0) });
        let known = || async { Json(json!({"loggedIn": true, "username": "bench"})) };
        let router = Router::new()
            .route("/api/v1/session/userinfo", get(known))
            .route("/api/v1/applications/{name}/logs", get(logs))
            .with_state(shared.clone());
        let server = Server::start(router, Listen::default()).await.context("start Argo CD")?;
        Ok(Self { server, shared })
    }

    pub(super) fn url(&self) -> String {
        self.server.url()
    }

    /// When the times in its lines count from.
    pub(super) fn begun(&self) -> Instant {
        self.shared.begun
    }

    /// Bytes that it could send of endless pods so far.
    pub(super) fn endless(&self) -> u64 {
        self.shared.endless.load(Ordering::Relaxed)
    }
}

async fn logs(State(shared): State<Arc<Shared>>, Query(asked): Query<HashMap<String, String>>) -> Response {
    let pod = asked.get("podName").cloned().unwrap_or_default();
    let is_endless = pod.starts_with(ENDLESS);
    let first = tokio::time::Instant::now();
    let lines = futures::stream::unfold(0, move |number| {
        let (shared, pod) = (shared.clone(), pod.clone());
        async move {
            let Writing { lines, every } = shared.writing;
            if is_endless {
                let text: String =
                    (number..number + TOGETHER).map(|number| line(&shared, &pod, number)).collect();
                shared.endless.fetch_add(text.len() as u64, Ordering::Relaxed);
                return Some((Ok::<_, Infallible>(text), number + TOGETHER));
            }
            if number > lines {
                return None;
            }
            if number == lines {
                return Some((
                    Ok(format!("{}\n", json!({"result": {"content": "", "last": true}}))),
                    number + 1,
                ));
            }
            tokio::time::sleep_until(first + every.mul_f64(number as f64)).await;
            Some((Ok(line(&shared, &pod, number)), number + 1))
        }
    });
    Body::from_stream(lines).into_response()
}

/// A line, which says whose it is, its number, and how many microseconds ago was the begin of all.
fn line(shared: &Shared, pod: &str, number: u64) -> String {
    let at = shared.begun.elapsed().as_micros();
    let content = format!("{pod} {number} {at} {FILLING}");
    let stamp = "2026-11-20T10:00:00Z";
    format!(
        "{}\n",
        json!({"result": {"content": content, "podName": pod, "timeStampStr": stamp, "last": false}})
    )
}
