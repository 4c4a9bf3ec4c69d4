//! Taking reports: one in a request, or several.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::super::fault::{Fault, PeerResponse, Rule, authorized, spoil};
use super::wire::{self, InBatch, Parsed};
use super::{Arrived, Doorman, Moment, Shared};

/// The right by which a report is sent.
const EPOCH: &str = "fencing-epoch";
/// How often the versions of the object's cluster had gone back.
const ERA: &str = "cluster-era";

/// Reports at the door; whoever drops this has not answered.
struct Visit {
    doorman: Option<Doorman>,
    keys: Vec<Option<String>>,
}

impl Visit {
    fn begin(shared: &Shared, keys: Vec<Option<String>>) -> Self {
        let doorman = shared.doorman.read().unwrap_or_else(PoisonError::into_inner).clone();
        let visit = Self { doorman, keys };
        visit.tell(std::iter::repeat(Moment::Received));
        visit
    }

    fn tell(&self, moments: impl Iterator<Item = Moment>) {
        if let Some(doorman) = &self.doorman {
            self.keys.iter().zip(moments).for_each(|(key, moment)| doorman(moment, key.as_deref()));
        }
    }

    /// Every report has an answer, whole.
    fn answered(mut self, statuses: impl Iterator<Item = u16>) {
        self.tell(statuses.map(Moment::Answered));
        self.doorman = None;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.tell(std::iter::repeat(Moment::Unanswered));
    }
}

/// `POST /2.0/api/events`.
pub(super) async fn one(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let visit = Visit::begin(&shared, vec![key(&headers).map(str::to_owned)]);
    let (response, broken) = match read(&shared, &headers, &body).await {
        Err(response) => (response, false),
        Ok(text) => match text.as_deref().and_then(wire::post) {
            None => (malformed(&shared, "not a report"), false),
            Some(_) if [EPOCH, ERA].into_iter().any(|name| is_no_number(&headers, name)) => {
                (malformed(&shared, "an epoch or an era that is no whole number"), false)
            }
            Some((payload, parsed)) => {
                let answer = PeerResponse::ok("{}");
                match take(&shared, &headers, payload, &parsed).await {
                    Came::Taken => (answer.response(), false),
                    Came::Outdated => (outdated().response(), false),
                    Came::Met(rule) => spoilt(&shared, &rule.fault, answer).await,
                }
            }
        },
    };
    if !broken {
        visit.answered(std::iter::once(response.status().as_u16()));
    }
    response
}

/// `POST /2.0/api/events/batch`.
pub(super) async fn batch(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let text = match read(&shared, &headers, &body).await {
        Err(response) => return response,
        Ok(text) => text,
    };
    shared.tally().totals.batches += 1;
    let reports = text.as_deref().and_then(wire::batch);
    let read = |report: InBatch<'_>| {
        let payload = report.payload().to_owned();
        let parsed = wire::parse(&payload)?;
        Some((alone(&headers, &report)?, payload, parsed))
    };
    let Some(reports) = reports.and_then(|all| all.into_iter().map(read).collect::<Option<Vec<_>>>()) else {
        return malformed(&shared, "not a batch of reports");
    };
    let keys = reports.iter().map(|(headers, ..)| key(headers).map(str::to_owned)).collect();
    let visit = Visit::begin(&shared, keys);
    let whole = shared.faults.meet("batch", "");
    let (mut results, mut late, mut spoils) = (Vec::new(), 0, None);
    if whole.as_ref().is_none_or(|rule| rule.effect) {
        for (headers, payload, parsed) in &reports {
            let mut status = (200, None);
            match take(&shared, headers, payload, parsed).await {
                Came::Taken => {}
                Came::Outdated => status = (412, None),
                Came::Met(Rule { fault: Fault::Status { status: told, retry_after }, .. }) => {
                    shared.tally().totals.spoilt += 1;
                    status = (told, retry_after);
                }
                Came::Met(Rule { fault: Fault::Delay { ms }, .. }) => {
                    shared.tally().totals.spoilt += 1;
                    late = late.max(ms);
                }
                // It cannot happen to one report alone.
                Came::Met(rule) => spoils = Some(rule.fault),
            }
            results.push(status);
        }
    }
    if late > 0 {
        tokio::time::sleep(Duration::from_millis(late)).await;
    }
    let list: Vec<Value> = results.iter().map(|(status, after)| result(*status, *after)).collect();
    let answer = PeerResponse::ok(json!({"results": list}).to_string());
    match whole.map(|rule| rule.fault).or(spoils) {
        None => {
            visit.answered(results.iter().map(|(status, _)| *status));
            answer.response()
        }
        Some(fault) => {
            let (response, broken) = spoilt(&shared, &fault, answer).await;
            if !broken {
                visit.answered(std::iter::repeat(response.status().as_u16()));
            }
            response
        }
    }
}

fn result(status: u16, retry_after: Option<u64>) -> Value {
    match retry_after {
        None => json!({"status": status}),
        Some(after) => json!({"status": status, "retryAfter": after}),
    }
}

/// The headers that a report of a batch would have had alone.
pub(super) fn alone(headers: &HeaderMap, report: &InBatch<'_>) -> Option<HeaderMap> {
    let mut own = headers.clone();
    own.insert("idempotency-key", HeaderValue::from_str(report.idempotency_key).ok()?);
    if let Some(trace) = report.traceparent {
        own.insert("traceparent", HeaderValue::from_str(trace).ok()?);
    }
    for (name, number) in [(EPOCH, report.fencing_epoch), (ERA, report.cluster_era)] {
        if let Some(number) = number {
            own.insert(name, HeaderValue::from(number));
        }
    }
    Some(own)
}

/// Counts a request and unzips it, if it may come in; `None` when it is not gzipped JSON.
async fn read(shared: &Shared, headers: &HeaderMap, body: &Bytes) -> Result<Option<Vec<u8>>, Response> {
    {
        let mut tally = shared.tally();
        tally.totals.posts += 1;
        tally.totals.bytes += body.len() as u64;
    }
    let wanted = shared.authorization.read().unwrap_or_else(PoisonError::into_inner).clone();
    if !authorized(headers, wanted.as_ref()) {
        shared.tally().totals.unauthorized += 1;
        return Err(PeerResponse::new(401, r#"{"message":"unauthorized"}"#).response());
    }
    shared.faults.latency().await;
    let zipped = is(headers, &header::CONTENT_ENCODING, "gzip")
        && is(headers, &header::CONTENT_TYPE, "application/json");
    Ok(if zipped { wire::unzip(body) } else { None })
}

/// What becomes of a report.
enum Came {
    /// It is taken.
    Taken,
    /// It is of an owner that another has followed.
    Outdated,
    /// It met a rule, and is taken where that says so.
    Met(Rule),
}

fn outdated() -> PeerResponse {
    PeerResponse::new(412, r#"{"message":"another owner is newer"}"#)
}

/// Takes a report, unless its epoch or a rule says otherwise.
async fn take(shared: &Shared, headers: &HeaderMap, payload: &str, parsed: &Parsed) -> Came {
    shared.hold.pass(parsed, number(headers, EPOCH), key(headers)).await;
    let met = shared.faults.meet("report", &parsed.entity.app_name);
    if met.as_ref().is_none_or(|rule| rule.effect) {
        let onward = shared.onward.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(onward) = onward
            && let Err(status) = onward.pass(headers, payload).await
        {
            return Came::Met(Rule::always(Fault::Status { status, retry_after: None }));
        }
        if !count(shared, headers, payload, parsed).await {
            return Came::Outdated;
        }
    }
    met.map_or(Came::Taken, Came::Met)
}

/// Counts a report and tells of it; `false`: it is of an owner that another has followed.
pub(super) async fn count(shared: &Shared, headers: &HeaderMap, payload: &str, parsed: &Parsed) -> bool {
    let key = key(headers);
    let (duplicate, number) = {
        let mut tally = shared.tally();
        if !tally.admit(parsed, number(headers, EPOCH), key) {
            return false;
        }
        let era = number(headers, ERA).unwrap_or(0);
        (tally.take(parsed, era, key, payload), tally.totals.taken)
    };
    let onlooker = shared.onlooker.read().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(onlooker) = onlooker {
        let size = payload.len();
        onlooker(&Arrived { report: parsed, key, headers, duplicate, size, payload });
    }
    let stream = shared.stream.read().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(stream) = stream.filter(|_| !duplicate) {
        let t = jiff::Timestamp::now().as_millisecond() as f64 / 1_000.0;
        let key = key.unwrap_or_default().replace(['"', '\\'], "");
        let line = format!("{{\"n\":{},\"t\":{t},\"key\":\"{key}\",\"data\":{payload}}}\n", number - 1);
        // A file that cannot be written is told when it is closed.
        let _ = stream.send(line).await;
    }
    shared.taken.send_modify(|taken| *taken += 1);
    true
}

/// A spoilt answer, and whether it breaks off.
async fn spoilt(shared: &Shared, fault: &Fault, answer: PeerResponse) -> (Response, bool) {
    shared.tally().totals.spoilt += 1;
    let error = |_| Bytes::from_static(br#"{"message":"told to fail"}"#);
    let broken = matches!(fault, Fault::Close | Fault::Cut { .. } | Fault::Hang);
    (spoil(fault, answer, error, &shared.stop).await, broken)
}

fn malformed(shared: &Shared, what: &str) -> Response {
    shared.tally().totals.malformed += 1;
    PeerResponse::new(400, json!({"message": what}).to_string()).response()
}

fn key(headers: &HeaderMap) -> Option<&str> {
    headers.get("idempotency-key").and_then(|key| key.to_str().ok())
}

/// The epoch or the era that a report names.
fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

fn is_no_number(headers: &HeaderMap, name: &str) -> bool {
    headers.contains_key(name) && number(headers, name).is_none()
}

pub(super) fn is(headers: &HeaderMap, name: &header::HeaderName, value: &str) -> bool {
    headers.get(name).is_some_and(|own| own.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
}
