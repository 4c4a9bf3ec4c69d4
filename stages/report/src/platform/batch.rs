//! Several reports in one request, for a platform that takes them so. Off by default: the incumbent's platform takes
//! one report a request.
//!
//! `POST {batch path}`, by default `/2.0/api/events/batch`; `Authorization`, `Content-Type: application/json` and
//! `Content-Encoding: gzip` are as for one report, and `Idempotency-Key` and `traceparent` stand in the body, beside
//! the payload that they belong to (`traceparent` only where there is a trace; as the numbers `fencingEpoch` and `clusterEra` what
//! `Fencing-Epoch` and `Cluster-Era` would have said of the report alone):
//!
//! ```json
//! {"reports": [
//!   {"idempotencyKey": "<64 hexadecimal digits>", "traceparent": "00-<trace>-<span>-01", "fencingEpoch": 7, "data": <payload>},
//!   {"idempotencyKey": "<64 hexadecimal digits>", "data": <payload>}
//! ]}
//! ```
//!
//! The answer is a 2xx with a result for each report, in their order:
//!
//! ```json
//! {"results": [{"status": 200}, {"status": 503, "retryAfter": 30}]}
//! ```
//!
//! `status` is the HTTP status that this report would have been answered alone, 100 to 999, `retryAfter` whole seconds
//! and optional; other members are ignored. The answer may have 4 KiB, and 4 KiB more for each report of the batch; one
//! that is longer counts as cut. Each result stands for itself: a 2xx acknowledges its report, 401, 403,
//! 408, 425, 429, 3xx and 5xx have it sent again, in any later batch or alone, under the same key, and so has 412 where
//! it named an epoch; any other 4xx parks it. A report is remembered by its key: one that was taken may come again, when its answer was lost.
//!
//! What a platform may rely on: no two reports of one entity are in one batch, none is sent before the one before it
//! was acknowledged, and the order within a batch means nothing. A batch has at least two reports; one alone is sent
//! as if there were no batches.
//!
//! What the answer as a whole means: 401, 403, 408, 425, 429, what a proxy says of itself (407, 421, 499), 3xx, 5xx, no answer,
//! an answer that is cut or that is no such list leave every report of the batch unacknowledged, and each is sent again later. A batch is waited for only as long as
//! each of its reports may be under way: its connection is closed then, which is no answer. Any other 4xx refuses the
//! batch and not its reports: they are sent one by one at once. Where that is 404, 405 or 415 and no batch was ever
//! taken, the platform knows no batches, and none is sent any more until the process starts again.

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pipeline_core::Shipment;
use serde::Deserialize;
use stages_client::header::{CONTENT_ENCODING, CONTENT_TYPE};
use stages_client::{Fault, HttpError, Method, Reply};

use super::{ACT, Batch, Platform, classify, is_for_now};
use crate::batching::{BatchBounds, Batching, SendsBatches, ShipResult, all};
use crate::envelope;

const BATCH: &str = "send a batch of reports";
/// Bytes of an answer, unzipped: room for a result of each report, and something around them.
const ANSWER: usize = 4 * 1024;
const RESULT: usize = 4 * 1024;

/// What is sent in batches, and what the platform makes of them.
pub(super) struct Batches {
    path: String,
    pub(super) batching: Batching,
    /// A batch was answered as one.
    taken: AtomicBool,
    /// The platform knows no batches.
    unknown: AtomicBool,
    /// It was said that a batch was refused.
    said: AtomicBool,
}

impl Batches {
    /// Those of its reports that are sent alone go so many at once.
    pub(super) fn new(settings: Batch, alone: usize) -> Self {
        let Batch { path, reports, bytes, linger } = settings;
        Self {
            path,
            batching: Batching::new(BatchBounds { reports, bytes, linger, alone }),
            taken: AtomicBool::new(false),
            unknown: AtomicBool::new(false),
            said: AtomicBool::new(false),
        }
    }

    /// Whether the platform may know batches.
    pub(super) fn are_taken(&self) -> bool {
        !self.unknown.load(Ordering::Relaxed)
    }

    /// The platform does not take a batch.
    fn refused(&self, error: &HttpError) {
        let unknown = matches!(error.status(), Some(404 | 405 | 415)) && !self.taken.load(Ordering::Relaxed);
        let error = error as &(dyn Error + 'static);
        if unknown {
            if !self.unknown.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    error,
                    "the platform knows no batches: reports are sent one by one from now on"
                );
            }
        } else if !self.said.swap(true, Ordering::Relaxed) {
            tracing::warn!(error, "the platform refuses a batch: its reports are sent one by one");
        }
    }
}

impl SendsBatches for Platform {
    async fn send_alone(&self, shipment: &Shipment) -> ShipResult {
        self.post(shipment).await
    }

    async fn send_batch(&self, shipments: &[Shipment]) -> ControlFlow<(), Vec<ShipResult>> {
        let reports = shipments.len();
        let batches = self.batches.as_deref().filter(|batches| reports > 1 && batches.are_taken());
        let Some(batches) = batches else { return ControlFlow::Break(()) };
        let body = match self.encode(envelope::batch(shipments.iter())).await {
            Ok(body) => body,
            Err(error) => return ControlFlow::Continue(all(reports, error)),
        };
        let post = async {
            let request = self
                .client
                .request_escaped(BATCH, Method::POST, &batches.path)?
                .header(CONTENT_TYPE, "application/json")
                .header(CONTENT_ENCODING, "gzip")
                .body(body);
            let request = self.client.authorize(BATCH, request, &self.token, "").await?;
            let reply = self.client.send_within(BATCH, request, ANSWER + RESULT * reports).await?;
            results(reply.checked()?, reports)
        };
        match post.await {
            Ok(results) => {
                batches.taken.store(true, Ordering::Relaxed);
                let each = results.iter().zip(shipments);
                ControlFlow::Continue(each.map(|(result, shipment)| self.answer(result, shipment)).collect())
            }
            Err(error) => match error.status() {
                Some(status @ 400..=499) if !is_for_now(status) => {
                    batches.refused(&error);
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(all(reports, error.into_retry())),
            },
        }
    }

    fn count(&self, answer: &ShipResult, took: Duration) {
        self.record(answer, took);
    }
}

impl Platform {
    fn answer(&self, result: &Outcome, shipment: &Shipment) -> ShipResult {
        if (200..300).contains(&result.status) {
            self.succeeded.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let error = self.client.error(ACT, Fault::Status(result.status));
        // A platform that names a report in its answer was addressed as it should be.
        let error = error.with_after(result.retry_after.map(Duration::from_secs));
        Err(classify(error, true, shipment.epoch.is_some()))
    }
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Outcome>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    status: u16,
    retry_after: Option<u64>,
}

/// The list that an answer is; anything else counts as an answer that is not the JSON expected.
fn results(reply: Reply, reports: usize) -> Result<Vec<Outcome>, HttpError> {
    let well = |result: &Outcome| (100..=999).contains(&result.status);
    match serde_json::from_slice::<Results>(reply.body()) {
        Ok(Results { results }) if results.len() == reports && results.iter().all(well) => Ok(results),
        Ok(_) => Err(reply.into_error(Fault::Json { line: 0, column: 0 })),
        Err(error) => Err(reply.into_error(error.into())),
    }
}
