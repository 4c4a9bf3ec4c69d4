//! Reports the live state of objects of any kind, as it is.
//!
//! takes: an event - gives: the object with the application that it belongs to, and of states that were coalesced what changed
//! of phase and step - calls: the API server for owners and applications, where that is asked for - fails: what is no JSON
//! object is rejected; an application that cannot be found is left out
//!
//! What is special about a kind is a row of a table ([`KnownKind`]), and no code.

mod application;
mod budget;
mod filter;
mod kind;
pub mod labels;
mod nodes;
mod payload;
mod phase;
mod phases;
mod pointer;
mod stage;
mod state;
mod warnings;

pub use application::{Application, Applications, LookupError, ObjectPart, ObjectReader, Tracking};
pub use filter::{EvaluationError, Filter, FilterError};
pub use kind::{KnownKind, OwnerKind, known};
pub use payload::schema;
pub use phases::Phases;
pub use stage::{ReportOptions, ReportedKind, ResourceEnrichment, TakesApplication};
pub use warnings::WarningLimit;
