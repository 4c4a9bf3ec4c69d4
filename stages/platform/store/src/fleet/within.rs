//! A time before now, as people write it in a query.

use crate::report::{DAY, Millis};

/// How long ago something was at most, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within {
    /// How many.
    pub count: u32,
    /// Of which unit: `m`, `h` or `d`.
    pub unit: char,
}

impl Within {
    /// The time it spans, in milliseconds.
    #[must_use]
    pub fn span(self) -> Millis {
        let unit = match self.unit {
            'm' => 60_000,
            'h' => 3_600_000,
            _ => DAY,
        };
        Millis::from(self.count) * unit
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let unit = text.chars().last().filter(|unit| "mhd".contains(*unit))?;
        Some(Self { count: text.strip_suffix(unit)?.parse().ok().filter(|count| *count <= 3_650)?, unit })
    }
}
