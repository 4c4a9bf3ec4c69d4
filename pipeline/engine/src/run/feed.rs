//! From a source to the bus.

use std::sync::Arc;

use futures::future::BoxFuture;
use pipeline_core::{Event, Shutdown, Source};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::publisher::Publisher;
use super::{INBOX, spawn};
use pipeline_bus::{Bus, Keep, Message};
use pipeline_observe::metrics::Metrics;
use pipeline_ownership::sharding::Sharding;

/// What a source is published with.
#[derive(Clone)]
pub(super) struct Feed {
    /// The pipeline's name, which is the source's on the bus.
    pub(super) name: Arc<str>,
    pub(super) source: Arc<dyn Source>,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) sharding: Sharding,
}

/// Takes events, and answers `false` when nobody takes them any more.
pub(super) type Emit = Arc<dyn Fn(Event) -> BoxFuture<'static, bool> + Send + Sync>;

impl Feed {
    /// What takes the source's events until `stop`. A bus that takes everything for certain takes them at once; for another
    /// one a task sees to it that what was refused is published again, which is to be awaited at the end.
    pub(super) fn open(
        &self,
        metrics: &Metrics,
        watches: watch::Receiver<bool>,
        stop: Shutdown,
    ) -> (Emit, Option<AbortOnDropHandle<()>>) {
        if !self.bus.is_lossless() {
            let (out, events) = mpsc::channel(INBOX);
            let publisher = Publisher::new(self.clone(), metrics.bus().clone());
            let publishing = spawn(publisher.run(events, watches, stop));
            let emit = move |event| -> BoxFuture<'static, bool> {
                let out: mpsc::Sender<Event> = out.clone();
                Box::pin(async move { out.send(event).await.is_ok() })
            };
            return (Arc::new(emit), Some(publishing));
        }
        let feed = self.clone();
        let emit = move |event: Event| -> BoxFuture<'static, bool> {
            let feed = feed.clone();
            Box::pin(async move {
                let shard = feed.sharding.place(&event.key);
                feed.bus.publish(&feed.name, shard, Message::of(event), Keep::Each).await.is_ok()
            })
        };
        (Arc::new(emit), None)
    }
}
