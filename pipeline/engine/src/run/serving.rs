//! Services beside the pipelines: begun together, watched, and drained.

use std::sync::Arc;
use std::time::Duration;

use pipeline_bus::Bus;
use pipeline_core::{Service, ServiceContext, Shutdown, Spawner, StageError};
use prometheus::Registry;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::EngineError;

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
            let context = ServiceContext {
                stop: stop.clone(),
                bus,
                spawner: spawner.clone(),
                metrics: metrics.clone(),
            };
            serving.spawn(async move {
                // In a task of its own, so that it is known whose panic it was.
                let ended = AbortOnDropHandle::new(tokio::spawn(service.serve(context))).await.ok();
                let early = !stop.is_cancelled();
                stop.cancel();
                spawner.drained().await;
                (name, early, ended)
            });
        }
        let late = async {
            stop.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        tokio::pin!(late);
        let mut result = Ok(());
        loop {
            let ended = tokio::select! {
                ended = serving.join_next() => ended,
                () = &mut late => {
                    tracing::warn!(services = serving.len(), "services, or what they had begun, did not end in time");
                    break;
                }
            };
            match ended {
                None => break,
                Some(Ok((name, true, ended))) => {
                    let source: Option<StageError> = ended.and_then(Result::err);
                    result = result.and(Err(EngineError::Service { name, source }));
                }
                Some(_) => {}
            }
        }
        result
    }
}
