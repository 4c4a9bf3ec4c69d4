//! What an event's life looked like in time, for whoever exports traces: one root span an event, from the watch to
//! its end, and a child for each thing that took time.
//!
//! takes: the steps that shards tell, what attempts note of their calls and reports - gives: a [`SpanBatch`] when an event
//! ends, and one for each try that failed before - calls: nothing - fails: never; what finds no room is dropped and
//! counted
//!
//! Built from what is recorded anyway, with explicit times, when there is something to tell. Without a [`Tap`] nothing
//! of it runs. It holds names and figures: never an object, a token, or the text of an error.

mod attempt;
mod recorder;
mod tap;

use std::time::Duration;

use pipeline_core::{Call, Key, Reason, ReportKind, Timestamp, Uid, Version};

pub use tap::{Tap, Taps, taps};

pub use attempt::AttemptSpans;
pub use recorder::Recorder;

/// Spans of one event that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanBatch {
    /// W3C trace id of the event's life: the one that `explain` shows.
    pub trace: u128,
    /// The event as a whole; `None` while it goes on.
    pub event: Option<EventSpan>,
    /// What took time in it since the last telling.
    pub spans: Vec<Span>,
    now: (Duration, Timestamp),
}

/// An event that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSpan {
    /// The id of its span, which is the parent of all others unless they name another.
    pub id: u64,
    /// The span it is a part of: the end of a life may be told in the trace of the event that first told of it.
    pub parent: Option<u64>,
    /// The trace and the root span of an event whose state this one shows as well.
    pub follows: Option<(u128, u64)>,
    /// The application that it is of.
    pub key: Key,
    /// The uid of the application, which says which of its lives this is, where that is known.
    pub uid: Option<Uid>,
    /// The version of the application that it tells of.
    pub version: Version,
    /// The shard that it was in.
    pub shard: u32,
    /// When the watch delivered it, or when it began to be read again, counted from the start of the engine.
    pub from: Duration,
    /// When it ended, counted from the start of the engine.
    pub to: Duration,
    /// How it ended.
    pub end: EventEnd,
    /// Why it ended so, from a closed set, where there is a choice.
    pub reason: Option<&'static str>,
    /// How many spans of it found no room.
    pub left_out: u32,
}

/// How an event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum EventEnd {
    /// All its reports were acknowledged.
    Acked,
    /// It brought no report.
    Filtered,
    /// Its state was folded into a newer one.
    Coalesced,
    /// It was refused for good.
    Parked,
    /// The process stopped before it ended; the next one goes on.
    Stopped,
}

impl EventEnd {
    /// The value of the attribute of the span that says so.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One thing that took time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The id of the span, which is never 0.
    pub id: u64,
    /// The id of the span that it is part of.
    pub parent: u64,
    /// When it began, counted from the start of the engine.
    pub from: Duration,
    /// When it ended, counted from the start of the engine.
    pub to: Duration,
    /// What took the time.
    pub activity: Activity,
}

/// What a process did, or waited for, during a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Waiting for its turn.
    Queue,
    /// Waiting because the application is reported too often.
    RateLimit,
    /// Waiting after a try that failed.
    RetryWait {
        /// Why the try failed.
        reason: Reason,
    },
    /// Reading the object again.
    Read {
        /// Why it failed, if it did.
        failed: Option<Reason>,
    },
    /// Making the reports.
    Enrich {
        /// How often it was tried before.
        attempt: u32,
        /// Reports made.
        reports: usize,
        /// Why it failed, if it did.
        failed: Option<Reason>,
    },
    /// One call of Argo CD.
    Call {
        /// The call.
        call: Call,
        /// Whether the answer was at hand.
        cached: bool,
        /// Why it failed, if it did.
        failed: Option<Reason>,
    },
    /// One report, from its sending to its answer.
    Report {
        /// What the report is about.
        kind: ReportKind,
        /// Why it was not taken, if it was not.
        failed: Option<Reason>,
    },
}

impl Activity {
    /// Why it failed, if it did.
    #[must_use]
    pub const fn failed(self) -> Option<Reason> {
        match self {
            Self::Read { failed }
            | Self::Enrich { failed, .. }
            | Self::Call { failed, .. }
            | Self::Report { failed, .. } => failed,
            Self::Queue | Self::RateLimit | Self::RetryWait { .. } => None,
        }
    }
}

impl SpanBatch {
    /// The wall clock's time at `at` since the engine started, reckoned back from the telling, so that a clock that is
    /// set meanwhile bends no span.
    #[must_use]
    pub fn time(&self, at: Duration) -> Timestamp {
        let (now, clock) = self.now;
        clock.checked_sub(now.saturating_sub(at)).unwrap_or(clock)
    }

    /// How many spans there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len() + usize::from(self.event.is_some())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The root span of the event whose trace this is.
#[expect(clippy::cast_possible_truncation, reason = "half of it is as random as the whole")]
pub fn root(trace: u128) -> u64 {
    (trace as u64).max(1)
}

/// The id of any other span.
pub fn span_id() -> u64 {
    fastrand::u64(1..)
}

#[cfg(test)]
mod tests;
