//! What is read across all runtimes: lists, an application's life, searches, what needs somebody, what changed.
//!
//! takes: selections, names and moments - gives: rows of plain texts and times, none of a page's own types
//! calls: the database, over the connections that read - fails: with [`StoreError`](crate::StoreError)

mod activity;
mod changes;
mod clusters;
mod condition;
mod drifting;
mod home;
mod index;
mod life;
mod listing;
mod matrix;
mod mistyped;
mod moment;
mod search;
mod selection;
mod shipping;
mod term;
mod within;
mod workflows;

pub use activity::FleetMover;
pub use changes::{Changed, ChangedNames};
pub(crate) use changes::{NAMES, touched, upto};
pub use clusters::FleetCluster;
pub(crate) use condition::literal;
pub use condition::{Condition, Field};
pub use drifting::{DRIFT_TOGETHER, DriftManifests, Drifting, DriftingResource};
pub use home::{DayOfDeployments, FleetNeed, FleetRuntime};
#[cfg(test)]
pub(crate) use index::{HELD, LISTED};
pub(crate) use index::{Index, Indexed, indexed, write};
pub use life::{DriftOf, KnownApplication, MOST_DRIFTS, MOST_OF_LIFE, MOST_STEPS, StateOf, StepOf};
pub use listing::{ApplicationName, ListedApplication, Page, Position};
pub use matrix::{FleetMatrix, MATRIX_CELLS};
pub use mistyped::Mistyped;
pub use moment::{ManifestsAt, ObjectAt, ResourceAt};
pub use search::{FleetDeployment, FoundResource};
pub use selection::{GroupBy, Selection, SortBy};
pub use shipping::{BLAMED_FOR, Figures, MOST_SHIPPED, Shipped};
pub use term::Term;
pub use within::Within;
pub use workflows::{SeenWorkflow, WhichWorkflows};
