//! Services beside the pipelines: begun together, watched, and drained.

use std::sync::Arc;
use std::time::Duration;

use pipeline_core::{Given, Service, Shutdown, Spawner, StageError};
use prometheus::Registry;
use tokio::task::JoinSet;

use super::EngineError;
use pipeline_bus::Bus;

/// Tasks that one service may have at a time.
const TASKS: usize = 1_024;

/// The services of an engine.
#[derive(Default)]
pub(super) struct Serving {
    services: Vec<Box<dyn Service>>,
}

impl Serving {
    pub(super) fn add(&mut self, service: Box<dyn Service>) {
        self.services.push(service);
    }

    /// Serves until `stop`, and gives what was begun then `grace` to end. When one ends by itself, everything is stopped.
    pub(super) async fn run(
        self,
        bus: Arc<dyn Bus>,
        metrics: Registry,
        stop: Shutdown,
        grace: Duration,
    ) -> Result<(), EngineError> {
        let mut serving = JoinSet::new();
        for service in self.services {
            let (name, spawner) = (service.name(), Spawner::new(TASKS, stop.clone()));
            let (stop, bus) = (stop.clone(), bus.clone());
            let given = Given { stop, bus, spawner: spawner.clone(), metrics: metrics.clone() };
            serving.spawn(async move {
                // In a task of its own, so that it is known whose panic it was.
                let ended = tokio::spawn(service.serve(given)).await;
                (name, ended.ok(), spawner)
            });
        }
        let mut result = Ok(());
        while let Some(ended) = serving.join_next().await {
            let Ok((name, ended, spawner)) = ended else { continue };
            if !stop.is_cancelled() {
                let source: Option<StageError> = ended.and_then(Result::err);
                result = result.and(Err(EngineError::Service { name, source }));
                stop.cancel();
            }
            if tokio::time::timeout(grace, spawner.drained()).await.is_err() {
                tracing::warn!(service = name, "what a service had begun did not end in time");
            }
        }
        result
    }
}
