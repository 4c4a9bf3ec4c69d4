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
//! What the answer as a whole means: 401, 403, 408, 425, 429, 3xx, 5xx, no answer, an answer that is cut or that is no
//! such list leave every report of the batch unacknowledged, and each is sent again later. A batch is waited for only as long as
//! each of its reports may be under way: its connection is closed then, which is no answer. Any other 4xx refuses the
//! batch and not its reports: they are sent one by one at once. Where that is 404, 405 or 415 and no batch was ever
//! taken, the platform knows no batches, and none is sent any more until the process starts again.

use std::collections::VecDeque;
use std::error::Error;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::{Either, join_all, select};
use futures::stream;
use pipeline_core::{Shipment, StageError};
use serde::Deserialize;
use stages_client::header::{CONTENT_ENCODING, CONTENT_TYPE};
use stages_client::{Fault, HttpError, Method, Reply};
use tokio::sync::{Notify, oneshot};

use super::{ACT, Batch, Platform, classify};
use crate::envelope;
use crate::in_batch::{Waiting, all, answer_alone, while_awaited};

const BATCH: &str = "send a batch of reports";
/// Bytes of an answer, unzipped: room for a result of each report, and something around them.
const ANSWER: usize = 4 * 1024;
const RESULT: usize = 4 * 1024;

type ShipResult = Result<(), StageError>;

/// The reports that are about to be sent.
pub(super) struct Batching {
    settings: Batch,
    queue: Mutex<Queue>,
    /// Told when no request is under way any more.
    idle: Notify,
    /// A batch was answered as one.
    taken: AtomicBool,
    /// The platform knows no batches.
    unknown: AtomicBool,
    /// It was said that a batch was refused.
    said: AtomicBool,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// How many reports ever left the queue; the first that waits has this number.
    left: u64,
    /// Requests under way.
    under_way: usize,
}

/// Reports that are sent together. Whoever drops it leaves them unanswered, and whoever waits for one sends it again.
struct Load<'a> {
    batching: &'a Batching,
    reports: Vec<Waiting>,
}

impl Batching {
    pub(super) fn new(settings: Batch) -> Self {
        Self {
            settings,
            queue: Mutex::default(),
            idle: Notify::new(),
            taken: AtomicBool::new(false),
            unknown: AtomicBool::new(false),
            said: AtomicBool::new(false),
        }
    }

    /// Whether the platform may know batches.
    pub(super) fn is_taken(&self) -> bool {
        !self.unknown.load(Ordering::Relaxed)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts reports into the queue; where their answers come, and the number after the last of them.
    fn join<'a>(
        &self,
        shipments: impl Iterator<Item = &'a Shipment>,
    ) -> (Vec<oneshot::Receiver<ShipResult>>, u64) {
        let mut queue = self.queue();
        let answers = shipments.map(|shipment| {
            let (answer, answered) = oneshot::channel();
            queue.bytes += shipment.report.body.len();
            queue.waiting.push_back(Waiting { shipment: shipment.clone(), answer });
            answered
        });
        let answers = answers.collect();
        (answers, queue.left + queue.waiting.len() as u64)
    }

    /// Waits for others, where that may bring something: a request is under way, and there is room.
    async fn linger(&self) {
        let idle = self.idle.notified();
        {
            let queue = self.queue();
            let full = queue.waiting.len() >= self.settings.reports || queue.bytes >= self.settings.bytes;
            if queue.under_way == 0 || full {
                return;
            }
        }
        // Either of them will do.
        let _ = tokio::time::timeout(self.settings.linger, idle).await;
    }

    /// The next reports to be sent together, unless those before number `end` have all left the queue.
    fn load(&self, end: u64) -> Option<Load<'_>> {
        let mut queue = self.queue();
        let (mut reports, mut bytes) = (Vec::new(), 0);
        while queue.left < end || !reports.is_empty() {
            let next = queue.waiting.front().map(|waiting| waiting.shipment.report.body.len());
            let Some(size) = next else { break };
            let room = reports.len() < self.settings.reports.max(1) && bytes + size <= self.settings.bytes;
            if !reports.is_empty() && !room {
                break;
            }
            let Some(waiting) = queue.waiting.pop_front() else { break };
            queue.left += 1;
            queue.bytes = queue.bytes.saturating_sub(size);
            // Nobody waits for it any more: it is not sent.
            if !waiting.answer.is_closed() {
                bytes += size;
                reports.push(waiting);
            }
        }
        if reports.is_empty() {
            return None;
        }
        queue.under_way += 1;
        Some(Load { batching: self, reports })
    }
}

impl Load<'_> {
    fn shipments(&self) -> impl Iterator<Item = &Shipment> {
        self.reports.iter().map(|waiting| &waiting.shipment)
    }

    fn answer(mut self, answers: impl IntoIterator<Item = ShipResult>) {
        for (waiting, answer) in self.reports.drain(..).zip(answers) {
            // Whoever waited may have gone.
            let _ = waiting.answer.send(answer);
        }
    }
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        let mut queue = self.batching.queue();
        queue.under_way = queue.under_way.saturating_sub(1);
        if queue.under_way == 0 {
            self.batching.idle.notify_waiters();
        }
    }
}

impl Platform {
    /// Ships reports together with those that others ship meanwhile. Each caller waits for its own answers; one whose
    /// reports are still in the queue when the time has come sends the next batch, its own and others'.
    pub(super) async fn ship_together(&self, batching: &Batching, shipments: &[Shipment]) -> Vec<ShipResult> {
        let mut answers: Vec<Option<ShipResult>> = shipments.iter().map(|_| None).collect();
        loop {
            let open: Vec<usize> =
                (0..answers.len()).filter(|at| answers.get(*at).is_some_and(Option::is_none)).collect();
            if open.is_empty() {
                return answers.into_iter().flatten().collect();
            }
            let (coming, end) = batching.join(open.iter().filter_map(|at| shipments.get(*at)));
            let come = pin!(join_all(coming));
            let come = match select(come, pin!(batching.linger())).await {
                Either::Left((come, _)) => come,
                Either::Right(((), come)) => {
                    while let Some(load) = batching.load(end) {
                        self.send_load(load).await;
                    }
                    come.await
                }
            };
            for (at, answer) in open.into_iter().zip(come) {
                // One whose sender was given up before it was answered is sent again, under its key.
                if let Some(slot) = answers.get_mut(at) {
                    *slot = answer.ok();
                }
            }
        }
    }

    async fn send_load(&self, mut load: Load<'_>) {
        if load.reports.len() == 1 || !load.batching.is_taken() {
            return self.send_one_by_one(load).await;
        }
        let start = Instant::now();
        match self.send_batch(&mut load).await {
            ControlFlow::Continue(answers) => {
                let took = start.elapsed();
                answers.iter().for_each(|answer| self.count(answer, took));
                load.answer(answers);
            }
            ControlFlow::Break(refused) => {
                load.batching.refused(&refused);
                self.send_one_by_one(load).await;
            }
        }
    }

    async fn send_one_by_one(&self, mut load: Load<'_>) {
        let posts: Vec<_> = load.reports.drain(..).map(|waiting| self.send_alone(waiting)).collect();
        stream::iter(posts).buffer_unordered(self.concurrency).collect::<()>().await;
    }

    async fn send_alone(&self, Waiting { shipment, answer }: Waiting) {
        answer_alone(answer, self.post(&shipment)).await;
    }

    /// An answer for each report; or why the platform takes no batch, or not this one.
    async fn send_batch(&self, load: &mut Load<'_>) -> ControlFlow<HttpError, Vec<ShipResult>> {
        let (batching, reports) = (load.batching, load.reports.len());
        let body = match self.encode(envelope::batch(load.shipments())).await {
            Ok(body) => body,
            Err(error) => return ControlFlow::Continue(all(reports, error)),
        };
        let post = async {
            let request = self
                .client
                .request_escaped(BATCH, Method::POST, &batching.settings.path)?
                .header(CONTENT_TYPE, "application/json")
                .header(CONTENT_ENCODING, "gzip")
                .body(body);
            let request = self.client.authorize(BATCH, request, &self.token, "").await?;
            let reply = self.client.send_within(BATCH, request, ANSWER + RESULT * reports).await?;
            results(reply.checked()?, reports)
        };
        let posted = match while_awaited(&mut load.reports, post).await {
            Ok(posted) => posted,
            Err(error) => return ControlFlow::Continue(all(reports, error)),
        };
        match posted {
            Ok(results) => {
                batching.taken.store(true, Ordering::Relaxed);
                let each = results.iter().zip(load.shipments());
                ControlFlow::Continue(each.map(|(result, shipment)| self.answer(result, shipment)).collect())
            }
            Err(error) => match error.status() {
                Some(401 | 403 | 408 | 425 | 429) => ControlFlow::Continue(all(reports, error.into_retry())),
                Some(400..=499) => ControlFlow::Break(error),
                _ => ControlFlow::Continue(all(reports, error.into_retry())),
            },
        }
    }

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

impl Batching {
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
    let (line, column) = match serde_json::from_slice::<Results>(reply.body()) {
        Ok(Results { results }) => {
            let well = |result: &Outcome| (100..=999).contains(&result.status);
            if results.len() == reports && results.iter().all(well) {
                return Ok(results);
            }
            (0, 0)
        }
        Err(error) => (error.line(), error.column()),
    };
    Err(reply.into_error(Fault::Json { line, column }))
}
