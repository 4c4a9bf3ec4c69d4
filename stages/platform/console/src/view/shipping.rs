//! How well changes reach users.

use stages_platform_store::{Figures, Shipped};

/// The figures of a time, and of the one as long before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trend {
    /// How many days each of both is.
    pub days: u32,
    /// Until now.
    pub now: Figures,
    /// As long before; `None` where history is not kept for so long.
    pub before: Option<Figures>,
}

/// The same, with the deployments that the figures are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipping {
    /// The figures.
    pub trend: Trend,
    /// The deployments of the time until now, the newest first.
    pub deployments: Vec<Shipped>,
}
