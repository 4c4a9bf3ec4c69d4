//! Whether a figure is better or worse than another.

use crate::measured::{Bound, Figure};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Better,
    Worse,
    /// The difference is not beyond the threshold.
    Same,
    /// The figure has no bound: nobody said what is better.
    Undirected,
}

impl Verdict {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Undirected => "",
        }
    }
}

/// Judges `b` against `a`; a difference of exactly the threshold is not beyond it.
pub(super) fn verdict(a: &Figure, b: &Figure, threshold: f64) -> Verdict {
    let Some(bound) = b.bound.or(a.bound) else { return Verdict::Undirected };
    let gain = match bound {
        Bound::AtLeast(_) => b.value - a.value,
        Bound::AtMost(_) => a.value - b.value,
    };
    if gain.abs() <= a.value.abs() * threshold {
        Verdict::Same
    } else if gain > 0.0 {
        Verdict::Better
    } else {
        Verdict::Worse
    }
}
