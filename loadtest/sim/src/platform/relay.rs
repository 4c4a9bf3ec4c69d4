//! A real platform behind this one: each request goes on to it as it came, its answer comes back as it is, and a report that it
//! acknowledged counts as taken here. No fault rule meets a request then, and nobody at the door is told of it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context as _;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use serde::Deserialize;
use tokio_util::task::TaskTracker;

use super::take::{alone, count, is};
use super::{Shared, wire};
use crate::fault::PeerResponse;
use crate::local_client;

/// How long it may take to answer.
const WITHIN: Duration = Duration::from_secs(60);
/// What is of a connection, and not of what comes over it.
const OF_CONNECTION: [&str; 4] = ["connection", "content-length", "host", "transfer-encoding"];

/// The way to a real platform, if there is one.
#[derive(Debug, Default)]
pub(super) struct Way {
    leads_to: RwLock<Option<Arc<Behind>>>,
    under_way: TaskTracker,
}

/// The platform behind.
#[derive(Debug)]
struct Behind {
    client: reqwest::Client,
    url: String,
}

impl Way {
    pub(super) fn lead_to(&self, url: &str) -> anyhow::Result<()> {
        // What is packed stays so.
        let client = local_client().no_gzip().timeout(WITHIN);
        let client = client.build().context("make a client")?;
        let behind = Arc::new(Behind { client, url: url.to_owned() });
        *self.leads_to.write().unwrap_or_else(PoisonError::into_inner) = Some(behind);
        Ok(())
    }

    /// Waits until nothing is under way.
    pub(super) async fn settled(&self) {
        self.under_way.close();
        self.under_way.wait().await;
        self.under_way.reopen();
    }

    fn behind(&self) -> Option<Arc<Behind>> {
        self.leads_to.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether reports were taken.
#[derive(Deserialize)]
struct Results {
    results: Vec<OfOne>,
}

#[derive(Deserialize)]
struct OfOne {
    status: u16,
}

/// Leads a request to the platform behind, where there is one.
pub(super) async fn lead(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let Some(behind) = shared.way.behind() else { return next.run(request).await };
    // Whoever sent it may have gone by then: what the platform acknowledges counts all the same.
    let answer = shared.way.under_way.spawn(led(shared.clone(), behind, request)).await;
    answer.unwrap_or_else(|_| PeerResponse::new(500, r#"{"message":"not led"}"#).response())
}

async fn led(shared: Arc<Shared>, behind: Arc<Behind>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return PeerResponse::new(400, r#"{"message":"the body broke off"}"#).response();
    };
    match behind.ask(&head, body.clone()).await {
        Ok((status, headers, answer)) => {
            tally(&shared, &head, &body, status, &answer).await;
            let mut response = Response::new(Body::from(answer));
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            response
        }
        Err(_) => PeerResponse::new(503, r#"{"message":"the platform behind does not answer"}"#).response(),
    }
}

impl Behind {
    async fn ask(&self, head: &Parts, body: Bytes) -> reqwest::Result<(StatusCode, HeaderMap, Bytes)> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let request = self.client.request(head.method.clone(), format!("{}{path}", self.url));
        let answer = request.headers(passed(&head.headers)).body(body).send().await?;
        let (status, headers) = (answer.status(), passed(answer.headers()));
        Ok((status, headers, answer.bytes().await?))
    }
}

fn passed(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    for name in OF_CONNECTION {
        passed.remove(name);
    }
    passed
}

/// Counts what a request brought that sends reports, and takes what was acknowledged.
async fn tally(shared: &Shared, head: &Parts, body: &Bytes, status: StatusCode, answer: &[u8]) {
    let is_batch = match head.uri.path() {
        "/2.0/api/events" => false,
        "/2.0/api/events/batch" => true,
        _ => return,
    };
    {
        let mut tally = shared.tally();
        tally.totals.posts += 1;
        tally.totals.batches += u64::from(is_batch);
        tally.totals.bytes += body.len() as u64;
        tally.totals.unauthorized += u64::from(status == StatusCode::UNAUTHORIZED);
        tally.totals.malformed += u64::from(status == StatusCode::BAD_REQUEST);
    }
    if !status.is_success() {
        return;
    }
    let text = match is(&head.headers, &header::CONTENT_ENCODING, "gzip") {
        true => wire::unzip(body),
        false => Some(body.to_vec()),
    };
    let text = text.unwrap_or_default();
    let acknowledged = match is_batch {
        true => acknowledged(&head.headers, &text, answer),
        false => wire::post(&text).map(|(payload, _)| vec![(head.headers.clone(), payload)]),
    };
    for (headers, payload) in acknowledged.unwrap_or_default() {
        match wire::parse(payload) {
            Some(parsed) => _ = count(shared, &headers, payload, &parsed).await,
            // It was acknowledged, and is none.
            None => shared.tally().totals.malformed += 1,
        }
    }
}

/// The reports of a batch that were acknowledged, each with the headers that it would have had alone.
fn acknowledged<'t>(headers: &HeaderMap, text: &'t [u8], answer: &[u8]) -> Option<Vec<(HeaderMap, &'t str)>> {
    let results = serde_json::from_slice::<Results>(answer).ok()?.results;
    let reports = wire::batch(text)?.into_iter().zip(results);
    let taken = reports.filter(|(_, of_one)| (200..300).contains(&of_one.status));
    taken.map(|(report, _)| Some((alone(headers, &report)?, report.payload()))).collect()
}
