//! The pages of the process: health, readiness, metrics, status, and where applications are.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use pipeline_core::{Key, Timestamp};
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::connections::{guarded, timed};
use super::{DEFAULT_ROUTE, Served, ServedRoute};
use crate::admin::wire::resources;
use pipeline_observe::health::{self, HealthReport};
use pipeline_observe::metrics::Metrics;
use pipeline_ownership::sharding::distributions;
use pipeline_ownership::sharding::preview::Question;

/// How many shardings may be asked for at once.
const SHARDINGS: usize = 8;
/// How many bytes their names may have together.
const SHARDINGS_BYTES: usize = 256;
/// How many shards one of them may have.
const SHARDS: u32 = 1024;

const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const INDEX: &str = "\
/healthz           200 ok or degraded, 503 failing; ?full=true: every check, as JSON
/readyz            200 when the first list is complete, every shard runs and the ledger is open
/metrics           for Prometheus
/status            shards, queues, circuit and ledger, as JSON
/app-distribution  applications by shard; ?shardings=jump:6,fnv-modulo: under other shardings;
                   ?replicas=6&from=5: what each of 6 replicas would own, and what moves from 5
";

/// What the handlers share.
struct Pages {
    served: Arc<Served>,
    /// Lets one request at a time place every application, which is work for a thread.
    placing: Semaphore,
}

/// All pages, or `/metrics` alone, each within `timeout` and without a request body.
pub(super) fn router(served: Arc<Served>, timeout: Duration, metrics_only: bool) -> Router {
    let pages = Arc::new(Pages { served, placing: Semaphore::new(1) });
    let mut router = Router::new().route("/metrics", get(metrics));
    if !metrics_only {
        router = router
            .route("/", get(async || INDEX))
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .route("/status", get(status))
            .route("/app-distribution", get(app_distribution));
    }
    router
        .fallback(async || (StatusCode::NOT_FOUND, "no such page: / lists them\n"))
        .with_state(pages)
        .layer(from_fn(move |request, next| bounded(request, next, timeout)))
}

async fn bounded(request: Request, next: Next, timeout: Duration) -> Response {
    if request.body().size_hint().exact() != Some(0) {
        return guarded((StatusCode::PAYLOAD_TOO_LARGE, "no page takes a request body\n").into_response());
    }
    timed(request, next, timeout).await
}

/// The query of `/healthz`.
#[derive(Deserialize)]
struct HealthQuery {
    #[serde(default)]
    full: String,
}

async fn healthz(State(pages): State<Arc<Pages>>, Query(asked): Query<HealthQuery>) -> Response {
    let report = pages.report();
    let status =
        if report.state == health::State::Failing { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    if matches!(asked.full.as_str(), "true" | "1") {
        (status, axum::Json(report.to_json(Timestamp::now()))).into_response()
    } else {
        (status, format!("{}\n", report.line())).into_response()
    }
}

async fn readyz(State(pages): State<Arc<Pages>>) -> Response {
    let report = pages.report();
    if report.ready {
        "ready\n".into_response()
    } else {
        let text = format!("not ready: {}\n", report.missing.join("; "));
        (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
    }
}

async fn metrics(State(pages): State<Arc<Pages>>) -> Response {
    pages
        .on_a_thread(|served, report| {
            if let Some(works) = served.works.get() {
                served.metrics.ledger(&works.ledger.status());
            }
            served.metrics.health(report);
            let text = match &*served.routes {
                [] => served.metrics.render(),
                further => {
                    let further = further.iter().map(|route| (&*route.name, route.figures()));
                    served.metrics.render_with(DEFAULT_ROUTE, &further.collect::<Vec<_>>())
                }
            };
            ([(header::CONTENT_TYPE, METRICS_TYPE)], text).into_response()
        })
        .await
}

async fn status(State(pages): State<Arc<Pages>>) -> Response {
    let report = pages.report();
    let works = pages.served.works.get().map(|works| ((works.engine)(), works.ledger.status()));
    let mut status = super::status::status(works.as_ref(), &report);
    let further = pages.served.routes.iter().map(|route| {
        let works = route.works.get().map(|works| ((works.engine)(), works.ledger.status()));
        (&*route.name, works)
    });
    super::status::with_routes(&mut status, further);
    axum::Json(status).into_response()
}

/// The query of `/app-distribution`.
#[derive(Deserialize)]
struct DistributionQuery {
    #[serde(default)]
    shardings: String,
    #[serde(flatten)]
    question: Question,
}

async fn app_distribution(
    State(pages): State<Arc<Pages>>,
    Query(asked): Query<DistributionQuery>,
) -> Response {
    let read = check(&asked.shardings, &pages.served)
        .and_then(|()| asked.question.read().map_err(|error| error.to_string()));
    let preview = match read {
        Ok(preview) => preview,
        Err(why) => return (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response(),
    };
    if preview.is_some() && !asked.shardings.is_empty() {
        let why = "ask for `shardings` or for `replicas`, one at a time\n";
        return (StatusCode::BAD_REQUEST, why).into_response();
    }
    let Ok(_placing) = pages.placing.acquire().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    pages
        .on_a_thread(move |served, _| {
            if let Some(preview) = preview {
                let keys = served.keys();
                let resources = |key| resources(&served.works.get()?.ledger, key);
                let counted = keys.iter().map(|key| (key, resources(key)));
                return axum::Json(preview.of(counted)).into_response();
            }
            let asked = format!("default,{}", asked.shardings);
            match distributions(&asked, served.sharding, &served.keys()) {
                Ok(found) => axum::Json(found).into_response(),
                Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
            }
        })
        .await
}

/// Why the shardings asked for are not answered: the answer's size is bounded before it is made.
fn check(asked: &str, served: &Served) -> Result<(), String> {
    if asked.len() > SHARDINGS_BYTES {
        return Err(format!("`shardings` takes at most {SHARDINGS_BYTES} bytes"));
    }
    let names: Vec<&str> = asked.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.len() > SHARDINGS {
        return Err(format!("`shardings` takes at most {SHARDINGS} names"));
    }
    for name in names {
        let sharding = served.sharding.named(name).map_err(|error| error.to_string())?;
        if sharding.shards().get() > SHARDS {
            return Err(format!("`{name}` has more than {SHARDS} shards"));
        }
    }
    Ok(())
}

impl Served {
    /// Nothing is known before the process works.
    fn keys(&self) -> Vec<Key> {
        self.works.get().map_or_else(Vec::new, |works| (works.keys)())
    }
}

impl ServedRoute {
    fn report(&self, now: Instant) -> HealthReport {
        if let Some(works) = self.works.get() {
            self.health.ledger(&works.ledger.status());
        }
        self.health.report(now).of_route()
    }

    /// What it counts, brought up to date.
    fn figures(&self) -> &Metrics {
        if let Some(works) = self.works.get() {
            self.metrics.ledger(&works.ledger.status());
        }
        self.metrics.health(&self.report(Instant::now()));
        &self.metrics
    }
}

impl Pages {
    fn report(&self) -> HealthReport {
        if let Some(works) = self.served.works.get() {
            self.served.health.ledger(&works.ledger.status());
        }
        let now = Instant::now();
        let routes = self.served.routes.iter().map(|route| (route.name.clone(), route.report(now)));
        self.served.health.report(now).with_routes(routes)
    }

    /// Makes an answer where it may take a while.
    async fn on_a_thread(
        &self,
        make: impl FnOnce(&Served, &HealthReport) -> Response<Body> + Send + 'static,
    ) -> Response {
        let (served, report) = (self.served.clone(), self.report());
        match tokio::task::spawn_blocking(move || make(&served, &report)).await {
            Ok(response) => response,
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot make a page");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}
