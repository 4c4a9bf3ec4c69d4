//! A subject that is served for as long as somebody takes its questions, whether or not what carries them is there.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{Question, Questions, Requests};

/// Between tries to be asked.
const AGAIN: Duration = Duration::from_secs(1);

/// What is asked under one subject. Where what carries questions is away, it is tried again each second, and that is said once.
pub struct Served {
    requests: Arc<dyn Requests>,
    subject: &'static str,
    questions: Option<Box<dyn Questions>>,
    is_away: bool,
}

impl Served {
    /// Nothing is taken before [`Served::next`].
    #[must_use]
    pub fn new(requests: Arc<dyn Requests>, subject: &'static str) -> Self {
        Self { requests, subject, questions: None, is_away: false }
    }

    /// The next question; waits until there is one. Cancellation-safe.
    pub async fn next(&mut self) -> Question {
        loop {
            if let Some(questions) = &mut self.questions {
                if let Some(question) = questions.next().await {
                    return question;
                }
                self.questions = None;
                tokio::time::sleep(AGAIN).await;
            }
            match self.requests.serve(self.subject).await {
                Ok(questions) => {
                    self.is_away = false;
                    tracing::info!(subject = self.subject, "answering questions over the bus");
                    self.questions = Some(questions);
                    continue;
                }
                Err(error) if !std::mem::replace(&mut self.is_away, true) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, subject = self.subject, "nobody can ask over the bus; trying on");
                }
                Err(_) => {}
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("subject", &self.subject).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use bytes::Bytes;

    use super::*;
    use crate::RequestError;

    /// Away at every second try; whoever serves gets one question and no more.
    #[derive(Debug, Default)]
    struct Flapping {
        tries: AtomicUsize,
    }

    struct One(Option<Question>);

    #[async_trait]
    impl Questions for One {
        async fn next(&mut self) -> Option<Question> {
            self.0.take()
        }
    }

    #[async_trait]
    impl Requests for Flapping {
        async fn request(&self, _: &str, _: Bytes, _: Duration) -> Result<Bytes, RequestError> {
            Err(RequestError::Away)
        }

        async fn serve(&self, subject: &str) -> Result<Box<dyn Questions>, RequestError> {
            match self.tries.fetch_add(1, Ordering::Relaxed) {
                tries if tries % 2 == 0 => Err(RequestError::Away),
                tries => {
                    let payload = Bytes::from(format!("{subject} {tries}"));
                    let question = Question::new(payload, |_| Box::pin(async { Ok(()) }));
                    Ok(Box::new(One(Some(question))))
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn questions_come_though_what_carries_them_goes_away_again_and_again() {
        let requests = Arc::new(Flapping::default());
        let mut served = Served::new(requests.clone(), "hours");
        for tries in [1, 3, 5] {
            assert_eq!(served.next().await.payload(), format!("hours {tries}").as_bytes());
        }
        assert_eq!(requests.tries.load(Ordering::Relaxed), 6);
    }
}
