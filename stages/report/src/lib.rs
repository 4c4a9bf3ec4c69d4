//! Where reports go.
//!
//! takes: shipments, redacted and encoded - gives: one answer per shipment - calls: `POST
//! {platform}/2.0/api/events` and below it, or writes lines to a file or to standard output - fails: "retry" or "reject",
//! as each sink says; the engine alone decides when a retry happens.

mod envelope;
pub mod file;
mod lines;
pub mod platform;
pub mod stdout;

pub use envelope::traceparent;
use pipeline_core::{ApplicationDigest, Compared, Key, ShardDigest, Shipment, StageError};

/// The sinks there are. An enum and not a plug-in: the list is what the program can do.
#[derive(Debug)]
pub enum Sink {
    /// Posts each report.
    Platform(platform::Platform),
    /// Appends lines to a file.
    File(file::File),
    /// Writes lines to standard output.
    Stdout(stdout::Stdout),
}

impl pipeline_core::Sink for Sink {
    async fn ship(&self, shipments: &[Shipment]) -> Vec<Result<(), StageError>> {
        match self {
            Self::Platform(sink) => sink.ship(shipments).await,
            Self::File(sink) => sink.ship(shipments).await,
            Self::Stdout(sink) => sink.ship(shipments).await,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Platform(sink) => sink.name(),
            Self::File(sink) => sink.name(),
            Self::Stdout(sink) => sink.name(),
        }
    }

    async fn credentials_changed(&self) {
        match self {
            Self::Platform(sink) => sink.credentials_changed().await,
            Self::File(sink) => sink.credentials_changed().await,
            Self::Stdout(sink) => sink.credentials_changed().await,
        }
    }

    async fn digest(&self, digest: &ShardDigest) -> Result<Compared, StageError> {
        match self {
            Self::Platform(sink) => sink.digest(digest).await,
            Self::File(sink) => sink.digest(digest).await,
            Self::Stdout(sink) => sink.digest(digest).await,
        }
    }

    async fn differing(&self, applications: &[ApplicationDigest]) -> Result<Option<Vec<Key>>, StageError> {
        match self {
            Self::Platform(sink) => sink.differing(applications).await,
            Self::File(sink) => sink.differing(applications).await,
            Self::Stdout(sink) => sink.differing(applications).await,
        }
    }
}
