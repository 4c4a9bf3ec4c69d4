//! Reports the live state of objects of any kind, as it is.
//!
//! takes: an event - gives: the object, and of states that were coalesced what changed of phase and step - calls: nobody -
//! fails: what is no JSON object is rejected
//!
//! What is special about a kind is a row of a table ([`KnownKind`]), and no code.

mod kind;
pub mod labels;
mod payload;
mod phase;
mod pointer;
mod stage;
mod state;

pub use kind::{KnownKind, known};
pub use stage::ResourceEnrichment;
