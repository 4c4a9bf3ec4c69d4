//! Sends what events looked like in time to an OpenTelemetry collector.
//!
//! takes: what shards tell - gives: batches of spans, and counts what became of them - calls: `POST
//! {traces.otlp.url}`, OTLP as protobuf - fails: never for the reporter: while the collector is away, spans are dropped
//! and counted, which is said once
//!
//! The protocol's messages are those of the OpenTelemetry project; they are sent with the HTTP client that all peers
//! are called with. Its own exporter is not used: it lets variables of the environment overrule what it is told, and
//! tells nobody how many spans it drops.

mod otlp;

use std::time::Duration;

use anyhow::Context as _;
use pipeline_core::{Backoff, ExposeSecret as _, Shutdown};
use pipeline_observe::metrics::{Metrics, SpanResult, SpanSeries};
use pipeline_observe::spans::{SpanBatch, Tap, Taps, taps};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use stages_client::{Client, HttpError, Method, Target, Token};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::build;
use crate::config::{self, Config};

/// Spans that may wait for the collector: a few megabytes.
const WAITING: usize = 16_384;
/// Spans in a request.
const BATCH: usize = 512;
/// How long a span waits for others to go with.
const GATHER: Duration = Duration::from_secs(1);
/// Tries of a request, when the collector was there before.
const TRIES: u32 = 3;
/// Between tries that fail.
const BACKOFF: Backoff = Backoff { min: Duration::from_secs(1), max: Duration::from_secs(30) };
/// Bytes of an answer that are read: it says at most how many spans were not taken.
const ANSWER: usize = 64 * 1024;
/// What the end of the process waits for the last spans, however long other work has taken.
const LAST: Duration = Duration::from_secs(1);
const ACT: &str = "send traces";

/// Sends spans until it is told to finish.
pub(super) struct Traces {
    task: JoinHandle<()>,
    closing: Shutdown,
}

/// Begins to send spans, if the settings name a collector: without one there is neither a task nor a connection.
///
/// # Errors
/// Settings that cannot be used; that the collector is away is none.
pub(super) async fn start(config: &Config, metrics: &Metrics) -> anyhow::Result<Option<(Tap, Traces)>> {
    let Some(settings) = &config.traces else { return Ok(None) };
    let series = metrics.spans();
    let lost = series.clone();
    let (tap, taps) = taps(WAITING, settings.ratio.0, move |spans| lost.add(SpanResult::Dropped, spans));
    let exporter =
        Exporter::new(settings, taps, series).await.context("send traces (settings under `traces.otlp`)")?;
    tracing::info!(collector = %exporter.client.host(), ratio = settings.ratio.0, "events are traced");
    let closing = Shutdown::new();
    let task = tokio::spawn(exporter.run(closing.clone()));
    Ok(Some((tap, Traces { task, closing })))
}

impl Traces {
    /// Sends what waits, until `by` at the latest.
    pub(super) async fn finish(mut self, by: Instant) {
        self.closing.cancel();
        match timeout_at(by.max(Instant::now() + LAST), &mut self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => tracing::error!("the export of traces panicked"),
            Err(_) => {
                self.task.abort();
                tracing::warn!("the collector did not take the last traces in time");
            }
        }
    }
}

struct Exporter {
    taps: Taps,
    client: Client,
    path: String,
    token: Option<Token>,
    headers: HeaderMap,
    source: otlp::Source,
    series: SpanSeries,
    /// Tries that failed since the last that did not.
    failures: u32,
    /// Spans that were lost since then.
    lost: usize,
    /// That the collector rejects spans was said, and none was taken since.
    rejects: bool,
}

impl Exporter {
    async fn new(settings: &config::Traces, taps: Taps, series: SpanSeries) -> anyhow::Result<Self> {
        let otlp = &settings.otlp;
        let mut base = otlp.url.clone().context("traces.otlp.url is not set")?;
        let path = base.path().to_owned();
        base.set_path("");
        let http = stages_client::Config {
            ca_file: otlp.ca_file.clone(),
            insecure_skip_verify: otlp.insecure,
            connect_timeout: *otlp.timeout,
            max_idle: 1,
            ..stages_client::Config::new(*otlp.timeout, ANSWER)
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        for (name, value) in &otlp.headers.0 {
            let name = HeaderName::from_bytes(name.as_bytes()).context("traces.otlp.headers")?;
            let mut value = HeaderValue::from_str(value.expose_secret()).context("traces.otlp.headers")?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(Self {
            taps,
            client: http.build(Target::new(base.as_str(), "")?).await?,
            path,
            token: build::token(&otlp.token())?,
            headers,
            source: otlp::Source::new(settings),
            series,
            failures: 0,
            lost: 0,
            rejects: false,
        })
    }

    async fn run(mut self, closing: Shutdown) {
        while let Some(first) = self.next(&closing).await {
            let batch = self.gather(first, &closing).await;
            self.export(&batch, &closing).await;
        }
        while let Some(first) = self.taps.try_next() {
            let batch = self.gather(first, &closing).await;
            if self.send(&batch).await.is_err() {
                // It will not be there in the next moment either.
                let rest = std::iter::from_fn(|| self.taps.try_next()).map(|told| told.len());
                let left = spans(&batch) + rest.sum::<usize>();
                self.series.add(SpanResult::Failed, left);
                tracing::warn!(spans = left, "the collector did not take the last traces");
            }
        }
    }

    async fn next(&mut self, closing: &Shutdown) -> Option<SpanBatch> {
        tokio::select! {
            () = closing.cancelled() => None,
            told = self.taps.next() => told,
        }
    }

    /// What waits and, as long as the process works, is told within a moment; or as much as goes into a request.
    async fn gather(&mut self, first: SpanBatch, closing: &Shutdown) -> Vec<SpanBatch> {
        let until = Instant::now() + GATHER;
        let (mut held, mut batch) = (first.len(), vec![first]);
        while held < BATCH {
            let told = match self.taps.try_next() {
                Some(told) => told,
                None => match timeout_at(until, self.next(closing)).await {
                    Ok(Some(told)) => told,
                    _ => break,
                },
            };
            held += told.len();
            batch.push(told);
        }
        batch
    }

    /// Sends one request, several times if need be. One that is given up is counted, and the next waits; what is told
    /// meanwhile finds room, or is dropped.
    async fn export(&mut self, batch: &[SpanBatch], closing: &Shutdown) {
        let tries = if self.failures == 0 { TRIES } else { 1 };
        for tried in 1..=tries {
            let Err(error) = self.send(batch).await else { return };
            self.failures = self.failures.saturating_add(1);
            if self.failures == 1 {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "the collector does not take traces: they are dropped until it does");
            }
            let last = tried == tries || !may_pass(&error) || closing.is_cancelled();
            if last {
                self.lost = self.lost.saturating_add(spans(batch));
                self.series.add(SpanResult::Failed, spans(batch));
            }
            let until = Instant::now() + BACKOFF.wait(self.failures, error.after(), fastrand::u64(..));
            tokio::select! {
                () = closing.cancelled() => {}
                () = sleep_until(until) => {}
            }
            if last {
                return;
            }
        }
    }

    async fn send(&mut self, batch: &[SpanBatch]) -> Result<(), HttpError> {
        let body = self.source.request(batch);
        let request = self.client.request_escaped(ACT, Method::POST, &self.path)?;
        let mut request = request.headers(self.headers.clone()).body(body);
        if let Some(token) = &self.token {
            request = self.client.authorize(ACT, request, token, "Bearer ").await?;
        }
        let answer = self.client.send(ACT, request).await?.into_body()?;
        let all = spans(batch);
        let rejected = otlp::rejected(&answer).min(all);
        self.series.add(SpanResult::Exported, all - rejected);
        self.series.add(SpanResult::Rejected, rejected);
        if rejected > 0 && !self.rejects {
            tracing::warn!(rejected, of = all, "the collector takes traces in part");
        }
        self.rejects = rejected > 0;
        if std::mem::take(&mut self.failures) > 0 {
            let lost = std::mem::take(&mut self.lost);
            tracing::info!(lost, "the collector takes traces again");
        }
        Ok(())
    }
}

/// Whether the same request may be taken later: what the protocol lets a client try again.
fn may_pass(error: &HttpError) -> bool {
    matches!(error.status(), None | Some(429 | 502 | 503 | 504))
}

fn spans(batch: &[SpanBatch]) -> usize {
    batch.iter().map(SpanBatch::len).sum()
}
