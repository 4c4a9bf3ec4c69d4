//! The stream between processes: what one watches, others report, and what is reported others may read.
//!
//! A [`Message`] is one change of an object or one report of it. A [`Bus`] carries it: [`Memory`] within one process, as it is;
//! [`jetstream`] between processes, on a [`Subject`] that says whether a newer one may take its place.

mod bus;
mod durable;
mod error;
pub mod jetstream;
mod memory;
mod message;
mod published;
mod subject;
mod wire;

pub use bus::{Acker, Bus, Delivered, Publishing};
pub use durable::Durable;
pub use error::BusError;
pub use memory::Memory;
pub use message::{About, DecodeError, EncodeError, Encoded, Kind, Message, Payload, decode};
pub use published::{Published, Refusal};
pub use subject::{CompactionKey, Keep, Prefix, PrefixError, Subject, SubjectError, escape, plain, token};

/// The source of reports that were acknowledged in subjects.
pub const REPORTS: &str = "reports";

/// The durables through which one of `group` takes what `source` publishes, for each shard: they are made together, before
/// the first publish, so that nothing is published that nobody is to receive.
#[must_use]
pub fn durables(group: &str, source: &str, shards: u32) -> Vec<Durable> {
    let of = |shard| Durable { group: group.to_owned(), source: source.to_owned(), shard: Some(shard) };
    (0..shards).map(of).collect()
}
