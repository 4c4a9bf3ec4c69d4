//! The one judge of what arrived: what was lost, repeated, out of order, or is not as it should be, and how that is told.

pub mod canary;
pub mod diff;
pub mod interrupt;
mod median;
pub mod oracle;
pub mod outcome;
pub mod report;
pub mod screen;
pub mod truth;
pub mod view;
pub mod witness;

pub use median::median;
