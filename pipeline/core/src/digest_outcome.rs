//! What came of comparing what was acknowledged with what a receiver holds.

/// What came of asking about one shard; a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum DigestOutcome {
    /// It holds the same.
    Equal,
    /// It holds something else, and nothing was under way.
    Differs,
    /// It holds something else, which may be what was under way.
    Unsettled,
    /// It does not compare.
    Unknown,
    /// It did not answer.
    Failed,
}

impl DigestOutcome {
    /// All, so that each starts at zero.
    pub const ALL: [Self; 5] = [Self::Equal, Self::Differs, Self::Unsettled, Self::Unknown, Self::Failed];

    /// The label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
