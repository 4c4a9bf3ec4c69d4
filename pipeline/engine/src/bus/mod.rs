//! The stream between processes: what one watches, others report, and what is reported others may read.
//!
//! A [`Message`] is one change of an application or one report of it. It travels on a [`Subject`] that says whether a
//! newer one may take its place. [`jetstream`] carries it.

pub mod jetstream;
mod message;
mod subject;
mod wire;

pub use message::{About, DecodeError, EncodeError, Encoded, Kind, Message, Payload, decode};
pub use subject::{Keep, Prefix, PrefixError, Slot, Subject, SubjectError};
