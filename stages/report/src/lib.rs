//! Where reports go.
//!
//! takes: shipments, redacted and encoded - gives: one answer per shipment - calls: `POST
//! {platform}/2.0/api/events`, or writes lines to a file or to standard output - fails: "retry" or "reject",
//! as each sink says; the engine alone decides when a retry happens.

mod envelope;
pub mod file;
mod lines;
pub mod platform;
pub mod stdout;

pub use envelope::traceparent;
use pipeline_core::{Shipment, StageError};

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
}
