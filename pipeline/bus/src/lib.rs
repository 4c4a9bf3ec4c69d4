//! The stream between processes: what one watches, others report, and what is reported others may read.
//!
//! A [`Message`] is one change of an application or one report of it. It travels on a [`Subject`] that says whether a
//! newer one may take its place. [`jetstream`] carries it.

pub mod jetstream;
mod message;
mod subject;
mod wire;

pub use subject::{escape, plain, token};

pub use message::{About, DecodeError, EncodeError, Encoded, Kind, Message, Payload, decode};
pub use subject::{Keep, Prefix, PrefixError, Slot, Subject, SubjectError};

/// The source of watched applications in subjects.
pub const APPLICATIONS: &str = "applications";

/// The source of reports that were acknowledged in subjects.
pub const REPORTS: &str = "reports";

/// The group of consumers that report applications.
pub const REPORTER: &str = "reporter";

/// The durable through which the reporter takes what is watched of one shard.
#[must_use]
pub fn durable(shard: u32) -> jetstream::Durable {
    jetstream::Durable { group: REPORTER.to_owned(), source: APPLICATIONS.to_owned(), shard: Some(shard) }
}

/// Those of all shards: they are made together, before the first publish, so that nothing is published that nobody is to
/// receive.
#[must_use]
pub fn durables(shards: u32) -> Vec<jetstream::Durable> {
    (0..shards).map(durable).collect()
}
