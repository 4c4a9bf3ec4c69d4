//! One request and its answer, from its head to its last byte: counted, and told to the access log when it is over.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::Method;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::access;
use crate::connection_state::RequestGuard;
use crate::metrics::RouterMetrics;
use crate::route::Route;
use crate::streamed::Flow;

/// A request and its answer, which are over when this is dropped.
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) route: Route,
    /// What the access log shows of the path.
    pub(crate) path: String,
    pub(crate) client: IpAddr,
    pub(crate) flow: Arc<Flow>,
    pub(crate) metrics: RouterMetrics,
    pub(crate) log: bool,
    began: Instant,
    status: u16,
    complete: bool,
    /// Why the service broke off its answer; `None` where it did not, or where the client did.
    broken: Option<String>,
    /// The place that it takes among the requests of its route.
    permit: Option<OwnedSemaphorePermit>,
    /// Keeps its connection from being taken for an idle one.
    _guard: Arc<RequestGuard>,
}

/// What an [`Exchange`] begins with: what is known of a request before it is checked.
pub(crate) struct RequestInfo {
    pub(crate) method: Method,
    pub(crate) route: Route,
    pub(crate) path: String,
    pub(crate) client: IpAddr,
    pub(crate) flow: Arc<Flow>,
}

impl Exchange {
    /// Begins an exchange, and counts it as under way.
    pub(crate) fn begin(
        request: RequestInfo,
        metrics: &RouterMetrics,
        log: bool,
        guard: Arc<RequestGuard>,
    ) -> Self {
        let RequestInfo { method, route, path, client, flow } = request;
        metrics.began(route);
        Self {
            method,
            route,
            path,
            client,
            flow,
            metrics: metrics.clone(),
            log,
            began: Instant::now(),
            status: 0,
            complete: false,
            broken: None,
            permit: None,
            _guard: guard,
        }
    }

    /// Keeps a place among the requests of the route until the exchange is over.
    pub(crate) fn hold(&mut self, permit: OwnedSemaphorePermit) {
        self.permit = Some(permit);
    }

    /// Counts the answer, whose head is made.
    pub(crate) fn answered(&mut self, status: u16) {
        self.status = status;
        self.metrics.answered(self.route, status, self.began.elapsed().as_secs_f64());
    }

    /// Notes for the access log that the service broke off its answer.
    pub(crate) fn broke(&mut self, why: &dyn std::error::Error) {
        let source = why.source().map(|source| format!(": {source}")).unwrap_or_default();
        self.broken = Some(format!("{why}{source}"));
    }

    /// Notes for the access log that the whole answer was passed on.
    pub(crate) fn complete(&mut self) {
        self.complete = true;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let (received, sent) =
            (self.flow.received.load(Ordering::Relaxed), self.flow.sent.load(Ordering::Relaxed));
        self.metrics.ended(self.route, received, sent);
        if self.log && !access::is_probe(&self.path) {
            tracing::info!(
                method = %self.method,
                route = self.route.label(),
                path = %self.path,
                status = self.status,
                received,
                sent,
                milliseconds = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
                client = %self.client,
                complete = self.complete,
                broken = self.broken,
                "answered"
            );
        }
    }
}
