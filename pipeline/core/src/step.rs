//! What happens to an event on its way, as it is told to whoever looks on.

use std::time::Duration;

use crate::{Call, Filtered, Key, Reason, ReportKind, Version};

/// One step in the life of an event, for whoever looks on. Holds no body and no error text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Which object.
    pub key: Key,
    /// Which state of it.
    pub version: Version,
    /// W3C trace id of the event's life.
    pub trace: u128,
    /// What happened.
    pub step: Step,
}

/// What happened to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It was taken in.
    Observed,
    /// Its state was folded into a newer one, which is read or sent in its stead.
    Coalesced(Folded),
    /// It brought no report.
    Filtered(Filtered),
    /// The rate limit delays it by this much.
    Limited(Duration),
    /// Its attempt began.
    Started {
        /// How often it was tried before.
        attempt: u32,
    },
    /// A call was made for it.
    Fetched {
        /// Which.
        call: Call,
        /// How long it took; nothing when the answer was at hand.
        took: Duration,
        /// Why it failed, if it did.
        failed: Option<Reason>,
    },
    /// Its reports are made.
    Enriched {
        /// How many there are.
        reports: usize,
        /// How long that took, calls included.
        took: Duration,
    },
    /// One of its reports was acknowledged.
    Reported {
        /// About what.
        kind: ReportKind,
        /// How long the sink took.
        took: Duration,
    },
    /// One of its reports was not taken.
    NotTaken {
        /// About what.
        kind: ReportKind,
        /// Why.
        reason: Reason,
        /// How long the sink took.
        took: Duration,
    },
    /// Every one of its reports was acknowledged.
    Acked {
        /// How long after it was taken in; for a read, after the first change that it stands for.
        after: Duration,
    },
    /// It will be tried again.
    Retried {
        /// Why.
        reason: Reason,
        /// In how long.
        after: Duration,
    },
    /// It was refused for good.
    Parked(Reason),
    /// The object is being read again.
    Reading,
    /// Something is incomplete: the object will be looked at again in this long.
    Refetch(Duration),
    /// So many facts and deletions of the object were given up, the oldest first: more came than are kept while it cannot be
    /// reported.
    GaveUp(u64),
}

/// Why an event's state was folded into another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Folded {
    /// The queue was full.
    Full,
    /// The object was to be read again already.
    Dirty,
    /// The rate limit delays the object.
    Limited,
    /// A read has shown a newer state.
    Overtaken,
    /// A later life is known.
    Former,
    /// It had to be tried again, and there was no room to keep it.
    Retried,
    /// It may be older than what was reported since, or its body was too large to travel.
    Doubted,
}

impl Folded {
    /// How it is told.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
