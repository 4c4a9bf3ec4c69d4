//! Which commit changed an application last, asked over the bus.
//!
//! takes: `{"application": <as much of the object as that depends on>}` - gives: `{"newest": {"revisions": [..],
//! "changeRevisions": [..]}}`, or `{"error": "why", "mayPass": true}` - calls: as [`Walks`] - fails: what is no question, and what
//! is too much at a time, is answered as an error

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pipeline_core::{
    Question, RequestError, Requests, Served, Service, ServiceContext, StageError, async_trait,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Newest, Walks};

/// Where it is asked.
pub const SUBJECT: &str = "change-revisions";
/// Bytes of a question: what an application depends on is a fraction of its object.
const QUESTION: usize = 256 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplicationQuestion {
    application: Value,
}

/// What travels back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    newest: Option<Newest>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    error: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    may_pass: bool,
}

/// Answers whoever asks over the bus.
pub struct AnswerOverBus {
    walks: Walks,
    bus: Arc<dyn Requests>,
}

impl AnswerOverBus {
    /// From these walks, to those who ask over `bus`.
    #[must_use]
    pub fn new(walks: Walks, bus: Arc<dyn Requests>) -> Self {
        Self { walks, bus }
    }

    async fn take(&self, given: &ServiceContext) {
        let mut served = Served::new(self.bus.clone(), SUBJECT);
        loop {
            let question = served.next().await;
            let (walks, stop) = (self.walks.clone(), given.stop.clone());
            // Whoever has no answer when the process stops asks again.
            let answer = async move {
                stop.run_until_cancelled(answer(walks, question)).await;
            };
            given.spawner.spawn(answer).await;
        }
    }
}

#[async_trait]
impl Service for AnswerOverBus {
    fn name(&self) -> &'static str {
        "change-revisions"
    }

    async fn serve(self: Box<Self>, given: ServiceContext) -> Result<(), StageError> {
        given.stop.run_until_cancelled(self.take(&given)).await;
        Ok(())
    }
}

async fn answer(walks: Walks, question: Question) {
    let found = match read(question.payload()) {
        Some(ApplicationQuestion { application }) => {
            walks.newest(&application).await.map_err(|why| (why.to_string(), why.may_pass()))
        }
        None => Err((
            format!("it is no question: ask with {{\"application\": ..}} of at most {QUESTION} bytes"),
            false,
        )),
    };
    let reply = match found {
        Ok(newest) => Reply { newest: Some(newest), error: None, may_pass: false },
        Err((why, may_pass)) => Reply { newest: None, error: Some(why), may_pass },
    };
    // Texts and JSON are always JSON.
    let text = serde_json::to_vec(&reply).unwrap_or_default();
    if let Err(error) = question.answer(text.into()).await {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "whoever asked over the bus has no answer, and asks again");
    }
}

fn read(payload: &Bytes) -> Option<ApplicationQuestion> {
    if payload.len() > QUESTION { None } else { serde_json::from_slice(payload).ok() }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The bus, or nobody who answers.
    #[error("ask over the bus which commits changed an application: {0}")]
    Bus(#[from] RequestError),
    /// It is not known.
    #[error("ask over the bus which commits changed an application: {why}")]
    NotKnown {
        /// In the words of whoever answers.
        why: String,
        /// Whether another try may tell more.
        may_pass: bool,
    },
    /// It is no answer.
    #[error("ask over the bus which commits changed an application: the answer cannot be read")]
    Malformed,
}

impl AskError {
    /// Whether another try may tell more.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        !matches!(self, Self::NotKnown { may_pass: false, .. })
    }
}

/// Asks over `bus` which commits changed an application last: `application` is as much of its object as that depends on, as JSON.
///
/// # Errors
/// [`AskError`].
pub async fn ask(bus: &dyn Requests, application: &str, within: Duration) -> Result<Newest, AskError> {
    let question = format!("{{\"application\":{application}}}");
    let answer = bus.request(SUBJECT, question.into(), within).await?;
    match serde_json::from_slice(&answer) {
        Ok(Reply { newest: Some(newest), .. }) => Ok(newest),
        Ok(Reply { error: Some(why), may_pass, .. }) => Err(AskError::NotKnown { why, may_pass }),
        _ => Err(AskError::Malformed),
    }
}
