//! Turns watch events of Argo CD applications into reports: decides what is new, fetches live and desired
//! state, and builds the payload.
//!
//! [`plan`] is pure: it owns no I/O and no clock, and is what a replay of recorded traffic runs.

mod application;
mod canonical;
pub mod changes;
pub mod client;
pub mod content;
mod faults;
pub mod fetch;
pub mod labels;
mod members;
mod object;
mod operation_end;
mod payload;
pub mod plan;
mod responses;
pub mod settings;
pub mod sources;
pub mod stage;
mod state;
mod status;
mod ttl_set;
mod unchanged;

pub use operation_end::{OperationEnd, RequestedOperation};
pub use state::{Sections, State};
pub use status::Status;
