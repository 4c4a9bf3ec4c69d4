//! What a bus answers to whoever publishes.

/// What became of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is on the bus, or nobody is interested in it.
    Stored {
        /// Its sequence in the stream.
        sequence: u64,
        /// Whether its body travels with it ([`Message::without_body`](crate::Message::without_body)).
        whole: bool,
    },
    /// It was published before, within the window of duplicates.
    Duplicate,
    /// There is no room for it. The key of an event is to be marked dirty and published anew; for a report room is made
    /// ([`Bus::discard_reports`](crate::Bus::discard_reports)).
    Refused(Refusal),
}

/// Why the server has no room; a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The stream holds as much as it may.
    Full,
    /// The server's storage or an account's share of it is used up, or cannot be written.
    Storage,
}

impl Refusal {
    /// All reasons, for metrics that start at zero.
    pub const ALL: [Self; 2] = [Self::Full, Self::Storage];

    /// The label and log value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Storage => "storage",
        }
    }
}
