//! The board by which tunnel servers behind one name know of each other: a bucket of the bus.

use std::time::Duration;

use async_trait::async_trait;
use axum::body::Bytes;
use pipeline_bus::jetstream::{Bucket, Expect, Watch, Watched};
use stages_tunnel::{Board, BoardError, Posted, Watching};

/// The name of the bucket.
const TUNNELS: &str = "tunnels";
/// Between two attempts to make the bucket.
const AGAIN: Duration = Duration::from_secs(1);

/// A bucket of the bus.
#[derive(Debug)]
pub(super) struct Tunnels(Bucket);

impl Tunnels {
    /// Makes the bucket where it is absent; tries until the bus does.
    pub(super) async fn open(bus: &pipeline_bus::jetstream::JetStream) -> Self {
        let bucket = bus.bucket(TUNNELS);
        let mut is_said = false;
        while let Err(error) = bucket.ensure().await {
            if !std::mem::replace(&mut is_said, true) {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the bucket of tunnels is not made yet; trying again"
                );
            }
            tokio::time::sleep(AGAIN).await;
        }
        Self(bucket)
    }
}

#[async_trait]
impl Board for Tunnels {
    async fn put(&self, key: &str, value: Bytes, ttl: Duration) -> Result<(), BoardError> {
        self.0.put_for(key, value, ttl).await.map(drop).map_err(Into::into)
    }

    async fn remove(&self, key: &str) -> Result<(), BoardError> {
        self.0.remove(key, Expect::Anything).await.map(drop).map_err(Into::into)
    }

    fn watch(&self) -> Box<dyn Watching> {
        Box::new(BoardWatch { bucket: self.0.clone(), watch: self.0.watch(&[">".to_owned()]) })
    }
}

/// What is seen of it.
struct BoardWatch {
    bucket: Bucket,
    watch: Watch,
}

#[async_trait]
impl Watching for BoardWatch {
    async fn next(&mut self) -> Posted {
        loop {
            match self.watch.next().await {
                Watched::Listed { entries, .. } => {
                    return Posted::All(entries.into_iter().map(|entry| (entry.key, entry.value)).collect());
                }
                Watched::Changed(change) => {
                    return match change.value {
                        Some(value) => Posted::Put(change.key, value),
                        None => Posted::Removed(change.key),
                    };
                }
                Watched::Interrupted => return Posted::Interrupted,
                // A server that lost its storage has it again when it is made anew.
                Watched::Gone => {
                    if let Err(error) = self.bucket.ensure().await {
                        tracing::debug!(
                            error = &error as &dyn std::error::Error,
                            "the bucket of tunnels is gone"
                        );
                    }
                }
            }
        }
    }
}
