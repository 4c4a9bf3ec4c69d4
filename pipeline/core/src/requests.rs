//! Questions from one part of the runtime to another, in this process or another one.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;

/// Bytes of one question, and of one answer, whatever carries them.
pub const REQUEST_BYTES: usize = 512 << 10;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Nobody serves this subject, which is certain: the question was not put to anybody.
    #[error("nobody serves `{0}`")]
    NobodyServes(String),
    /// Whoever serves it did not answer in time, or went away meanwhile: whether the question was worked on is not known.
    #[error("`{0}` was not answered in time")]
    NoAnswer(String),
    /// More bytes than a question or an answer may have.
    #[error("{0} bytes are more than the {REQUEST_BYTES} of a question or an answer")]
    TooLarge(usize),
    /// What carries questions is away: the question was not sent.
    #[error("what carries questions is not connected")]
    Away,
    /// It failed.
    #[error("{act} failed")]
    Failed {
        /// What was tried.
        act: &'static str,
        /// Why; it names subjects at most.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Refuses what is too large to travel.
///
/// # Errors
/// [`RequestError::TooLarge`].
pub fn bounded(payload: &Bytes) -> Result<(), RequestError> {
    if payload.len() > REQUEST_BYTES { Err(RequestError::TooLarge(payload.len())) } else { Ok(()) }
}

/// Carries questions and answers.
#[async_trait]
pub trait Requests: Send + Sync + fmt::Debug + 'static {
    /// Asks whoever serves `subject`, and waits for the answer `within` that time.
    ///
    /// # Errors
    /// [`RequestError`].
    async fn request(&self, subject: &str, payload: Bytes, within: Duration) -> Result<Bytes, RequestError>;

    /// Serves `subject` until what is returned is dropped. Of several who serve the same, one is asked.
    ///
    /// # Errors
    /// [`RequestError`], when nobody could ask.
    async fn serve(&self, subject: &str) -> Result<Box<dyn Questions>, RequestError>;
}

/// What is asked of whoever serves a subject.
#[async_trait]
pub trait Questions: Send {
    /// The next question; `None` when none can come any more. Cancellation-safe.
    async fn next(&mut self) -> Option<Question>;
}

/// One question. Dropped, it is not answered, and whoever asked waits until the time is over.
pub struct Question {
    payload: Bytes,
    reply: Box<dyn FnOnce(Bytes) -> BoxFuture<'static, Result<(), RequestError>> + Send>,
}

impl Question {
    /// A question that is answered through `reply`.
    pub fn new(
        payload: Bytes,
        reply: impl FnOnce(Bytes) -> BoxFuture<'static, Result<(), RequestError>> + Send + 'static,
    ) -> Self {
        Self { payload, reply: Box::new(reply) }
    }

    /// What is asked.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Answers. Whoever asked may be gone, which is no error.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn answer(self, answer: Bytes) -> Result<(), RequestError> {
        bounded(&answer)?;
        (self.reply)(answer).await
    }
}

/// Without what is asked: what is printed may end in a log.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Question({} bytes)", self.payload.len())
    }
}
