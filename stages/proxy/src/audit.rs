//! Acts, recorded in the platform's audit log. A place for the record is reserved before an act begins, so that no act is done that
//! could not be recorded.
//!
//! takes: records - gives: nothing - calls: the platform, again and again until it takes them - fails: never; an act is refused
//! while there is no place

use std::time::Duration;

use pipeline_core::{Backoff, Shutdown};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;

use crate::error::ActError;
use crate::platform::Platform;
use crate::series::ProxySeries;

/// The most records that wait for the platform.
const MAX_WAITING: usize = 1_000;
/// The most records of one call.
const BATCH: usize = 50;
/// The most bytes of each text of a record: a call of the longest records is still one that the platform takes.
const MAX_TEXT: usize = 700;
const RETRY: Backoff = Backoff { min: Duration::from_millis(200), max: Duration::from_secs(30) };

/// A record of the audit log: an act that was done, or refused.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    /// The name of the account.
    pub(crate) who: String,
    /// The name of the operation.
    pub(crate) act: &'static str,
    /// What it was done to, within the runtime.
    pub(crate) place: String,
    /// `done`, or why it was not.
    pub(crate) outcome: String,
}

impl Record {
    pub(crate) fn new(who: &str, act: &'static str, place: &str, outcome: &str) -> Self {
        Self { who: short(who), act, place: short(place), outcome: short(outcome) }
    }
}

/// A text without control characters, of at most [`MAX_TEXT`] bytes.
fn short(text: &str) -> String {
    let mut short = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if short.len() + c.len_utf8() > MAX_TEXT {
            short.push('…');
            break;
        }
        short.push(c);
    }
    short
}

/// Takes records for the audit log. Cloning shares.
#[derive(Debug, Clone)]
pub(crate) struct Audit {
    records: mpsc::Sender<Record>,
    series: ProxySeries,
}

/// Sends records to the platform.
#[derive(Debug)]
pub(crate) struct Recorder {
    platform: Platform,
    waiting: mpsc::Receiver<Record>,
    /// Records that are being sent.
    in_hand: Vec<Record>,
    series: ProxySeries,
}

/// A reserved place for one record.
pub(crate) struct RecordPermit {
    permit: mpsc::OwnedPermit<Record>,
    series: ProxySeries,
}

impl Audit {
    pub(crate) fn new(platform: Platform, series: ProxySeries) -> (Self, Recorder) {
        let (records, waiting) = mpsc::channel(MAX_WAITING);
        (
            Self { records, series: series.clone() },
            Recorder { platform, waiting, in_hand: Vec::new(), series },
        )
    }

    /// A log that sends nothing, and a receiver of its records.
    #[cfg(test)]
    pub(crate) fn kept(series: ProxySeries) -> (Self, mpsc::Receiver<Record>) {
        let (records, waiting) = mpsc::channel(MAX_WAITING);
        (Self { records, series }, waiting)
    }

    /// Whether at least half of the places are free.
    pub(crate) fn is_half_free(&self) -> bool {
        self.records.capacity() >= MAX_WAITING / 2
    }

    /// Reserves a place for one record.
    ///
    /// # Errors
    /// If all places are taken.
    pub(crate) fn reserve(&self) -> Result<RecordPermit, ActError> {
        let full =
            "the audit log has not taken what was done before: see that this app proxy reaches the platform";
        let permit = self.records.clone().try_reserve_owned().map_err(|_| ActError::Busy(full))?;
        Ok(RecordPermit { permit, series: self.series.clone() })
    }
}

impl RecordPermit {
    pub(crate) fn send(self, record: Record) {
        self.series.record_waits();
        self.permit.send(record);
    }
}

impl Recorder {
    /// Sends records until `stop`, and what is left of them for at most `last` after that. What the platform has not taken then is lost.
    pub(crate) async fn run(mut self, stop: Shutdown, last: Duration) {
        let late = async {
            stop.cancelled().await;
            tokio::time::sleep(last).await;
        };
        tokio::select! {
            () = self.send_all(&stop) => {}
            () = late => {}
        }
        self.waiting.close();
        let mut left = std::mem::take(&mut self.in_hand);
        while let Ok(record) = self.waiting.try_recv() {
            left.push(record);
        }
        self.lost(&left);
    }

    /// Sends records until `stop`, and then what is left, unless the platform does not take it.
    async fn send_all(&mut self, stop: &Shutdown) {
        let mut tries = 0;
        while !stop.is_cancelled() {
            if self.in_hand.is_empty() {
                tokio::select! {
                    biased;
                    taken = self.waiting.recv_many(&mut self.in_hand, BATCH) => {
                        if taken == 0 {
                            return;
                        }
                    }
                    () = stop.cancelled() => break,
                }
            }
            if self.send().await {
                tries = 0;
                continue;
            }
            tries += 1;
            tokio::select! {
                () = tokio::time::sleep(RETRY.wait(tries, None, u64::from(tries))) => {}
                () = stop.cancelled() => break,
            }
        }
        self.waiting.close();
        while !self.in_hand.is_empty() || self.waiting.recv_many(&mut self.in_hand, BATCH).await > 0 {
            if !self.send().await {
                return;
            }
        }
    }

    /// Sends the records in hand; `false`: some are to be sent again. Where the platform refuses a call for what it holds, each record
    /// is sent alone, and only those that are refused again are lost.
    async fn send(&mut self) -> bool {
        match self.told(&self.in_hand).await {
            RecordingOutcome::Taken => {
                self.in_hand.clear();
                return true;
            }
            RecordingOutcome::Later => return false,
            RecordingOutcome::Refused => {}
        }
        if let [_] = *self.in_hand {
            let refused = std::mem::take(&mut self.in_hand);
            self.lost(&refused);
        }
        while let Some(record) = self.in_hand.first() {
            let one = std::slice::from_ref(record);
            match self.told(one).await {
                RecordingOutcome::Taken => {}
                RecordingOutcome::Refused => self.lost(one),
                RecordingOutcome::Later => return false,
            }
            self.in_hand.remove(0);
        }
        true
    }

    async fn told(&self, records: &[Record]) -> RecordingOutcome {
        match self.platform.record(&json!({ "records": records })).await {
            Ok(()) => {
                self.series.recorded(records.len(), true);
                RecordingOutcome::Taken
            }
            Err(error) if matches!(error.status(), Some(400 | 413)) => RecordingOutcome::Refused,
            Err(error) => {
                self.series.audit_failed();
                tracing::warn!(error = &error as &dyn std::error::Error, "acts wait to be recorded");
                RecordingOutcome::Later
            }
        }
    }

    /// Logs and counts records that no audit log has.
    fn lost(&self, records: &[Record]) {
        self.series.recorded(records.len(), false);
        for Record { who, act, place, outcome } in records {
            tracing::error!(who, act, place, outcome, "an act could not be recorded in the audit log");
        }
    }
}

/// What became of records.
enum RecordingOutcome {
    Taken,
    /// The platform refuses what they hold, and would refuse it again.
    Refused,
    /// The platform did not take them, and may later.
    Later,
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::Json;
    use axum::http::StatusCode;
    use axum::routing::post;
    use serde_json::Value;
    use stages_client::{Config, Target, Token};

    use super::*;

    /// A platform that refuses what holds `refused`, and says 503 once before it takes anything. Gives the outcomes that it took.
    async fn platform(refused: &'static str, status: StatusCode) -> (Platform, Arc<Mutex<Vec<String>>>) {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let (log, is_first) = (taken.clone(), Mutex::new(true));
        let first = Arc::new(is_first);
        let record = move |Json(body): Json<Value>| {
            let (log, first) = (log.clone(), first.clone());
            async move {
                if std::mem::replace(&mut *first.lock().unwrap(), false) {
                    return (StatusCode::SERVICE_UNAVAILABLE, Json(Value::Null));
                }
                if body.to_string().contains(refused) {
                    return (status, Json(Value::Null));
                }
                for record in body["records"].as_array().unwrap() {
                    log.lock().unwrap().push(record["outcome"].as_str().unwrap().to_owned());
                }
                (StatusCode::OK, Json(Value::Null))
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let app = axum::Router::new().route("/2.0/api/audit", post(record));
        tokio::spawn(async move { axum::serve(listener, app).await });
        stages_client::install_crypto();
        let config = Config::new(Duration::from_secs(120), 1 << 20);
        let client = config.build(Target::new(&address, "").unwrap()).await.unwrap();
        (Platform { client, token: Token::literal("token") }, taken)
    }

    #[tokio::test]
    async fn a_record_that_is_refused_takes_none_of_those_beside_it_along() {
        for status in [StatusCode::BAD_REQUEST, StatusCode::PAYLOAD_TOO_LARGE] {
            let (platform, taken) = platform("unwanted", status).await;
            let (audit, recorder) = Audit::new(platform, ProxySeries::new(&prometheus::Registry::new()));
            for outcome in ["first", "unwanted", "third"] {
                audit.reserve().unwrap().send(Record::new("ada", "sync", "shop/web", outcome));
            }
            drop(audit);
            recorder.run(Shutdown::new(), Duration::ZERO).await;
            assert_eq!(*taken.lock().unwrap(), ["first", "third"], "{status}");
        }
    }

    #[tokio::test]
    async fn a_platform_that_does_not_answer_keeps_nobody_who_stops() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        stages_client::install_crypto();
        let config = Config::new(Duration::from_secs(600), 1 << 20);
        let client = config.build(Target::new(&address, "").unwrap()).await.unwrap();
        let platform = Platform { client, token: Token::literal("token") };
        let registry = prometheus::Registry::new();
        let (audit, recorder) = Audit::new(platform, ProxySeries::new(&registry));
        audit.reserve().unwrap().send(Record::new("ada", "sync", "shop/web", "done"));
        let stop = Shutdown::new();
        let running = tokio::spawn(recorder.run(stop.clone(), Duration::from_millis(50)));
        // It has been called, and says nothing.
        let called = listener.accept().await.unwrap();
        audit.reserve().unwrap().send(Record::new("ada", "sync", "shop/other", "done"));
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(120), running).await.unwrap().unwrap();
        drop(called);
        let page = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        assert!(page.contains("audit_records_total{outcome=\"lost\"} 2"), "{page}");
        assert!(page.contains("audit_records_waiting 0"), "{page}");
    }
}
