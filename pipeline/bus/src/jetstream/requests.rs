//! Questions and answers over NATS, without a stream: `<prefix>.ask.<subject>`.

use std::time::Duration;

use async_nats::{Client, Request, RequestErrorKind, Subscriber};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use pipeline_core::{Question, Questions, RequestError, Requests, bounded};

use super::JetStream;

/// Those who serve the same share the questions.
const GROUP: &str = "serving";

impl JetStream {
    fn asked(&self, subject: &str) -> String {
        format!("{}.ask.{}", self.inner.prefix.as_str(), crate::escape(subject))
    }
}

fn failed(act: &'static str, error: impl Into<async_nats::Error>) -> RequestError {
    RequestError::Failed { act, source: error.into() }
}

#[async_trait]
impl Requests for JetStream {
    async fn request(&self, subject: &str, payload: Bytes, within: Duration) -> Result<Bytes, RequestError> {
        bounded(&payload)?;
        self.connected().map_err(|_away| RequestError::Away)?;
        let asked = Request::new().payload(payload).timeout(Some(within));
        match self.inner.client.send_request(self.asked(subject), asked).await {
            Ok(answer) => bounded(&answer.payload).map(|()| answer.payload),
            Err(error) => Err(match error.kind() {
                RequestErrorKind::NoResponders => RequestError::NobodyServes(subject.to_owned()),
                RequestErrorKind::TimedOut => RequestError::NoAnswer(subject.to_owned()),
                _ => failed("asking over the bus", error),
            }),
        }
    }

    async fn serve(&self, subject: &str) -> Result<Box<dyn Questions>, RequestError> {
        let client = &self.inner.client;
        let act = "serving a subject of the bus";
        let subscribed = client.queue_subscribe(self.asked(subject), GROUP.to_owned()).await;
        let questions = subscribed.map_err(|error| failed(act, error))?;
        // The server reads what a connection says in its order.
        match tokio::time::timeout(self.inner.config.access.timeout, client.flush()).await {
            Ok(flushed) => flushed.map_err(|error| failed(act, error))?,
            Err(_) => return Err(RequestError::Away),
        }
        Ok(Box::new(SubjectQuestions { client: client.clone(), questions }))
    }
}

struct SubjectQuestions {
    client: Client,
    questions: Subscriber,
}

#[async_trait]
impl Questions for SubjectQuestions {
    async fn next(&mut self) -> Option<Question> {
        loop {
            let asked = self.questions.next().await?;
            // Who wants no answer asks nothing.
            let Some(to) = asked.reply else { continue };
            let client = self.client.clone();
            return Some(Question::new(asked.payload, move |answer| {
                let answered = async move { client.publish(to, answer).await };
                answered.map(|done| done.map_err(|error| failed("answering over the bus", error))).boxed()
            }));
        }
    }
}
