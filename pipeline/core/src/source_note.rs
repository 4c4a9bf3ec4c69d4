//! What a source tells beside its events.

use crate::Reason;

/// What a source tells beside its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceNote {
    /// A list has begun.
    Listing,
    /// One page of `objects` has been read.
    Page {
        /// Objects in the page.
        objects: usize,
    },
    /// A list is complete: `objects` are there.
    Listed {
        /// Objects in the list.
        objects: usize,
    },
    /// The watch moved: an event, a bookmark, or a connection that stands.
    Alive,
    /// One object could not be read and was skipped.
    Malformed,
    /// The watch broke and is being restarted.
    Broken(Reason),
    /// How one of several kinds stands by now.
    Kind {
        /// What keys call it.
        kind: &'static str,
        /// How it stands.
        state: KindState,
    },
    /// The watch has ended, until it begins again.
    Ended,
    /// What came and went for a while is not known any more: objects are reported as they are now.
    Gap {
        /// Of which kind.
        kind: &'static str,
    },
}

/// How a source stands with one of its kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KindState {
    /// It is watched: so many `objects` were in its last complete list.
    Watched {
        /// Objects in the list.
        objects: usize,
    },
    /// The API server serves no such objects: it is waited for.
    Absent,
    /// It cannot be read, as when a right is missing.
    Unreadable,
}
