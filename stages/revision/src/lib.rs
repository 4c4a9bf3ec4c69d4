//! Says after each sync which commits changed an application since the sync before.
//!
//! takes: an event of an Application - gives: one report when a sync brought another revision, or the paths of the application
//! changed - calls: the servers of the application's repositories, for what is not in the cache - fails: a repository that
//! cannot be had is told in the report, which is built again later; what is no Application is rejected
//!
//! Of the newest of them it says what they changed in the application's files, as lines without secrets: so whoever is told needs
//! neither the repository nor a way to it, for as long as he keeps what he was told.
//!
//! Whoever reports applications asks which commit changed one last ([`Walks::newest`]), in this process or [over the bus](over_bus).
//!
//! One walk over a repository's history serves all who ask while the walk before is under way ([`Walks`]).

mod annotations;
mod diffs;
pub mod labels;
mod newest;
pub mod over_bus;
mod report;
mod stage;
mod sync;
#[cfg(test)]
mod testing;
mod walks;

pub use annotations::{annotations, keeps_some};
pub use newest::{Newest, NotKnown};
pub use report::{ChangeReport, FileDiff, ShownChange, ShownSource, Untold};
pub use stage::RevisionEnrichment;
pub use sync::{Synced, synced};
pub use walks::{SourceQuestion, WalkError, Walks};
