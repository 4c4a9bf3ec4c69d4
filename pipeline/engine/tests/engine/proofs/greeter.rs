//! A service that answers the same question over the bus and over HTTP.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use bytes::Bytes;
use pipeline_core::{Reason, Service, ServiceContext, StageError, async_trait};
use prometheus::IntCounter;

/// Where it is asked over the bus.
pub(super) const SUBJECT: &str = "greeting";

/// Greets whoever is named.
#[derive(Clone)]
pub(super) struct Greeter {
    greeted: IntCounter,
}

impl Greeter {
    pub(super) fn new() -> Self {
        Self { greeted: IntCounter::new("greeted_total", "Greetings.").unwrap() }
    }

    /// What it answers over HTTP, to be mounted where the process listens.
    pub(super) fn routes(&self) -> Router {
        let greet = async |State(greeter): State<Arc<Self>>, Path(name): Path<String>| greeter.greet(&name);
        Router::new().route("/greeting/{name}", get(greet)).with_state(Arc::new(self.clone()))
    }

    fn greet(&self, name: &str) -> String {
        self.greeted.inc();
        format!("hello, {name}")
    }
}

#[async_trait]
impl Service for Greeter {
    fn name(&self) -> &'static str {
        "greeter"
    }

    async fn serve(self: Box<Self>, given: ServiceContext) -> Result<(), StageError> {
        let refused = |error| StageError::retry(Reason::Unreachable, error);
        given.metrics.register(Box::new(self.greeted.clone())).unwrap();
        let mut questions = given.bus.serve(SUBJECT).await.map_err(refused)?;
        loop {
            let question = tokio::select! {
                () = given.stop.cancelled() => return Ok(()),
                Some(question) = questions.next() => question,
            };
            let greeter = self.clone();
            let answer = async move {
                let answer = greeter.greet(&String::from_utf8_lossy(question.payload()));
                // Whoever asked asks again.
                let _ = question.answer(Bytes::from(answer)).await;
            };
            given.spawner.spawn(answer).await;
        }
    }
}
