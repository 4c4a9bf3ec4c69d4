//! The vocabulary every crate of the runtime shares: events, reports, the ledger's record, the stage
//! contract, and errors.
//!
//! This crate knows no Kubernetes client, no HTTP and no broker. Stages (`stages/*`) and the engine
//! (`pipeline/engine`) both depend on it and never on each other.

mod backoff;
mod circuit;
mod counts;
mod digest;
mod digest_outcome;
mod divergence;
mod duration;
mod emitter;
mod error;
mod event;
mod fact;
mod families;
mod key;
mod labels;
mod lengthened;
mod lenient;
mod memory_permit;
mod meter;
mod names;
mod object_index;
mod object_labels;
mod parked;
mod pending;
mod places;
mod record;
mod report;
mod requests;
mod served;
mod service;
mod shipment;
mod source_note;
mod spawner;
mod stage;
mod step;
mod traceparent;
mod uid;
mod write_timed;

pub use async_trait::async_trait;
pub use backoff::Backoff;
pub use circuit::CircuitState;
pub use counts::LaneCounts;
pub use digest::{Digest, Hasher};
pub use digest_outcome::DigestOutcome;
pub use divergence::{Compared, OTHERS_AT_ONCE, ObjectDigest, Others, OthersQuestion, ShardDigest};
pub use duration::read_duration;
pub use emitter::{Emitter, Progress};
pub use error::{Reason, StageError};
pub use event::{Cause, Change, Event, Version};
pub use fact::Fact;
pub use families::Families;
pub use jiff::Timestamp;
pub use key::{Key, KeyError};
pub use labels::Labels;
pub use lengthened::Lengthened;
pub use lenient::Lenient;
pub use memory_permit::MemoryPermit;
pub use meter::{Call, Meter, NoMeter, Outcome, Peer, Pressure, Sample, Samples, Wait};
pub use names::{Names, Short};
pub use object_index::ObjectIndex;
pub use object_labels::{Labelling, ObjectLabels};
pub use parked::{Parked, Refused};
pub use pending::Pending;
pub use places::{Busy, Place, Places};
pub use record::{Checkpoint, EntityRow, Record, SendIntent, Settled, Unacked};
pub use report::{EntityId, Report, ReportKind};
pub use requests::{Question, Questions, REQUEST_BYTES, RequestError, Requests, bounded};
pub use secrecy::{ExposeSecret, SecretString};
pub use served::Served;
pub use service::{Service, ServiceContext};
pub use shipment::{Shipment, idempotency_key};
pub use source_note::{KindState, SourceNote};
pub use spawner::Spawner;
pub use stage::{
    Attempt, Enrich, Enriched, Filtered, Refetch, Remembered, Sink, Source, Survey, SurveyResult, Surveyed,
};
pub use step::{Folded, Step, Trace};
pub use traceparent::{traced, traceparent};
pub use uid::Uid;
pub use write_timed::WriteTimed;

/// Asks a component to stop; cloned to everything that runs.
pub type Shutdown = tokio_util::sync::CancellationToken;
