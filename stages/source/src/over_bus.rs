//! The source server over a bus: the same questions and answers as over HTTP, between those whom the bus lets in.
//!
//! takes: a question as JSON, `{"commit": {"repoURL": "https://git.example.com/mono.git"}}`, gzipped or not - gives:
//! `{"status": 200, "answer": ...}` or `{"status": 404, "error": "why"}`, gzipped where the question was; the status is the one
//! that HTTP would have - calls: nothing - fails: 400 what is no question, 403 what may not be asked here, 413 a question or an answer that is too large, 503
//! what takes too long or too much
//!
//! A question and an answer have [`REQUEST_BYTES`] at most. One who asks about many manifests asks about fewer at a time where
//! these are not enough.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use pipeline_core::{Question as Carried, REQUEST_BYTES, RequestError, Requests, Served, Shutdown};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, timeout};

use crate::manifests::{ManifestsRequest, ReceivedManifests};
use crate::operation::Operations;
use crate::question::{Question, SourceApi};
use crate::refusal::Refusal;
use crate::serve::ServeBounds;

/// The subject that questions are sent to.
pub const SUBJECT: &str = "source";
/// The most questions that are answered at a time; another one is refused for now.
const MAX_QUESTIONS: usize = 64;
/// The first bytes of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The most bytes of an unpacked answer: twice the files of an application.
const MAX_UNPACKED: usize = 64 << 20;

/// Why there is no answer of the source server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The bus did not carry the question, or nobody answered it.
    #[error("ask the source server over the bus: {0}")]
    Bus(#[from] RequestError),
    /// The source server refused.
    #[error("ask the source server over the bus: it answered {status}: {why}")]
    Refused {
        /// The status that HTTP would have.
        status: u16,
        /// Its reason, as it gave it.
        why: String,
    },
    /// The answer is malformed, or does not fit the question.
    #[error("ask the source server over the bus: its answer cannot be read")]
    Malformed,
}

impl AskError {
    /// Whether the source server refused for good.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { status: 400..500, .. })
    }

    fn is_too_large(&self) -> bool {
        matches!(self, Self::Bus(RequestError::TooLarge(_)) | Self::Refused { status: 413, .. })
    }
}

/// The message that answers a question.
#[derive(Serialize, Deserialize)]
struct Reply<T> {
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Answers the questions of these operations over the bus until it is told to stop. Those that are being answered then have `grace`.
/// Where the bus is away it is tried again.
pub async fn serve_over(
    bus: Arc<dyn Requests>,
    api: SourceApi,
    within: (ServeBounds, Operations),
    grace: Duration,
    stop: Shutdown,
) {
    let mut working = JoinSet::new();
    stop.run_until_cancelled(take(Served::new(bus, SUBJECT), &api, within, &mut working)).await;
    // A question without an answer by then is asked again.
    let _ = timeout(grace, async { while working.join_next().await.is_some() {} }).await;
}

/// Takes questions for as long as they come.
async fn take(
    mut served: Served,
    api: &SourceApi,
    within: (ServeBounds, Operations),
    working: &mut JoinSet<()>,
) {
    loop {
        let asked = served.next().await;
        while working.try_join_next().is_some() {}
        if working.len() >= MAX_QUESTIONS {
            let why = format!("{MAX_QUESTIONS} questions are being answered: ask again later");
            let is_packed = asked.payload().starts_with(&GZIP);
            tell(asked, written(Err(Refusal::later(why)), is_packed)).await;
            continue;
        }
        let api = api.clone();
        working.spawn(async move {
            let reply = reply(asked.payload().clone(), &api, within).await;
            tell(asked, reply).await;
        });
    }
}

async fn tell(asked: Carried, reply: Bytes) {
    if let Err(error) = asked.answer(reply).await {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "whoever asked over the bus has no answer, and asks again");
    }
}

/// The message that answers a question, whose outcome is counted.
async fn reply(payload: Bytes, api: &SourceApi, (bounds, may): (ServeBounds, Operations)) -> Bytes {
    let is_packed = payload.starts_with(&GZIP);
    let read = spawn_blocking(move || read(&payload, bounds.body)).await;
    let (operation, answer) = match read.unwrap_or_else(|_| Err(given_up())) {
        Ok(question) if !may.has(question.operation()) => {
            let operation = question.operation().name();
            (operation, Err(Refusal::not_for_you(operation)))
        }
        Ok(question) => (question.operation().name(), api.answer(question).await),
        Err(refused) => ("unread", Err(refused)),
    };
    let answered = spawn_blocking(move || {
        let status = answer.as_ref().map_or_else(|refused| refused.status, |_| StatusCode::OK);
        match written(answer, is_packed) {
            reply if reply.len() <= REQUEST_BYTES => (status, reply),
            _ => {
                let why = format!(
                    "the answer is larger than the {REQUEST_BYTES} bytes that one over the bus may have: ask for less at \
                     a time, or over HTTP"
                );
                let refused = Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why);
                (refused.status, written(Err(refused), is_packed))
            }
        }
    });
    let (status, reply) = answered.await.unwrap_or_else(|_| {
        let refused = given_up();
        (refused.status, written(Err(refused), is_packed))
    });
    api.count(operation, status);
    reply
}

fn given_up() -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the work was given up")
}

/// Reads a question, of at most `most` bytes once it is unpacked.
fn read(payload: &[u8], most: usize) -> Result<Question, Refusal> {
    let unread = || {
        let why =
            "it is no question: ask with JSON of one member, manifests, commit, files, changes or appVersion";
        Refusal::new(StatusCode::BAD_REQUEST, why)
    };
    let text = match unpacked(payload, most) {
        Ok(text) => text,
        Err(UnpackError::TooLarge) => {
            let why = "the question is larger than sourceServer.maxBody allows";
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        Err(UnpackError::Broken) => return Err(unread()),
    };
    // The parser's error may quote the question.
    serde_json::from_slice(&text).map_err(|_| unread())
}

/// Writes the message with an answer or a refusal, packed if the question was.
fn written(answer: Result<Vec<u8>, Refusal>, is_packed: bool) -> Bytes {
    let status = answer.as_ref().map_or_else(|refused| refused.status, |_| StatusCode::OK).as_u16();
    let reply = match answer {
        Ok(answer) => {
            let answer = serde_json::from_slice::<Box<RawValue>>(&answer).ok();
            Reply { status, answer, error: None }
        }
        Err(refused) => Reply { status, answer: None, error: Some(refused.why) },
    };
    // Texts and JSON are always JSON.
    let text = serde_json::to_vec(&reply).unwrap_or_default();
    if is_packed { packed(&text) } else { text.into() }
}

fn packed(text: &[u8]) -> Bytes {
    let mut packing = GzEncoder::new(Vec::new(), Compression::fast());
    // Memory takes all that is written to it.
    let _ = packing.write_all(text);
    packing.finish().unwrap_or_default().into()
}

/// Why a message cannot be unpacked.
enum UnpackError {
    TooLarge,
    Broken,
}

/// The text of a message that may be packed, of at most `most` bytes.
fn unpacked(payload: &[u8], most: usize) -> Result<Vec<u8>, UnpackError> {
    if !payload.starts_with(&GZIP) {
        return if payload.len() > most { Err(UnpackError::TooLarge) } else { Ok(payload.to_vec()) };
    }
    let mut text = Vec::new();
    let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    GzDecoder::new(payload).take(bound).read_to_end(&mut text).map_err(|_| UnpackError::Broken)?;
    if text.len() > most { Err(UnpackError::TooLarge) } else { Ok(text) }
}

/// Asks the source server over a bus.
#[derive(Debug, Clone)]
pub struct OverBus {
    bus: Arc<dyn Requests>,
    timeout: Duration,
}

impl OverBus {
    /// Over this bus; whatever is asked is answered within `timeout`.
    #[must_use]
    pub fn new(bus: Arc<dyn Requests>, timeout: Duration) -> Self {
        Self { bus, timeout }
    }

    /// Asks one question; the answer is what HTTP would give.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn ask<T: DeserializeOwned + Send + 'static>(&self, question: Question) -> Result<T, AskError> {
        self.ask_until(question, Instant::now() + self.timeout).await
    }

    /// Asks which file makes each compiled manifest: as many at a time as a question and its answer have room for.
    ///
    /// # Errors
    /// [`AskError`].
    pub async fn describe(&self, mut asked: ManifestsRequest) -> Result<ReceivedManifests, AskError> {
        let until = Instant::now() + self.timeout;
        let compiled = std::mem::take(&mut asked.compiled);
        let mut heard = ReceivedManifests::default();
        let mut files = HashSet::new();
        let mut rest: Vec<Range<usize>> = std::iter::once(0..compiled.len()).collect();
        while let Some(part) = rest.pop() {
            let some = compiled.get(part.clone()).unwrap_or_default().to_vec();
            let question = Question::Manifests(ManifestsRequest { compiled: some, ..asked.clone() });
            match self.ask_until::<ReceivedManifests>(question, until).await {
                Ok(found) if found.objects.len() == part.len() => {
                    heard.objects.extend(found.objects);
                    let new = |file: &crate::ManifestFile| files.insert((file.source, file.path.clone()));
                    heard.files.extend(found.files.into_iter().filter(new));
                    heard.versions = heard.versions.or(found.versions);
                }
                Ok(_) => return Err(AskError::Malformed),
                Err(error) if error.is_too_large() && part.len() > 1 => {
                    let middle = part.start + part.len() / 2;
                    // The first half is next.
                    rest.extend([middle..part.end, part.start..middle]);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(heard)
    }

    async fn ask_until<T: DeserializeOwned + Send + 'static>(
        &self,
        question: Question,
        until: Instant,
    ) -> Result<T, AskError> {
        let stopping = |_| AskError::Bus(RequestError::NoAnswer(SUBJECT.to_owned()));
        let payload = spawn_blocking(move || packed(&serde_json::to_vec(&question).unwrap_or_default()));
        let payload = payload.await.map_err(stopping)?;
        let within = until.saturating_duration_since(Instant::now());
        let answer = self.bus.request(SUBJECT, payload, within).await?;
        let reply = spawn_blocking(move || {
            let text = unpacked(&answer, MAX_UNPACKED).ok()?;
            serde_json::from_slice::<Reply<T>>(&text).ok()
        });
        match reply.await.map_err(stopping)? {
            Some(Reply { status: 200, answer: Some(answer), .. }) => Ok(answer),
            Some(Reply { status, error: Some(why), .. }) => Err(AskError::Refused { status, why }),
            _ => Err(AskError::Malformed),
        }
    }
}
