//! Something that serves, beside pipelines.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Questions, RequestError, Requests, Shutdown, Spawner, StageError};

/// Something that serves until it is told to stop.
#[async_trait]
pub trait Service: Send + 'static {
    /// The name in logs and metrics.
    fn name(&self) -> &'static str;

    /// Serves until [`ServiceContext::stop`]. What it began with [`ServiceContext::spawner`] is awaited after that.
    async fn serve(self: Box<Self>, context: ServiceContext) -> Result<(), StageError>;
}

/// What a service works with.
#[derive(Debug, Clone)]
pub struct ServiceContext {
    /// Tells it to stop.
    pub stop: Shutdown,
    /// To ask others, and to be asked.
    pub bus: Arc<dyn Requests>,
    /// For what it does for each connection.
    pub spawner: Spawner,
    /// Where its metrics belong, which are shown with all others of the process.
    pub metrics: prometheus::Registry,
}

impl ServiceContext {
    /// What a service is given that runs without an engine: nobody is to be asked, and nobody asks.
    #[must_use]
    pub fn alone(stop: Shutdown) -> Self {
        let spawner = Spawner::new(usize::from(u16::MAX), stop.clone());
        Self { stop, bus: Arc::new(Nobody), spawner, metrics: prometheus::Registry::new() }
    }
}

/// Carries nothing.
#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Requests for Nobody {
    async fn request(&self, subject: &str, _: Bytes, _: Duration) -> Result<Bytes, RequestError> {
        Err(RequestError::NobodyServes(subject.to_owned()))
    }

    async fn serve(&self, _: &str) -> Result<Box<dyn Questions>, RequestError> {
        Err(RequestError::Away)
    }
}
