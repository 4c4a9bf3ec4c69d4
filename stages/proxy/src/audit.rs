//! What was done, told to the platform's audit log: a place for the record is taken before an act begins, so that none is done which
//! could not be told.
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

/// Records that wait for the platform.
const WAITING: usize = 1_000;
/// In one call.
const TOGETHER: usize = 50;
/// Bytes that are told of each of a record's texts: a call of the longest is still one that the platform takes, or else one long
/// record would keep those beside it out of the log.
const LONGEST: usize = 700;
const AGAIN: Backoff = Backoff { min: Duration::from_millis(200), max: Duration::from_secs(30) };
/// What is left when the process stops has this long.
const LAST: Duration = Duration::from_secs(5);

/// What was done, or not.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    /// By whom.
    pub(crate) who: String,
    /// The name of the operation.
    pub(crate) act: &'static str,
    /// Within the runtime.
    pub(crate) place: String,
    /// `done`, or why it was not, in a word or a sentence.
    pub(crate) outcome: String,
}

impl Record {
    pub(crate) fn new(who: &str, act: &'static str, place: &str, outcome: &str) -> Self {
        Self { who: short(who), act, place: short(place), outcome: short(outcome) }
    }
}

/// Without what moves a cursor, and no longer than is told.
fn short(text: &str) -> String {
    let mut short = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if short.len() + c.len_utf8() > LONGEST {
            short.push('…');
            break;
        }
        short.push(c);
    }
    short
}

/// Takes records.
#[derive(Debug, Clone)]
pub(crate) struct Audit(mpsc::Sender<Record>);

/// Sends them.
#[derive(Debug)]
pub(crate) struct Recorder {
    platform: Platform,
    waiting: mpsc::Receiver<Record>,
}

/// A place for one record.
pub(crate) struct Place(mpsc::OwnedPermit<Record>);

impl Audit {
    pub(crate) fn new(platform: Platform) -> (Self, Recorder) {
        let (sender, waiting) = mpsc::channel(WAITING);
        (Self(sender), Recorder { platform, waiting })
    }

    /// A place for a record.
    pub(crate) fn place(&self) -> Result<Place, ActError> {
        let full =
            "the audit log has not taken what was done before: see that this app proxy reaches the platform";
        self.0.clone().try_reserve_owned().map(Place).map_err(|_| ActError::Busy(full))
    }
}

impl Place {
    pub(crate) fn take(self, record: Record) {
        self.0.send(record);
    }
}

impl Recorder {
    /// Until `stop`, and then what is left.
    pub(crate) async fn run(mut self, stop: Shutdown) {
        loop {
            let mut records = Vec::new();
            tokio::select! {
                biased;
                _ = self.waiting.recv_many(&mut records, TOGETHER) => {}
                () = stop.cancelled() => break,
            }
            if records.is_empty() {
                return;
            }
            let mut tries = 0;
            while !self.send(&records).await {
                tries += 1;
                tokio::select! {
                    () = tokio::time::sleep(AGAIN.wait(tries, None, u64::from(tries))) => {}
                    () = stop.cancelled() => { lost(&records); break }
                }
            }
        }
        self.waiting.close();
        let mut records = Vec::new();
        let rest = async {
            while self.waiting.recv_many(&mut records, TOGETHER).await > 0 {
                if !self.send(&records).await {
                    break;
                }
                records.clear();
            }
        };
        let _ = tokio::time::timeout(LAST, rest).await;
        lost(&records);
    }

    async fn send(&self, records: &[Record]) -> bool {
        match self.platform.record(&json!({ "records": records })).await {
            Ok(()) => true,
            // Said again, it would be refused again.
            Err(error) if matches!(error.status(), Some(400 | 413)) => {
                lost(records);
                true
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "acts wait to be recorded");
                false
            }
        }
    }
}

/// The log is what is left to tell of them.
fn lost(records: &[Record]) {
    for Record { who, act, place, outcome } in records {
        tracing::error!(who, act, place, outcome, "an act could not be recorded in the audit log");
    }
}
