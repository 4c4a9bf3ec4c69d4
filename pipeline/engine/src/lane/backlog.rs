//! What a lane has to do as of now.

use std::iter::Sum;

use pipeline_core::LaneCounts;

/// What a lane took in, and what of it there is to do. It costs nothing to tell, where some of [`LaneCounts`] cost a look at each
/// key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    /// Events that came from the source, without what was read again.
    pub(crate) taken: u64,
    /// What there is to do.
    pub(crate) held: u64,
    /// What is done.
    pub(crate) over: u64,
    /// The sink is away, and nothing begins.
    pub(crate) paused: bool,
}

impl From<&LaneCounts> for Backlog {
    fn from(counts: &LaneCounts) -> Self {
        Self {
            taken: counts.observed.saturating_sub(counts.reads),
            held: counts.held(),
            over: counts.over(),
            paused: counts.paused,
        }
    }
}

impl Sum for Backlog {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            taken: sum.taken + one.taken,
            held: sum.held + one.held,
            over: sum.over + one.over,
            paused: sum.paused || one.paused,
        })
    }
}
